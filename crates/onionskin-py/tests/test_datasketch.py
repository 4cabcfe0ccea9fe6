"""Side by side with datasketch."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import datasketch
import numpy
import pytest

from onionskin import datasketch as ours


def both(name: str) -> list[Any]:
    return [getattr(datasketch, name), getattr(ours, name)]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("num_perm", [16, 64, 128])
def test_parameters_are_the_same(threshold: float, num_perm: int) -> None:
    for weights in [(0.5, 0.5), (0.3, 0.7), (0.8, 0.2)]:
        made = []
        for kind in both("MinHashLSH"):
            try:
                lsh = kind(threshold=threshold, num_perm=num_perm, weights=weights)
                made.append((lsh.b, lsh.r))
            except ValueError as error:
                made.append(str(error))
        assert made[0] == made[1], (threshold, num_perm, weights)


def test_estimates_are_as_good() -> None:
    generator = random.Random(3)
    num_perm = 256
    for shared in (0, 20, 100, 180, 200):
        common = [str(generator.random()).encode() for _ in range(shared)]
        own = [[str(generator.random()).encode() for _ in range(200 - shared)] for _ in range(2)]
        truth = shared / (400 - shared)
        for kind in both("MinHash"):
            a, b = kind(num_perm=num_perm), kind(num_perm=num_perm)
            a.update_batch(common + own[0])
            for value in common + own[1]:
                b.update(value)
            assert abs(a.jaccard(b) - truth) <= 4.5 * math.sqrt(truth * (1 - truth) / num_perm) + 1e-9, (kind, shared)
            assert abs(a.count() - 200) < 200 * 4.5 / math.sqrt(num_perm), kind


def test_queries_find_the_same_where_it_is_clear() -> None:
    generator = random.Random(12)
    groups = [[str(generator.random()).encode() for _ in range(300)] for _ in range(30)]
    sets = []
    for group in groups:
        for copy_of in range(4):
            changed = list(group)
            changed[copy_of] = str(generator.random()).encode()
            sets.append(changed)
    answers = []
    for module in (datasketch, ours):
        lsh = module.MinHashLSH(threshold=0.7, num_perm=128)
        made = module.MinHash.bulk(sets, num_perm=128)
        with lsh.insertion_session() as session:
            for key, sketch in enumerate(made):
                session.insert(key, sketch)
        answers.append([sorted(lsh.query(sketch)) for sketch in made])
    assert answers[0] == answers[1] == [[4 * (n // 4) + m for m in range(4)] for n in range(120)]


@pytest.mark.parametrize("module", [datasketch, ours], ids=["datasketch", "ours"])
def test_calls_of_minhash(module: Any) -> None:
    m = module.MinHash(num_perm=64, seed=7)
    assert m.is_empty() and len(m) == 64 and m.seed == 7
    m.update(b"one")
    m.update_batch([b"two", b"three"])
    m.update_batch([])
    assert not m.is_empty()
    other = m.copy()
    assert other == m and other is not m and m.jaccard(other) == 1.0
    other.update(b"four")
    assert other != m
    union = module.MinHash.union(m, other)
    assert union == other
    m.merge(other)
    assert m == other
    assert m.hashvalues.dtype == numpy.uint32 and m.digest().tolist() == list(m.hashvalues)
    again = module.MinHash(seed=7, hashvalues=m.hashvalues, scheme=m.scheme)
    assert again == m and len(again) == 64
    assert pickle.loads(pickle.dumps(m)) == m == copy.copy(m) == copy.deepcopy(m)
    m.clear()
    assert m.is_empty()
    for wrong in (module.MinHash(num_perm=32, seed=7), module.MinHash(num_perm=64, seed=8)):
        with pytest.raises(ValueError):
            m.jaccard(wrong)
        with pytest.raises(ValueError):
            m.merge(wrong)
        with pytest.raises(ValueError):
            module.MinHash.union(m, wrong)
    with pytest.raises(ValueError):
        module.MinHash.union(m)
    with pytest.raises(ValueError):
        module.MinHash(num_perm=0)
    with pytest.raises(ValueError):
        module.MinHash(hashfunc=3)
    custom = module.MinHash(num_perm=64, hashfunc=lambda value: hash(value) & 0xFFFFFFFF)
    custom.update(("any", "thing"))
    custom.update_batch([1, 2, 3])
    assert not custom.is_empty()
    assert len(module.MinHash.bulk(numpy.random.default_rng(1).integers(0, 30, size=(10, 5)), num_perm=64)) == 10
    assert len(list(module.MinHash.generator([[b"a"], [b"b"]], num_perm=64))) == 2
    with pytest.raises(TypeError):
        module.MinHash().update(object())


@pytest.mark.parametrize("module", [datasketch, ours], ids=["datasketch", "ours"])
def test_calls_of_lsh(module: Any) -> None:
    lsh = module.MinHashLSH(threshold=0.5, num_perm=64)
    assert lsh.is_empty()
    a, b = module.MinHash(num_perm=64), module.MinHash(num_perm=64)
    a.update_batch([b"x", b"y"])
    b.update_batch([b"p", b"q"])
    lsh.insert("a", a)
    lsh.insert(("b", 1), b)
    assert "a" in lsh and ("b", 1) in lsh and "c" not in lsh and not lsh.is_empty()
    assert lsh.query(a) == ["a"] and lsh.query(b) == [("b", 1)]
    with pytest.raises(ValueError, match="already exists"):
        lsh.insert("a", a)
    lsh.insert("a", a, check_duplication=False)
    counts = lsh.get_counts()
    assert len(counts) == lsh.b and all(sum(count.values()) == 2 for count in counts)
    assert all(sum(count.values()) == 1 for count in lsh.get_subset_counts("a"))
    lsh.add_to_query_buffer(a)
    assert lsh.collect_query_buffer() == ["a"]
    back = pickle.loads(pickle.dumps(lsh))
    assert back.query(a) == ["a"]
    more = module.MinHashLSH(threshold=0.5, num_perm=64)
    more.insert("c", a)
    back.merge(more)
    assert sorted(back.query(a)) == ["a", "c"]
    with pytest.raises(ValueError, match="overlapping"):
        back.merge(more, check_overlap=True)
    with lsh.deletion_session() as session:
        session.remove("a")
    assert lsh.query(a) == [] and "a" not in lsh
    with pytest.raises(ValueError, match="does not exist"):
        lsh.remove("a")
    with pytest.raises(ValueError, match="length 64, got 32"):
        lsh.insert("d", module.MinHash(num_perm=32))
    with pytest.raises(ValueError, match="length 64, got 32"):
        lsh.query(module.MinHash(num_perm=32))
    made = module.MinHashLSH(num_perm=128, params=(16, 8))
    assert (made.b, made.r) == (16, 8)
    for wrong in ({"threshold": 2.0}, {"num_perm": 1}, {"weights": (0.5, 0.6)}, {"weights": (1.5, -0.5)}, {"params": (100, 100)}):
        with pytest.raises(ValueError):
            module.MinHashLSH(**wrong)


def test_hash_functions_are_the_same() -> None:
    for data in (b"", b"onionskin", b"\0\xff"):
        assert ours.sha1_hash32(data) == datasketch.sha1_hash32(data)
        assert ours.sha1_hash64(data) == datasketch.sha1_hash64(data)


def test_what_is_left_out_says_so() -> None:
    with pytest.raises(ValueError, match="Deduplicator keeps an index on disk"):
        ours.MinHashLSH(storage_config={"type": "redis"})
    with pytest.raises(ValueError, match="datasketch's own"):
        ours.MinHash(scheme="legacy")
    with pytest.raises(ValueError, match="onionskin.datasketch"):
        ours.MinHashLSH(num_perm=128).insert("x", datasketch.MinHash(num_perm=128))  # type: ignore[arg-type]
