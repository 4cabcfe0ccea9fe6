"""The search for mirrors: from similar pages and links to replicated collections.

    pairs ─▶ trivial clusters ─▶ link summary (a, b, s, d) ─▶ clusters that merge ─▶ components
    components, each whole in one task ─▶ replicas, their pages, what they are

Which clusters come together is decided by joins over the whole web; what a component is to itself, by the kernel of the program.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ._work import ONE_TASK, Work, components, each, whole

# : As in the program: turns of bridging, and components that meet at one page outside them.
MOST_TURNS = 8
MEETING = 8
# : Memory of the one task that does it all where that is possible.
TASK_MEMORY = 512 << 20

LEAST_SUPPORT = 3
LEAST_CONFIDENCE = 0.5


@dataclass
class Web:
    """Documents of the atlas as the search sees them."""

    # : doc, site
    sites: DataFrame
    # : src, dest
    links: DataFrame
    # : doc, cluster: of documents that have copies
    clustered: DataFrame
    # : cluster, size, n_sites, places, by_site
    clusters: DataFrame


def trivial_clusters(work: Work, pairs: DataFrame, clusters: DataFrame, trivial: str, one_task: int) -> DataFrame:
    """Every document that has copies, with the smallest of its cluster: (doc, cluster)."""
    if trivial == "transitive":
        found = components(work, "trivial", pairs.select("a", "b"), one_task=one_task)
        return found.select(F.col("node").alias("doc"), F.col("root").alias("cluster"))
    if trivial == "clusters":
        first = clusters.groupBy("cluster").agg(F.min("doc").alias("first"))
        joined = clusters.select("cluster", "doc").join(first, "cluster")
        return work.step("trivial", lambda: joined.select("doc", F.col("first").alias("cluster")))
    raise ValueError(f"unknown kind of trivial cluster {trivial!r}; known are transitive, clusters")


def web_of(work: Work, documents: DataFrame, links: DataFrame, clustered: DataFrame) -> Web:
    sites = documents.select("doc", "site")
    placed = clustered.join(sites, "doc").withColumn("at", F.coalesce("site", F.lit(-1)))
    sizes = placed.groupBy("cluster").agg(F.count("*").alias("size"), F.countDistinct("at").alias("n_sites"))
    by_site = F.col("n_sites") > 1
    sizes = sizes.withColumn("by_site", by_site).withColumn("places", F.when(by_site, F.col("n_sites")).otherwise(F.col("size")))
    return Web(sites, links, clustered, work.step("cluster-sizes", lambda: sizes))


def _ends(web: Web) -> DataFrame:
    """Links with the site and the cluster of both ends; the cluster is null where a page has no copies."""
    of = web.sites.join(web.clustered, "doc", "left")
    source = of.select(F.col("doc").alias("src"), F.col("site").alias("src_site"), F.col("cluster").alias("from"))
    target = of.select(F.col("doc").alias("dest"), F.col("site").alias("dest_site"), F.col("cluster").alias("to"))
    return web.links.join(source, "src").join(target, "dest")


def find_components(work: Work, web: Web, merge: str, single_site: bool, one_task: int = ONE_TASK) -> DataFrame:
    """Clusters that come together: (cluster, component), both by their smallest document."""
    ends = work.step("link-ends", lambda: _relevant(_ends(web), merge, single_site))
    if ends.count() <= one_task and web.clustered.count() <= one_task:
        return work.step("components", lambda: _in_one_task(web, ends, merge, single_site))
    if merge == "tolerant":
        found = _tolerant(work, web, ends, one_task)
    else:
        found = _by_the_paper(work, web, ends, merge, single_site, one_task)
    sizes = found.join(web.clusters.select("cluster", "size"), "cluster", "left").withColumn("size", F.coalesce("size", F.lit(1)))
    large = sizes.groupBy("component").agg(F.count("*").alias("clusters"), F.max("size").alias("largest"))
    large = large.where("clusters > 1 and largest > 1").select("component")
    return work.step("components", lambda: found.join(large, "component").select("cluster", "component"))


def _relevant(ends: DataFrame, merge: str, single_site: bool) -> DataFrame:
    """Links that can matter: most links of a web are between pages that nobody has copied, and matter only where such pages merge, too."""
    if single_site:
        ends = ends.where("src_site is not null and dest_site is not null")
        ends = ends.where("src_site = dest_site or from is not null" if merge == "extended" else "src_site = dest_site")
    if merge == "strict":
        return ends.where("from is not null and to is not null")
    if merge == "tolerant":
        return ends.where("from is not null or to is not null")
    return ends


def _in_one_task(web: Web, ends: DataFrame, merge: str, single_site: bool) -> DataFrame:
    no = F.lit(None).cast("long")
    documents = web.sites.join(web.clustered, "doc", "left")
    # Pages without copies are in it where links lead to or from them, and as themselves.
    linked = ends.select(F.col("src").alias("doc")).unionByName(ends.select(F.col("dest").alias("doc"))).unionByName(web.clustered.select("doc")).distinct()
    documents = documents.join(linked, "doc").select(
        F.lit(False).alias("is_link"), F.col("doc").alias("a"), F.coalesce("cluster", "doc").alias("b"), "site"
    )
    rows = documents.unionByName(ends.select(F.lit(True).alias("is_link"), F.col("src").alias("a"), F.col("dest").alias("b"), no.alias("site")))
    arguments = {"merge": merge, "single_site": single_site, "memory": TASK_MEMORY}
    return whole(rows.repartition(1), "cluster long, component long", "components", **arguments)


def _by_the_paper(work: Work, web: Web, ends: DataFrame, merge: str, single_site: bool, one_task: int) -> DataFrame:
    """The link summary and the conditions of Cho et al. 2000, sections 3 and 4."""
    if merge not in ("strict", "extended"):
        raise ValueError(f"unknown merge condition {merge!r}; known are strict, extended, tolerant")
    counted = ends
    if single_site and merge == "extended":
        # To the site of another copy of the page that links: how a partial mirror points at what it
        # did not copy.
        homes = web.clustered.join(web.sites, "doc").select(F.col("cluster").alias("from"), F.col("site").alias("dest_site")).distinct()
        homes = homes.where("dest_site is not null").withColumn("of_a_copy", F.lit(True))
        counted = ends.join(homes, ["from", "dest_site"], "left").where("src_site = dest_site or of_a_copy")
    counted = counted.withColumn("from", F.coalesce("from", "src")).withColumn("to", F.coalesce("to", "dest")).where("from <> to")
    summary = counted.groupBy("from", "to").agg(F.countDistinct("src").alias("s"), F.countDistinct("dest").alias("d"))
    a = web.clusters.select(F.col("cluster").alias("from"), F.col("size").alias("a"))
    b = web.clusters.select(F.col("cluster").alias("to"), F.col("size").alias("b"))
    one = F.lit(1)
    sized = summary.join(a, "from", "left").join(b, "to", "left").withColumn("a", F.coalesce("a", one)).withColumn("b", F.coalesce("b", one))
    holds = "a = s and s = d and d = b" if merge == "strict" else "a = s and s >= d and d = b"
    edges = sized.where(holds).select(F.col("from").alias("a"), F.col("to").alias("b"))
    found = components(work, "merged", edges, one_task=one_task)
    return found.select(F.col("node").alias("cluster"), F.col("root").alias("component"))


def _tolerant(work: Work, web: Web, ends: DataFrame, one_task: int) -> DataFrame:
    """What most copies link alike comes together; then gaps are bridged, in turns."""
    about = web.clusters.select("cluster", "by_site", "places")
    source = about.select(F.col("cluster").alias("from"), F.col("by_site").alias("from_by_site"), F.col("places").alias("from_places"))
    target = about.select(F.col("cluster").alias("to"), F.col("by_site").alias("to_by_site"), F.col("places").alias("to_places"))
    placed = ends.join(source, "from", "left").join(target, "to", "left")
    place = {
        "s": F.when(F.col("from_by_site"), F.col("src_site")).otherwise(F.col("src")),
        "d": F.when(F.col("to_by_site"), F.col("dest_site")).otherwise(F.col("dest")),
    }
    links = work.step(
        "placed-links",
        lambda: placed.select("src", "dest", "from", "to", "from_places", "to_places", place["s"].alias("s"), place["d"].alias("d")),
    )
    between = links.where("from is not null and to is not null and from <> to")
    summary = between.groupBy("from", "to", "from_places", "to_places").agg(F.countDistinct("s").alias("s"), F.countDistinct("d").alias("d"))
    edges = summary.where("least(s, d) >= 2 and s * 2 > from_places and d * 2 > to_places").select(F.col("from").alias("a"), F.col("to").alias("b"))
    edges = work.step("alike", lambda: edges)
    of = _component_of(work, "alike-components", web, edges, one_task)
    for turn in range(MOST_TURNS):
        leads = work.step(f"bridge-{turn}", lambda of=of: _bridge(web, links, of))  # type: ignore[misc]
        if not leads.limit(1).count():
            break
        edges = edges.unionByName(leads)
        of = _component_of(work, f"bridged-{turn}", web, edges, one_task)
    return of


def _component_of(work: Work, name: str, web: Web, edges: DataFrame, one_task: int) -> DataFrame:
    """Every cluster with its component, those that stand alone as themselves."""
    found = components(work, f"{name}-roots", edges, one_task=one_task)
    joined = web.clusters.select("cluster").join(found, F.col("cluster") == F.col("node"), "left")
    return work.step(name, lambda: joined.select("cluster", F.coalesce("root", "cluster").alias("component")))


def _bridge(web: Web, links: DataFrame, of: DataFrame) -> DataFrame:
    """Components of which one leads to most copies of a page of the other, directly or over one page that is in neither, as edges (a, b)."""
    places = web.clusters.select("cluster", "places")
    about = of.join(places, "cluster").groupBy("component").agg(F.count("*").alias("slots"), F.max("places").alias("most"))
    source = of.select(F.col("cluster").alias("from"), F.col("component").alias("from_component"))
    target = of.select(F.col("cluster").alias("to"), F.col("component").alias("to_component"))
    homed = links.join(source, "from", "left").join(target, "to", "left")
    direct = homed.where("from_component <> to_component").select(F.col("from_component").alias("lead"), "to", "d", "to_component")
    into = homed.where("from_component is not null and to is null").select(F.col("dest").alias("page"), F.col("from_component").alias("lead")).distinct()
    out = homed.where("from is null and to_component is not null").select(F.col("src").alias("page"), "to", "d", "to_component", "dest").distinct()
    # What hangs on one page outside hangs together, too: the largest stands for all.
    met = into.join(out.select("page").distinct(), "page", "left_semi").unionByName(out.select("page", F.col("to_component").alias("lead"))).distinct()
    sized = met.join(about.select(F.col("component").alias("lead"), "slots"), "lead")
    hub = sized.groupBy("page").agg(F.max(F.struct("slots", (-F.col("lead")).alias("least"))).alias("hub"))
    hub = hub.select("page", (-F.col("hub.least")).alias("lead"))
    few = into.withColumn("n", F.count("*").over(Window.partitionBy("page"))).where(F.col("n") <= MEETING).select("page", "lead")
    leads = few.unionByName(hub).distinct()
    over = out.join(leads, "page").where("lead <> to_component").select("lead", "to", "d", "to_component")
    reached = direct.unionByName(over).groupBy("lead", "to", "to_component").agg(F.countDistinct("d").alias("reached"))
    sized = (
        reached.join(places.select(F.col("cluster").alias("to"), "places"), "to")
        .join(about.select(F.col("component").alias("lead"), F.col("slots").alias("lead_slots"), F.col("most").alias("lead_most")), "lead")
        .join(about.select(F.col("component").alias("to_component"), F.col("slots").alias("to_slots")), "to_component")
    )
    enough = "reached >= 2 and reached * 2 > places and (reached * 2 > lead_most or lead_slots >= to_slots)"
    return sized.where(enough).select(F.col("lead").alias("a"), F.col("to").alias("b")).distinct()


PAGES = (
    "component long, is_link boolean, doc long, to long, cluster long, site long, linked_from long, voters string, url string, title string, "
    "canonical_url string, bytes long, fetched_at timestamp, text_fp long, host string, domain string, site_pages long, group long, replica long"
)
FOUND = (
    "what int, component long, nth long, replicas long, slots long, sites long, pages long, bytes long, duplicate_pages long, duplicate_bytes long, "
    "replica long, site long, root_doc long, copies long, changed long, added long, missing long, virtual_pages long, slot long, doc long, "
    "kind string, name string, evidence string, principal_reason string, principal_evidence string, root_url string, folder string, newer string, role string, "
    "is_noise boolean, is_principal boolean, is_virtual boolean, coverage double"
)


def assemble(
    work: Work, web: Web, documents: DataFrame, sites: DataFrame, found: DataFrame, merge: str, single_site: bool
) -> DataFrame:
    """The collections of all components: rows of groups, replicas and pages, as the kernel makes them."""
    # Every page of a component; a page without copies is its own cluster.
    own = found.select(F.col("cluster").alias("doc"), "cluster", "component").join(web.clustered.select("doc"), "doc", "left_anti")
    members = work.step(
        "component-pages", lambda: web.clustered.join(found, "cluster").select("doc", "cluster", "component").unionByName(own.select("doc", "cluster", "component"))
    )
    linked = web.links.join(members.select(F.col("doc").alias("dest")), "dest")
    site = web.sites.where("site is not null")
    across = linked.join(site.select(F.col("doc").alias("src"), F.col("site").alias("src_site")), "src").join(
        web.sites.select(F.col("doc").alias("dest"), F.col("site").alias("dest_site")), "dest"
    )
    across = across.where("dest_site is null or src_site <> dest_site")
    # A registered domain has one vote, whatever hosts it has. One text has them all, as domains
    # have no spaces.
    voters = each(sites.select("site", "host"), "site long, voter string", "voters").withColumnRenamed("site", "src_site")
    across = across.join(voters, "src_site", "left")
    counts = across.groupBy(F.col("dest").alias("doc")).agg(
        F.countDistinct("src_site").alias("linked_from"), F.array_join(F.sort_array(F.collect_set("voter")), " ").alias("voters")
    )

    site_pages = documents.where("site is not null").groupBy("site").agg(F.count("*").alias("site_pages"))
    of_site = sites.select("site", "host", F.col("registered_domain").alias("domain")).join(site_pages, "site", "left")
    about = documents.select("doc", "site", "url", "title", "canonical_url", "bytes", "fetched_at", "text_fp")
    columns = [field.strip().split(" ")[0] for field in PAGES.split(",")]

    def rows_of(pages: DataFrame) -> DataFrame:
        """Pages (component, doc, cluster) and the links between those of one component, as the kernel takes them."""
        told = pages.join(about, "doc").join(of_site, "site", "left").join(counts, "doc", "left")
        told = told.withColumn("is_link", F.lit(False)).withColumn("to", F.lit(None).cast("long"))
        told = told.withColumn("linked_from", F.coalesce("linked_from", F.lit(0).cast("long")))
        homes = pages.select("doc", "component").distinct()
        between = web.links.join(homes.select(F.col("doc").alias("src"), "component"), "src").join(
            homes.select(F.col("doc").alias("dest"), "component"), ["dest", "component"]
        )
        between = between.select("component", F.lit(True).alias("is_link"), F.col("src").alias("doc"), F.col("dest").alias("to"))
        rows = told.select(*columns).unionByName(between, allowMissingColumns=True)
        return rows.repartition(work.tasks(n_pages), "component").select(*columns)

    arguments = {"merge": merge, "single_site": single_site}
    n_pages = members.count()
    nowhere = F.lit(None).cast("long")
    pages = members.select("component", "doc", "cluster", nowhere.alias("group"), nowhere.alias("replica"))
    if merge == "tolerant":
        near = _nearby(work, web, documents, members, rows_of(pages), single_site)
        n_pages += near.count()
        pages = pages.unionByName(near.select("component", "doc", nowhere.alias("cluster"), "group", "replica"))
    return work.step("collections", lambda: whole(rows_of(pages), FOUND, "collections", **arguments).select(*[f.strip().split(" ")[0] for f in FOUND.split(",")]))


def _nearby(work: Work, web: Web, documents: DataFrame, members: DataFrame, rows: DataFrame, single_site: bool) -> DataFrame:
    """Pages without copies that stand in the folders of replicas, where at least a third of what stands there is the replica's: (component, doc, group, replica)."""
    schema = "component long, group long, replica long, site long, folder string, own_folder string, own long"
    regions = work.step("regions", lambda: whole(rows, schema, "regions", merge="tolerant", single_site=single_site))
    stands = regions.select("component", "group", "replica", "site", "folder").distinct()
    outside = documents.where("site is not null and url is not null").select("doc", "site", "url").join(members.select("doc"), "doc", "left_anti")
    outside = outside.join(stands.select("site").distinct(), "site", "left_semi").select("doc", "site", "url")
    above = each(outside, "doc long, site long, own_folder string, folder string, depth long", "folders")
    met = above.join(stands, ["site", "folder"])
    # Of each group the replica with the deepest folder.
    best = F.min(F.struct("depth", "replica", "own_folder")).alias("best")
    near = met.groupBy("component", "group", "doc").agg(best)
    near = work.step("near", lambda: near.select("component", "group", "doc", F.col("best.replica").alias("replica"), F.col("best.own_folder").alias("own_folder")))
    place = ["component", "group", "replica"]
    own = regions.groupBy(*place).agg(F.sum("own").alias("own"))
    others = near.groupBy(*place).agg(F.count("*").alias("others"))
    dense = others.join(own, place).where("own * 2 >= others").select(*place, F.lit(True).alias("dense"))
    in_folder = near.groupBy(*place, "own_folder").agg(F.count("*").alias("others"))
    dense_folder = in_folder.join(regions.select(*place, "own_folder", "own"), [*place, "own_folder"]).where("own * 2 >= others")
    dense_folder = dense_folder.select(*place, "own_folder", F.lit(True).alias("dense_folder"))
    kept = near.join(dense, place, "left").join(dense_folder, [*place, "own_folder"], "left").where("dense or dense_folder")
    return work.step("nearby", lambda: kept.select("component", "doc", "group", "replica"))


