"""The whole job on Apache Spark, when one machine is not enough.

>>> from onionskin import spark as onionskin_spark                                  # doctest: +SKIP
>>> onionskin_spark.run(spark, ["s3a://crawl/warc/"], "s3a://crawl/atlas")          # doctest: +SKIP

What comes out is an atlas in Parquet, the same as that of the program `onionskin` on the same inputs: documents, pairs, clusters, collections and
their numbers. `onionskin report`, `avoid`, `dedup` and `serve` open it as their own. Nothing here is an engine: tables are joined, grouped and written by
Spark, through DataFrames alone, and fingerprints, verification and the growing of collections are the program's own code, called on
Arrow batches inside the executors, which need this package beside what Spark needs for Arrow.

Works with Spark 3.5 and 4. Every step is written to Parquet below the atlas before the next one begins; a job that was stopped goes on after its last
whole step when it is started again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from . import _mirrors, _scan, _similar
from ._atlas import TABLES_OF_COLLECTIONS, TABLES_OF_SIMILAR, AtlasFiles, restore, settings
from ._scan import SOURCES, Recipe, Scanned
from ._work import ONE_TASK, Work

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

__all__ = ["Summary", "collections", "read", "run", "scan", "similar"]

# : The recipe where none is given: that of the program.
RECIPE = "w4-rabin64-6x14r2+sketch"
# : Named sets of parameters: chunking and threshold (Shivakumar and Garcia-Molina 1998).
PRESETS = {"sgm98-4": ("l4", 15), "sgm98-2": ("l2", 25)}

Progress = Callable[[str, str], None]


@dataclass(frozen=True)
class Summary:
    """What a stage has found."""

    stage: str
    counts: Mapping[str, int]
    # : Steps that were taken over from an earlier run.
    resumed: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        return f"{self.stage}: " + ", ".join(f"{name} {count:,}" for name, count in self.counts.items())


def read(spark: SparkSession, atlas: str, table: str) -> DataFrame:
    """A table of an atlas as a DataFrame, whoever wrote it."""
    return AtlasFiles(spark, atlas).read(table)


def scan(
    spark: SparkSession,
    inputs: str | Sequence[str] | DataFrame,
    atlas: str,
    *,
    recipe: str = RECIPE,
    seed: int = 1,
    text_field: str = _scan.READING["text_field"],
    id_field: str = _scan.READING["id_field"],
    url_field: str = _scan.READING["url_field"],
    order_by: str | Sequence[str] | None = None,
    text_is_html: bool = False,
    any_status: bool = False,
    format: str | None = None,
    io: str = "auto",
    overwrite: bool = False,
    resume: bool = True,
    max_bad_records: int | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Reads the inputs once and makes an atlas.

    `inputs` are files and folders of WARC, WET, ARC, JSON lines, Parquet, CSV and HTML, compressed or not, or a DataFrame with a column of texts.

    - `io="direct"`: executors open the files themselves, and large ones are read by several. Paths must mean the same to driver and executors.
    - `io="spark"`: Spark fetches the files, from anything it reads (HDFS, s3a, abfss, ...); each must be below 2 GB.
    - `io="auto"`: direct for paths without a scheme and for `file:`, spark for others.

    Fields are names with commas between them: the first that is there is taken. Rows of a DataFrame are numbered in the order of `order_by` (the id, else the address, where it is not given), which no two rows may have alike.
    """
    import onionskin

    recipe = str(onionskin.Recipe(recipe))
    target = AtlasFiles(spark, atlas)
    if target.files.exists("manifest.json") and not overwrite and not target.files.exists("_work/scan.json"):
        raise FileExistsError(f"{atlas} is an atlas already\nhint: overwrite=True (--overwrite) replaces it")
    reading = {
        **_scan.READING,
        "text_field": text_field,
        "id_field": id_field,
        "url_field": url_field,
        "text_is_html": text_is_html,
        "any_status": any_status,
        "format": format,
    }
    parsed = Recipe(recipe)
    identity: dict[str, Any] = {"recipe": recipe, "seed": seed, "reading": reading, "io": io, "version": onionskin.__version__}
    before = settings(spark)
    try:
        if _is_frame(inputs):
            # Nobody knows whether a table is the one of the last run.
            work = Work(spark, target.files, "scan", identity, resume=False, progress=progress)
            columns = {"text": text_field, "id": id_field, "url": url_field}
            present = {key: next((name for name in names.split(",") if name in inputs.columns), None) for key, names in columns.items()}
            if present["text"] is None:
                raise ValueError(f"there is no column {text_field!r}; columns are {', '.join(inputs.columns)}")
            fallback = present["id"] or present["url"]
            if order_by is None and fallback is None:
                raise ValueError("a table without id and url needs order_by: numbers follow an order that is the same every time")
            order = [order_by] if isinstance(order_by, str) else list(order_by or [str(fallback)])
            scanned = _scan.read_frame(spark, work, inputs, "table", present, order, parsed, seed, reading)
        else:
            paths = [inputs] if isinstance(inputs, str) else [str(path) for path in cast("Sequence[str]", inputs)]
            what = _scan.plan(spark, paths, reading, io)
            identity["inputs"] = [paths, what.identity]
            work = Work(spark, target.files, "scan", identity, resume=resume, progress=progress)
            if not overwrite and (done := _same_scan(target, work)):
                return done
            scanned = _scan.read_planned(spark, work, what, paths, parsed, seed, reading)
        if max_bad_records is not None:
            bad = scanned.rows.where(F.col("what") == _scan.BAD_RECORD).agg(F.sum("count")).first()
            found = int(bad[0] or 0) if bad else 0
            if found > max_bad_records:
                raise ValueError(f"{found} bad records are more than the {max_bad_records} that are allowed")
        # From here on it is no atlas until it is one again.
        target.clear()
        manifest = _scan.write_tables(target, scanned, seed, reading)
        # What the search needs and the tables may not have.
        about = {"folder": work.folder, "documents": _tables_identity(manifest, ["documents"]), "recipe": recipe, "seed": seed}
        target.files.write("_work/scan.json", json.dumps(about))
    finally:
        restore(spark, before)
    return Summary("scan", manifest["counts"], tuple(work.resumed))


