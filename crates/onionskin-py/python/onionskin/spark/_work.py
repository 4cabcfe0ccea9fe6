"""Steps that leave tables, and the kernels between them.

A job is a row of steps. Each is written down before the next begins, so that the plan of a step never grows into that of all steps before it, an
executor that dies costs a few tasks, and a job that dies goes on after its last whole step.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ._files import Files

if TYPE_CHECKING:
    import pyarrow as pa

# : Rows that one task may hold: below it, what is a matter of many rounds is done by one task in
# one.
ONE_TASK = 4_000_000


# : Rows that a kernel gets together, about, where it needs all rows of a group: a hundred megabytes
# of pages.
ROWS_OF_TASK = 250_000


def apply_each(name: str, arguments: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs a kernel on every batch by itself."""
    import pyarrow as pa

    from onionskin._onionskin import spark as kernels

    kernel = getattr(kernels, name)
    for batch in batches:
        if batch.num_rows:
            yield from pa.table(kernel(batch, **arguments)).to_batches()


def apply_whole(name: str, arguments: Mapping[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs a kernel on all rows of a partition together."""
    import pyarrow as pa

    from onionskin._onionskin import spark as kernels

    kept = [batch for batch in batches if batch.num_rows]
    if kept:
        yield from pa.table(getattr(kernels, name)(pa.Table.from_batches(kept), **arguments)).to_batches()


def each(frame: DataFrame, schema: str, kernel: str, **arguments: Any) -> DataFrame:
    """The rows that a kernel makes of batches of rows, whichever come together."""
    return frame.mapInArrow(functools.partial(apply_each, kernel, arguments), schema)


def whole(frame: DataFrame, schema: str, kernel: str, **arguments: Any) -> DataFrame:
    """The rows that a kernel makes of all rows of each partition."""
    return frame.mapInArrow(functools.partial(apply_whole, kernel, arguments), schema)


class Work:
    """The steps of one stage of a job, in a folder below the atlas."""

    def __init__(
        self,
        spark: SparkSession,
        files: Files,
        stage: str,
        identity: Mapping[str, Any],
        *,
        resume: bool = True,
        progress: Callable[[str, str], None] | None = None,
    ) -> None:
        self.spark = spark
        self.files = files
        self.stage = stage
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = f"_work/{stage}-{digest}"
        self._progress = progress
        self.resumed: list[str] = []
        if not resume:
            files.remove(self.folder)

    def step(self, name: str, build: Callable[[], DataFrame]) -> DataFrame:
        """The table of a step: as an earlier run left it, or made and written now."""
        folder, mark = f"{self.folder}/{name}", f"{self.folder}/{name}.done"
        path = self.files.path(folder)
        if self.files.exists(mark):
            self.resumed.append(name)
            return self.spark.read.parquet(path)
        if self._progress:
            self._progress(self.stage, name)
        frame = build()
        frame.write.mode("overwrite").parquet(path)
        self.files.write(mark, "")
        return self.spark.read.schema(frame.schema).parquet(path)

    def numbered(self, name: str, frame: DataFrame, keys: list[str], into: str) -> DataFrame:
        """Rows with their place in the order of some columns that no two rows have alike, counted from 0."""
        columns = [F.col(key) for key in keys]

        def split() -> DataFrame:
            return frame.repartitionByRange(*columns).withColumn("_part", F.spark_partition_id())

        # Written down, because the borders of ranges are drawn by sampling.
        split_up = self.step(name, split)
        counts = sorted((row["_part"], row["count"]) for row in split_up.groupBy("_part").count().collect())
        starts, before = [], 0
        for part, count in counts:
            starts.append((part, before))
            before += count
        known = self.spark.createDataFrame(starts or [(0, 0)], "_part int, _start long")
        place = F.row_number().over(Window.partitionBy("_part").orderBy(*columns))
        numbered = split_up.join(F.broadcast(known), "_part")
        return numbered.withColumn(into, F.col("_start") + place - F.lit(1)).drop("_part", "_start")

    def tasks(self, rows: int) -> int:
        """Tasks for rows that go to kernels that hold all rows of a task."""
        return max(1, -(-rows // ROWS_OF_TASK))

    def count(self, frame: DataFrame) -> int:
        return int(frame.count())

    def finish(self) -> None:
        """Removes the steps."""
        self.files.remove(self.folder)


def components(work: Work, name: str, edges: DataFrame, *, one_task: int = ONE_TASK, most_rounds: int = 60) -> DataFrame:
    """Connected components of edges (a, b): every node of an edge with the smallest node of its component, as (node, root).

    Large-star and small-star turns (Kiveris et al. 2014), each written down; what fits into one task is done there. Nodes with very many neighbours
    are a matter of joins that Spark splits, and of minima that it takes before it sends rows.
    """
    schema = "node long, root long"
    plain = edges.select(F.col("a").cast("long").alias("a"), F.col("b").cast("long").alias("b")).where("a <> b")
    current = work.step(f"{name}-edges", lambda: plain.select(F.greatest("a", "b").alias("a"), F.least("a", "b").alias("b")).distinct())
    if work.count(current) <= one_task:
        return work.step(name, lambda: whole(current.coalesce(1), schema, "unite"))

    def mark(frame: DataFrame) -> tuple[int, int]:
        # Sums of hashes do not depend on order; two sets of edges that agree in both are the same.
        row = frame.agg(F.count("*"), F.sum((F.xxhash64("a", "b") % F.lit(1 << 40)).cast("decimal(38,0)"))).first()
        return (int(row[0]), int(row[1] or 0)) if row else (0, 0)

    before = mark(current)
    for turn in range(most_rounds):
        stars = work.step(f"{name}-round-{turn}", functools.partial(_turn, current))
        after = mark(stars)
        current = stars
        if after == before:
            # Every edge leads from a node to its root now.
            roots = stars.select(F.col("b").alias("node")).distinct().select("node", F.col("node").alias("root"))
            found = stars.select(F.col("a").alias("node"), F.col("b").alias("root")).unionByName(roots)
            return work.step(name, lambda: found)
        before = after
    raise RuntimeError(f"{name}: {most_rounds} rounds did not suffice for the connected components")


def _turn(edges: DataFrame) -> DataFrame:
    """One large-star and one small-star. Edges are (a, b) with b < a."""
    both = edges.select("a", "b").unionByName(edges.select(F.col("b").alias("a"), F.col("a").alias("b")))
    least = both.groupBy("a").agg(F.min("b").alias("least")).withColumn("least", F.least("a", "least"))
    # Large-star: every larger neighbour hangs on the smallest node around.
    large = (
        both.where("b > a")
        .join(least, "a")
        .select(F.col("b").alias("a"), F.col("least").alias("b"))
        .where("a <> b")
        .distinct()
    )
    # Small-star: the node and its smaller neighbours hang on the smallest of them.
    lowest = large.groupBy("a").agg(F.min("b").alias("least"))
    small = large.join(lowest, "a").select(F.col("b").alias("a"), F.col("least").alias("b"))
    own = lowest.select("a", F.col("least").alias("b"))
    return small.unionByName(own).where("a <> b").distinct()