def _without_user(url: str) -> Column:
    """An address without the user name and the password in it."""
    return F.regexp_replace(url, "^(https?://)[^/?#]*@", "$1")


def url_rules(work: Work, documents: DataFrame, sites: DataFrame, clustered: DataFrame) -> DataFrame:
    """Rewritings of addresses under which pages stay the same, learned: where a rewritten address is known too, is the page a copy?"""
    pages = documents.where("site is not null and url is not null and tokens > 0").select("doc", "site", "url")
    schema = "doc long, site long, kinds array<string>, patterns array<string>, general array<boolean>, outcomes array<string>"
    made = each(pages, schema, "rewritings").select("doc", "site", F.explode(F.arrays_zip("kinds", "patterns", "general", "outcomes")).alias("how"))
    made = made.select(
        "doc", "site", F.col("how.kinds").alias("kind"), F.col("how.patterns").alias("pattern"), F.col("how.general").alias("general"),
        F.col("how.outcomes").alias("outcome"),
    )
    # Two ways to the same outcome, as with a parameter that stands twice, are one.
    made = work.step("rewritten", lambda: made.distinct())
    plain = pages.groupBy(F.col("url").alias("outcome")).agg(F.min("doc").alias("there"))
    rule = ["outcome", "site", "kind", "pattern", "general"]
    first = made.groupBy(*rule).agg(F.min("doc").alias("first"))
    met = made.join(plain, "outcome", "left").join(first, rule)
    # The document at the outcome of a rewriting, or else the first that the same rule leads there.
    tests = met.withColumn("to", F.coalesce("there", "first")).where("there is not null or doc <> first")
    of = clustered.select("doc", "cluster")
    tests = tests.join(of, "doc", "left").withColumn("from_cluster", F.coalesce("cluster", "doc")).drop("cluster")
    tests = tests.join(of.select(F.col("doc").alias("to"), "cluster"), "to", "left").withColumn("to_cluster", F.coalesce("cluster", "to"))
    tests = tests.select("kind", "pattern", "general", "site", "doc", "to", (F.col("from_cluster") != F.col("to_cluster")).alias("differs"))
    local = tests.select("kind", "pattern", "site", "doc", "to", "differs")
    everywhere = tests.where("general").select("kind", "pattern", F.lit(-1).cast("long").alias("site"), "doc", "to", "differs")
    counted = local.unionByName(everywhere).groupBy("kind", "pattern", "site").agg(
        F.sum((~F.col("differs")).cast("long")).alias("support"),
        F.count("*").alias("checked"),
        F.min(F.struct("differs", "doc", "to")).alias("example"),
    )
    counted = counted.where((F.col("support") >= LEAST_SUPPORT) & (F.col("support") / F.col("checked") >= LEAST_CONFIDENCE))
    urls = documents.select("doc", "url")
    told = (
        counted.select("*", F.col("example.doc").alias("doc"), F.col("example.to").alias("to"))
        .join(urls.select("doc", _without_user("url").alias("example_from")), "doc")
        .join(urls.select(F.col("doc").alias("to"), _without_user("url").alias("example_to")), "to")
        .join(sites.select("site", "host"), "site", "left")
    )
    told = work.step("rules", lambda: told.select("doc", "host", "kind", "pattern", "support", "checked", "example_from", "example_to"))
    order = F.row_number().over(Window.partitionBy(F.lit(0)).orderBy(F.col("support").desc(), "doc", "kind", "pattern", F.col("host").asc_nulls_first()))
    return told.withColumn("rule", (order - 1).cast("long")).select(
        "rule", "host", "kind", "pattern", "support", "checked", (F.col("support") / F.col("checked")).alias("confidence"), "example_from", "example_to"
    )
