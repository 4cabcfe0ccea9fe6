"""Documents as they come: have they, or some nearly like them, been seen?"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Union

from . import _onionskin
from ._onionskin import Recipe, Verdict
from ._types import Texts

Id = Union[str, int]

# : Documents that were added one at a time and are made safe together.
_COMMIT_EVERY = 1000


class Deduplicator:
    """Tells of documents as they come whether they, or some nearly like them, have come before, and which.

    Without a `path` it lives in a temporary folder and ends with the object; with one it is an index on disk, the same that `onionskin seen`
    and `onionskin serve` use. Memory is bounded whatever the number of documents: 175 bytes each are on disk, or 62 without sketches.

    >>> seen = Deduplicator()
    >>> seen.add("Onionskin is the thin paper of carbon copies.", id="first")
    Verdict(new)
    >>> seen.add("ONIONSKIN is the thin paper of carbon copies", id="second")
    Verdict(exact copy of 'first')
    >>> seen.check("Nobody has said this before.").is_new
    True
    >>> len(seen)
    2

    `recipe` says how minima are made (`w4-rabin64-6x14r2`). Documents that may have the resemblance `threshold` are near. A new index is made for it (0.9):
    it finds 99 % of the documents at the threshold. Minima are kept for that, 84 bytes per document on disk. With `sketches=False` a new index keeps none,
    and the features of the recipe decide. `ids` is `str` or `int`: what names documents; `None` takes an index
    as it is. Documents without an id are numbered as they are added.

    Additions are seen by checks at once. They are safe against kills and power cuts when a batch has been added, after every thousandth single
    addition, after `commit`, `save` and `close`, and when the program ends by itself.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        recipe: Recipe | str | None = None,
        seed: int | None = None,
        threshold: float | None = None,
        sketches: bool | None = None,
        ids: type[str] | type[int] | None = str,
        memory: int | str = "256M",
        threads: int | None = None,
    ) -> None:
        if ids not in (str, int, None):
            raise ValueError("ids is str, int or None")
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if path is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="onionskin-seen-")
            path = Path(self._temporary.name) / "index"
        self._path = Path(path)
        self._index = _onionskin.SeenIndex(
            self._path,
            create=True,
            scratch=self._temporary is not None,
            recipe=recipe,
            seed=seed,
            names=None if ids is None else ids is str,
            sketches=sketches,
            threshold=threshold,
            memory=str(memory),
            threads=threads,
        )
        self._lock = threading.Lock()
        if self._temporary is None:
            # What was added and not yet made safe is, when the object goes or the program ends.
            weakref.finalize(self, self._index.close)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threshold: float | None = None, memory: int | str = "256M", threads: int | None = None) -> Deduplicator:
        """Opens an index that `save`, another `Deduplicator` or `onionskin seen` has left.

        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "index"
        >>> with Deduplicator(folder, ids=int) as seen:
        ...     _ = seen.add("some words that are kept for later", id=7)
        >>> Deduplicator.load(folder).check("Some words that are kept for later.").like_id
        7
        """
        if not (Path(path) / "catalogue").exists():
            raise _onionskin.OnionskinError(f"{os.fspath(path)} has no index of seen documents")
        return cls(path, ids=None, threshold=threshold, memory=memory, threads=threads)

    @property
    def path(self) -> Path:
        """The folder of the index."""
        return self._path

    @property
    def recipe(self) -> Recipe:
        """How features are made."""
        return self._index.recipe

    @property
    def seed(self) -> int:
        """The seed of the permutations."""
        return self._index.seed

    @property
    def threshold(self) -> float | None:
        """The resemblance that near copies may have; `None` when the features decide."""
        return self._index.threshold

    @property
    def ids(self) -> type[str] | type[int]:
        """What names documents: `str` or `int`."""
        return str if self._index.names else int

    def _ids(self, ids: Iterable[Id] | None) -> list[Any] | None:
        if ids is None:
            return None
        # Columns of Arrow have scalars of their own.
        plain = getattr(ids, "to_pylist", None)
        listed: list[Any] = list(ids) if plain is None else plain()
        kind = self.ids
        for one in listed:
            if not isinstance(one, kind) or isinstance(one, bool):
                raise TypeError(f"ids of this index are {kind.__name__}, not {type(one).__name__}: {one!r}")
        return listed

    def _one(self, text: str, id: Id | None, mode: str) -> Verdict:
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not {type(text).__name__}; many texts go to {mode}_many")
        return self._index.batch([text], self._ids([id]) if id is not None else None, mode, None, _COMMIT_EVERY)[0]

    def _many(self, texts: Texts, ids: Iterable[Id] | None, mode: str, column: str | None) -> list[Verdict]:
        verdicts = self._index.batch(texts, self._ids(ids), mode, column, 1 << 20)
        if mode != "check":
            self._index.commit()
        return verdicts

    def add(self, text: str, id: Id | None = None) -> Verdict:
        """Adds a document, whether it is a copy or not, and tells what it is like.

        >>> Deduplicator().add("a text of its own").added
        True
        """
        return self._one(text, id, "add")

    def add_if_new(self, text: str, id: Id | None = None) -> Verdict:
        """Adds a document only if neither it nor one nearly like it is there.

        >>> seen = Deduplicator()
        >>> [seen.add_if_new(text).added for text in ("one text", "One text.", "another text")]
        [True, False, True]
        """
        return self._one(text, id, "add-if-new")

    def check(self, text: str, id: Id | None = None) -> Verdict:
        """Looks for a document and adds nothing. Its id is only repeated in the answer.

        >>> Deduplicator().check("a text of its own")
        Verdict(new)
        """
        return self._one(text, id, "check")

    def add_many(self, texts: Texts, ids: Iterable[Id] | None = None, *, column: str | None = None) -> list[Verdict]:
        """Adds documents, in order: each is compared with those before it. `texts` is a list of str or Arrow data; `column` names the column of a table.

        >>> Deduplicator().add_many(["a b c d e", "f g h i j", "A B C D E!"], ids=["x", "y", "z"])
        [Verdict(new), Verdict(new), Verdict(exact copy of 'x')]
        """
        return self._many(texts, ids, "add", column)

    def add_if_new_many(self, texts: Texts, ids: Iterable[Id] | None = None, *, column: str | None = None) -> list[Verdict]:
        """Adds those documents that are new, in order.

        >>> [verdict.added for verdict in Deduplicator().add_if_new_many(["a b c d e", "f g h i j", "A B C D E!"])]
        [True, True, False]
        """
        return self._many(texts, ids, "add-if-new", column)

    def check_many(self, texts: Texts, ids: Iterable[Id] | None = None, *, column: str | None = None) -> list[Verdict]:
        """Looks for documents and adds nothing.

        >>> [verdict.is_new for verdict in Deduplicator().check_many(["a b c d e", "a b c d e"])]
        [True, True]
        """
        return self._many(texts, ids, "check", column)

    def answer(
        self, documents: Iterable[Mapping[str, Any]], mode: str = "add-if-new", *, threshold: float | None = None, verify: str | None = None
    ) -> list[Verdict]:
        """Answers documents that are dictionaries, as `onionskin seen` answers lines of JSON and the server requests: `mode` is "check", "add" or "add-if-new".

        A document is named by `name` or `id`, else by `url`, else by its place, and has a `text` or `html`. One with any other field is bad, and is told with
        the problem; the others are taken. `threshold` is for these documents, and needs an index that was made with one. `verify` says how resemblance is
        found: "sketch" needs an index with sketches; "text" is an error here, since an index keeps no texts (`onionskin seen --verify text` reads them again).

        >>> seen = Deduplicator()
        >>> seen.answer([{"id": "a", "text": "some words of a page"}, {"url": "http://b/", "html": "<p>Some words of a <b>page</b>"}])
        [Verdict(new), Verdict(exact copy of 'a')]
        >>> seen.answer([{"id": "c", "txt": "a misspelled field"}])[0].is_bad
        True
        """
        lines = [json.dumps(document) for document in documents]
        return self._index.documents(lines, mode, threshold, verify)

    def remove(self, ids: Id | Sequence[Id]) -> int:
        """Removes documents by their ids; returns how many there were. The oldest copy of a removed document takes its place.

        >>> seen = Deduplicator()
        >>> _ = seen.add("a text of its own", id="x")
        >>> seen.remove("x"), len(seen)
        (1, 0)
        """
        removed = self.remove_many([ids] if isinstance(ids, (str, int)) else ids)
        return sum(one["documents"] for one in removed)

    def remove_many(self, ids: Iterable[Id]) -> list[dict[str, Any]]:
        """Removes documents by their ids; says how many documents each had, in order of name.

        >>> seen = Deduplicator()
        >>> _ = seen.add("a text of its own", id="x")
        >>> seen.remove_many(["x", "y"])
        [{'name': 'x', 'documents': 1}, {'name': 'y', 'documents': 0}]
        """
        return self._index.remove(self._ids(ids) or [])

    def stats(self) -> dict[str, Any]:
        """What the index is of and how large it is: recipe and seed, documents, of them centres and removed, bytes on disk.

        >>> Deduplicator().stats()["documents"]
        0
        """
        return self._index.stats()

    def commit(self) -> None:
        """Makes all additions safe."""
        self._index.commit()

    def compact(self) -> None:
        """Rewrites the index without what was removed, as one file."""
        self._index.compact()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the index to a folder, new or empty, and goes on with its own.

        >>> import tempfile, pathlib
        >>> seen = Deduplicator()
        >>> _ = seen.add("some words that are kept for later", id="x")
        >>> saved = seen.save(pathlib.Path(tempfile.mkdtemp()) / "index")
        >>> len(Deduplicator.load(saved))
        1
        """
        target = Path(path)
        with self._lock:
            self._index.commit()
            if target.exists() and self._path.exists() and target.samefile(self._path):
                return target
            if target.exists() and any(target.iterdir()):
                raise _onionskin.OnionskinError(f"{target} is not empty\nhint: name a new folder")
            beside = target.with_name(f".{target.name}.new")
            shutil.rmtree(beside, ignore_errors=True)
            # Files of an index never change, but for the log, which is whole after a commit.
            shutil.copytree(self._path, beside, ignore=shutil.ignore_patterns("lock"))
            if target.exists():
                target.rmdir()
            beside.rename(target)
        return target

    def close(self) -> None:
        """Makes all additions safe and lets go of the folder. A temporary one is removed."""
        self._index.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __len__(self) -> int:
        return self._index.len()

    def __enter__(self) -> Deduplicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "temporary" if self._temporary is not None else repr(str(self._path))
        return f"Deduplicator({where}, '{self.recipe}')"
