"""The search for copies: exact copies, candidates, verified pairs, clusters.

Every step is a join, a grouping or a kernel, and gives what the program gives on one machine:

    documents ─▶ copies (doc, centre)
    features or rare chunks that documents share ─▶ candidates (a, b) ─▶ verified on their own chunk sets ─▶ near pairs
    copies + near pairs ─▶ clusters, with a centre each and the resemblance of every member to it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ._work import ONE_TASK, Work, components, each, whole

# : Shades of a crowded bucket that are distinguished: as in the program.
MOST_SHADES = 4096
MOST_SUPER_FEATURES = 128

MEETINGS = "feature long, doc long, shade long"
PAIRS = "a long, b long, shared long, size_a long, size_b long, resemblance double, containment_a double, containment_b double"


@dataclass(frozen=True)
class Search:
    """How similar documents are found."""

    method: str
    threshold: float
    chunking: str | None
    filter: tuple[int, int, int] | None = None
    from_sketches: bool = False
    # : At least so many of so many first minima agree in a pair that is looked at.
    sift: tuple[int, int] | None = None
    exact: bool = False

    @property
    def bound(self) -> tuple[str, float]:
        return ("overlap" if self.method == "overlap" else "resemblance", self.threshold)


def copies(work: Work, documents: DataFrame, one_task: int = ONE_TASK) -> DataFrame:
    """Documents with the payload or the text of a smaller one: (doc, centre).

    Empty documents are copies of nothing. A revisit record has no text, but names a payload: it is a copy of the first document with that payload.
    """
    texts = documents.where("text_fp is not null").select("doc", "text_fp", "tokens")
    first = texts.groupBy("text_fp", "tokens").agg(F.min("doc").alias("first"), F.count("*").alias("n")).where("n > 1")
    same_text = texts.join(first, ["text_fp", "tokens"]).where("doc <> first").select(F.col("first").alias("a"), F.col("doc").alias("b"))

    revisit = F.col("text_fp").isNull() & (F.col("media_type") == "warc/revisit")
    payloads = documents.where(F.col("payload_sha1").isNotNull() & (F.col("text_fp").isNotNull() | revisit)).select(
        "doc", "payload_sha1", "text_fp", revisit.alias("revisit")
    )
    head = payloads.groupBy("payload_sha1").agg(F.min(F.struct("revisit", "doc", "text_fp")).alias("head"), F.count("*").alias("n"))
    head = head.where("n > 1 and not head.revisit")
    met = payloads.join(head, "payload_sha1").where(F.col("doc") != F.col("head.doc"))
    same_payload = met.where(~F.col("revisit") & (F.col("text_fp") != F.col("head.text_fp"))).select(
        F.col("head.doc").alias("a"), F.col("doc").alias("b")
    )
    edges = work.step("same", lambda: same_text.withColumn("by_text", F.lit(True)).unionByName(same_payload.withColumn("by_text", F.lit(False))))
    if edges.where("not by_text").limit(1).count():
        roots = components(work, "texts", edges, one_task=one_task).withColumnRenamed("node", "doc").withColumnRenamed("root", "centre")
    else:
        # Equal texts are stars already.
        roots = edges.select(F.col("b").alias("doc"), F.col("a").alias("centre"))
    again = met.where("revisit").select("doc", F.col("head.doc").alias("original"))

    def build() -> DataFrame:
        of_original = roots.select(F.col("doc").alias("original"), F.col("centre").alias("of"))
        revisits = again.join(of_original, "original", "left").select("doc", F.coalesce("of", "original").alias("centre"))
        return roots.where("doc <> centre").unionByName(revisits)

    return work.step("copies", build)


def sets_of(documents: DataFrame, copied: DataFrame, column: str) -> DataFrame:
    """The chunk sets of documents that are no copies: (doc, chunks)."""
    full = documents.where(F.size(column) > 0).select("doc", F.array_distinct(column).alias("chunks"))
    return full.join(copied.select("doc"), "doc", "left_anti")


def sets_of_candidates(work: Work, sets: DataFrame, candidates: DataFrame) -> DataFrame:
    """The sets that will be compared, which are few, by themselves."""
    wanted = candidates.select(F.col("a").alias("doc")).unionByName(candidates.select(F.col("b").alias("doc"))).distinct()
    return work.step("sets", lambda: sets.join(wanted, "doc", "left_semi"))


def _buckets(work: Work, name: str, meetings: DataFrame, documents: int) -> DataFrame:
    """Pairs of documents that meet in a bucket: all with all in small ones, a few of each in crowded ones. (a, b, crowded)

    Up to which size a bucket is small depends on the sizes of all of them and on the number of documents. A bucket of a million
    members costs a million rows: nobody enumerates its square, and no task holds it.
    """
    from onionskin._onionskin import spark as kernels

    sizes = meetings.groupBy("feature").agg(F.count("*").alias("n"), F.min("doc").alias("smallest")).where("n > 1")
    shared = work.step(f"{name}-shared", lambda: meetings.join(sizes, "feature"))
    # Of each size one row: there are fewer sizes than the square root of twice the meetings.
    by_size = sizes.groupBy("n").agg(F.count("*").alias("buckets")).collect()
    limit = kernels.crowd_limit({row["n"]: row["buckets"] for row in by_size}, documents)
    few = shared.where(F.col("n") <= limit).select("feature", "doc")
    small = (
        few.select("feature", F.col("doc").alias("a"))
        .join(few.select("feature", F.col("doc").alias("b")), "feature")
        .where("a < b")
        .select("a", "b", F.lit(False).alias("crowded"))
    )
    crowd = shared.where(F.col("n") > limit).select("feature", "doc", "shade", "smallest")
    shades = crowd.groupBy("feature", "shade").agg(F.min("doc").alias("first"))
    rank = F.row_number().over(Window.partitionBy("feature").orderBy("first", "shade"))
    known = shades.withColumn("rank", rank).where(F.col("rank") <= MOST_SHADES).drop("rank")
    shaded = crowd.join(known, ["feature", "shade"])
    before = F.lag("doc").over(Window.partitionBy("feature", "shade").orderBy("doc"))
    with_smallest = crowd.select(F.col("smallest").alias("a"), F.col("doc").alias("b"))
    with_first = shaded.select(F.col("first").alias("a"), F.col("doc").alias("b"))
    with_last = shaded.select(before.alias("a"), F.col("doc").alias("b")).where("a is not null")
    full = with_smallest.unionByName(with_first).unionByName(with_last).where("a <> b")
    return small.unionByName(full.withColumn("crowded", F.lit(True)))


def candidates_by_features(work: Work, documents: DataFrame, copied: DataFrame, search: Search) -> DataFrame:
    """Documents that share at least r features: (a, b)."""
    if search.filter is None:
        raise ValueError("a search by features needs a filter")
    k, _, r = search.filter
    source = "sketch" if search.from_sketches else "features"
    rows = documents.where(F.col("text_fp").isNotNull()).select("doc", source).join(copied.select("doc"), "doc", "left_anti")
    n_rows = rows.count()
    meetings = each(rows, MEETINGS, "meetings", filter=search.filter, from_sketches=search.from_sketches)
    if r == 1:
        return work.step("candidates", lambda: _buckets(work, "features", meetings, n_rows).select("a", "b").distinct())
    combinations = 1
    for i in range(r):
        combinations = combinations * (k - i) // (i + 1)
    if combinations <= MOST_SUPER_FEATURES:
        counts = meetings.groupBy("feature").count().where("count > 1").select("feature")
        shared = meetings.join(counts, "feature").groupBy("doc").agg(F.collect_list("feature").alias("features"))
        supers = each(shared.where(F.size("features") >= r), MEETINGS, "super_features", r=r)
        return work.step("candidates", lambda: _buckets(work, "super-features", supers, n_rows).select("a", "b").distinct())

    def counted() -> DataFrame:
        met = _buckets(work, "features", meetings, n_rows)
        often = met.where("not crowded").groupBy("a", "b").count().where(F.col("count") >= r).select("a", "b")
        return often.unionByName(met.where("crowded").select("a", "b")).distinct()

    return work.step("candidates", counted)


def candidates_by_prefix(work: Work, sets: DataFrame, search: Search) -> DataFrame:
    """Documents that meet in their rarest chunks: every pair that can be similar is among them. (a, b)"""
    kind, value = search.bound
    flat = sets.select("doc", F.size("chunks").cast("long").alias("size"), F.explode("chunks").alias("chunk"))
    counts = flat.groupBy("chunk").count().where("count > 1")
    lists = [F.collect_list("count").alias("counts"), F.collect_list("chunk").alias("chunks")]
    shared = flat.join(counts, "chunk").groupBy("doc", "size").agg(*lists)
    schema = "chunk long, size long, left long, doc long"
    postings = work.step("prefixes", lambda: each(shared, schema, "prefix", kind=kind, value=value))
    met = postings.alias("x").join(postings.alias("y"), "chunk").where("x.doc < y.doc")
    if kind != "overlap":
        # The fewest chunks that sets of these sizes must share, lowered by more than the rounding:
        # verification has the last word.
        least = F.ceil(F.lit(value / (1 + value)) * (F.col("x.size") + F.col("y.size")) * (1 - 1e-12) - 1e-9)
        met = met.where(F.least("x.left", "y.left") >= least).where(least <= F.least("x.size", "y.size"))
    return work.step("candidates", lambda: met.select(F.col("x.doc").alias("a"), F.col("y.doc").alias("b")).distinct())


def verified(work: Work, name: str, sets: DataFrame, pairs: DataFrame, bound: tuple[str, float] | None) -> DataFrame:
    """Pairs with what they share, counted on the documents' own chunk sets."""
    # The larger document first: in a crowd it is another one in every pair, so that this join is
    # even. The second brings together the pairs of one centre, which Spark splits where they are
    # too many.
    with_b = pairs.join(sets.select(F.col("doc").alias("b"), F.col("chunks").alias("set_b")), "b")
    both = with_b.join(sets.select(F.col("doc").alias("a"), F.col("chunks").alias("set_a")), "a").select("a", "b", "set_a", "set_b")
    arguments: dict[str, Any] = {} if bound is None else {"kind": bound[0], "value": bound[1]}
    return work.step(name, lambda: each(both, PAIRS, "count_shared", **arguments))


