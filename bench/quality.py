"""How well searches find what labels say is the same: ours and peers, on the sets of `labelled.py`.

Every tool searches every set at all thresholds. Pairs are judged by the labels, clusters by the
adjusted Rand index. The best threshold of a tool is chosen on one half of the labels and reported
on the other half; the half is a stable hash of the label. The scan, the search and `dedup` are also
run with several seeds to count the true pairs of which both documents stay.

    ONIONSKIN=target/release/onionskin PEER_GAOYA=... python bench/quality.py --work DIR

`cargo xtask bench quality` does it with everything that it needs.
"""

import argparse
import collections
import dataclasses
import datetime
import json
import pathlib
import shutil
import statistics
import sys
import time
import urllib.parse

import numpy
import pyarrow.parquet as parquet

import labelled
import quality_peers
from common import machine, onionskin, save
from quality_peers import Found, pair_codes

THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
DEFAULT_THRESHOLD = 0.9
OURS = "onionskin"
TUNED, REPORTED = 0, 1

# Wrong cases per set and kind: so many are kept in the results and shown on the page.
CASES = 20
SHOWN_CASES = 10
CASE_WORDS = 6

LEAK_THRESHOLDS = [0.9, 0.8, 0.5]
LEAK_SEEDS = range(1, 11)


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A way to use our program: a recipe, and options of `scan` and of `similar`. To measure a new
    option, add a line to `CONFIGURATIONS`."""

    name: str
    recipe: str = "default"
    scan: tuple[str, ...] = ()
    similar: tuple[str, ...] = ()


DEFAULT = Configuration("default")
CONFIGURATIONS = [
    DEFAULT,
    Configuration("default, exact join", similar=("--exact",)),
    Configuration("w1", "w1-rabin64-6x14r2+sketch"),
    Configuration("w2", "w2-rabin64-6x14r2+sketch"),
    Configuration("w3", "w3-rabin64-6x14r2+sketch"),
    Configuration("c5", "c5-rabin64-6x14r2+sketch"),
    Configuration("c8", "c8-rabin64-6x14r2+sketch"),
]


class Truth:
    """Labels of the documents of a set as numbers, and the half that each is in."""

    def __init__(self, documents):
        self.documents = documents
        self.size = len(documents)
        numbers = {}
        for document in documents:
            numbers.setdefault(document.label, len(numbers))
        self.labels = numpy.array([numbers[document.label] for document in documents])
        half_of_label = numpy.array([labelled.half_of(label) for label in numbers])
        self.halves = half_of_label[self.labels]
        self.sizes = numpy.bincount(self.labels)
        self.pairs = [pairs_within(self.sizes[half_of_label == half]) for half in [0, 1]]

    def score(self, found, half):
        """Precision, recall and F1 of pairs, and the adjusted Rand index of clusters. A pair counts
        in the half of its first document."""
        a, b = found.pairs // self.size, found.pairs % self.size
        inside = self.halves[a] == half
        listed = int(inside.sum())
        right = int((self.labels[a] == self.labels[b])[inside].sum())
        precision = right / listed if listed else 1.0
        recall = right / self.pairs[half] if self.pairs[half] else 1.0
        return {
            "pairs": listed,
            "right": right,
            "precision": precision,
            "recall": recall,
            "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
            "ari": adjusted_rand(self.labels[self.halves == half], found.clusters[self.halves == half]),
        }


def pairs_within(sizes):
    return int((sizes * (sizes - 1) // 2).sum())


def adjusted_rand(labels, clusters):
    """Hubert and Arabie 1985: 1 for equal partitions, 0 for what chance would give."""
    both = numpy.unique(numpy.stack([labels, clusters]), axis=1, return_counts=True)[1]
    common = pairs_within(both)
    wanted = pairs_within(numpy.unique(labels, return_counts=True)[1])
    given = pairs_within(numpy.unique(clusters, return_counts=True)[1])
    expected = wanted * given / max(1, pairs_within(numpy.array([len(labels)])))
    most = (wanted + given) / 2
    return (common - expected) / (most - expected) if most != expected else 1.0


# Our program.


def columns(atlas, table, *names):
    """Columns of a table of an atlas as arrays."""
    rows = parquet.read_table(atlas / table, columns=list(names))
    return [rows[name].to_numpy() for name in names]


def page_name(url):
    """The place of a page below the scanned directory."""
    return urllib.parse.unquote(url.removeprefix("http://"))


class Atlas:
    """A scan of a set, with the set's number of every document."""

    def __init__(self, place, source, configuration, documents, seed=1):
        self.place, self.configuration, self.size = place, configuration, len(documents)
        shutil.rmtree(place, ignore_errors=True)
        recipe = ["--recipe", configuration.recipe, "--seed", seed]
        onionskin("scan", source, "-o", place, "-q", "--json", *recipe, *configuration.scan)
        ids, urls, self.texts = columns(place, "documents", "id", "url", "text_fp")
        names = [page_name(url) if name is None else name for name, url in zip(ids, urls)]
        numbers = {document.name: number for number, document in enumerate(documents)}
        unknown = [name for name in names if name not in numbers]
        if unknown or len(names) != len(documents):
            raise RuntimeError(f"{len(names)} of {len(documents)} scanned, unknown: {unknown[:3]}")
        self.numbers = numpy.array([numbers[name] for name in names])

    def search(self, threshold, *options):
        arguments = ["--threshold", threshold, "--no-recall", "--overwrite", "-q", "--json"]
        onionskin("similar", self.place, *arguments, *self.configuration.similar, *options)

    def near_pairs(self):
        """Rows of `pairs`: of equal texts only one has near pairs."""
        return columns(self.place, "pairs", "a", "b")

    def found(self):
        """Pairs with the copies of equal texts put back, and clusters."""
        a, b = self.near_pairs()
        near = self.texts[a] != self.texts[b]
        a, b = [self.with_copies(a[near], b[near]), self.equal_pairs()]
        pairs = numpy.concatenate([a, b], axis=1)
        clusters = numpy.arange(self.size)
        cluster, doc = columns(self.place, "clusters", "cluster", "doc")
        clusters[self.numbers[doc]] = self.size + cluster
        return Found(pair_codes(self.size, *self.numbers[pairs]), clusters)

    def copies(self):
        groups = collections.defaultdict(list)
        for doc, text in enumerate(self.texts):
            groups[text].append(doc)
        return groups

    def equal_pairs(self):
        pairs = [
            (x, y)
            for group in self.copies().values()
            for at, x in enumerate(group)
            for y in group[at + 1 :]
        ]
        return numpy.array(pairs, dtype=numpy.int64).reshape(-1, 2).T

    def with_copies(self, a, b):
        groups = self.copies()
        single = len(groups) == len(self.texts)
        if single:
            return numpy.stack([a, b]).astype(numpy.int64)
        pairs = [(x, y) for left, right in zip(a, b)
                 for x in groups[self.texts[left]] for y in groups[self.texts[right]]]  # fmt: skip
        return numpy.array(pairs, dtype=numpy.int64).reshape(-1, 2).T

    def remove(self):
        shutil.rmtree(self.place, ignore_errors=True)


