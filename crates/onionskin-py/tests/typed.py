"""A program that type checkers read. It is never run by itself; `test_typed_example` does."""

from __future__ import annotations

from pathlib import Path

import onionskin
from onionskin import Atlas, Deduplicator, FeatureFilter, Recipe
from onionskin.datasketch import MinHash, MinHashLSH


def kernel() -> float:
    words: list[str] = onionskin.tokens("A rose")
    numbers: list[int] = onionskin.chunks("A rose", chunking="w2")
    one: list[int] = onionskin.features("A rose")
    many = onionskin.features(["A rose"], recipe=Recipe("w4-rabin64-6x14r2"))
    length: int = len(many) + len(words) + len(numbers) + len(one)
    sketch = onionskin.sketch("A rose")
    filter: FeatureFilter | None = sketch.recipe.filter
    return sketch.resemblance(sketch) + length + (filter.acceptance(0.9) if filter is not None else 0.0)


def job(inputs: Path, atlas: Path) -> int:
    done = onionskin.run(inputs, atlas, threshold=0.8, progress=lambda event: None)
    clusters: int = done.similar.clusters if done.similar is not None else 0
    table = Atlas(atlas).documents.select("doc", "url")
    rows = [row["url"] for row in table]
    return clusters + len(rows)


def stream(texts: list[str]) -> list[str]:
    with Deduplicator(threshold=0.8) as seen:
        return [text for text, verdict in zip(texts, seen.add_if_new_many(texts)) if verdict.added]


def drop_in() -> list[object]:
    lsh = MinHashLSH(threshold=0.5, num_perm=64)
    sketch = MinHash(num_perm=64)
    sketch.update(b"x")
    lsh.insert("x", sketch)
    return list(lsh.query(sketch))
