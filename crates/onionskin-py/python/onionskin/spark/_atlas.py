"""The atlas that a job leaves: tables in the layout of the program `onionskin`, and the manifest that makes them one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .. import __version__
from ._files import Files
from ._work import each

#: Rows of a file: about a hundred megabytes, worth opening, and small enough to be a value in a row when it is checked.
ROWS_PER_FILE = {"chunks": 12_000_000, "documents": 500_000, "sketches": 250_000, "features": 2_000_000}
OTHER_ROWS = 4_000_000

TABLES_OF_SCAN = ("documents", "sites", "links", "sketches", "features")
TABLES_OF_SIMILAR = ("pairs", "clusters", "cluster_stats")
TABLES_OF_COLLECTIONS = ("collections", "collection_pages", "collection_groups", "url_rules")


def folder(table: str) -> str:
    """The folder of a table inside the atlas."""
    return table.replace(".", "/", 1)


class AtlasFiles:
    """An atlas that is being made or extended."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.files = Files(spark, path)

    def manifest(self) -> dict[str, Any]:
        if not self.files.exists("manifest.json"):
            raise FileNotFoundError(f"{self.files.root} is no atlas: it has no manifest.json; run scan first")
        found: dict[str, Any] = json.loads(self.files.read("manifest.json"))
        return found

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
        return self.spark.read.parquet(self.files.path(folder(table)))

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
            spread = content.select("path", "content").repartition(1000, "path")
            found = each(spread, schema, "file").collect()
        entries: dict[str, dict[str, Any]] = {table: {"rows": 0, "files": []} for table in tables}
        by_folder = {folder(table): table for table in tables}
        for row in sorted(found, key=lambda row: str(row["path"])):
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
        drop_tables: Iterable[str] = (),
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
        for table in [table for table in manifest["tables"] if table in set(drop_tables)]:
            del manifest["tables"][table]
            self.files.remove(folder(table))
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
        # Empty maps are left out, as the program does.
        if not manifest["stages"]:
            del manifest["stages"]
        self.files.write("manifest.json", json.dumps(manifest, indent=2, sort_keys=False))
        return manifest


def settings(spark: SparkSession) -> dict[str, str | None]:
    """Settings that tables depend on, changed for a job; gives those of before."""
    wanted = {
        # Dates as numbers that everybody reads.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.skewJoin.enabled": "true",
        # Rows carry the chunks of whole documents: ten thousand of them, the default, may be gigabytes. Newer versions count bytes, too.
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
