"""The kernels as Python calls them, against rensa and datasketch in the same process, on the same texts.

Everybody makes sketches of 128 minima of shingles of five words, and estimates are compared with the truth. Two kinds of lines: `texts`, from a list of str to
sketches, what it takes to make shingles included; and `shingles`, where lists of shingles are there already, which is the best case of those who take
nothing else. One thread each, since rensa's own classes have one; lines that end in `all cores` say what the machine gives.

Unfair to us: nothing. Unfair to others: they are given shingles made by `str.split` and a list comprehension, which is what their documentation shows; our words are also folded and cut by Unicode, and ours
are fingerprinted in Rust. That is why `shingles` is told apart.
"""

import argparse
import os
import pathlib
import random
import re
import sys
import time

# Before anything starts a pool.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import common

WORDS = 5
PERM = 128
RECIPE = f"w{WORDS}-rabin64-t{PERM}"


def texts_of(n_documents, words):
    """Documents of real text: the sources of the standard library, cut."""
    stream = re.compile(r"\S+")
    out, piece = [], []
    while len(out) < n_documents:
        for text in common.library_texts():
            for word in stream.findall(text):
                piece.append(word)
                if len(piece) == words:
                    out.append(" ".join(piece))
                    piece = []
                    if len(out) == n_documents:
                        return out
    return out


