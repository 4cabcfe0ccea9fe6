"""Scan against peers: the same text, the same shingles, one core each, in one run.

Everything is measured in processor seconds, since the machine may be busy; the best of three runs, of two for peers. Signatures
are made of the first 6 MB of the text, the same documents for all, because peers are slow. Ours is
measured as whole processes and in parts; the signature stage of a peer is measured inside one process, on texts
that are already in memory, so that the peer pays for neither reading nor decoding. Word 5-grams and 128 permutations for all.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

from common import best, generate, library_texts, machine, onionskin, save, write_jsonl

RECIPE = "w5-rabin64-t128"
FEATURES = "w4-rabin64-6x14r2"
# What people get who name none, and everything at once.
DEFAULT, PAPERS = "default", "papers"
SIZE, PERMUTATIONS = 5, 128


def measure_scan(inputs, recipe, folder):
    def run():
        atlas = folder / "atlas"
        arguments = ["scan", *map(str, inputs), "-o", str(atlas), "--recipe", recipe, "--threads", "1", "--overwrite", "--json", "-q"]
        result = onionskin(*arguments)
        result["cpu_seconds"] = result["process_cpu"]
        return result

    return best(run)


def measure_part(stage, recipe, inputs):
    return best(lambda: onionskin(stage, recipe, *map(str, inputs), env="ONIONSKIN_BENCH"))


def peer(name, make, texts):
    """A peer's signatures of all texts, in processor seconds of this process."""
    try:
        sign = make()
    except Exception as error:  # a peer that cannot be had is told, not hidden
        return {"name": name, "error": f"{type(error).__name__}: {error}"}
    seconds = []
    for _ in range(2):
        start = time.process_time()
        for text in texts:
            sign(text)
        seconds.append(time.process_time() - start)
    return {"name": name, "cpu_seconds": min(seconds)}


def words_of(text):
    return text.lower().split()


def datasketch():
    from datasketch import MinHash

    def sign(text):
        words = words_of(text)
        grams = {" ".join(words[i : i + SIZE]).encode() for i in range(max(1, len(words) - SIZE + 1))}
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch(list(grams))
        return sketch

    return sign


def rensa(kind):
    def make():
        import rensa as module

        sketch_type = getattr(module, kind)

        def sign(text):
            words = words_of(text)
            grams = [" ".join(words[i : i + SIZE]) for i in range(max(1, len(words) - SIZE + 1))]
            sketch = sketch_type(num_perm=PERMUTATIONS, seed=1)
            sketch.update(grams)
            return sketch

        return sign

    return make


def datatrove():
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature

    config = MinhashConfig(n_grams=SIZE, num_buckets=16, hashes_per_bucket=8)
    signature = MinhashDedupSignature(output_folder=tempfile.mkdtemp(), config=config)

    def sign(text):
        shingles = signature.get_shingles(text)
        return signature.get_signature(shingles) if len(shingles) else None

    sign("the tokenizer is loaded before the clock starts, and not during it")
    return sign


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-scan.json")
    arguments = parser.parse_args()
    results = []

    def row(name, result, volume, documents, note=""):
        if "error" in result:
            print(f"{name:44} {result['error']}")
            results.append({"name": name, **result})
            return None
        rate = volume / result["cpu_seconds"] / 1e6
        memory = f"{result['peak_memory'] / 1e6:6.0f} MB" if result.get("peak_memory") else ""
        print(f"{name:44} {rate:8.1f} MB/s {documents / result['cpu_seconds']:10.0f} docs/s {memory} {note}")
        results.append({"name": name, "mb_per_cpu_second": rate, "documents": documents, "note": note, **result})
        return rate

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        inputs = {
            "generated JSONL": [generate(folder / "jsonl", arguments.mb, "text", "jsonl", 400)],
            "real text JSONL": [write_jsonl(folder / "real.jsonl", library_texts())],
        }
        for title, paths in inputs.items():
            read = measure_part("read", RECIPE, paths)
            volume, documents = read["text_bytes"], read["documents"]
            print(f"\n{title}: {volume / 1e6:.0f} MB of text, {documents} documents; MB of text a processor second, one thread")
            reading = row("reading alone", read, volume, documents)
            tokens = row("reading and tokenising", measure_part("tokenize", RECIPE, paths), volume, documents)
            row("reading to a sketch, default recipe", measure_part("sketch", DEFAULT, paths), volume, documents)
            whole = row("whole scan, default recipe", measure_scan(paths, DEFAULT, folder), volume, documents, "process")
            features = row(f"whole scan, {FEATURES}", measure_scan(paths, FEATURES, folder), volume, documents, "process")
            row(f"whole scan, {RECIPE}", measure_scan(paths, RECIPE, folder), volume, documents, "process")
            row("whole scan, recipe `papers`, all chunks", measure_scan(paths, PAPERS, folder), volume, documents, "process")
            print(f"features against half of reading and tokenising: {features / (tokens / 2):.2f} (1 or more is wanted)")

            sample, size = [], 0
            for path in paths:
                files = sorted(path.glob("*")) if path.is_dir() else [path]
                for file in files:
                    with file.open() as lines:
                        for line in lines:
                            if size > 6e6:
                                break
                            sample.append(json.loads(line)["text"])
                            size += len(sample[-1].encode())
            # The same documents for us as for peers, which are too slow for all of them.
            sampled = folder / "sample.jsonl"
            sampled.write_text("".join(json.dumps({"text": text}) + "\n" for text in sample))
            ours = row(f"text to signature, {RECIPE}", measure_part("signature", RECIPE, [sampled]), size, len(sample), "texts in memory")
            fastest = 0.0
            for name, make in [
                ("datasketch MinHash.update_batch", datasketch),
                ("rensa RMinHash", rensa("RMinHash")),
                ("rensa CMinHash", rensa("CMinHash")),
                ("datatrove MinhashDedupSignature", datatrove),
            ]:
                rate = row(name, peer(name, make, sample), size, len(sample), "texts in memory")
                fastest = max(fastest, rate or 0.0)
            if fastest:
                print(f"text to signature against the fastest peer: {ours / fastest:.1f} times (10 or more is wanted)")
                print(f"whole scan, reading and writing too, against the fastest peer's signatures alone: {whole / fastest:.1f} times")

        for title, form in [("WARC", "warc"), ("HTML in a folder", "folder")]:
            pages = generate(folder / form, arguments.mb, "mirrors", form, 400)
            read = measure_part("read", DEFAULT, [pages])
            volume, documents = read["payload_bytes"], read["documents"]
            print(f"\n{title}: {volume / 1e6:.0f} MB of HTML, {documents} documents; MB of HTML a processor second, one thread")
            row("reading and extracting", read, volume, documents)
            row("whole scan, default recipe", measure_scan([pages], DEFAULT, folder), volume, documents, "process (200 or more is wanted)")
            row(f"whole scan, {FEATURES}", measure_scan([pages], FEATURES, folder), volume, documents, "process")
            row("whole scan, recipe `papers`, all chunks", measure_scan([pages], PAPERS, folder), volume, documents, "process")
    if arguments.out:
        packages = ["datasketch", "rensa", "datatrove", "numpy"]
        save(arguments.out, "scan", {"machine": machine(packages, ["onionskin"]), "rows": results})


if __name__ == "__main__":
    sys.exit(main())