def sifted(near: DataFrame, rows: DataFrame, search: Search) -> DataFrame:
    """Pairs whose sketches agree well enough.

    The program sifts before it verifies. What is dropped is the same, and the verified pairs are few.
    """
    if search.sift is None:
        return near
    least, minima = search.sift
    sketches = rows.select("doc", F.slice("sketch", 1, minima).alias("sketch"))
    both = near
    for side in ("a", "b"):
        both = both.join(sketches.select(F.col("doc").alias(side), F.col("sketch").alias(f"sketch_{side}")), side)
    agree = F.size(F.filter(F.zip_with("sketch_a", "sketch_b", lambda a, b: a == b), lambda same: same))
    return both.where(agree >= least).select(*near.columns)


def priority(documents: DataFrame, links: DataFrame | None, keep: str) -> DataFrame:
    """How little a document is wanted as a centre, beside its number: (doc, wish). Smaller is wanted more."""
    zero = F.lit(0).cast("long")
    if keep == "first":
        return documents.select("doc", zero.alias("wish"))
    if keep == "longest":
        return documents.select("doc", (-F.col("tokens")).alias("wish"))
    if keep == "earliest":
        if documents.where("fetched_at is not null").isEmpty():
            raise ValueError("the rule earliest looks for the date of a fetch, which no document has")
        micros = F.unix_micros("fetched_at")
        # Those without a date come last.
        return documents.select("doc", F.coalesce(micros, F.lit((1 << 63) - 1)).alias("wish"))
    if keep == "most-linked":
        if links is None:
            raise ValueError("most-linked needs links")
        if links.where("src <> dest").isEmpty():
            raise ValueError("the rule most-linked counts links, but no document links to another")
        linked = links.where("src <> dest").groupBy(F.col("dest").alias("doc")).count()
        return documents.select("doc").join(linked, "doc", "left").select("doc", (-F.coalesce("count", zero)).alias("wish"))
    if keep.startswith("prefer:"):
        places = keep.removeprefix("prefer:").split(",")
        if not all(places):
            raise ValueError(f"an empty place in {keep!r}")
        wish: Column = zero
        for at, place in reversed(list(enumerate(places))):
            rest = F.regexp_extract(F.col("url"), r"(?s)^.*?://(.*)$", 1)
            follows = F.substring(rest, len(place) + 1, 1)
            hosted = rest.startswith(place) & follows.isin("", "/", ":")
            is_from = F.col("name").startswith(place) | F.coalesce(F.col("url").startswith(place) | hosted, F.lit(False))
            if documents.where(is_from).isEmpty():
                raise ValueError(f"the rule prefer looks for {place!r}, but no document is from there")
            wish = F.when(is_from, F.lit(at - len(places)).cast("long")).otherwise(wish)
        return documents.select("doc", wish.alias("wish"))
    known = "first, longest, most-linked, earliest, and prefer:A,B,..."
    raise ValueError(f"unknown rule {keep!r}; known are {known}")


