"""Whole jobs of peers, one a process: `peers.py PEER INPUT.jsonl OUTPUT`. JSONL in, clusters out, one thread.

Each is what the peer's own documentation shows, with the quicker of its choices: batches where it has them, orjson for all. A
line of the output is `pair A B`, what the peer calls similar, or `cluster A B`, B being in the cluster of A, or `removed A`
where there are flags alone; documents are numbered by line. The last line of stdout is an object that tells the parameters.
"""

import itertools
import json
import pathlib
import re
import sys
import tempfile

from common import peak_memory

SIZE, PERMUTATIONS, THRESHOLD = 4, 128, 0.8
BATCH = 100
WORD = re.compile(r"\w+")


def shingles(text):
    """The word 4-grams of a text, as strings; a text that is shorter is one shingle. This is the quickest way in plain Python."""
    words = WORD.findall(text.lower())
    if len(words) < SIZE:
        return [" ".join(words)]
    return list(map(" ".join, zip(*(words[i:] for i in range(SIZE)))))


def documents(path):
    import orjson

    with open(path, "rb") as lines:
        for line in lines:
            yield orjson.loads(line)["text"]


class Components:
    """Union-find; the smallest document stands for its component."""

    def __init__(self):
        self.parents = {}

    def find(self, document):
        parents = self.parents
        root = document
        while (parent := parents.get(root, root)) != root:
            root = parent
        while (parent := parents.get(document, document)) != root:
            parents[document] = root
            document = parent
        return root

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parents[max(a, b)] = min(a, b)


def write(path, pairs, star=False):
    """Pairs, and the components that they make. In a star the pairs are of members with the one that is kept, not all pairs."""
    components = Components()
    with open(path, "w") as out:
        for a, b in pairs:
            if not star:
                out.write(f"pair\t{a}\t{b}\n")
            components.union(a, b)
        for document in sorted(components.parents):
            out.write(f"cluster\t{components.find(document)}\t{document}\n")


def datasketch(source, output):
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    pairs = []
    grams = ([gram.encode() for gram in set(shingles(text))] for text in documents(source))
    # `generator` shares the permutations between sketches; a MinHash made anew for every document
    # would pay for them each time.
    for document, sketch in enumerate(MinHash.generator(grams, num_perm=PERMUTATIONS)):
        pairs.extend((other, document) for other in index.query(sketch))
        index.insert(document, sketch, check_duplication=False)
    write(output, pairs)
    return f"128 permutations, {index.b} bands of {index.r}, candidates not verified"


def batches(source):
    texts = documents(source)
    while batch := list(itertools.islice(texts, BATCH)):
        yield [shingles(text) for text in batch]


def rensa_lsh(source, output):
    from rensa import RMinHash, RMinHashLSH

    bands = 16
    index = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=bands)
    sketches = []
    for batch in batches(source):
        sketches.extend(RMinHash.from_token_sets(batch, PERMUTATIONS, 42))
    index.insert_many(sketches)
    found = index.query_all(sketches)
    write(output, [(other, document) for document, others in enumerate(found) for other in others if other < document])
    return f"128 permutations, {bands} bands of {PERMUTATIONS // bands}, candidates not verified"


def rensa_deduplicator(kind):
    def run(source, output):
        import rensa

        if kind == "RMinHash":
            index = rensa.RMinHashDeduplicator(threshold=THRESHOLD, num_perm=PERMUTATIONS, use_lsh=True)
        else:
            index = rensa.CMinHashDeduplicator(threshold=THRESHOLD, num_perm=PERMUTATIONS)
        sketch_type = getattr(rensa, kind)
        document, pairs = 0, []
        for batch in batches(source):
            for sketch in sketch_type.from_token_sets(batch, PERMUTATIONS, 42):
                others = index.get_duplicates(sketch)
                # What is like a kept document is not kept itself, so that the first of a cluster
                # stands for it.
                pairs.extend((int(other), document) for other in others)
                if not others:
                    index.add(str(document), sketch)
                document += 1
        write(output, pairs, star=True)
        return "128 permutations, its own bands, verified on sketches, kept documents only"

    return run


def rensa_rho(source, output):
    """Its quickest way: sampled positions, and flags instead of clusters."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=8)
    with open(output, "w") as out:
        start = 0
        for batch in batches(source):
            matrix = RMinHash.digest_matrix_from_token_sets_rho(batch, PERMUTATIONS, 42)
            for offset, flag in enumerate(index.insert_matrix_and_query_duplicate_flags(matrix, start)):
                if flag:
                    out.write(f"removed\t{start + offset}\n")
            start += len(batch)
    return "128 slots, 8 bands, as in its README; flags only"


def datatrove(source, output):
    """All four stages, with their own defaults, as examples/minhash_deduplication.py has them, on one worker."""
    import logging
    import struct

    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    from datatrove.utils.logging import logger

    logging.disable(logging.CRITICAL)
    logger.remove()
    config = MinhashConfig(n_grams=SIZE)
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory(dir=pathlib.Path(output).parent) as folder:

        def reader():
            return JsonlReader(str(source.parent), glob_pattern=source.name)

        stages = [
            ([reader(), MinhashDedupSignature(f"{folder}/signatures", config=config)], 1),
            ([MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config)], config.num_buckets),
            ([MinhashDedupCluster(f"{folder}/buckets", f"{folder}/remove", config=config, save_cluster_id=True)], 1),
            ([reader(), MinhashDedupFilter(f"{folder}/remove"), JsonlWriter(f"{folder}/out", compression=None)], 1),
        ]
        for number, (pipeline, tasks) in enumerate(stages):
            logs = f"{folder}/logs/{number}"
            LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=1, logging_dir=logs).run()
        clusters = {}
        with open(output, "w") as out:
            for file in pathlib.Path(folder, "remove").glob("*.clusters"):
                for document, cluster in struct.iter_unpack("<2I", file.read_bytes()):
                    first = clusters.setdefault(cluster, document)
                    if first != document:
                        out.write(f"cluster\t{first}\t{document}\n")
    return f"{config.num_buckets} buckets of {config.hashes_per_bucket}, its defaults, candidates not verified"


def spark(source, output):
    """MLlib's MinHashLSH: hashed term vectors, an approximate self-join."""
    from pyspark.ml.feature import CountVectorizer, MinHashLSH
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    rows = ((document, shingles(text)) for document, text in enumerate(documents(source)))
    frame = session.createDataFrame(rows, ["document", "grams"])
    vectors = CountVectorizer(inputCol="grams", outputCol="features", binary=True, vocabSize=1 << 24).fit(frame).transform(frame)
    vectors = vectors.select("document", "features").cache()
    model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=16, seed=1).fit(vectors)
    joined = model.approxSimilarityJoin(vectors, vectors, 1 - THRESHOLD, "distance")
    found = joined.selectExpr("datasetA.document as a", "datasetB.document as b").where("a < b").collect()
    write(output, [(row.a, row.b) for row in found])
    session.stop()
    return "16 hash tables of one hash each, pairs verified"


PEERS = {
    "datasketch": datasketch,
    "rensa-lsh": rensa_lsh,
    "rensa-r": rensa_deduplicator("RMinHash"),
    "rensa-c": rensa_deduplicator("CMinHash"),
    "rensa-rho": rensa_rho,
    "datatrove": datatrove,
    "spark": spark,
}


def main():
    name, source, output = sys.argv[1:]
    result = {"parameters": PEERS[name](source, output)}
    if peak := peak_memory():
        result["peak_memory"] = peak
    print(json.dumps(result))


if __name__ == "__main__":
    main()
