"""What is taken: for type checkers, and for people who read signatures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional, Protocol, Union


class ArrowArrayLike(Protocol):
    """A column, or a batch of rows: of PyArrow, nanoarrow, arro3 and others."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStreamLike(Protocol):
    """Columns or rows in pieces: tables and data frames of PyArrow, Polars, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Texts = Union[Iterable[Optional[str]], ArrowArrayLike, ArrowStreamLike]
"""Many texts: a list of str, or anything that speaks Arrow."""