def shingles_of(text):
    words = text.lower().split()
    return [" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)]


def timed(run, times=3):
    """The best of several: seconds of processor and of the clock."""
    best = None
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        took = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        best = took if best is None or took["seconds"] < best["seconds"] else best
    return best


def lines(texts, prebuilt, prebuilt_bytes):
    import datasketch
    import onionskin
    import onionskin.datasketch as drop_in
    import rensa

    few = len(texts) // 10

    def rensa_update(shingles):
        m = rensa.RMinHash(num_perm=PERM, seed=1)
        m.update(shingles)
        return m.digest()

    def datasketch_update(shingles):
        m = datasketch.MinHash(num_perm=PERM, seed=1)
        m.update_batch(shingles)
        return m

    def drop_in_update(shingles):
        m = drop_in.MinHash(num_perm=PERM, seed=1)
        m.update_batch(shingles)
        return m

    # Name, who, what it starts from, documents, the work.
    yield "onionskin.sketches", "texts", len(texts), lambda: onionskin.sketches(texts, recipe=RECIPE, threads=1)
    yield "onionskin.sketches, -one", "texts", len(texts), lambda: onionskin.sketches(texts, recipe=RECIPE + "-one", threads=1)
    yield "onionskin.sketches, all cores", "texts", len(texts), lambda: onionskin.sketches(texts, recipe=RECIPE)
    yield "onionskin.features 6x14r2", "texts", len(texts), lambda: onionskin.features(texts, recipe=f"w{WORDS}-rabin64-6x14r2", threads=1)
    yield "onionskin.sketch, one at a time", "texts", len(texts), lambda: [onionskin.sketch(text, recipe=RECIPE) for text in texts]
    yield "rensa.RMinHash", "texts", len(texts), lambda: [rensa_update(shingles_of(text)) for text in texts]
    yield "rensa.RMinHash, matrix", "texts", len(texts), lambda: rensa.RMinHash.digest_matrix_from_token_sets([shingles_of(text) for text in texts], PERM, 1)
    yield "datasketch.MinHash", "texts", few, lambda: [datasketch_update([s.encode() for s in shingles_of(text)]) for text in texts[:few]]
    yield "onionskin.datasketch.MinHash", "texts", len(texts), lambda: [drop_in_update([s.encode() for s in shingles_of(text)]) for text in texts]
    yield "rensa.RMinHash", "shingles", len(texts), lambda: [rensa_update(shingles) for shingles in prebuilt]
    yield "rensa.RMinHash, matrix", "shingles", len(texts), lambda: rensa.RMinHash.digest_matrix_from_token_sets(prebuilt, PERM, 1)
    yield "datasketch.MinHash", "shingles", few, lambda: [datasketch_update(shingles) for shingles in prebuilt_bytes[:few]]
    yield "onionskin.datasketch.MinHash", "shingles", len(texts), lambda: [drop_in_update(shingles) for shingles in prebuilt_bytes]


def lsh(n):
    """Insertions and queries of an index of bands, of sketches that are there."""
    import datasketch
    import onionskin.datasketch as drop_in

    out = {}
    for name, module in [("datasketch", datasketch), ("onionskin.datasketch", drop_in)]:
        generator = random.Random(1)
        sets = [[str(generator.randrange(10**9)).encode() for _ in range(50)] for _ in range(n)]
        sketches = [module.MinHash(num_perm=PERM) for _ in sets]
        for sketch, values in zip(sketches, sets):
            sketch.update_batch(values)
        start = time.perf_counter()
        index = module.MinHashLSH(threshold=0.8, num_perm=PERM)
        made = time.perf_counter() - start
        start = time.perf_counter()
        for key, sketch in enumerate(sketches):
            index.insert(key, sketch)
        inserted = time.perf_counter() - start
        start = time.perf_counter()
        found = sum(len(index.query(sketch)) for sketch in sketches)
        assert found >= n
        out[name] = {"parameters_seconds": made, "inserts_per_second": n / inserted, "queries_per_second": n / (time.perf_counter() - start)}
    return out


def accuracy(texts):
    """The root of the mean square error of estimates, against exact resemblance, for pairs made by changing words."""
    import onionskin

    generator = random.Random(7)
    pairs = []
    for text in texts[:400]:
        words = text.split()
        for at in generator.sample(range(len(words)), generator.randrange(1, len(words) // 8)):
            words[at] = "changed"
        pairs.append((text, " ".join(words)))
    errors = []
    for a, b in pairs:
        truth = onionskin.resemblance(a, b, chunking=f"w{WORDS}")
        errors.append((onionskin.sketch(a, recipe=RECIPE).resemblance(onionskin.sketch(b, recipe=RECIPE)) - truth) ** 2)
    return (sum(errors) / len(errors)) ** 0.5


def deduplicate(n, batch):
    """A million documents through `Deduplicator`, in a process of its own, whose memory is what it says."""
    program = f"""
import json, random, sys, time
sys.path.append({str(pathlib.Path(__file__).parent)!r})
import common, onionskin
words = ["w%d" % i for i in range(20000)]
generator = random.Random(3)
seen = onionskin.Deduplicator(ids=int)
start = time.perf_counter()
new = copies = 0
made = 0.0
last = []
for first in range(0, {n}, {batch}):
    begun = time.perf_counter()
    texts = []
    for i in range(min({batch}, {n} - first)):
        if last and generator.random() < 0.2:
            text = generator.choice(last)
        else:
            text = " ".join(generator.choices(words, k=60))
        texts.append(text)
    last = texts[:100]
    made += time.perf_counter() - begun
    for verdict in seen.add_many(texts, ids=range(first, first + len(texts))):
        new += verdict.is_new
        copies += verdict.is_exact
took = time.perf_counter() - start - made
print(json.dumps({{"documents": len(seen), "new": new, "copies": copies, "seconds": took, "index_bytes": seen.stats()["bytes"],
                   "peak_memory": common.peak_memory()}}))
"""
    result = common.measure(sys.executable, "-c", program)
    result["documents_per_second"] = result["documents"] / result["seconds"]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-python.json")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--seen", type=int, default=1_000_000, help="documents through Deduplicator; 0 leaves it out")
    options = parser.parse_args()
    texts = texts_of(options.documents, options.words)
    prebuilt = [shingles_of(text) for text in texts]
    prebuilt_bytes = [[shingle.encode() for shingle in shingles] for shingles in prebuilt]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts)} texts, {megabytes:.1f} MB, shingles of {WORDS} words, {PERM} minima")
    results = []
    for name, start, documents, work in lines(texts, prebuilt, prebuilt_bytes):
        took = timed(work)
        line = {"name": name, "from": start, "documents": documents, "documents_per_second": documents / took["seconds"], **took}
        line["megabytes_per_second"] = megabytes * documents / len(texts) / took["seconds"]
        results.append(line)
        print(f"{start:9} {name:34} {line['documents_per_second']:12,.0f} documents/s {line['megabytes_per_second']:8.1f} MB/s")
    by = {(line["name"], line["from"]): line["documents_per_second"] for line in results}
    ours = by["onionskin.sketches", "texts"]
    ratios = {
        "texts, against rensa": ours / by["rensa.RMinHash", "texts"],
        "texts, against rensa's matrix": ours / by["rensa.RMinHash, matrix", "texts"],
        "texts, against rensa on prebuilt shingles": ours / by["rensa.RMinHash", "shingles"],
        "texts, against datasketch": ours / by["datasketch.MinHash", "texts"],
        "drop-in against datasketch, shingles": by["onionskin.datasketch.MinHash", "shingles"] / by["datasketch.MinHash", "shingles"],
        "drop-in against rensa, shingles": by["onionskin.datasketch.MinHash", "shingles"] / by["rensa.RMinHash", "shingles"],
    }
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.1f} times")
    result = {
        "machine": common.machine(["onionskin", "rensa", "datasketch", "numpy"]),
        "documents": len(texts),
        "words": options.words,
        "megabytes": megabytes,
        "lines": results,
        "ratios": ratios,
        "estimate_error": accuracy(texts),
        "lsh": lsh(5000),
    }
    print(f"root mean square error of estimates: {result['estimate_error']:.4f}")
    if options.seen:
        result["deduplicator"] = deduplicate(options.seen, 10_000)
        told = result["deduplicator"]
        print(f"Deduplicator: {told['documents']:,} documents, {told['documents_per_second']:,.0f}/s, {told['peak_memory'] / 1e6:.0f} MB at most")
    if options.out:
        common.save(options.out, "python", result)


if __name__ == "__main__":
    main()
