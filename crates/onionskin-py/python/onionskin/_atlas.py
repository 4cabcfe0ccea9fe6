"""An atlas and its tables, read when somebody asks for them."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from . import _onionskin, _pictures

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped, import-not-found, unused-ignore]
    import duckdb
    import pandas
    import polars
    import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]

# : Documents whose names are looked up for a picture.
_SHOWN = 200


class Table:
    """A table of an atlas. Nothing is read before a consumer asks for it, and then batch by batch.

    Anything that takes Arrow data takes a table as it is: `pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb.sql("from t")`,
    `pandas.DataFrame.from_arrow(t)`.

    >>> from onionskin.testing import small_atlas
    >>> table = Atlas(small_atlas(similar=True))["pairs"]
    >>> table.columns
    ['a', 'b', 'shared', 'resemblance', 'containment_a', 'containment_b', 'method']
    >>> [(row["a"], row["b"]) for row in table.select("a", "b")]
    [(0, 3), (0, 5), (1, 4)]
    """

    def __init__(self, path: str | os.PathLike[str], name: str, columns: Sequence[str] | None = None) -> None:
        self._path = Path(path)
        self._name = name
        self._scan = _onionskin.TableScan(self._path, name, list(columns) if columns is not None else None)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def num_rows(self) -> int:
        """Rows, as the manifest says."""
        return self._scan.num_rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._scan.columns

    @property
    def schema(self) -> dict[str, str]:
        """Names of the columns and their Arrow types."""
        return dict(zip(self._scan.columns, self._scan.types))

    @property
    def files(self) -> list[Path]:
        """The Parquet files of the table, for readers of their own."""
        return [Path(file) for file in self._scan.files]

    def select(self, *columns: str) -> Table:
        """The same table with these columns only; others are not read.

        >>> from onionskin.testing import small_atlas
        >>> Atlas(small_atlas())["documents"].select("doc", "url").columns
        ['doc', 'url']
        """
        return Table(self._path, self._name, columns)

    def __arrow_c_schema__(self) -> object:
        return self._scan.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._scan.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._scan.rows():
            names = list(batch)
            for values in zip(*batch.values()):
                yield dict(zip(names, values))

    def to_arrow(self) -> pyarrow.Table:
        """As a PyArrow table."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas data frame."""
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """As a Polars data frame."""
        import polars

        return polars.DataFrame(self)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """As a relation of DuckDB, over the files, so that only what a query needs is read."""
        import duckdb

        names = ", ".join(f'"{column}"' for column in self.columns)
        files = [str(file) for file in self.files]
        connection = connection if connection is not None else duckdb.default_connection()
        return connection.read_parquet(files).project(names)  # type: ignore[arg-type, unused-ignore]

    def to_datasets(self) -> datasets.Dataset:
        """As a Hugging Face dataset."""
        import datasets

        return datasets.Dataset(self.to_arrow())

    def __repr__(self) -> str:
        return f"Table({self._name!r}, {self.num_rows} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        return _pictures.table(self._name, self.num_rows, self.schema, _first(self, 10))


