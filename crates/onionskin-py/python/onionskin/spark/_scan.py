"""The scan: inputs become documents, sites, links and fingerprints.

Whatever reads an input reads it once. A unit of the inputs is a file, or a part of one that can be entered in the middle; the kernel of the program turns
it into rows: documents with their fingerprints, and notes of what could not be read. Numbers are given afterwards: a document has the number of
documents before it, by source, task and row, which is the order of a scan on one machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ._atlas import AtlasFiles, one_row_batches
from ._files import local_path
from ._work import Work, each

if TYPE_CHECKING:
    import pyarrow as pa

# : Tasks of a file that can be entered in the middle that make a unit: 64 MB of JSON lines, 256 MB
# of compressed WARC.
TASKS_OF_UNIT = 8

# : Bytes that go to Spark at a time, about.
BATCH_BYTES = 16 << 20

# : Bad records that the manifest tells one by one.
EXAMPLES = 20

DOCUMENT, BAD_RECORD, SKIPPED, TASK = 0, 1, 2, 3

# : How inputs are read, as the manifest spells it.
READING: dict[str, Any] = {
    "text_field": "text,content,raw_content",
    "id_field": "id,doc_id",
    "url_field": "url,meta.url,metadata.url",
    "date_field": "date,date_download,timestamp,meta.timestamp,metadata.date_download,created",
    "text_is_html": False,
    "text_digests": False,
    "any_status": False,
    "follow_links": False,
    "hosts": False,
    "base_url": None,
    "crawl_files": False,
    "postscript": False,
    "format": None,
    "max_record_bytes": 64 << 20,
    "max_text_bytes": 64 << 20,
    "task_bytes": 8 << 20,
    "pdf": "built-in",
}


@dataclass(frozen=True)
class Recipe:
    """The parts of a recipe's spelling that decide about tables."""

    spelling: str

    @property
    def kept(self) -> list[str]:
        return [part for part in self.spelling.split("+")[1:] if part != "sketch"]

    @property
    def main(self) -> str:
        return self.spelling.split("-", 1)[0]

    @property
    def sketches(self) -> bool:
        return "sketch" in self.spelling.split("+")[1:]

    @property
    def for_work(self) -> str:
        """The same with the main chunks kept, which pairs are verified on."""
        return self.spelling if self.main in self.kept else f"{self.spelling}+{self.main}"


def column_of(chunking: str) -> str:
    return "chunks_" + chunking.replace("-", "_")


def schema_of(recipe: Recipe) -> str:
    """The rows that the kernel makes."""
    chunks = "".join(f", {column_of(chunking)} array<long>" for chunking in Recipe(recipe.for_work).kept)
    return (
        "what int, source long, task long, row long, id string, url string, host string, title string, canonical_url string, media_type string, "
        "offset long, bytes long, tokens long, text_fp long, url_fp long, fetched_at timestamp, payload_sha1 binary, revisit boolean, "
        f"links array<long>, features array<long>, sketch array<int>{chunks}, code string, place string, reason string, count long"
    )


