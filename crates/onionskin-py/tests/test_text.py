"""Tokens, chunks, sketches and features."""

from __future__ import annotations

import math
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy
import pytest
from conftest import change, turns_of_another_thread, words_of

import onionskin


def naive_resemblance(a: str, b: str, w: int) -> float:
    def shingles(text: str) -> set[tuple[str, ...]]:
        words = onionskin.tokens(text)
        return {tuple(words[i : i + w]) for i in range(max(1, len(words) - w + 1))} if words else set()

    x, y = shingles(a), shingles(b)
    return len(x & y) / len(x | y) if x | y else 0.0


@pytest.mark.parametrize("w", [1, 2, 4, 7])
def test_resemblance_is_what_sets_say(w: int) -> None:
    generator = random.Random(w)
    for n in range(200):
        words = [generator.choice("abc") for _ in range(generator.randrange(0, 12))]
        other = [generator.choice("abc") for _ in range(generator.randrange(0, 12))]
        a, b = " ".join(words), " ".join(other)
        expected = naive_resemblance(a, b, w)
        assert onionskin.resemblance(a, b, chunking=f"w{w}") == pytest.approx(expected), (a, b)
        assert onionskin.resemblance(b, a, chunking=f"w{w}") == pytest.approx(expected)


def test_containment_of_a_part_is_one() -> None:
    text = "one two three four five six seven eight"
    assert onionskin.containment("three four five six", text) == 1.0
    assert onionskin.containment(text, "three four five six") < 1.0
    assert onionskin.containment("", text) == 0.0


def test_unknown_spellings_list_the_known() -> None:
    with pytest.raises(ValueError, match="known are doc, sent, para, sp"):
        onionskin.chunks("a", chunking="x9")
    with pytest.raises(ValueError, match="as in w4-rabin64"):
        onionskin.Recipe("w4")
    with pytest.raises(ValueError, match="r goes from 1 to k"):
        onionskin.FeatureFilter(2, 3, 4)
    with pytest.raises(ValueError, match="no features"):
        onionskin.features("a", recipe="w4-rabin64-t5")


@pytest.mark.parametrize("chunking", ["doc", "l1", "l4", "sent", "para", "sp", "w1", "w4", "c5", "ls2"])
def test_every_chunking_has_chunks(chunking: str) -> None:
    text = "First line here.\nSecond line there.\n\nA new paragraph of words. And one more sentence.\n"
    found = onionskin.chunks(text, chunking=chunking)
    assert found and all(0 <= chunk < 2**64 for chunk in found)
    assert onionskin.chunks("", chunking=chunking) == []
    assert onionskin.chunks(" .,;\n", chunking=chunking) == []


@pytest.mark.parametrize("recipe", ["w3-rabin64-t256", "w3-rabin64-t256-one", "w3-rabin64-b256", "w3-rabin64-8x8r2"])
def test_estimates_are_within_four_standard_errors(recipe: str) -> None:
    generator = random.Random(99)
    errors = []
    for n in range(60):
        words = words_of(generator, 300)
        other = change(generator, words, generator.randrange(1, 60))
        a, b = " ".join(words), " ".join(other)
        truth = onionskin.resemblance(a, b, chunking="w3")
        first, second = onionskin.sketch(a, recipe=recipe, seed=n), onionskin.sketch(b, recipe=recipe, seed=n)
        estimate = first.resemblance(second)
        assert abs(estimate - truth) < 4.5 * math.sqrt(truth * (1 - truth) / len(first)) + 1e-9, (n, truth, estimate)
        errors.append(estimate - truth)
    # Unbiased: the mean of sixty is within four of its own standard errors.
    assert abs(sum(errors) / len(errors)) < 4 * math.sqrt(0.25 / 64 / 60)


def test_many_are_as_one_at_a_time(texts: list[str]) -> None:
    texts = [*texts, "", "one"]
    rows = numpy.asarray(onionskin.sketches(texts, threads=3))
    features = numpy.asarray(onionskin.features(texts, threads=2))
    for n, text in enumerate(texts):
        sketch = onionskin.sketch(text)
        if not sketch.is_empty:
            assert rows[n].tolist() == sketch.tolist()
            assert features[n].tolist() == onionskin.features(text)
    assert (rows[-2] == 2**32 - 1).all()


def test_threads_change_nothing(texts: list[str]) -> None:
    one = onionskin.sketches(texts, threads=1).tolist()
    assert one == onionskin.sketches(texts, threads=7).tolist() == onionskin.sketches(iter(texts)).tolist()
    with pytest.raises(ValueError, match="threads is 1 at least"):
        onionskin.sketches(texts, threads=0)