def _first(table: Table, n: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for row in table:
        rows.append(row)
        if len(rows) == n:
            break
    return rows


@dataclasses.dataclass(frozen=True)
class Member:
    """A document of a cluster."""

    doc: int
    is_centre: bool
    resemblance: float
    kind: str
    url: str | None
    title: str | None

    @property
    def name(self) -> str:
        """Its address, else its title, else its number."""
        return self.url or self.title or f"doc:{self.doc}"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Documents that are copies of one another. In a notebook it is a picture: the centre, and around it the others, the further away the less they resemble it."""

    id: int
    members: tuple[Member, ...]

    @property
    def centre(self) -> Member:
        """The document that stands for the cluster."""
        return next((member for member in self.members if member.is_centre), self.members[0])

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def __repr__(self) -> str:
        return f"Cluster({self.id}, {len(self.members)} documents around {self.centre.name})"

    def _repr_svg_(self) -> str:
        return _pictures.cluster(self)

    def _repr_html_(self) -> str:
        return _pictures.cluster_page(self)


@dataclasses.dataclass(frozen=True)
class Replica:
    """One copy of a collection. `pages` maps slots, the pages that copies have in common, to documents."""

    number: int
    root_url: str | None
    folder: str
    kind: str
    is_principal: bool
    coverage: float
    bytes: int
    pages: Mapping[int, int]
    roles: Mapping[int, str]

    @property
    def name(self) -> str:
        """Where it stands."""
        if self.root_url is None:
            return self.folder or f"replica {self.number}"
        at = urlsplit(self.root_url)
        return f"{at.scheme}://{at.netloc}{self.folder}" if self.folder.startswith("/") else self.root_url


@dataclasses.dataclass(frozen=True)
class Collection:
    """A collection of pages that stands in several places. In a notebook it is a picture: a row a replica, a column a page."""

    id: int
    name: str
    kind: str
    evidence: str
    is_noise: bool
    slots: int
    duplicate_pages: int
    duplicate_bytes: int
    replicas: tuple[Replica, ...]
    #: What the principal was chosen by, as a word and in words; `None` in atlases that do not say.
    principal_reason: str | None = None
    principal_evidence: str | None = None

    @property
    def principal(self) -> Replica:
        """The replica that is taken for the original."""
        return next((replica for replica in self.replicas if replica.is_principal), self.replicas[0])

    def __len__(self) -> int:
        return len(self.replicas)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self.replicas)

    def __repr__(self) -> str:
        return f"Collection({self.id}, {self.name!r}, {self.kind}: {len(self.replicas)} replicas of {self.slots} pages)"

    def _repr_svg_(self) -> str:
        return _pictures.collection(self)

    def _repr_html_(self) -> str:
        return _pictures.collection_page(self)


class Atlas:
    """An atlas: what `scan` and the stages after it have left in a folder.

    >>> from onionskin.testing import small_atlas
    >>> atlas = Atlas(small_atlas(similar=True))
    >>> atlas.tables[:4]
    ['cluster_stats', 'clusters', 'copies.exact', 'copies.resemblance-w4-50']
    >>> atlas.pairs.num_rows
    3
    >>> atlas.cluster(0)
    Cluster(0, 3 documents around http://a.example/)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._manifest: dict[str, Any] = json.loads(_onionskin.read_manifest(self._path))

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._path

    @property
    def manifest(self) -> dict[str, Any]:
        """Its manifest: format, inputs, recipe, seed, stages, tables."""
        return self._manifest

    @property
    def recipe(self) -> _onionskin.Recipe:
        """The recipe of its scan."""
        return _onionskin.Recipe(self._manifest["recipe"])

    @property
    def tables(self) -> list[str]:
        """Names of its tables."""
        return sorted(self._manifest["tables"])

    def __getitem__(self, name: str) -> Table:
        if name not in self._manifest["tables"]:
            raise KeyError(f"the atlas {self._path} has no table {name!r}; it has {', '.join(self.tables)}")
        return Table(self._path, name)

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self.tables if name.isidentifier())]

    def __contains__(self, name: object) -> bool:
        return name in self._manifest["tables"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def _ipython_key_completions_(self) -> list[str]:
        return self.tables

    def _rows(self, table: str, key: str, value: int, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Rows of a sorted table that have a key, without reading what cannot have it."""
        scan = _onionskin.TableScan(self._path, table, list(columns) if columns is not None else None, (value, value))
        found = []
        for batch in scan.rows():
            names = list(batch)
            keys = batch[key]
            if keys and keys[0] > value:
                break
            if keys and keys[-1] < value:
                continue
            columns_of = list(batch.values())
            for at, one in enumerate(keys):
                if one == value:
                    found.append({name: column[at] for name, column in zip(names, columns_of)})
        return found

    def document(self, doc: int) -> dict[str, Any]:
        """The row of a document.

        >>> from onionskin.testing import small_atlas
        >>> Atlas(small_atlas()).document(4)["url"]
        'http://b.example/roses'
        """
        rows = self._rows("documents", "doc", doc)
        if not rows:
            raise KeyError(f"the atlas has no document {doc}")
        return rows[0]

    def cluster(self, id: int) -> Cluster:
        """A cluster by its number, which is a `cluster` of the table `clusters`."""
        rows = self._rows("clusters", "cluster", id)
        if not rows:
            raise KeyError(f"the atlas has no cluster {id}")
        members = []
        for n, row in enumerate(rows):
            named = self._named(row["doc"]) if n < _SHOWN else {}
            members.append(
                Member(row["doc"], row["is_centre"], row["resemblance_to_centre"], row["kind"], named.get("url"), named.get("title"))
            )
        return Cluster(id, tuple(members))

    def _named(self, doc: int) -> dict[str, Any]:
        rows = self._rows("documents", "doc", doc, ["doc", "url", "title"])
        return rows[0] if rows else {}

    def collection(self, id: int) -> Collection:
        """A replicated collection by its number, which is a `group` of the table `collection_groups`."""
        groups = self._rows("collection_groups", "group", id)
        if not groups:
            raise KeyError(f"the atlas has no collection {id}")
        group = groups[0]
        pages: dict[int, dict[int, int]] = {}
        roles: dict[int, dict[int, str]] = {}
        for page in self._rows("collection_pages", "group", id):
            if page["role"] != "alias":
                pages.setdefault(page["replica"], {})[page["slot"]] = page["doc"]
                roles.setdefault(page["replica"], {})[page["slot"]] = page["role"]
        replicas = tuple(
            Replica(
                row["replica"], row["root_url"], row["folder"], row["kind"], row["is_principal"], row["coverage"], row["bytes"],
                pages.get(row["replica"], {}), roles.get(row["replica"], {}),
            )
            for row in self._rows("collections", "group", id)
        )  # fmt: skip
        return Collection(
            id, group["name"], group["kind"], group["evidence"], group["is_noise"], group["slots"], group["duplicate_pages"],
            group["duplicate_bytes"], replicas, group.get("principal_reason"), group.get("principal_evidence"),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Atlas({str(self._path)!r}, {self._manifest['recipe']}: {', '.join(self.tables)})"
