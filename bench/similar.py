"""Whole jobs against peers: JSONL in, clusters out; the same text, word 4-grams, resemblance of at least 0.8, one thread each.

Ours is measured as people get it, with the default recipe and nothing left out but what no peer does: `run --no-collections --no-report`.
A recipe made for this one job comes second. A job is a whole process: its start, reading, decoding, sketches, candidates and clusters. What counts is processor seconds, since the machine may be busy; the best of a few runs. How many times as fast ours is, is told by runs in turns with
each peer, as many of one as of the other. What is true is told by our exact
join, which is itself compared with plain Python sets on a small sample before anything is measured. Every engine is judged by pairs
of documents in one cluster, and by its pairs where it gives all of them.

Three more tables are of ours alone: what the defaults leave on disk, list and cost; the same pages in every format, with one thread
and two; and how the job grows with the web.
"""

import argparse
import collections
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile

import formats
import real
from common import ONE_THREAD, best, fastest, generate, machine, measure, onionskin, save, write_jsonl
from peers import SIZE, THRESHOLD, shingles

# For this job alone: the fewest features of five minima that miss at most one in two hundred of the
# pairs that are exactly at the threshold, out of one permutation, and recall is not measured.
SPECIAL = ["--recipe", "w4-rabin64-14x5r1-one", "--no-recall"]
# Recipes that make no more than a search needs.
LEAN = {
    "features alone (`broder`)": ["--recipe", "broder", "--no-recall"],
    "one permutation (`fast`)": ["--recipe", "fast", "--no-recall"],
    "a recipe for this job": SPECIAL,
}
THRESHOLDS = [0.9, 0.8, 0.5]
# Seconds that a job of one document may take.
START = 0.010
MEMORY = "1G"
MEAN_WORDS = 300
OURS = "onionskin"

# What each is, how often it is run, and whether it is quick enough for the large sample.
ENGINES = [
    ("gaoya", "gaoya, MinHasher32 and MinHashIndex", 5, True),
    ("rensa-lsh", "rensa, RMinHash and RMinHashLSH", 2, True),
    ("rensa-r", "rensa, RMinHashDeduplicator", 2, True),
    ("rensa-c", "rensa, CMinHashDeduplicator", 1, False),
    ("rensa-rho", "rensa, rho (flags, no clusters)", 2, True),
    ("datasketch", "datasketch, MinHash and MinHashLSH", 1, False),
    ("datatrove", "datatrove, four stages", 1, False),
    ("spark", "Spark MLlib, MinHashLSH", 1, False),
]

UNFAIR = [
    "ours verifies every pair on the documents' own shingle sets, and measures its recall on a sample; gaoya and rensa's deduplicators verify on sketches, the others not at all",
    "ours leaves an atlas on disk, synced, from which other thresholds and methods are answered without a rescan; peers keep everything in "
    "memory and write their clusters alone, but for datatrove, which writes the filtered texts as well",
    "peers in Python cut words and join shingles in Python, and pay for the start of the interpreter; the start is told apart",
    "each has the parameters of its own documentation: 128 permutations, bands of its own choice; ours has 84 minima, in 16 bands of 5",
    "datatrove cuts words with its own tokenizer and drops texts of fewer than 5 words; its bands aim at about 0.72",
    "fastdedup is not measured: the program of that name for texts is in no registry (the crate and the packages called so are others)",
    "rensa's rho samples positions and gives flags, not clusters: it is judged by the documents that it removes, and does not count as the fastest peer",
]


def pair_key(a, b):
    return (a, b) if a < b else (b, a)


class Answer:
    """What an engine said: the cluster of each document that is in one, its pairs if it gives all, or what it removes."""

    def __init__(self, clusters, pairs=None, removed=None):
        self.clusters, self.pairs, self.removed = clusters, pairs, removed

    @staticmethod
    def of_peer(path):
        clusters, pairs, removed = {}, set(), set()
        with open(path) as lines:
            for line in lines:
                kind, *documents = line.split()
                documents = [int(document) for document in documents]
                if kind == "pair":
                    pairs.add(pair_key(*documents))
                elif kind == "cluster":
                    clusters[documents[0]] = clusters[documents[1]] = documents[0]
                else:
                    removed.add(documents[0])
        return Answer(clusters, pairs or None, removed or None)

    @staticmethod
    def of_atlas(atlas):
        """Reads pairs and clusters of an atlas. Pairs are kept of one document for each text, so copies are put back."""
        import pyarrow.parquet as parquet

        def columns(table, *names):
            rows = parquet.read_table(atlas / table, columns=list(names))
            return zip(*(rows[name].to_pylist() for name in names))

        copies = collections.defaultdict(list)
        text_of = {}
        for document, text in columns("documents", "doc", "text_fp"):
            copies[text].append(document)
            text_of[document] = text
        pairs = set()
        for group in copies.values():
            pairs.update((a, b) for i, a in enumerate(group) for b in group[i + 1 :])
        for a, b in columns("pairs", "a", "b"):
            pairs.update(pair_key(x, y) for x in copies[text_of[a]] for y in copies[text_of[b]] if x != y)
        clusters = {document: cluster for cluster, document in columns("clusters", "cluster", "doc")}
        return Answer(clusters, pairs)