def test_texts_are_texts() -> None:
    with pytest.raises(TypeError, match="one str where many"):
        onionskin.sketches("a text")
    with pytest.raises(TypeError):
        onionskin.sketches([1, 2])
    with pytest.raises(TypeError):
        onionskin.sketches(3)
    assert len(onionskin.sketches([])) == 0
    assert onionskin.sketches([None, "a"]).null_count == 1


def test_lone_surrogates_are_an_error() -> None:
    with pytest.raises(UnicodeEncodeError):
        onionskin.sketch("\ud800")
    with pytest.raises(UnicodeEncodeError):
        onionskin.sketches(["fine", "\ud800"])


def test_numpy_sees_the_sketch_itself() -> None:
    sketch = onionskin.sketch("a rose is a rose is a rose")
    array = numpy.asarray(sketch)
    assert array.dtype == numpy.uint32 and array.tolist() == sketch.tolist()
    assert array.__array_interface__["data"][0] == sketch.__array_interface__["data"][0]
    assert not array.flags.writeable
    del sketch
    assert array.sum() > 0
    assert numpy.frombuffer(bytes(onionskin.sketch("a rose")), dtype="<u4").tolist() == onionskin.sketch("a rose").tolist()


def test_sketches_of_two_kinds_are_not_compared() -> None:
    with pytest.raises(ValueError, match="nothing in common"):
        onionskin.sketch("a", seed=1).resemblance(onionskin.sketch("a", seed=2))
    with pytest.raises(ValueError, match="nothing in common"):
        onionskin.sketch("a", recipe="w1-rabin64-t4").resemblance(onionskin.sketch("a", recipe="w2-rabin64-t4"))
    assert onionskin.sketch("").resemblance(onionskin.sketch("")) == 0.0


@pytest.mark.parametrize(
    "thing",
    [
        onionskin.sketch("a rose is a rose", seed=9),
        onionskin.sketch(""),
        onionskin.Recipe("w5-rabin64-16x5r1-one"),
        onionskin.FeatureFilter(6, 14, 2),
    ],
)
def test_small_things_are_pickled(thing: object) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(thing, protocol))
        assert back == thing and hash(back) == hash(thing) and repr(back) == repr(thing)


def test_the_filter_is_the_papers() -> None:
    f = onionskin.FeatureFilter.parse("6x14r2")
    assert f.miss(0.975) == pytest.approx(0.0107, abs=1e-4)
    assert f.acceptance(f.half_point) == pytest.approx(0.5)
    assert f.acceptance(f.resemblance_at(0.99)) == pytest.approx(0.99)
    curve = f.curve(11)
    assert [x for x, _ in curve] == pytest.approx([n / 10 for n in range(11)])
    assert all(a[1] <= b[1] for a, b in zip(curve, curve[1:]))
    chosen = onionskin.FeatureFilter.choose(0.8, miss=0.005, far=0.4, false_accept=0.001)
    assert chosen.miss(0.8) <= 0.005 and chosen.acceptance(0.4) <= 0.001
    with pytest.raises(ValueError, match="0 < far < threshold < 1"):
        onionskin.FeatureFilter.choose(1.5)
    svg = f._repr_svg_()
    assert svg.startswith("<svg") and "6x14r2" in svg


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_a_long_list() -> None:
    program = '''
import random, signal, time, onionskin
signal.signal(signal.SIGINT, signal.default_int_handler)
generator = random.Random(1)
texts = [" ".join(generator.choices("abcdefghij", k=800)) for _ in range(2000)] * 300
print("go", flush=True)
try:
    onionskin.sketches(texts, threads=1)
except KeyboardInterrupt:
    print(time.time(), flush=True)
'''
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "go\n"
    time.sleep(0.3)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    last = child.stdout.read()
    assert child.wait() == 0 and last, "it ended before it was interrupted"
    assert float(last) - sent < 2.0


def test_the_interpreter_is_free_meanwhile() -> None:
    generator = random.Random(1)
    texts = [" ".join(words_of(generator, 400)) for _ in range(2000)] * 20
    counted, took = turns_of_another_thread(lambda: onionskin.sketches(texts, threads=1), pause=0.0005)
    # Held the whole time, the other thread would come by once, when the switch interval is over.
    assert counted > took / 0.02, (counted, took)
