"""Documents as they come."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow
import pytest
from conftest import change, words_of

import onionskin
from onionskin import Deduplicator


def test_copies_are_told_apart() -> None:
    generator = random.Random(2)
    words = words_of(generator, 500)
    near = change(generator, words, 1)
    far = words_of(generator, 500)
    with Deduplicator() as seen:
        first = seen.add(" ".join(words), id="first")
        assert first.is_new and first.added and first.id == "first" and first.like_id is None and first.resemblance is None
        exact = seen.add(" ".join(words).upper() + "!", id="exact")
        assert exact.is_exact and not exact.is_near and exact.like_id == "first" and exact.resemblance == 1.0
        like = seen.add_if_new(" ".join(near), id="near")
        assert like.is_near and not like.added and like.like_id == "first" and like.method == "sketch"
        assert seen.check(" ".join(far)).is_new
        empty = seen.add(" ...", id="empty")
        assert empty.is_empty and not empty.added and not empty.is_new
        assert len(seen) == 2
        assert exact.to_dict() == {"name": "exact", "status": "exact", "added": True, "of": {"name": "first", "shared": 10, "features": 10, "resemblance": 1.0, "method": "exact"}}


def test_a_batch_is_as_one_at_a_time(texts: list[str]) -> None:
    generator = random.Random(4)
    stream = [generator.choice(texts) for _ in range(2000)]
    with Deduplicator() as one, Deduplicator() as many, Deduplicator() as arrow:
        singles = [one.add(text, id=str(n)) for n, text in enumerate(stream)]
        ids = [str(n) for n in range(len(stream))]
        assert many.add_many(stream, ids=ids) == singles
        table = pyarrow.table({"text": stream})
        assert arrow.add_many(table, ids=pyarrow.array(ids)) == singles
        assert len(one) == len(many) == 2000
    kept: dict[str, str] = {}
    for verdict, text in zip(singles, stream):
        assert verdict.is_exact == (text in kept)
        kept.setdefault(text, verdict.id)


def test_a_threshold_decides(tmp_path: Path) -> None:
    generator = random.Random(8)
    words = words_of(generator, 400)
    slightly, much = change(generator, words, 2), change(generator, words, 25)
    for threshold in (0.5, 0.9, 0.99):
        with Deduplicator(threshold=threshold, recipe="w4-rabin64-20x5r1") as seen:
            seen.add(" ".join(words), id="x")
            for other in (slightly, much):
                truth = onionskin.resemblance(" ".join(words), " ".join(other))
                if abs(truth - threshold) > 0.15:
                    assert seen.check(" ".join(other)).is_near == (truth > threshold), (threshold, truth)
    with Deduplicator(tmp_path / "plain", sketches=False) as seen:
        assert seen.threshold is None
    with Deduplicator() as seen:
        assert seen.threshold == 0.9
    with pytest.raises(ValueError, match="keeps no sketches"):
        Deduplicator(tmp_path / "plain", threshold=0.9)
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        Deduplicator(threshold=2)


def test_saved_and_loaded(tmp_path: Path) -> None:
    with Deduplicator(ids=int, seed=5) as seen:
        seen.add_many(["one two three four", "five six seven eight"], ids=[10, 11])
        saved = seen.save(tmp_path / "saved")
        seen.add("later words are not saved", id=12)
        with pytest.raises(onionskin.OnionskinError, match="not empty"):
            seen.save(saved)
    with Deduplicator.load(saved) as back:
        assert len(back) == 2 and back.seed == 5 and back.ids is int
        assert back.check("One two, three four").like_id == 10
        assert back.check("later words are not saved").is_new
        with pytest.raises(TypeError, match="ids of this index are int"):
            back.add("x y z", id="name")
    with pytest.raises(ValueError, match="say ids=int"):
        Deduplicator(saved)
    with pytest.raises(onionskin.OnionskinError, match="no index"):
        Deduplicator.load(tmp_path / "nowhere")
    with pytest.raises(onionskin.OnionskinError, match="nothing in common") as raised:
        Deduplicator(saved, ids=int, recipe="w2-rabin64-6x14r2")
    assert "features of two recipes" in (raised.value.hint or "")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Deduplicator(tmp_path / "index"):
        with pytest.raises(onionskin.BusyError):
            Deduplicator(tmp_path / "index")
    Deduplicator(tmp_path / "index").close()


def test_removed_and_compacted(tmp_path: Path) -> None:
    with Deduplicator(tmp_path / "index") as seen:
        seen.add_many(["a b c d e f", "A B C D E F", "g h i j k l"], ids=["x", "y", "z"])
        assert seen.remove("x") == 1
        assert seen.check("a b c d e f").like_id == "y"
        assert seen.remove(["y", "z", "nobody"]) == 2
        assert len(seen) == 0 and seen.check("a b c d e f").is_new
        seen.compact()
        assert seen.stats()["documents"] == 0


def test_mistakes() -> None:
    seen = Deduplicator()
    with pytest.raises(TypeError, match="add_many"):
        seen.add(["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 ids for 2 texts"):
        seen.add_many(["a", "b"], ids=["x"])
    with pytest.raises(TypeError, match="ids of this index are str"):
        seen.add("a b c", id=3)
    with pytest.raises(ValueError, match="no features"):
        Deduplicator(recipe="w4-rabin64-b5")
    with pytest.raises(ValueError, match='unknown mode "add_unless_new"; known: check, add, add-if-new'):
        seen.answer([{"text": "a b c"}], "add_unless_new")
    with pytest.raises(ValueError, match="unknown mode"):
        seen._index.batch(["a b c"], None, "", None, 1)
    assert len(seen) == 0
    seen.close()
    seen.close()
    with pytest.raises(ValueError, match="closed"):
        seen.check("a")


def test_the_temporary_folder_goes() -> None:
    seen = Deduplicator()
    folder = seen.path.parent
    assert folder.exists()
    del seen
    assert not folder.exists()


def test_threads_may_share_one(texts: list[str]) -> None:
    with Deduplicator(ids=int) as seen:
        def add(part: int) -> None:
            for n in range(part, len(texts), 4):
                seen.add(texts[n], id=n)

        workers = [threading.Thread(target=add, args=(part,)) for part in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(seen) == len(texts)
        assert all(verdict.is_exact for verdict in seen.check_many(texts))


def test_what_was_added_survives_a_program_that_forgets_to_close(tmp_path: Path) -> None:
    program = f"from onionskin import Deduplicator\nseen = Deduplicator({str(tmp_path / 'index')!r})\nseen.add('one text of many', id='a')"
    subprocess.run([sys.executable, "-c", program], check=True)
    with Deduplicator.load(tmp_path / "index") as seen:
        assert len(seen) == 1


def test_what_was_added_survives_a_kill(tmp_path: Path) -> None:
    program = f"""
