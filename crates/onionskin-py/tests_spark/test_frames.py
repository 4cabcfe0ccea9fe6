"""Steps by themselves, against naive twins."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import MASTER
from pyspark.sql import SparkSession

from onionskin.spark import _similar
from onionskin.spark._files import Files
from onionskin.spark._work import Work, components

pytestmark = pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")


def work(spark: SparkSession, folder: Path) -> Work:
    return Work(spark, Files(spark, str(folder)), "test", {"n": random.random()})


def naive_components(edges: list[tuple[int, int]]) -> dict[int, int]:
    root: dict[int, int] = {}

    def find(node: int) -> int:
        while root.setdefault(node, node) != node:
            node = root[node]
        return node

    for a, b in edges:
        low, high = sorted((find(a), find(b)))
        root[high] = low
    return {node: find(node) for node in root}


@pytest.mark.parametrize("one_task", [0, 1 << 40])
def test_connected_components(spark: SparkSession, tmp_path: Path, one_task: int) -> None:
    generator = random.Random(3)
    high = 1 << 40  # Numbers are 64 bits wide.
    chain = [(high + n, high + n + 1) for n in range(90)]
    star = [(5_000, 5_001 + n) for n in range(500)]
    scattered = [(generator.randrange(400), generator.randrange(400)) for _ in range(250)]
    edges = chain + star + scattered
    generator.shuffle(edges)
    frame = spark.createDataFrame(edges, "a long, b long")
    found = components(work(spark, tmp_path), "cc", frame, one_task=one_task)
    expected = naive_components([edge for edge in edges if edge[0] != edge[1]])
    rows = [(row["node"], row["root"]) for row in found.collect()]
    assert len(rows) == len(set(rows)) and dict(rows) == expected


def naive_bucket(members: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Pairs of a bucket of (doc, shade), as the program makes them."""
    members = sorted(members)
    if len(members) <= 32:  # What fits is paired all with all; here that is nothing larger.
        return {(a, b) for i, (b, _) in enumerate(members) for a, _ in members[:i]}
    pairs, shades = set(), {}
    smallest = members[0][0]
    for doc, shade in members:
        pairs.add((smallest, doc))
        if shade in shades:
            first, last = shades[shade]
            pairs |= {(first, doc), (last, doc)}
            shades[shade] = (first, doc)
        elif len(shades) < _similar.MOST_SHADES:
            shades[shade] = (doc, doc)
    return {(a, b) for a, b in pairs if a != b}


def test_a_bucket_of_two_hundred_thousand(spark: SparkSession, tmp_path: Path) -> None:
    generator = random.Random(4)
    rows = [(7, doc, generator.randrange(9_000)) for doc in range(200_000)]
    rows += [(generator.randrange(100, 2_000), 300_000 + n, generator.randrange(5)) for n in range(9_000)]
    by_feature = defaultdict(list)
    for feature, doc, shade in rows:
        by_feature[feature].append((doc, shade))
    expected = set().union(*(naive_bucket(members) for members in by_feature.values() if len(members) > 1))
    import pandas

    frame = spark.createDataFrame(pandas.DataFrame(rows, columns=["feature", "doc", "shade"]))
    found = _similar._buckets(work(spark, tmp_path), "features", frame.repartition(4), 209_000).select("a", "b").distinct()
    assert {(row["a"], row["b"]) for row in found.toPandas().to_dict("records")} == expected
    # Linear work: three pairs a member at most, not the square.
    assert len(expected) < 4 * len(rows)


def test_numbers_follow_an_order(spark: SparkSession, tmp_path: Path) -> None:
    generator = random.Random(5)
    keys = generator.sample(range(1 << 50), 5_000)
    frame = spark.createDataFrame([(key,) for key in keys], "key long").repartition(7)
    found = work(spark, tmp_path).numbered("order", frame, ["key"], "number").collect()
    assert {row["key"]: row["number"] for row in found} == {key: at for at, key in enumerate(sorted(keys))}
    empty = work(spark, tmp_path).numbered("none", frame.where("key < 0"), ["key"], "number")
    assert empty.count() == 0


def test_wishes(spark: SparkSession) -> None:
    """Who is wanted as a centre, rule by rule."""
    urls = ["http://b.example/x", "http://a.example", "view-source:http://a.example:80/", "http://a.example.org/", "http://c.example/", None]
    rows = [(doc, url, "crawl-1/x.warc" if doc == 5 else "in.jsonl", 10 * doc) for doc, url in enumerate(urls)]
    documents = spark.createDataFrame(rows, "doc long, url string, name string, tokens long")

    def wishes(keep: str) -> list[int]:
        return [row["wish"] for row in _similar.priority(documents, None, keep).orderBy("doc").collect()]

    assert wishes("first") == [0] * 6
    assert wishes("longest") == [0, -10, -20, -30, -40, -50]
    assert wishes("prefer:a.example,b.example,crawl-1") == [-2, -3, -3, 0, 0, -1]
    assert wishes("prefer:http://a.example") == [0, -1, 0, -1, 0, 0]
    with pytest.raises(ValueError, match="most-linked"):
        wishes("best")
    with pytest.raises(ValueError, match="empty place"):
        wishes("prefer:a,,b")


def test_nothing_at_all(spark: SparkSession, tmp_path: Path) -> None:
    """An input without documents, scanned by the program: tables without files."""
    import onionskin
    from onionskin import spark as job

    (tmp_path / "in.jsonl").write_text('{"text": ""}\n')
    onionskin.scan([str(tmp_path / "in.jsonl")], tmp_path / "atlas", recipe="papers")
    assert job.similar(spark, str(tmp_path / "atlas")).counts["similar.clusters"] == 0
    assert job.collections(spark, str(tmp_path / "atlas")).counts["groups"] == 0