def search_ours(configuration, made, folder):
    """Searches a set at every threshold; yields the threshold and what was found."""
    atlas = Atlas(folder / "atlas", made.source, configuration, made.documents)
    for threshold in THRESHOLDS:
        atlas.search(threshold)
        yield threshold, atlas.found()
    atlas.remove()


def search_peer(peer, made, folder):
    search = peer.prepare([document.text for document in made.documents], folder)
    for threshold in THRESHOLDS:
        yield threshold, search(threshold)


def judged(tool, name, searches, truth):
    """One row: the scores of a tool at every threshold, and which is best on the tuned half."""
    curve = []
    for threshold, found in searches:
        halves = {"tuned": truth.score(found, TUNED), "reported": truth.score(found, REPORTED)}
        curve.append({"threshold": threshold, **halves})
    best = max(curve, key=lambda point: (point["tuned"]["f1"], point["threshold"]))
    default = next(point for point in curve if point["threshold"] == DEFAULT_THRESHOLD)
    return {
        "tool": tool,
        "configuration": name,
        "best_threshold": best["threshold"],
        "tuned_f1": best["tuned"]["f1"],
        "best": best["reported"],
        "default": default["reported"],
        "curve": curve,
    }


# Wrong cases.


def resemblance(a, b):
    return len(a & b) / len(a | b) if a or b else 1.0


def only_in(words, others):
    """The first words of a text that the other does not have, and how many more there are."""
    others = set(others)
    only = list(dict.fromkeys(word[:20] for word in words if word not in others))
    more = f" (+{len(only) - CASE_WORDS:,})" if len(only) > CASE_WORDS else ""
    return " ".join(only[:CASE_WORDS]) + more


