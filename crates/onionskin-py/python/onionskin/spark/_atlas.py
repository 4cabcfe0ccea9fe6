"""The atlas that a job leaves: tables in the layout of the program `onionskin`, and the manifest that makes them one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .. import __version__, _onionskin
from ._files import Files
from ._work import each

# : Rows of a file: about a hundred megabytes, worth opening, and small enough to be a value in a
# row when it is checked.
ROWS_PER_FILE = {"chunks": 12_000_000, "documents": 500_000, "sketches": 250_000, "features": 2_000_000}
OTHER_ROWS = 4_000_000

TABLES_OF_SCAN = ("documents", "sites", "links", "sketches", "features")
TABLES_OF_SIMILAR = ("pairs", "clusters", "cluster_stats")
TABLES_OF_COLLECTIONS = ("collections", "collection_pages", "collection_groups", "url_rules")


# : The columns of tables that may be empty.
EMPTY = {
    "documents": "doc long, id string, url string, site long, source string, offset long, media_type string, bytes long, tokens long, title string, "
    "canonical_url string, fetched_at timestamp, payload_sha1 binary, text_fp long",
    "sites": "site long, host string, registered_domain string",
    "links": "src long, dest long",
    "sketches": "doc long, sketch array<int>",
    "features": "doc long, features array<long>",
    "pairs": "a long, b long, shared long, resemblance double, containment_a double, containment_b double, method string",
    "clusters": "cluster long, doc long, is_centre boolean, resemblance_to_centre double, kind string",
}


def folder(table: str) -> str:
    """The folder of a table inside the atlas."""
    return table.replace(".", "/", 1)


def _order(path: str) -> tuple[int, str]:
    """Files in the order of their parts, also beyond part-99999."""
    number = re.search(r"part-(\d+)", path.rsplit("/", 1)[-1])
    return (int(number.group(1)) if number else 0, path)


class AtlasFiles:
    """An atlas that is being made or extended."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.files = Files(spark, path)
        # : Files that were compared with their checksums, by checksum.
        self._sound: set[tuple[str, str]] = set()

    def manifest(self) -> dict[str, Any]:
        if not self.files.exists("manifest.json"):
            raise FileNotFoundError(f"{self.files.root} is no atlas: it has no manifest.json; run scan first")
        found: dict[str, Any] = json.loads(_onionskin.spark.checked_manifest(self.files.read("manifest.json")))
        found.setdefault("stages", {})
        return found

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        self.files.write("manifest.json", _onionskin.spark.sealed_manifest(json.dumps(manifest)))

    def write(self, table: str, frame: DataFrame, keys: list[str], rows: int) -> None:
        """Writes a table of about so many rows in order of some columns."""
        per_file = ROWS_PER_FILE.get(table.split(".")[0], OTHER_ROWS)
        n_files = max(1, -(-rows // per_file))
        columns = [F.col(key) for key in keys]
        ordered = (
            frame.repartition(1).sortWithinPartitions(*columns)
            if n_files == 1
            else frame.repartitionByRange(n_files, *columns).sortWithinPartitions(*columns)
        )
        (ordered.write.mode("overwrite").option("compression", "zstd").parquet(self.files.path(folder(table))))

    def read(self, table: str) -> DataFrame:
        """A table by the files that the manifest names: others may be left from a job that was killed."""
        entry = self.manifest()["tables"].get(table)
        if entry is None:
            raise ValueError(f"the atlas has no table {table}")
        self._ensure_sound(table, entry["files"])
        paths = [self.files.path(file["path"]) for file in entry["files"]]
        # A table without rows may have no file to take its columns from.
        return self.spark.read.parquet(*paths) if paths else self.spark.createDataFrame([], EMPTY.get(table, "fp long, doc long"))

    def _ensure_sound(self, table: str, files: list[dict[str, Any]]) -> None:
        """Compares the files of a table with the manifest, once, so that nobody computes with damaged values."""
        if all((file["path"], file["xxh3"]) in self._sound for file in files):
            return
        there = {file["path"]: file for file in self._entries([table])[table]["files"]}
        for file in files:
            found = there.get(file["path"])
            if found != file:
                what = "it is missing" if found is None else f"it has {found['rows']} rows, {found['bytes']} bytes and checksum {found['xxh3']}"
                raise ValueError(f"table {table}, {self.files.path(file['path'])}: damaged: {what}; run the stage that makes this table again")
            self._sound.add((file["path"], file["xxh3"]))

    def clear(self) -> None:
        """Removes the manifest, and then the tables that it named or that an earlier job left."""
        named = list(self.manifest()["tables"]) if self.files.exists("manifest.json") else []
        self.files.remove("manifest.json")
        known = [*TABLES_OF_SCAN, *TABLES_OF_SIMILAR, *TABLES_OF_COLLECTIONS, "chunks", "copies"]
        for table in {*named, *known}:
            self.files.remove(folder(table))

    def begin(self, tables: Iterable[str]) -> None:
        """Takes tables out of the manifest before their files are replaced: an atlas has a table whole or not at all."""
        if not self.files.exists("manifest.json"):
            return
        manifest, gone = self.manifest(), set(tables)
        if gone & set(manifest["tables"]):
            manifest["tables"] = {name: entry for name, entry in manifest["tables"].items() if name not in gone}
            self._write_manifest(manifest)

    def _entries(self, tables: list[str]) -> dict[str, dict[str, Any]]:
        """What the manifest says of tables: checksums are taken where the files are, all in one go."""
        if not tables:
            return {}
        schema = "path string, rows long, bytes long, xxh3 string"
        seen = self.files.listed([folder(table) for table in tables], ".parquet")
        if seen is not None:
            # Files that executors see themselves need not go through Spark.
            paths = self.spark.createDataFrame([(path,) for path in seen], "path string").repartition(max(1, min(len(seen), 1000)))
            found = each(paths, schema, "file").collect()
        else:
            folders = [self.files.path(folder(table)) for table in tables]
            content = self.spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(folders)
            # One file a batch: each may be a hundred megabytes.
            with one_row_batches(self.spark):
                found = each(content.select("path", "content"), schema, "file").collect()
        entries: dict[str, dict[str, Any]] = {table: {"rows": 0, "files": []} for table in tables}
        by_folder = {folder(table): table for table in tables}
        for row in sorted(found, key=lambda row: _order(str(row["path"]))):
            above, name = row["path"].rsplit("/", 1)
            # Schemes are spelled in more than one way; folders end as they were given.
            table = next(table for end, table in by_folder.items() if above.endswith("/" + end))
            entry = entries[table]
            entry["rows"] += row["rows"]
            entry["files"].append(
                {"path": f"{folder(table)}/{name}", "rows": row["rows"], "bytes": row["bytes"], "xxh3": row["xxh3"]}
            )
        return entries

    def publish(
        self,
        tables: Iterable[str],
        change: Mapping[str, Any],
        *,
        new: bool = False,
        drop_stages: Iterable[str] = (),
        drop_counts: Iterable[str] = (),
    ) -> dict[str, Any]:
        """Takes tables into the manifest, which is replaced last."""
        manifest: dict[str, Any] = {
            "format_version": 1,
            "tool": f"onionskin {__version__}",
            "recipe": "",
            "seed": 0,
            "inputs": [],
            "extractors": {},
            "counts": {},
            "stages": {},
            "tables": {},
        }
        if not new:
            manifest = self.manifest()
        for stage in list(drop_stages):
            manifest.setdefault("stages", {}).pop(stage, None)
        for start in drop_counts:
            for count in [count for count in manifest["counts"] if count.startswith(start)]:
                del manifest["counts"][count]
        manifest["tables"].update(self._entries(list(tables)))
        for key, value in change.items():
            if isinstance(value, Mapping):
                manifest.setdefault(key, {}).update(value)
            else:
                manifest[key] = value
        self._write_manifest(manifest)
        return manifest


@contextmanager
def one_row_batches(spark: SparkSession) -> Iterator[None]:
    """For rows that are whole files."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key, None)
    spark.conf.set(key, "1")
    try:
        yield
    finally:
        restore(spark, {key: before})


def settings(spark: SparkSession) -> dict[str, str | None]:
    """Settings that tables depend on, changed for a job; gives those of before."""
    wanted = {
        # Dates as numbers that everybody reads.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        # Dates before 1900, which crawls do claim, as they are.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.skewJoin.enabled": "true",
        # Rows carry the chunks of whole documents: ten thousand of them, the default, may be
        # gigabytes. Newer versions count bytes, too.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    }
    before: dict[str, str | None] = {}
    for key, value in wanted.items():
        before[key] = spark.conf.get(key, None)
        spark.conf.set(key, value)
    return before


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