import os, signal
from onionskin import Deduplicator
seen = Deduplicator({str(tmp_path / "index")!r})
seen.add_many(["first text of a batch", "second text of a batch"], ids=["a", "b"])
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    with Deduplicator.load(tmp_path / "index") as seen:
        assert len(seen) == 2 and seen.check("First text of a batch!").like_id == "a"


def test_memory_is_bounded() -> None:
    """Documents in batches, in a process of its own. A million of them stay within a gigabyte; a tenth, which is what is run unless there is time, within half of it."""
    slow = "ONIONSKIN_SLOW_TESTS" in os.environ
    documents, most = (1_000_000, 1000 << 20) if slow else (100_000, 500 << 20)
    program = f"""
import pathlib, random, re, resource, sys
from onionskin import Deduplicator
generator = random.Random(3)
words = ["w%d" % n for n in range(20000)]
copies = 0
with Deduplicator(ids=int) as seen:
    for first in range(0, {documents}, 10_000):
        texts = [" ".join(generator.choices(words, k=40)) for _ in range(9_000)]
        texts += texts[:1_000]
        copies += sum(verdict.is_exact for verdict in seen.add_many(texts, ids=range(first, first + 10_000)))
    assert len(seen) == {documents} and copies == {documents // 10}, (len(seen), copies)
# What the system counts for a process begins with that of the one it was forked from; its own is
# in a file.
try:
    print(int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    peak = int(told)
    assert 10 << 20 < peak < most, peak