def _is_frame(inputs: Any) -> TypeGuard[DataFrame]:
    # Over Spark Connect it is a class of its own.
    return hasattr(inputs, "mapInArrow")


def _same_scan(target: AtlasFiles, work: Work) -> Summary | None:
    """What the scan found, when the atlas is of this very one; an error when it is of another."""
    if not target.files.exists("manifest.json"):
        return None
    manifest = target.manifest()
    about = _about(target, manifest)
    if about is None or about["folder"] != work.folder:
        raise FileExistsError(f"{target.files.root} is an atlas of other inputs or parameters\nhint: overwrite=True (--overwrite) replaces it")
    counts = {name: count for name, count in manifest["counts"].items() if not name.startswith(("similar.", "collections."))}
    return Summary("scan", counts, ("rows", "tables"))


def _about(target: AtlasFiles, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was left of the scan that made the documents of the atlas."""
    if not target.files.exists("_work/scan.json"):
        return None
    about: dict[str, Any] = json.loads(target.files.read("_work/scan.json"))
    same = about["documents"] == _tables_identity(manifest, ["documents"]) and about["seed"] == manifest["seed"]
    return about if same and about["recipe"] == manifest["recipe"] else None


def _scanned(spark: SparkSession, target: AtlasFiles, manifest: Mapping[str, Any]) -> Scanned | None:
    """The rows of the scan that made the atlas, where they are still there."""
    about = _about(target, manifest)
    if about is None or not target.files.exists(f"{about['folder']}/rows.done"):
        return None
    folder = about["folder"]
    work = Work(spark, target.files, "scan", {})
    work.folder = folder
    numbered = "numbered" if target.files.exists(f"{folder}/numbered.done") else "rows"
    rows = spark.read.parquet(target.files.path(f"{folder}/{numbered}"))
    sources = spark.createDataFrame([(0, "", 0, "", [])], SOURCES)
    return Scanned(Recipe(manifest["recipe"]), rows, sources, work)


def _tables_identity(manifest: Mapping[str, Any], names: Iterable[str]) -> dict[str, list[str]]:
    return {name: [file["xxh3"] for file in manifest["tables"][name]["files"]] for name in names if name in manifest["tables"]}


def similar(
    spark: SparkSession,
    atlas: str,
    *,
    method: str = "resemblance",
    threshold: float | None = None,
    chunking: str | None = None,
    preset: str | None = None,
    filter: tuple[int, int, int] | None = None,
    exact: bool = False,
    cluster: str = "centred",
    keep: str = "first",
    one_task: int = ONE_TASK,
    resume: bool = True,
    progress: Progress | None = None,
) -> Summary:
    """Finds pairs and clusters of similar documents in an atlas.

    `method` is `resemblance` (of shingle sets, at least `threshold`; candidates by features, or every pair with `exact=True`), `overlap` (at least
    `threshold` shared chunks of `chunking`; every pair) or `exact`. `cluster` is `centred` or `transitive`; `keep` is the rule for centres: `first`,
    `longest`, `most-linked`, `earliest`, `prefer:A,B,...`.
    """
    from onionskin._onionskin import spark as kernels

    target = AtlasFiles(spark, atlas)
    manifest = target.manifest()
    recipe = Recipe(manifest["recipe"])
    if preset is not None:
        if preset not in PRESETS:
            raise ValueError(f"unknown preset {preset!r}; known are {', '.join(PRESETS)}")
        method, (chunking, threshold) = "overlap", PRESETS[preset]
    chosen = _search(kernels, recipe, method, threshold, chunking, filter, exact)
    if keep == "smallest":  # its former name
        keep = "first"
    scanned = _scanned(spark, target, manifest)
    if chosen.chunking is not None and scanned is None and f"chunks.{chosen.chunking}" not in manifest["tables"]:
        raise ValueError(f"the atlas has no chunks of {chosen.chunking}; scan again with a recipe that keeps them, as in papers or {recipe.spelling}+{chosen.chunking}")
    if chosen.chunking is not None and scanned is not None and chosen.chunking not in Recipe(recipe.for_work).kept:
        raise ValueError(f"the recipe {recipe.spelling} has no chunks of {chosen.chunking}; scan again with {recipe.spelling}+{chosen.chunking}")
    description: dict[str, Any] = {
        "method": chosen.method,
        "chunking": chosen.chunking,
        "cluster": cluster,
        "survivor": keep,
        "measure_recall": False,
    }
    if chosen.method == "resemblance":
        spelled = "{}x{}r{}".format(*chosen.filter) if chosen.filter else None
        description |= {"threshold": chosen.threshold, "exact": exact, "filter": spelled}
    elif chosen.method == "overlap":
        description["threshold"] = int(chosen.threshold)
    tables = _tables_identity(manifest, ["documents", "links"])
    identity = {**description, "tables": tables, "one_task": one_task, "recipe": manifest["recipe"], "seed": manifest["seed"]}
    work = Work(spark, target.files, "similar", identity, resume=resume, progress=progress)
    before = settings(spark)
    try:
        counts, found = _find_similar(target, work, scanned, chosen, recipe, cluster, keep, one_task)
        own = kernels.levels(chosen.method, chosen.chunking, float(chosen.threshold))
        stages: dict[str, Any] = {"similar": {**description, "found": found}}
        for level in own:
            stages[f"copies.{level}"] = {"method": "exact", "texts": found["texts"]}
        if chosen.method != "exact":
            stages[f"copies.{own[-1]}"] = {**description, "found": found, "texts": found["texts"]}
        target.publish(
            [*TABLES_OF_SIMILAR, *(f"copies.{level}" for level in own)],
            {"stages": stages, "counts": counts},
            drop_stages=["collections"],
            drop_counts=["collections."],
        )
    finally:
        restore(spark, before)
    work.finish()
    return Summary("similar", counts, tuple(work.resumed))


def _search(
    kernels: Any,
    recipe: Recipe,
    method: str,
    threshold: float | None,
    chunking: str | None,
    filter: tuple[int, int, int] | None,
    exact: bool,
) -> _similar.Search:
    if method == "exact":
        return _similar.Search("exact", 1.0, None)
    if method == "overlap":
        chunking = chunking or "l4"
        least = threshold if threshold is not None else {"l4": 15, "l2": 25}.get(chunking)
        if least is None or least < 1 or int(least) != least:
            raise ValueError("overlap needs a threshold: a number of shared chunks, at least 1")
        return _similar.Search("overlap", int(least), chunking)
    if method == "resemblance":
        least = 0.9 if threshold is None else threshold
        if not 0 < least <= 1:
            raise ValueError(f"the threshold is above 0 and at most 1, not {least}")
        if exact:
            return _similar.Search("resemblance", least, recipe.main, exact=True)
        chosen, from_sketches, sift = kernels.filter_for(recipe.spelling, least, filter)
        return _similar.Search("resemblance", least, recipe.main, chosen, from_sketches, sift)
    raise ValueError(f"unknown method {method!r}; known are resemblance, overlap, exact")


def _find_similar(
    target: AtlasFiles, work: Work, scanned: Scanned | None, search: _similar.Search, recipe: Recipe, clustering: str, keep: str, one_task: int
) -> tuple[dict[str, int], dict[str, Any]]:
    from onionskin._onionskin import spark as kernels

    level = kernels.levels(search.method, search.chunking, float(search.threshold))[-1]
    documents = target.read("documents")
    copied = _similar.copies(work, documents, one_task)
    n_texts = documents.where("text_fp is not null").count()
    sets = None
    if search.chunking is not None:
        if scanned is not None:
            whole = scanned.documents()
            sets = _similar.sets_of(whole, copied, _scan.column_of(search.chunking))
        else:
            chunks = target.read(f"chunks.{search.chunking}")
            grouped = chunks.groupBy("doc").agg(F.collect_set("fp").alias("chunks"))
            sets = grouped.join(copied.select("doc"), "doc", "left_anti")
    n_candidates = 0
    if sets is None:
        near = target.spark.createDataFrame([], _similar.PAIRS)
    else:
        rows = None
        if search.method == "overlap" or search.exact:
            candidates = _similar.candidates_by_prefix(work, sets, search)
        else:
            if scanned is not None:
                rows = scanned.documents()
            else:
                table = "sketches" if search.from_sketches else "features"
                rows = target.read(table).join(documents.select("doc", "text_fp"), "doc")
            candidates = _similar.candidates_by_features(work, rows, copied, search)
        n_candidates = candidates.count()
        sets = _similar.sets_of_candidates(work, sets, candidates)
        near = _similar.verified(work, "near", sets, candidates, search.bound)
        if rows is not None and search.sift is not None:
            verified = near
            near = work.step("sifted", lambda: _similar.sifted(verified, rows, search))
    links = target.read("links") if keep == "most-linked" else None
    wishes = _similar.priority(documents.withColumnRenamed("source", "name"), links, keep)
    clusters = _similar.cluster(
        work, documents, copied, near, sets, wishes, clustering=clustering, ranked=keep != "first", one_task=one_task
    )

    totals = clusters.stats.agg(
        F.count("*").alias("clusters"),
        F.sum("documents").alias("documents"),
        F.sum("exact_copies").alias("exact_members"),
        F.sum(F.col("documents") - 1 - F.col("exact_copies")).alias("near_members"),
        F.max("documents").alias("largest"),
        F.sum("same_site").alias("same_site"),
        F.sum("cross_site").alias("cross_site"),
        F.sum((F.col("sites") == 1).cast("long")).alias("one_site_clusters"),
        F.min("lowest_resemblance").alias("lowest_resemblance"),
    ).first()
    told = totals.asDict() if totals else {}
    found_clusters: dict[str, Any] = {key: int(value or 0) for key, value in told.items() if key != "lowest_resemblance"}
    found_clusters["lowest_resemblance"] = told.get("lowest_resemblance")
    n_copies, n_near, n_members = copied.count(), near.count(), int(found_clusters["documents"])
    target.begin([*TABLES_OF_SIMILAR, *TABLES_OF_COLLECTIONS, "copies.exact", f"copies.{level}"])
    one = F.lit(1.0)
    exact_rows = copied.select(
        F.least("doc", "centre").alias("a"),
        F.greatest("doc", "centre").alias("b"),
        F.lit(1).cast("long").alias("shared"),
        one.alias("resemblance"),
        one.alias("containment_a"),
        one.alias("containment_b"),
        F.lit("exact").alias("method"),
    )
    near_rows = near.select("a", "b", "shared", "resemblance", "containment_a", "containment_b", F.lit(search.method).alias("method"))
    target.write("pairs", exact_rows.unionByName(near_rows), ["a", "b"], n_copies + n_near)
    members = clusters.members
    target.write("clusters", members.select("cluster", "doc", "is_centre", "resemblance_to_centre", "kind"), ["cluster", "doc"], n_members)
    target.write("cluster_stats", clusters.stats, ["cluster"], found_clusters["clusters"])
    own = copied.select("doc", F.col("centre").alias("original")).unionByName(
        copied.select(F.col("centre").alias("doc"), F.col("centre").alias("original")).distinct()
    )
    target.write("copies.exact", own, ["doc"], 2 * n_copies)
    if search.method != "exact":
        target.write(f"copies.{level}", members.select("doc", F.col("smallest").alias("original")), ["doc"], n_members)

    counts = {
        "similar.exact_copies": n_copies,
        "similar.near_pairs": n_near,
        "similar.clusters": found_clusters["clusters"],
        "similar.clustered_documents": found_clusters["documents"],
    }
    found = {
        "candidates": 0 if search.method == "overlap" or search.exact else n_candidates,
        "clusters": found_clusters,
        "exact_copies": n_copies,
        "near_pairs": n_near,
        "recall": None,
        "texts": n_texts,
    }
    return counts, found


def collections(
    spark: SparkSession,
    atlas: str,
    *,
    merge: str = "tolerant",
    any_site: bool = False,
    trivial: str = "transitive",
    url_rules: bool = True,
    one_task: int = ONE_TASK,
    resume: bool = True,
    progress: Progress | None = None,
) -> Summary:
    """Finds collections of linked pages that stand in several places.

    `merge` says when trivial clusters grow together: `strict` and `extended` are the paper's conditions (Cho et al. 2000), `tolerant` bridges gaps.
    With `any_site` replicas may stand on several sites.
    """
    if merge not in ("strict", "extended", "tolerant"):
        raise ValueError(f"unknown merge condition {merge!r}; known are strict, extended, tolerant")
    single_site = not any_site
    if merge == "tolerant" and any_site:
        raise ValueError("tolerant merging needs replicas on single sites; merge='extended' or 'strict' go with any_site=True")
    target = AtlasFiles(spark, atlas)
    manifest = target.manifest()
    for needed, stage in (("links", "scan"), ("pairs", "similar"), ("clusters", "similar")):
        if needed not in manifest["tables"]:
            raise ValueError(f"the atlas has no table {needed}; run {stage} first")
    description = {"merge": merge, "single_site": single_site, "trivial": trivial, "url_rules": url_rules}
    tables = _tables_identity(manifest, ["documents", "links", "pairs", "clusters"])
    work = Work(spark, target.files, "collections", {**description, "tables": tables, "one_task": one_task}, resume=resume, progress=progress)
    before = settings(spark)
    try:
        documents, sites, links = target.read("documents"), target.read("sites"), target.read("links")
        clustered = _mirrors.trivial_clusters(work, target.read("pairs"), target.read("clusters"), trivial, one_task)
        web = _mirrors.web_of(work, documents, links, clustered)
        components = _mirrors.find_components(work, web, merge, single_site, one_task)
        found = _mirrors.assemble(work, web, documents, sites, components, merge, single_site)
        groups = found.where("what = 0")
        numbers = work.numbered("groups", groups, ["component", "nth"], "group").select("component", "nth", "group")

        def table(what: int, columns: str) -> DataFrame:
            return found.where(F.col("what") == what).join(numbers, ["component", "nth"]).select(*columns.split())

        of_groups = table(0, "group kind name replicas slots sites pages bytes duplicate_pages duplicate_bytes is_noise evidence principal_reason principal_evidence")
        of_replicas = table(
            1,
            "group replica site root_doc root_url pages is_principal folder kind coverage copies changed added missing virtual_pages bytes newer",
        )
        of_pages = table(2, "group replica slot doc is_virtual role")
        counts = _count_collections(of_groups)
        target.begin(TABLES_OF_COLLECTIONS)
        target.write("collection_groups", of_groups, ["group"], counts["groups"])
        target.write("collections", of_replicas, ["group", "replica"], counts["replicas"])
        target.write("collection_pages", of_pages, ["group", "replica", "slot", "doc"], counts["pages"])
        schema = "rule long, host string, kind string, pattern string, support long, checked long, confidence double, example_from string, example_to string"
        rules = _mirrors.url_rules(work, documents, sites, clustered) if url_rules else spark.createDataFrame([], schema)
        n_rules = rules.count()
        target.write("url_rules", rules, ["rule"], n_rules)
        numbers_found = {
            **counts,
            "trivial_clusters": web.clusters.count(),
            "clustered_documents": clustered.count(),
            "components": components.select("component").distinct().count(),
            "url_rules": n_rules,
        }
        told = {**description, "found": numbers_found}
        short = {f"collections.{name}": counts[name] for name in ("groups", "replicas", "pages")}
        target.publish(list(TABLES_OF_COLLECTIONS), {"stages": {"collections": told}, "counts": short})
    finally:
        restore(spark, before)
    work.finish()
    kept = {name: value for name, value in numbers_found.items() if isinstance(value, int)}
    return Summary("collections", kept, tuple(work.resumed))


def _count_collections(groups: DataFrame) -> dict[str, Any]:
    real = ~F.col("is_noise")
    row = groups.agg(
        F.count("*").alias("groups"),
        F.sum(F.col("is_noise").cast("long")).alias("noise_groups"),
        F.sum("replicas").alias("replicas"),
        F.sum("pages").alias("pages"),
        F.sum(F.when(real, F.col("duplicate_pages"))).alias("duplicate_pages"),
        F.sum(F.when(real, F.col("duplicate_bytes"))).alias("duplicate_bytes"),
    ).first()
    counts: dict[str, Any] = {key: int(value or 0) for key, value in (row.asDict() if row else {}).items()}
    counts["kinds"] = {row["kind"]: row["count"] for row in groups.groupBy("kind").count().orderBy("kind").collect()}
    return counts


def run(
    spark: SparkSession,
    inputs: str | Sequence[str] | DataFrame,
    atlas: str,
    *,
    method: str = "resemblance",
    threshold: float | None = None,
    chunking: str | None = None,
    preset: str | None = None,
    filter: tuple[int, int, int] | None = None,
    exact: bool = False,
    cluster: str = "centred",
    keep: str = "first",
    merge: str = "tolerant",
    one_task: int = ONE_TASK,
    keep_work: bool = False,
    progress: Progress | None = None,
    **scanning: Any,
) -> list[Summary]:
    """Scans, finds copies, finds mirrors. Keyword arguments that are not named here are those of `scan`."""
    done = [scan(spark, inputs, atlas, progress=progress, **scanning)]
    done.append(
        similar(
            spark,
            atlas,
            method=method,
            threshold=threshold,
            chunking=chunking,
            preset=preset,
            filter=filter,
            exact=exact,
            cluster=cluster,
            keep=keep,
            one_task=one_task,
            progress=progress,
        )
    )
    # As the program does: what has no links has no collections.
    if done[0].counts["links"]:
        done.append(collections(spark, atlas, merge=merge, one_task=one_task, progress=progress))
    if not keep_work:
        AtlasFiles(spark, atlas).files.remove("_work")
    return done