@dataclass
class Clusters:
    """Rows of the tables."""

    members: DataFrame
    stats: DataFrame


def cluster(
    work: Work,
    documents: DataFrame,
    copied: DataFrame,
    near: DataFrame,
    sets: DataFrame | None,
    wishes: DataFrame,
    *,
    clustering: str,
    ranked: bool,
    one_task: int = ONE_TASK,
) -> Clusters:
    """Clusters of two documents and more, with a centre each."""
    pairs = near.select("a", "b")
    roots = components(work, "connected", pairs, one_task=one_task)
    if clustering == "transitive":
        groups = roots.select(F.col("node").alias("text"), F.col("root").alias("group"))
    elif clustering == "centred":
        if ranked:
            # The wish for a text is the best of its documents.
            of_text = wishes.join(copied, "doc", "left").withColumn("text", F.coalesce("centre", "doc"))
            best = of_text.groupBy("text").agg(F.min("wish").alias("wish"))
            wish = {side: best.select(F.col("text").alias(side), F.col("wish").alias(f"wish_{side}")) for side in ("a", "b")}
            wished = pairs.join(wish["a"], "a").join(wish["b"], "b")
        else:
            wished = pairs.withColumn("wish_a", F.lit(0).cast("long")).withColumn("wish_b", F.lit(0).cast("long"))
        # Whoever comes first takes those who are left; that is decided component by component.
        placed = wished.join(roots.select(F.col("node").alias("a"), "root"), "a").repartition(work.tasks(pairs.count()), "root")
        taken = whole(placed.select("wish_a", "a", "wish_b", "b"), "text long, centre long", "centred")
        groups = work.step("centred", lambda: taken).select("text", F.col("centre").alias("group"))
    else:
        raise ValueError(f"unknown clustering {clustering!r}; known are transitive, centred")

    with_copies = copied.select(F.col("centre").alias("text"), "doc").unionByName(
        copied.select(F.col("centre").alias("text")).distinct().select("text", F.col("text").alias("doc"))
    )
    alone = groups.select("text").join(with_copies.select("text").distinct(), "text", "left_anti")
    everybody = with_copies.unionByName(alone.select("text", F.col("text").alias("doc")))
    placed = everybody.join(groups, "text", "left").withColumn("group", F.coalesce("group", "text"))
    about = documents.select("doc", "site", F.col("text_fp").isNotNull().alias("can_lead"))
    members = work.step("members", lambda: placed.join(about, "doc").join(wishes, "doc"))
    barred = ~F.col("can_lead")
    if clustering == "centred":
        barred = barred | (F.col("text") != F.col("group"))
    order = F.struct(barred.alias("barred"), "wish", "doc", "text", "site")
    centres = members.groupBy("group").agg(F.min(order).alias("first"), F.min("doc").alias("smallest"))
    centres = centres.select(
        "group",
        "smallest",
        F.col("first.doc").alias("centre"),
        F.col("first.text").alias("centre_text"),
        F.coalesce("first.site", F.lit(-1)).alias("centre_site"),
    )
    numbers = work.numbered("clusters", centres, ["smallest"], "cluster")
    led = work.step("led", lambda: members.join(numbers, "group"))

    # The resemblance of every text to the text of its centre: from the pairs, else counted.
    wanted = (
        led.where("text <> centre_text")
        .select(F.least("text", "centre_text").alias("a"), F.greatest("text", "centre_text").alias("b"), "text", "group")
        .distinct()
    )
    known = wanted.join(near.select("a", "b", "resemblance"), ["a", "b"], "left")
    if clustering == "transitive" and sets is not None:
        unknown = known.where("resemblance is null").select("a", "b").distinct()
        counted = verified(work, "to-centres", sets, unknown, None).select("a", "b", F.col("resemblance").alias("counted"))
        known = known.join(counted, ["a", "b"], "left").withColumn("resemblance", F.coalesce("resemblance", "counted"))
    to_centre = known.select("text", "group", F.coalesce("resemblance", F.lit(0.0)).alias("to_centre"))

    def rows() -> DataFrame:
        exact = F.col("text") == F.col("centre_text")
        return led.join(to_centre, ["text", "group"], "left").select(
            "cluster",
            "doc",
            (F.col("doc") == F.col("centre")).alias("is_centre"),
            F.when(exact, F.lit(1.0)).otherwise(F.coalesce("to_centre", F.lit(0.0))).alias("resemblance_to_centre"),
            F.when(exact, F.lit("exact")).otherwise(F.lit("near")).alias("kind"),
            "centre",
            "smallest",
            F.coalesce("site", F.lit(-1)).alias("site"),
            (F.coalesce("site", F.lit(-1)) == F.col("centre_site")).alias("same_site"),
        )

    found = work.step("cluster-rows", rows)
    other = ~F.col("is_centre")
    stats = found.groupBy("cluster").agg(
        F.first("centre").alias("centre"),
        F.count("*").alias("documents"),
        F.sum((other & (F.col("kind") == "exact")).cast("long")).alias("exact_copies"),
        F.countDistinct("site").alias("sites"),
        F.sum((other & F.col("same_site")).cast("long")).alias("same_site"),
        F.sum((other & ~F.col("same_site")).cast("long")).alias("cross_site"),
        F.min("resemblance_to_centre").alias("lowest_resemblance"),
    )
    return Clusters(found, work.step("cluster-stats", lambda: stats))