class Cases:
    """Wrong pairs of a search, a few of each kind, at most one per label."""

    def __init__(self, truth):
        self.truth = truth
        self.shingles = {}

    def of(self, number, kind):
        key = (number, kind)
        if key not in self.shingles:
            text = self.truth.documents[number].text
            self.shingles[key] = set(quality_peers.SHINGLES[kind](text))
        return self.shingles[key]

    def described(self, a, b):
        first, second = self.truth.documents[a], self.truth.documents[b]
        return {
            "a": first.name,
            "b": second.name,
            "words": [len(first.words()), len(second.words())],
            "resemblance_w4": resemblance(self.of(a, "w4"), self.of(b, "w4")),
            "resemblance_c5": resemblance(self.of(a, "c5"), self.of(b, "c5")),
            "only_a": only_in(first.words(), second.words()),
            "only_b": only_in(second.words(), first.words()),
        }

    def drawn(self, pairs):
        """Pairs in the order of stable hashes, with new labels each."""
        names = [document.name for document in self.truth.documents]
        order = sorted(pairs, key=lambda pair: labelled.stable_hash(f"{names[pair[0]]} {names[pair[1]]}"))
        used, cases = set(), []
        for a, b in order:
            labels = {int(self.truth.labels[a]), int(self.truth.labels[b])}
            if len(cases) < CASES and not labels & used:
                used |= labels
                cases.append(self.described(a, b))
        return cases

    def wrong(self, found):
        """Pairs of different labels in the reported half that the search lists."""
        truth = self.truth
        a, b = found.pairs // truth.size, found.pairs % truth.size
        chosen = (truth.labels[a] != truth.labels[b]) & (truth.halves[a] == REPORTED)
        return self.drawn(list(zip(a[chosen].tolist(), b[chosen].tolist())))

    def missed(self, found):
        """Pairs of one label in the reported half that it does not list."""
        truth, listed, missed = self.truth, set(found.pairs.tolist()), []
        groups = collections.defaultdict(list)
        for number in numpy.flatnonzero(truth.halves == REPORTED).tolist():
            groups[truth.labels[number]].append(number)
        for group in groups.values():
            for at, a in enumerate(group):
                missed += [(a, b) for b in group[at + 1 :] if a * truth.size + b not in listed]
        return self.drawn(missed)


def wrong_cases(made, truth, threshold, folder):
    """Wrong cases of the default recipe at its best threshold."""
    atlas = Atlas(folder / "atlas", made.source, DEFAULT, made.documents)
    atlas.search(threshold)
    found, cases = atlas.found(), Cases(truth)
    atlas.remove()
    return {"threshold": threshold, "wrong": cases.wrong(found), "missed": cases.missed(found)}


# Leaks.


def kept_documents(atlas, folder):
    """The documents that `dedup` keeps."""
    shutil.rmtree(folder, ignore_errors=True)
    onionskin("dedup", atlas.place, "-o", folder, "--shards", "none", "-q", "--json")
    kept = numpy.zeros(atlas.size, dtype=bool)
    with (folder / "kept.jsonl").open() as lines:
        kept[[json.loads(line)["doc"] for line in lines]] = True
    return kept


def exact_pairs(atlas, truth, threshold):
    """Near pairs of an exact join as fingerprints of texts, and whether the labels are the same."""
    atlas.search(threshold, "--exact")
    a, b = atlas.near_pairs()
    near = atlas.texts[a] != atlas.texts[b]
    a, b = a[near], b[near]
    same = truth.labels[atlas.numbers[a]] == truth.labels[atlas.numbers[b]]
    return atlas.texts[a], atlas.texts[b], same


def leak(made, truth, folder, seeds):
    """For each threshold and seed: true pairs of which `dedup` keeps both texts."""
    atlas = Atlas(folder / "atlas", made.source, DEFAULT, made.documents)
    wanted = {threshold: exact_pairs(atlas, truth, threshold) for threshold in LEAK_THRESHOLDS}
    rows = []
    for seed in seeds:
        atlas = Atlas(folder / "atlas", made.source, DEFAULT, made.documents, seed)
        for threshold in LEAK_THRESHOLDS:
            atlas.search(threshold)
            kept = atlas.texts[kept_documents(atlas, folder / "deduplicated")]
            a, b, same = wanted[threshold]
            both = numpy.isin(a, kept) & numpy.isin(b, kept)
            rows.append(
                {
                    "seed": seed,
                    "threshold": threshold,
                    "pairs": len(a),
                    "both_kept": int(both.sum()),
                    "labelled_pairs": int(same.sum()),
                    "labelled_both_kept": int((both & same).sum()),
                }
            )
    atlas.remove()
    return rows