def together(sizes):
    return sum(size * (size - 1) // 2 for size in sizes)


def share(part, whole):
    return part / whole if whole else 1.0


def judge(answer, truth):
    """Recall and precision of pairs in one cluster, and of pairs."""
    if answer.removed is not None:
        firsts = {}
        for document in sorted(truth.clusters):
            firsts.setdefault(truth.clusters[document], document)
        wanted = set(truth.clusters) - set(firsts.values())
        hit = len(wanted & answer.removed)
        return {"recall": share(hit, len(wanted)), "precision": share(hit, len(answer.removed))}
    both = collections.Counter(
        (truth.clusters[document], cluster) for document, cluster in answer.clusters.items() if document in truth.clusters
    )
    hit = together(both.values())
    result = {
        "recall": share(hit, together(collections.Counter(truth.clusters.values()).values())),
        "precision": share(hit, together(collections.Counter(answer.clusters.values()).values())),
    }
    if answer.pairs is not None:
        hit = len(answer.pairs & truth.pairs)
        result["pair_recall"] = share(hit, len(truth.pairs))
        result["pair_precision"] = share(hit, len(answer.pairs))
    return result


def scan(source, atlas):
    limits = ["--threads", "1", "--memory", MEMORY, "--json", "-q"]
    return onionskin("scan", source, "-o", atlas, "--overwrite", *limits)


def similar(atlas, cluster, *options, threshold=THRESHOLD):
    limits = ["--threads", "1", "--memory", MEMORY, "--json", "-q"]
    return onionskin("similar", atlas, "--threshold", threshold, "--cluster", cluster, "--no-recall", *options, *limits)


def ours(source, atlas, *options):
    """A job of ours: both stages in one process, and what each of them says it took. To remove an earlier atlas is no part of it."""
    shutil.rmtree(atlas, ignore_errors=True)
    limits = ["--threads", "1", "--memory", MEMORY, "--json", "-q"]
    result = onionskin("run", source, "-o", atlas, "--no-collections", "--no-report", "--threshold", THRESHOLD, *options, *limits)
    scanned, found = result["scan"], result["similar"]
    return {
        "cpu_seconds": result["process_cpu"],
        "scan_cpu": scanned["cpu_seconds"],
        "similar_cpu": found["cpu_seconds"],
        "system_cpu": result["system_cpu"],
        "scan_wall": scanned["seconds"],
        "wall_seconds": result["wall_seconds"],
        "peak_memory": result["peak_memory"],
        "text_bytes": scanned["text_bytes"],
        "documents": scanned["documents"],
        "parameters": f"{scanned['recipe']}, {found['candidates']} candidates, verified",
    }


def peer(name, source, output):
    program = [os.environ["PEER_GAOYA"]] if name == "gaoya" else [sys.executable, pathlib.Path(__file__).with_name("peers.py"), name]
    result = measure(*program, source, output, env=ONE_THREAD)
    result["cpu_seconds"] = result["process_cpu"]
    return result


def naive_pairs(texts):
    """All pairs at the threshold, by Python sets and an index of shingles."""
    sets = [set(shingles(text)) for text in texts]
    index = collections.defaultdict(list)
    pairs = set()
    for document, grams in enumerate(sets):
        shared = collections.Counter(other for gram in grams for other in index[gram])
        for other, count in shared.items():
            if count / (len(grams) + len(sets[other]) - count) >= THRESHOLD:
                pairs.add((other, document))
        for gram in grams:
            index[gram].append(document)
    return pairs


def check_truth(title, source, folder):
    """The exact join against plain sets, on a sample that is small enough for them."""
    with open(source) as lines:
        texts = [json.loads(line)["text"] for line in lines]
    atlas = folder / "checked.atlas"
    scan(source, atlas)
    similar(atlas, "transitive", "--exact")
    found, wanted = Answer.of_atlas(atlas).pairs, naive_pairs(texts)
    missed, added = len(wanted - found), len(found - wanted)
    print(f"exact join against plain sets, {title}, {len(texts)} documents: {len(wanted)} pairs, {missed} missed, {added} too many")
    return {"title": title, "documents": len(texts), "pairs": len(wanted), "missed": missed, "added": added}


HEADINGS = f"{'':44} {'MB/cpu s':>9} {'us/doc':>8} {'ours is':>8} {'cpu s':>7} {'start':>6} {'wall s':>7} {'peak MB':>8}   recall  precis.  pair r.  pair p."


def show(row):
    if "error" in row:
        print(f"{row['name']:44} {row['error']}")
        return
    ratio = f"{row['ratio']:7.1f}x" if row.get("ratio") else ""
    start = f"{row['start_cpu']:6.2f}" if "start_cpu" in row else ""
    shares = "  ".join(f"{row[name]:7.4f}" if name in row else "      -" for name in ["recall", "precision", "pair_recall", "pair_precision"])
    print(
        f"{row['name']:44} {row['mb_per_cpu_second']:9.2f} {row['cpu_us_per_document']:8.1f} {ratio:>8} {row['cpu_seconds']:7.2f} {start:>6} "
        f"{row['wall_seconds']:7.1f} {row['peak_memory'] / 1e6:8.0f}  {shares}"
    )


def compare(title, source, folder, engines, starts):
    """One table: all engines on one sample."""
    atlas = folder / "atlas"
    with open(source) as lines:
        # A reader that skips them, as datatrove's does, would number all that follows otherwise
        # than we do.
        if any(not json.loads(line)["text"].strip() for line in lines):
            raise ValueError(f"{title}: a text is empty")
    result = best(lambda: ours(source, atlas))
    volume, documents = result["text_bytes"], result["documents"]
    found = {"centred": Answer.of_atlas(atlas)}
    similar(atlas, "transitive")
    found["transitive"] = Answer.of_atlas(atlas)
    exact = similar(atlas, "transitive", "--exact")
    truth = {"transitive": Answer.of_atlas(atlas)}
    similar(atlas, "centred", "--exact")
    truth["centred"] = Answer.of_atlas(atlas)
    clusters = len(set(truth["transitive"].clusters.values()))
    print(f"\n{title}: {volume / 1e6:.1f} MB of text, {documents} documents, {len(truth['transitive'].pairs)} true pairs in {clusters} clusters")
    print(HEADINGS)
    rows = []

    def add(name, measured, judged=None):
        row = {"name": name, **measured, **(judged or {})}
        if "error" not in row:
            row["mb_per_cpu_second"] = volume / row["cpu_seconds"] / 1e6
            row["cpu_us_per_document"] = row["cpu_seconds"] / documents * 1e6
        rows.append(row)
        return row

    first = add(f"{OURS}, defaults", result, judge(found["centred"], truth["centred"]))
    first["start_cpu"] = starts.get("onionskin", 0.0)
    show(first)
    second = best(lambda: ours(source, folder / "other", "--cluster", "transitive"), 2)
    show(add(f"{OURS}, transitive", second, judge(found["transitive"], truth["transitive"])))
    third = best(lambda: ours(source, folder / "other", *SPECIAL), 2)
    show(add(f"{OURS}, a recipe for this job", third, judge(Answer.of_atlas(folder / "other"), truth["centred"])))
    exact.pop("atlas", None)
    exact["cpu_seconds"] = result["scan_cpu"] + exact["process_cpu"]
    exact["wall_seconds"] += result["scan_wall"]
    show(add(f"{OURS}, exact join, transitive", exact, judge(truth["transitive"], truth["transitive"])))
    for name, label, times, _ in engines:
        try:
            output = folder / f"{name}.out"
            # In turns, as often as it: a machine that is slow for a while is slow for both.
            turns = [(peer(name, source, output), ours(source, folder / "turn")) for _ in range(times)]
            measured, beside = map(fastest, zip(*turns))
            answer = Answer.of_peer(output)
            row = add(label, measured, judge(answer, truth["transitive"]))
            row["clusters"] = len(set(answer.clusters.values()))
            row["start_cpu"] = starts.get(name, 0.0)
            row["ours_cpu_seconds"] = beside["cpu_seconds"]
            row["ratio"] = row["cpu_seconds"] / beside["cpu_seconds"]
            row["ratio_without_start"] = (row["cpu_seconds"] - row["start_cpu"]) / beside["cpu_seconds"]
        except Exception as error:  # a peer that cannot be had is told, not hidden
            row = add(label, {"error": f"{type(error).__name__}: {error}"})
        show(row)
    judged = [row for row in rows if row.get("clusters") and "ratio" in row]
    if judged:
        closest = min(judged, key=lambda row: row["ratio"])
        best_recall = max(judged, key=lambda row: row["recall"])
        print(f"against the fastest peer, {closest['name']}: {closest['ratio']:.1f} times per processor second (12 or more is wanted)")
        print(f"recall {first['recall']:.4f} against the best peer's {best_recall['recall']:.4f} ({best_recall['name']})")
    return {"title": title, "text_bytes": volume, "documents": documents, "rows": rows}


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def clusters_of(answer):
    """Clusters as sets, whatever they are called."""
    members = collections.defaultdict(set)
    for document, cluster in answer.clusters.items():
        members[cluster].add(document)
    return {frozenset(documents) for documents in members.values()}


def defaults(title, source, folder):
    """What people get who type the obvious thing, against all that could be had."""
    atlas, other = folder / "atlas", folder / "other"
    jobs = {"defaults": [], **LEAN}
    # In turns, since the machine may be slow for a while.
    turns = [{name: ours(source, other, *options) for name, options in jobs.items()} for _ in range(3)]
    cpu = {name: min(turn[name]["cpu_seconds"] for turn in turns) for name in jobs}
    leanest = min(LEAN, key=cpu.get)
    told = ours(source, atlas)
    row = {
        "title": title,
        "documents": told["documents"],
        "text_bytes": told["text_bytes"],
        "cpu_seconds": cpu,
        "leanest": leanest,
        "cpu_of_leanest": cpu["defaults"] / cpu[leanest],
        "atlas_share": size_of(atlas) / told["text_bytes"],
        "pairs": {},
    }
    ours(source, other, "--recipe", "papers")
    row["same_clusters_as_papers"] = clusters_of(Answer.of_atlas(atlas)) == clusters_of(Answer.of_atlas(other))
    for threshold in THRESHOLDS:
        found = similar(atlas, "centred", threshold=threshold)
        listed = Answer.of_atlas(atlas).pairs
        # The other atlas has the chunks already.
        similar(other, "centred", "--exact", threshold=threshold)
        true = Answer.of_atlas(other).pairs
        crowds = found.get("candidates", {}).get("crowded_buckets", 0) if isinstance(found.get("candidates"), dict) else found.get("crowded_buckets", 0)
        row["pairs"][str(threshold)] = {"true": len(true), "listed": share(len(listed & true), len(true)), "crowds": crowds}
    recalls = "  ".join(
        f"{row['pairs'][str(threshold)]['listed']:8.4f}" + (" (crowds)" if row["pairs"][str(threshold)]["crowds"] else "") for threshold in THRESHOLDS
    )
    print(
        f"{title:24} {told['text_bytes'] / 1e6:7.1f} {told['documents']:10} {100 * row['atlas_share']:9.1f} % {recalls} "
        f"{row['cpu_of_leanest']:9.2f}x {leanest:26} {'equal' if row['same_clusters_as_papers'] else 'DIFFERENT'}"
    )
    return row


DEFAULT_HEADINGS = (
    f"\n{'what the defaults give':24} {'MB':>7} {'documents':>10} {'atlas/text':>11} "
    + "  ".join(f"{f'at {threshold}':>8}" for threshold in THRESHOLDS)
    + f" {'CPU':>10} {'than the leanest':26} clusters of the recipe `papers`"
)


def growth(folder, megabytes):
    print(f"\ngrowth: {'documents':>10} {'MB':>7} {'scan us/doc':>12} {'similar us/doc':>15} {'MB/cpu s':>9} {'peak MB':>8} {'pairs':>9}")
    rows = []
    for factor in [1, 2, 4, 8]:
        source, atlas = generate(folder / "grown.jsonl", megabytes * factor, "text", "jsonl", MEAN_WORDS), folder / "grown.atlas"
        result = best(lambda: ours(source, atlas), 2)
        documents, volume = result["documents"], result["text_bytes"]
        pairs = len(Answer.of_atlas(atlas).pairs)
        row = {
            "factor": factor,
            "pairs": pairs,
            "scan_us_per_document": result["scan_cpu"] / documents * 1e6,
            "similar_us_per_document": result["similar_cpu"] / documents * 1e6,
            **result,
        }
        rows.append(row)
        print(
            f"{factor:5}x  {documents:10} {volume / 1e6:7.0f} {row['scan_us_per_document']:12.1f} {row['similar_us_per_document']:15.1f} "
            f"{volume / result['cpu_seconds'] / 1e6:9.1f} {result['peak_memory'] / 1e6:8.0f} {pairs:9}"
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=20, help="the sample that all are measured on")
    parser.add_argument("--large-mb", type=float, default=400, help="a second one, for those that are quick enough; 0 for none")
    parser.add_argument("--growth-mb", type=float, default=50, help="the smallest of the webs that grow; 0 for none")
    parser.add_argument("--only", help="peers to run, with commas between them; all by default")
    parser.add_argument("--formats-mb", type=float, default=200, help="HTML of the table of formats; 0 for none")
    parser.add_argument("--no-real", action="store_true", help="leave out real text")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/bench-data"), help="where fetched packages are kept")
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-similar.json")
    arguments = parser.parse_args()
    engines = [engine for engine in ENGINES if not arguments.only or engine[0] in arguments.only.split(",")]
    if importlib.util.find_spec("pyspark") is None and any(engine[0] == "spark" for engine in engines):
        print("pyspark is not installed: Spark is left out")
        engines = [engine for engine in engines if engine[0] != "spark"]
    told = machine(["datasketch", "rensa", "datatrove", "pyspark", "numpy", "orjson"], ["gaoya", "onionskin"])
    print(f"{told['processor']}, {told['cores']} cores, load {told['load']}; {told['versions']}")
    results = {"machine": told, "threshold": THRESHOLD, "shingle": SIZE, "special": SPECIAL, "unfair": UNFAIR, "tables": []}

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        source = generate(folder / "common.jsonl", arguments.mb, "text", "jsonl", MEAN_WORDS)
        small = generate(folder / "small.jsonl", min(4, arguments.mb), "text", "jsonl", MEAN_WORDS)
        results["truth"] = [check_truth("generated web", small, folder)]
        # What a job takes that has one document to do: the start of an interpreter and its imports.
        start = write_jsonl(folder / "start.jsonl", ["one two three four five six seven"])
        starts = {}
        started = best(lambda: ours(start, folder / "atlas"), 10)
        starts["onionskin"] = started["cpu_seconds"]
        results["start"] = started
        print(f"a job of one document: {1000 * started['cpu_seconds']:.1f} ms of CPU, {1000 * started['wall_seconds']:.1f} ms of wall (aim {1000 * START:.0f} ms)")
        for name, *_ in engines:
            try:
                starts[name] = peer(name, start, folder / "start.out")["cpu_seconds"]
            except Exception:  # told with the sample
                pass
        results["tables"].append(compare("generated web", source, folder, engines, starts))
        quick = [engine for engine in engines if engine[3]]
        corpora = [("generated web", source)]
        if not arguments.no_real:
            words = list(real.words(arguments.work, SIZE))
            sample = write_jsonl(folder / "sample.jsonl", words[:: max(1, sum(map(len, words)) // 4_000_000)])
            results["truth"].append(check_truth("a sample of the real text", sample, folder))
            corpora.append(("real text", write_jsonl(folder / "real.jsonl", words)))
            results["tables"].append(compare(*corpora[-1], folder, quick, starts))
        if arguments.large_mb:
            corpora.append(("large generated web", generate(folder / "large.jsonl", arguments.large_mb, "text", "jsonl", MEAN_WORDS)))
            results["tables"].append(compare(*corpora[-1], folder, quick, starts))
        print(DEFAULT_HEADINGS)
        results["defaults"] = [defaults(title, path, folder) for title, path in corpora]
        if arguments.formats_mb:
            results["formats"] = formats.table(folder, arguments.work, arguments.formats_mb)
        if arguments.growth_mb:
            results["growth"] = growth(folder, arguments.growth_mb)
    print("\nwhat is not alike:")
    for line in UNFAIR:
        print(f"- {line}")
    if arguments.out:
        save(arguments.out, "similar", results)


if __name__ == "__main__":
    sys.exit(main())