def _rows(stream: Any) -> Iterator[pa.RecordBatch]:
    """Rows in batches that are not too large for whoever takes them: a task may be a hundred megabytes of pages."""
    import pyarrow as pa

    table = pa.table(stream)
    rows = max(1, table.num_rows * BATCH_BYTES // max(table.nbytes, 1))
    yield from table.to_batches(max_chunksize=rows)


def _note(template: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """One row that is a note and nothing else."""
    import pyarrow as pa

    columns = [pa.array([template.get(field.name)], field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def read_units(config: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads units of the plan. Runs in the executors."""
    from onionskin._onionskin import spark as kernels

    worker = kernels.Worker(config["recipe"], config["seed"], config["reading"])
    for batch in batches:
        for unit in batch.to_pylist():
            worker.unit(unit["inputs"], unit["nth"], unit["name"], unit["first"], unit["tasks"])
            while (rows := worker.next(unit["source"])) is not None:
                yield from _rows(rows)


def read_contents(config: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads files whose bytes Spark has fetched. Runs in the executors."""
    from onionskin._onionskin import spark as kernels

    worker = kernels.Worker(config["recipe"], config["seed"], config["reading"])
    for batch in batches:
        for at in range(batch.num_rows):
            source, name = batch.column("source")[at].as_py(), batch.column("path")[at].as_py()
            try:
                worker.content(name, batch.column("content")[at].as_py())
            except ValueError as error:
                # A file among many that is no corpus is no reason to stop.
                place = {"what": BAD_RECORD, "source": source, "task": 0, "row": 0, "code": "unknown_format", "place": name}
                yield from _note({**place, "reason": str(error).splitlines()[0], "count": 1}, _arrow_schema(config["recipe"]))
                continue
            while (rows := worker.next(source)) is not None:
                yield from _rows(rows)


def read_rows(config: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes documents of rows of a table. Runs in the executors."""
    from onionskin._onionskin import spark as kernels

    worker = kernels.Worker(config["recipe"], config["seed"], config["reading"])
    for batch in batches:
        if batch.num_rows:
            yield from _rows(worker.rows(batch, config["name"], 0))


def _arrow_schema(recipe: str) -> pa.Schema:
    """The schema of rows, from a kernel that has read nothing."""
    import pyarrow as pa

    from onionskin._onionskin import spark as kernels

    worker = kernels.Worker(recipe, 1, json.dumps(READING))
    worker.content("nothing.jsonl", b"\n")
    return pa.table(worker.next(0)).schema


SOURCES = "source long, name string, bytes long, format string, files array<string>"
"""What is known of a source. It has files if its name is no path."""


@dataclass
class Plan:
    """What is to be read, and what it is: a word that changes when an input does."""

    identity: str
    # : What the executors get, a row a unit or a file.
    rows: DataFrame
    units: int
    # : as in SOURCES
    sources: DataFrame
    direct: bool


@dataclass
class Scanned:
    """What a scan has read, and the numbers of its documents."""

    recipe: Recipe
    rows: DataFrame
    # : as in SOURCES
    sources: DataFrame
    work: Work

    def _starts(self) -> DataFrame:
        """For every task the number of its first document."""
        counts = self.rows.where(F.col("what") == DOCUMENT).groupBy("source", "task").count()
        before = Window.partitionBy("source").orderBy("task").rowsBetween(Window.unboundedPreceding, -1)
        tasks = counts.withColumn("in_source", F.coalesce(F.sum("count").over(before), F.lit(0)))
        all_before = Window.partitionBy(F.lit(0)).orderBy("source").rowsBetween(Window.unboundedPreceding, -1)
        sources = counts.groupBy("source").agg(F.sum("count").alias("n"))
        sources = sources.withColumn("of_source", F.coalesce(F.sum("n").over(all_before), F.lit(0)))
        joined = tasks.join(F.broadcast(sources), "source")
        return joined.select("source", "task", (F.col("in_source") + F.col("of_source")).alias("start"))

    def documents(self) -> DataFrame:
        """Documents with their numbers. Nothing is moved: the numbers of tasks are small and go to the rows."""
        if "doc" in self.rows.columns:
            return self.rows.where(F.col("what") == DOCUMENT)
        starts = self.work.step("task-starts", self._starts)
        found = self.rows.where(F.col("what") == DOCUMENT).join(F.broadcast(starts), ["source", "task"])
        return found.withColumn("doc", F.col("start") + F.col("row")).drop("start")


def plan(spark: SparkSession, inputs: Sequence[str], reading: Mapping[str, Any], io: str) -> Plan:
    """What there is to read: by the executors themselves where they see files, else through Spark."""
    from onionskin._onionskin import spark as kernels

    if io not in ("auto", "direct", "spark"):
        raise ValueError(f"unknown io {io!r}; known are auto, direct, spark")
    if io == "direct" or (io == "auto" and all(local_path(path) is not None for path in inputs)):
        plain = [local_path(path) or path for path in inputs]
        units, identity = kernels.plan(plain, json.dumps(dict(reading)), TASKS_OF_UNIT)
        names = {unit[0]: (unit[3], unit[4], unit[5], unit[8]) for unit in units}
        sources = spark.createDataFrame([(source, *of) for source, of in sorted(names.items())], SOURCES)
        rows = [(at, unit[0], unit[1], unit[2], unit[3], unit[6], unit[7]) for at, unit in enumerate(units)]
        schema = "id long, source long, inputs array<string>, nth long, name string, first long, tasks long"
        return Plan(identity, spark.createDataFrame(rows, schema), len(units), sources, True)

    # In the order of the inputs, and by name in each.
    found: list[tuple[str, int, str]] = []
    for path in inputs:
        listed = _fetched(spark, [path]).select("path", "length", F.col("modificationTime").cast("string").alias("changed")).collect()
        found += sorted((row["path"], int(row["length"]), row["changed"]) for row in listed)
    if not found:
        raise FileNotFoundError(f"no file in {', '.join(inputs)}")
    identity = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    numbers = [(source, path, length) for source, (path, length, _) in enumerate(found)]
    known = spark.createDataFrame(numbers, "source long, path string, bytes long")
    none = F.array().cast("array<string>").alias("files")
    sources = known.select("source", F.col("path").alias("name"), "bytes", F.lit("file").alias("format"), none)
    return Plan(identity, known.select("source", "path"), len(numbers), sources, False)


def _fetched(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(inputs))


def read_planned(
    spark: SparkSession, work: Work, what: Plan, inputs: Sequence[str], recipe: Recipe, seed: int, reading: Mapping[str, Any]
) -> Scanned:
    """Reads what was planned."""
    config = {"recipe": recipe.for_work, "seed": seed, "reading": json.dumps(dict(reading))}
    schema = schema_of(recipe)
    if what.direct:
        # A partition a unit: they are as large as each other as can be had, and a lost one costs
        # little.
        ids = spark.range(0, what.units, 1, max(1, min(what.units, 50_000)))
        spread = ids.join(F.broadcast(what.rows), "id")
        read = work.step("rows", lambda: spread.mapInArrow(functools.partial(read_units, config), schema))
    else:
        files = _fetched(spark, inputs).select("path", "content").join(F.broadcast(what.rows), "path")
        # A file of a gigabyte is a row of a gigabyte: never two in a batch.
        with one_row_batches(spark):
            read = work.step("rows", lambda: files.mapInArrow(functools.partial(read_contents, config), schema))
    return Scanned(recipe, read, what.sources, work)


def read_frame(
    spark: SparkSession,
    work: Work,
    frame: DataFrame,
    name: str,
    columns: Mapping[str, str | None],
    order_by: Sequence[str],
    recipe: Recipe,
    seed: int,
    reading: Mapping[str, Any],
) -> Scanned:
    """Documents out of the rows of a table that Spark knows, numbered in the order of some of its columns."""
    config = {"recipe": recipe.for_work, "seed": seed, "reading": json.dumps(dict(reading)), "name": name}

    def column(key: str) -> Any:
        found = columns.get(key)
        return (F.col(found) if found else F.lit(None)).cast("string").alias(key)

    keys = {f"_order_{at}": F.col(key) for at, key in enumerate(order_by)}
    # Rows that are alike in these columns follow their texts; where those are equal, it does not
    # matter who is first.
    keys["_order_text"] = F.xxhash64(*[F.col(name) for name in columns.values() if name])
    chosen = frame.select(column("text"), column("id"), column("url"), *[key.alias(name) for name, key in keys.items()])
    ordered = work.numbered("order", chosen, list(keys), "row").select("text", "id", "url", "row")
    read = work.step("rows", lambda: ordered.mapInArrow(functools.partial(read_rows, config), schema_of(recipe)))
    # Rows that were no documents leave gaps, and numbers have none.
    documents = read.where(F.col("what") == DOCUMENT)
    notes = read.where(F.col("what") != DOCUMENT).withColumn("doc", F.lit(None).cast("long"))
    numbered = work.numbered("documents", documents, ["row"], "doc")
    rows = work.step("numbered", lambda: numbered.unionByName(notes))
    size = rows.where((F.col("what") == TASK) & (F.col("code") == "text_bytes")).agg(F.sum("count")).first()
    about: list[tuple[int, str, int, str, list[str]]] = [(0, name, int(size[0] or 0) if size else 0, "table", [])]
    return Scanned(recipe, rows, spark.createDataFrame(about, SOURCES), work)


def write_tables(atlas: AtlasFiles, scanned: Scanned, seed: int, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the tables of a scan, and the manifest."""
    import onionskin
    from onionskin._onionskin import spark as kernels

    work, recipe = scanned.work, scanned.recipe
    documents = scanned.documents()

    hosts = documents.where("host is not null").groupBy("host").agg(F.min("doc").alias("first"))
    numbered = work.numbered("hosts", hosts, ["first"], "site").select("site", "host")
    domains = each(numbered.select("host"), "host string, registered_domain string", "domains")
    sites = work.step("sites", lambda: numbered.join(domains, "host", "left").select("site", "host", "registered_domain"))

    # An address that was read more than once belongs to its first document.
    addresses = documents.where("url_fp is not null").groupBy("url_fp").agg(F.min("doc").alias("dest"))
    found = documents.select(F.col("doc").alias("src"), F.explode("links").alias("url_fp"))
    links = work.step("links", lambda: found.join(addresses, "url_fp").select("src", "dest").distinct())

    numbers = documents.agg(
        F.count("*").alias("documents"),
        F.sum(F.when(F.col("text_fp").isNull() & ~F.col("revisit"), 1).otherwise(0)).alias("empty_documents"),
        F.sum(F.col("revisit").cast("long")).alias("revisits"),
        F.sum("tokens").alias("tokens"),
        F.sum(F.coalesce(F.size("links"), F.lit(0))).alias("links_found"),
    ).first()
    counts = {key: int(value or 0) for key, value in (numbers.asDict() if numbers else {}).items()}
    counts["sites"], counts["links"] = sites.count(), links.count()
    notes = scanned.rows.where(F.col("what") != DOCUMENT)
    told = notes.groupBy("what", "code", F.when(F.col("what") == SKIPPED, F.col("reason")).alias("reason"))
    for row in told.agg(F.sum("count").alias("n")).collect():
        name = {BAD_RECORD: f"bad_records.{row['code']}", SKIPPED: f"skipped.{row['reason']}", TASK: row["code"]}[row["what"]]
        counts[name] = int(row["n"])
    for key in ("input_bytes", "text_bytes"):
        counts.setdefault(key, 0)

    n = counts["documents"]
    names = F.broadcast(scanned.sources.select("source", "name"))
    rows = documents.drop("site").join(names, "source").join(sites.select("host", "site"), "host", "left")
    columns = "doc id url site name offset media_type bytes tokens title canonical_url fetched_at payload_sha1 text_fp".split()
    atlas.write("documents", rows.select(*columns).withColumnRenamed("name", "source"), ["doc"], n)
    atlas.write("sites", sites, ["site"], counts["sites"])
    atlas.write("links", links, ["src", "dest"], counts["links"])
    tables = ["documents", "sites", "links"]
    for chunking in recipe.kept:
        chunks = documents.select("doc", F.posexplode(column_of(chunking)).alias("at", "fp"))
        size = documents.agg(F.sum(F.size(column_of(chunking)))).first()
        # In a document they stay in the order in which they come.
        _write_chunks(atlas, f"chunks.{chunking}", chunks, int(size[0] or 0) if size else 0)
        tables.append(f"chunks.{chunking}")
    if recipe.sketches:
        atlas.write("sketches", documents.where("sketch is not null").select("doc", "sketch"), ["doc"], n)
        tables.append("sketches")
    if onionskin.Recipe(recipe.spelling).filter is not None:
        atlas.write("features", documents.where("features is not null").select("doc", "features"), ["doc"], n)
        tables.append("features")

    bad = notes.where(F.col("what") == BAD_RECORD)
    per_source = documents.groupBy("source").count().withColumnRenamed("count", "documents")
    bad_per_source = bad.groupBy("source").agg(F.sum("count").alias("bad_records"))
    inputs = scanned.sources.join(per_source, "source", "left").join(bad_per_source, "source", "left").orderBy("source")
    change: dict[str, Any] = {
        "recipe": recipe.spelling,
        "seed": seed,
        "inputs": [
            {
                "name": row["name"],
                "bytes": row["bytes"],
                "format": row["format"],
                "documents": row["documents"] or 0,
                "bad_records": row["bad_records"] or 0,
                **({"files": row["files"]} if row["files"] else {}),
            }
            for row in inputs.collect()
        ],
        "extractors": kernels.extractors(json.dumps(dict(reading))),
        "counts": counts,
        "stages": {"scan": dict(reading)},
    }
    examples = bad.orderBy("source", "task", "row").limit(EXAMPLES).collect()
    if examples:
        change["bad_record_examples"] = [{"place": row["place"], "reason": row["reason"]} for row in examples]
    return atlas.publish(tables, change, new=True)


def _write_chunks(atlas: AtlasFiles, table: str, chunks: DataFrame, rows: int) -> None:
    from ._atlas import ROWS_PER_FILE, folder

    n_files = max(1, -(-rows // ROWS_PER_FILE["chunks"]))
    spread = chunks.repartition(1) if n_files == 1 else chunks.repartitionByRange(n_files, "doc")
    ordered = spread.sortWithinPartitions("doc", "at").select("fp", "doc")
    ordered.write.mode("overwrite").option("compression", "zstd").parquet(atlas.files.path(folder(table)))