# The whole.


def measured(kind, packages, work):
    """Everything about one set."""
    folder = work / kind.name
    made = kind.make(folder, packages)
    truth = Truth(made.documents)
    rows = []
    for configuration in CONFIGURATIONS:
        searches = search_ours(configuration, made, folder)
        rows.append(judged(OURS, configuration.name, searches, truth))
        print_row(rows[-1])
    for peer in quality_peers.PEERS:
        rows.append(judged(peer.tool, peer.shingles, search_peer(peer, made, folder), truth))
        print_row(rows[-1])
    return {
        "name": kind.name,
        "title": kind.title,
        "what": kind.what,
        "documents": truth.size,
        "labels": len(truth.sizes),
        "pairs": sum(truth.pairs),
        "contradictory": made.contradictory,
        "text_bytes": sum(len(document.text.encode()) for document in made.documents),
        "rows": rows,
        "cases": wrong_cases(made, truth, rows[0]["best_threshold"], folder),
        "leak": leak(made, truth, folder, [1]),
    }


def crowds(packages, work):
    """The leak on all licence texts and notices, where some labels have hundreds of variants."""
    folder = work / "crowds"
    made = labelled.licence_crowds(folder, packages)
    truth = Truth(made.documents)
    result = {"documents": truth.size, "leak": leak(made, truth, folder, LEAK_SEEDS)}
    for row in leak_rows("licences, all", result["leak"]):
        print(row)
    return result


def print_row(row):
    best, default = row["best"], row["default"]
    print(
        f"  {row['tool']:11} {row['configuration']:20} at {DEFAULT_THRESHOLD}: {shares(default)}"
        f"   at {row['best_threshold']:4}: {shares(best)}",
        flush=True,
    )


def shares(score):
    return "  ".join(f"{score[name]:.3f}" for name in ["precision", "recall", "f1", "ari"])


# The page.


def best_row(rows, tool):
    """The row of a tool that is best on the tuned half."""
    return max((row for row in rows if row["tool"] == tool), key=lambda row: row["tuned_f1"])


def summary(sets):
    tools = [OURS, *dict.fromkeys(peer.tool for peer in quality_peers.PEERS)]
    yield "| Set | Documents | Pairs | Default | Default recipe, best threshold | " + " | ".join(
        f"{tool}, best" for tool in tools
    ) + " |"
    yield "|---|---:|---:|---:|---:|" + "---:|" * len(tools)
    for one in sets:
        default = one["rows"][0]
        cells = [f"{default['default']['f1']:.3f}", best_cell(default, "")]
        for tool in tools:
            row = best_row(one["rows"], tool)
            cells.append(best_cell(row, f"{row['configuration']}, "))
        yield f"| {one['title']} | {one['documents']:,} | {one['pairs']:,} | {' | '.join(cells)} |"


def best_cell(row, configuration):
    return f"{row['best']['f1']:.3f} ({configuration}{row['best_threshold']})"


def score_table(rows):
    names = ["precision", "recall", "f1", "ari"]
    yield (
        f"| Tool | Configuration | Precision at {DEFAULT_THRESHOLD} | Recall | F1 | ARI"
        " | Best threshold | Precision | Recall | F1 | ARI |"
    )
    yield "|---|---|" + "---:|" * 9
    for row in rows:
        default = " | ".join(f"{row['default'][name]:.3f}" for name in names)
        best = " | ".join(f"{row['best'][name]:.3f}" for name in names)
        place = row["best_threshold"]
        yield f"| {row['tool']} | {row['configuration']} | {default} | {place} | {best} |"


def case_table(cases):
    if not cases:
        yield "None."
        return
    yield "| First | Second | Words | w4 | c5 | Only in the first | Only in the second |"
    yield "|---|---|---:|---:|---:|---|---|"
    for case in cases[:SHOWN_CASES]:
        lengths = " and ".join(f"{words:,}" for words in case["words"])
        values = f"{case['resemblance_w4']:.2f} | {case['resemblance_c5']:.2f}"
        cells = [in_cell(case["a"]), in_cell(case["b"]), lengths, values]
        cells += [in_cell(case["only_a"]), in_cell(case["only_b"])]
        yield f"| {' | '.join(cells)} |"


