"""Peers on labelled sets: what they find at a threshold, with the shingles that they are given.

Each finds candidates with its own index and keeps those whose estimate on the sketches reaches the
threshold. That is the better of their choices: unverified candidates cost precision.
"""

import dataclasses
import json
import os
import subprocess
from collections.abc import Callable

import numpy
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from common import ONE_THREAD
from peers import WORD, shingles

PERMUTATIONS = 128
SPACE = " "


@dataclasses.dataclass
class Found:
    """What a search found: pairs as `a * documents + b` with a < b, sorted, and the cluster of each
    document; documents alone have clusters of their own."""

    pairs: numpy.ndarray
    clusters: numpy.ndarray

    @staticmethod
    def of_pairs(documents, a, b):
        """Pairs in any order, repeated or not; clusters are what they connect."""
        codes = pair_codes(documents, a, b)
        low, high = codes // documents, codes % documents
        ones = numpy.ones(len(codes), dtype=numpy.int8)
        graph = coo_array((ones, (low, high)), shape=(documents, documents))
        return Found(codes, connected_components(graph, directed=False)[1])


def pair_codes(documents, a, b):
    a, b = numpy.asarray(a, dtype=numpy.int64), numpy.asarray(b, dtype=numpy.int64)
    low, high = numpy.minimum(a, b), numpy.maximum(a, b)
    return numpy.unique((low * documents + high)[low != high])


def words(text):
    return WORD.findall(text.lower()) or [""]


def letters(text):
    """Shingles of five characters of the words with single spaces between them."""
    joined = SPACE.join(words(text))
    return [joined[at : at + 5] for at in range(max(1, len(joined) - 4))]


SHINGLES = {"w4": shingles, "w1": words, "c5": letters}


class Sketched:
    """Documents as sketches of 128 minima, and the estimates of pairs."""

    def __init__(self, sketches, minima):
        self.sketches, self.minima = sketches, minima

    def at_least(self, threshold, a, b):
        """Those of the candidates whose estimate reaches the threshold."""
        a, b = numpy.asarray(a, dtype=numpy.int64), numpy.asarray(b, dtype=numpy.int64)
        keep = numpy.zeros(len(a), dtype=bool)
        for start in range(0, len(a), 50_000):
            part = slice(start, start + 50_000)
            keep[part] = (self.minima[a[part]] == self.minima[b[part]]).mean(axis=1) >= threshold
        return Found.of_pairs(len(self.minima), a[keep], b[keep])


def flattened(others_of):
    """Documents and what was found for each, as two columns."""
    a = numpy.repeat(numpy.arange(len(others_of)), [len(others) for others in others_of])
    return a, numpy.array([other for others in others_of for other in others], dtype=numpy.int64)


def datasketch(texts, kind):
    from datasketch import MinHash, MinHashLSH

    grams = ([gram.encode() for gram in set(SHINGLES[kind](text))] for text in texts)
    sketches = list(MinHash.generator(grams, num_perm=PERMUTATIONS))
    sketched = Sketched(sketches, numpy.array([sketch.hashvalues for sketch in sketches]))

    def search(threshold):
        index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
        others = []
        for document, sketch in enumerate(sketches):
            others.append(index.query(sketch))
            index.insert(document, sketch, check_duplication=False)
        return sketched.at_least(threshold, *flattened(others))

    return search


def rensa_bands(threshold):
    """The largest bands whose curve still rises before the threshold; rensa leaves the choice to
    the caller and wants a divisor of the permutations."""
    for bands in [4, 8, 16, 32]:
        if (1 / bands) ** (bands / PERMUTATIONS) <= threshold - 0.1:
            return bands
    return 64


def rensa(texts, kind):
    from rensa import RMinHash, RMinHashLSH

    sketches = []
    for start in range(0, len(texts), 100):
        grams = [SHINGLES[kind](text) for text in texts[start : start + 100]]
        sketches.extend(RMinHash.from_token_sets(grams, PERMUTATIONS, 42))
    sketched = Sketched(sketches, numpy.array([sketch.digest() for sketch in sketches]))

    def search(threshold):
        bands = rensa_bands(threshold)
        index = RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=bands)
        index.insert_many(sketches)
        return sketched.at_least(threshold, *flattened(index.query_all(sketches)))

    return search


def gaoya(source, documents, output):
    """The program of `bench/gaoya`, which has shingles of four words and verifies on sketches."""

    def search(threshold):
        command = [os.environ["PEER_GAOYA"], source, output, str(threshold)]
        environment = {**os.environ, **ONE_THREAD}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        pairs = [line.split() for line in output.read_text().splitlines() if line.startswith("pair")]
        columns = numpy.array([[int(a), int(b)] for _, a, b in pairs], dtype=numpy.int64)
        return Found.of_pairs(documents, *columns.reshape(-1, 2).T)

    return search


@dataclasses.dataclass(frozen=True)
class Peer:
    """A tool with shingles of one kind. `prepare` gets texts and a directory and returns the search
    for a threshold."""

    tool: str
    shingles: str
    prepare: Callable


def prepare_gaoya(texts, folder):
    source = folder / "gaoya.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return gaoya(source, len(texts), folder / "gaoya.out")


PEERS = [
    *[
        Peer("datasketch", kind, lambda texts, _, kind=kind: datasketch(texts, kind))
        for kind in SHINGLES
    ],
    *[Peer("rensa", kind, lambda texts, _, kind=kind: rensa(texts, kind)) for kind in SHINGLES],
    Peer("gaoya", "w4", prepare_gaoya),
]
