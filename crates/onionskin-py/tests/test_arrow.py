"""Arrow data in and out, from and to whoever speaks it."""

from __future__ import annotations

import ctypes

import numpy
import pandas
import polars
import pyarrow
import pytest

import onionskin
from onionskin import _onionskin

TEXTS = ["a rose is a rose", "", None, "Straße in 東京", "another text altogether"]


@pytest.mark.parametrize(
    "data",
    [
        pyarrow.array(TEXTS),
        pyarrow.array(TEXTS, pyarrow.large_string()),
        pyarrow.array(TEXTS, pyarrow.string_view()),
        pyarrow.array(TEXTS).dictionary_encode(),
        pyarrow.chunked_array([TEXTS[:2], TEXTS[2:]]),
        pyarrow.array(["skipped", *TEXTS, "skipped"]).slice(1, len(TEXTS)),
        pyarrow.record_batch({"text": TEXTS, "n": range(len(TEXTS))}),
        pyarrow.table({"text": TEXTS, "n": range(len(TEXTS))}),
        pyarrow.table({"only": TEXTS}),
        polars.Series(TEXTS),
        polars.DataFrame({"text": TEXTS, "n": range(len(TEXTS))}),
        pandas.DataFrame({"text": TEXTS}),
        pandas.Series(TEXTS, dtype="str"),
        TEXTS,
        tuple(TEXTS),
    ],
    ids=lambda data: type(data).__module__.split(".")[0] + "-" + type(data).__name__,
)
def test_texts_come_as_anything(data: object) -> None:
    if isinstance(data, pandas.Series) and not hasattr(data, "__arrow_c_stream__"):
        pytest.skip("this pandas has no Arrow series")
    assert onionskin.sketches(data).tolist() == onionskin.sketches(TEXTS).tolist()
    assert onionskin.features(data).tolist() == onionskin.features(TEXTS).tolist()


def test_a_stream_is_read_as_it_comes() -> None:
    pulled = []

    def batches():  # type: ignore[no-untyped-def]
        for n in range(5):
            pulled.append(n)
            yield pyarrow.record_batch({"text": [f"text number {n}"]})

    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema({"text": pyarrow.string()}), batches())
    assert len(onionskin.sketches(reader)) == 5
    assert pulled == list(range(5))


def test_an_error_of_the_producer_arrives() -> None:
    def batches():  # type: ignore[no-untyped-def]
        yield pyarrow.record_batch({"text": ["one"]})
        raise RuntimeError("the well is dry")

    reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema({"text": pyarrow.string()}), batches())
    with pytest.raises(ValueError, match="the well is dry"):
        onionskin.sketches(reader)


def test_columns_are_told() -> None:
    table = pyarrow.table({"body": ["a b c"], "n": [1]})
    assert len(onionskin.sketches(table, column="body")) == 1
    with pytest.raises(ValueError, match="no column \"text\"; the table has body, n"):
        onionskin.sketches(table)
    with pytest.raises(TypeError, match="has Int64, not texts"):
        onionskin.sketches(table, column="n")
    with pytest.raises(TypeError, match="texts are wanted"):
        onionskin.sketches(pyarrow.array([1, 2]))
    with pytest.raises(TypeError, match="column= is for tables"):
        onionskin.sketches(["a"], column="text")


def test_bad_text_is_refused() -> None:
    broken = pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"\xff\xfe")])
    with pytest.raises(ValueError, match="cannot be read"):
        onionskin.sketches(broken)


def test_nothing_is_copied_on_the_way_in() -> None:
    array = pyarrow.array(["first text", "second text, a longer one"])
    start = array.buffers()[2].address
    assert _onionskin._text_addresses(array) == [start, start + len("first text")]
    # Letters of a str of ASCII are where CPython has them, behind the head of the object.
    text = "letters that stay where they are"
    (address,) = _onionskin._text_addresses([text])
    assert id(text) < address < id(text) + 64
    assert ctypes.string_at(address, len(text)) == text.encode()


def test_nothing_is_copied_on_the_way_out() -> None:
    result = onionskin.sketches(["a rose is a rose", "another"])
    address = result.__array_interface__["data"][0]
    assert numpy.asarray(result).__array_interface__["data"][0] == address
    array = pyarrow.array(result)
    assert array.values.buffers()[1].address == address
    assert array.type == pyarrow.list_(pyarrow.field("item", pyarrow.uint32(), nullable=False), 84)
    assert polars.Series(result).to_list() == result.tolist()


def test_results_outlive_their_makers() -> None:
    array = pyarrow.array(onionskin.features(["a rose is a rose"] * 1000))
    numbers = numpy.asarray(onionskin.features(["a rose is a rose"] * 1000))
    assert array[999].as_py() == numbers[999].tolist() == onionskin.features("a rose is a rose")


def test_rows_by_number() -> None:
    result = onionskin.sketches(["a b c", None], recipe="w1-rabin64-t3")
    assert result[0] == result[-2] == onionskin.sketch("a b c", recipe="w1-rabin64-t3").tolist()
    assert result[1] is None
    with pytest.raises(IndexError):
        result[2]
    with pytest.raises(IndexError):
        result[-3]