def in_cell(name):
    return name.replace("|", "\\|").replace("<", "&lt;")


def percent(part, whole):
    return f"{100 * part / whole:.2f} %" if whole else "none"


def leak_rows(title, rows):
    """Per threshold: the median and the largest leak of the seeds."""
    for threshold in LEAK_THRESHOLDS:
        at = [row for row in rows if row["threshold"] == threshold]
        pairs, labelled_pairs = at[0]["pairs"], at[0]["labelled_pairs"]
        cells = [title, f"{threshold}", f"{len(at)}", f"{pairs:,}"]
        for name, whole in [("both_kept", pairs), ("labelled_both_kept", labelled_pairs)]:
            counts = sorted(row[name] for row in at)
            cells.append(percent(statistics.median(counts), whole))
            cells.append(percent(counts[-1], whole))
        cells.insert(6, f"{labelled_pairs:,}")
        yield f"| {' | '.join(cells)} |"


def leak_table(results):
    yield (
        "| Set | Threshold | Seeds | True pairs | Both kept, median | Both kept, most"
        " | Of one label | Both kept, median | Both kept, most |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for one in results["sets"]:
        yield from leak_rows(one["title"], one["leak"])
    title = f"All licence texts and notices ({results['crowds']['documents']:,} documents)"
    yield from leak_rows(title, results["crowds"]["leak"])


def set_section(one):
    yield f"## {one['title']}"
    yield ""
    yield one["what"]
    yield ""
    yield (
        f"{one['documents']:,} documents ({one['text_bytes'] / 1e6:.1f} MB of text) under"
        f" {one['labels']:,} labels, {one['pairs']:,} pairs that are the same;"
        f" {one['contradictory']:,} documents were left out."
    )
    yield ""
    yield from score_table(one["rows"])
    cases = one["cases"]
    for kind, heading in [
        ("wrong", "Listed, but the labels are different"),
        ("missed", "Not listed, but the labels are the same"),
    ]:
        yield ""
        yield f"{heading} (default recipe at {cases['threshold']}):"
        yield ""
        yield from case_table(cases[kind])
    yield ""


def page(results):
    """Everything below the mark of the page."""
    yield f"Measured on {datetime.date.today().isoformat()}."
    yield ""
    yield "## Summary"
    yield ""
    yield from summary(results["sets"])
    yield ""
    yield "## Leak"
    yield ""
    yield from leak_table(results)
    yield ""
    for one in results["sets"]:
        yield from set_section(one)


def write_page(path, results):
    mark = "<!-- measured -->"
    above = path.read_text().split(mark)[0] if path.exists() else "# Quality\n\n"
    lines = [line for text in page(results) for line in wrapped(text)]
    path.write_text(above + mark + "\n\n" + "\n".join(lines).rstrip() + "\n")


def wrapped(text):
    """Lines of at most 100 columns; rows of tables stay whole."""
    import textwrap

    return [text] if text.startswith("|") else textwrap.wrap(text, 100) or [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="packages and atlases")
    parser.add_argument("--only", help="sets, with commas between them; nothing is written then")
    parser.add_argument("--out", type=pathlib.Path, help="directory for <date>-quality.json")
    parser.add_argument("--page", type=pathlib.Path, help="the Markdown page to write")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",") if arguments.only else None
    if unknown := set(wanted or []) - {kind.name for kind in labelled.SETS} - {"crowds"}:
        parser.error(f"unknown: {', '.join(unknown)}; known are "
                     f"{', '.join(kind.name for kind in labelled.SETS)}, crowds")  # fmt: skip
    packages = labelled.Packages(arguments.work / "packages")
    results = {
        "machine": machine(["datasketch", "rensa", "numpy"], ["gaoya", "onionskin"]),
        "thresholds": THRESHOLDS,
        "configurations": [dataclasses.asdict(one) for one in CONFIGURATIONS],
        "sets": [],
    }
    for kind in labelled.SETS:
        if not wanted or kind.name in wanted:
            start = time.monotonic()
            print(f"{kind.title}:", flush=True)
            results["sets"].append(measured(kind, packages, arguments.work))
            print(f"  {time.monotonic() - start:.0f} s", flush=True)
    if not wanted or "crowds" in wanted:
        results["crowds"] = crowds(packages, arguments.work)
    if wanted:
        return
    if arguments.out:
        save(arguments.out, "quality", results)
    if arguments.page:
        write_page(arguments.page, results)


if __name__ == "__main__":
    sys.exit(main())
