"""`MinHash` and `MinHashLSH` for programs that were written for datasketch: change the import, and nothing else.

    from onionskin.datasketch import MinHash, MinHashLSH    # was: from datasketch import MinHash, MinHashLSH

Calls, arguments, errors and the choice of parameters are those of datasketch 2; estimates are as good, since the permutations are min-wise as well. Hash values
are others, so sketches of the two cannot be compared. Left out: storage in Redis and Cassandra, graphics cards, and weights.
"""

from __future__ import annotations

import copy as _copy
import hashlib
import struct
import warnings
from collections.abc import Callable, Generator, Hashable, Iterable
from types import TracebackType
from typing import Any

from . import _onionskin

__all__ = ["MinHash", "MinHashLSH", "MinHashLSHDeletionSession", "MinHashLSHInsertionSession", "sha1_hash32", "sha1_hash64"]

HashFunction = Callable[[Any], int]


def sha1_hash32(data: bytes) -> int:
    """A 32-bit hash, as datasketch has it.

    >>> sha1_hash32(b"onionskin")
    927549476
    """
    value: int = struct.unpack("<I", hashlib.sha1(data).digest()[:4])[0]
    return value


def sha1_hash64(data: bytes) -> int:
    """A 64-bit hash, as datasketch has it.

    >>> sha1_hash64(b"onionskin") & 0xFFFFFFFF == sha1_hash32(b"onionskin")
    True
    """
    value: int = struct.unpack("<Q", hashlib.sha1(data).digest()[:8])[0]
    return value


class MinHash(_onionskin.MinHashCore):
    """The minima of a set under `num_perm` permutations: what Jaccard similarity is estimated from.

    >>> a, b = MinHash(num_perm=128), MinHash(num_perm=128)
    >>> a.update_batch([b"one", b"two", b"three"])
    >>> b.update_batch([b"one", b"two", b"three"])
    >>> a.jaccard(b)
    1.0

    Values are hashed with XXH3 where datasketch has SHA-1, unless `hashfunc` says otherwise. `hashvalues` are the state of another `MinHash` of
    the same seed.
    """

    scheme = "onionskin"

    def __new__(
        cls,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: HashFunction | None = None,
        hashobj: object | None = None,
        hashvalues: Any = None,
        permutations: object | None = None,
        scheme: str | None = None,
    ) -> MinHash:
        if hashvalues is not None:
            num_perm = len(hashvalues)
        if num_perm < 1:
            raise ValueError("num_perm must be positive")
        return super().__new__(cls, num_perm, seed)

    def __init__(
        self,
        num_perm: int = 128,
        seed: int = 1,
        gpu_mode: str = "disable",
        hashfunc: HashFunction | None = None,
        hashobj: object | None = None,
        hashvalues: Any = None,
        permutations: object | None = None,
        scheme: str | None = None,
    ) -> None:
        if permutations is not None:
            raise ValueError("permutations are drawn from the seed; there are no others here")
        if scheme not in (None, self.scheme):
            raise ValueError(f"hash values of the scheme {scheme!r} are datasketch's own; here they are of the scheme {self.scheme!r}")
        if gpu_mode == "always":
            raise RuntimeError("there is no GPU mode here")
        if hashobj is not None:
            warnings.warn("hashobj is deprecated, use hashfunc instead.", DeprecationWarning, stacklevel=2)
        if hashfunc is not None and not callable(hashfunc):
            raise ValueError("The hashfunc must be a callable.")
        self.hashfunc = hashfunc
        if hashvalues is not None:
            self._set(struct.pack(f"<{len(hashvalues)}I", *(int(value) for value in hashvalues)))

    def update(self, b: Any) -> None:
        """Adds a value to the set.

        >>> m = MinHash()
        >>> m.update(b"a value")
        >>> m.is_empty()
        False
        """
        if self.hashfunc is None:
            self._put(b)
        else:
            self._put_hashes([int(self.hashfunc(b))])

    def update_batch(self, b: Iterable[Any]) -> None:
        """Adds values to the set. Much faster than one at a time."""
        if self.hashfunc is None:
            self._put_many(b)
        else:
            self._put_hashes([int(self.hashfunc(one)) for one in b])

    def _check(self, other: MinHash, what: str) -> None:
        if getattr(other, "scheme", None) != self.scheme:
            raise ValueError(f"Cannot {what} MinHash with different permutation schemes")
        if other.seed != self.seed:
            raise ValueError(f"Cannot {what} MinHash with different seeds")
        if len(self) != len(other):
            raise ValueError(f"Cannot {what} MinHash with different numbers of permutation functions")

    def jaccard(self, other: MinHash) -> float:
        """The estimated Jaccard similarity of the two sets."""
        self._check(other, "compute Jaccard given")
        return self._agreeing(other) / len(self)

    def count(self) -> float:
        """The estimated number of members of the set.

        >>> m = MinHash(num_perm=1024)
        >>> m.update_batch(str(n).encode() for n in range(1000))
        >>> 850 < m.count() < 1150
        True
        """
        return len(self) / self._sum() - 1.0

    def merge(self, other: MinHash) -> None:
        """Makes this the union of both."""
        self._check(other, "merge")
        self._merge(other)

    @property
    def hashvalues(self) -> Any:
        """The minima: an array of numpy where that is installed, else a list."""
        return self.digest()

    @hashvalues.setter
    def hashvalues(self, values: Any) -> None:
        self._set(struct.pack(f"<{len(values)}I", *(int(value) for value in values)))

    def digest(self) -> Any:
        """A copy of the minima, 32 bits each."""
        try:
            import numpy
        except ImportError:
            return list(struct.unpack(f"<{len(self)}I", self._bytes()))
        return numpy.frombuffer(self._bytes(), dtype="<u4").copy()

    def copy(self) -> MinHash:
        """Another one of the same set."""
        made = type(self)(num_perm=len(self), seed=self.seed, hashfunc=self.hashfunc)
        made._set(self._bytes())
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> MinHash:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, MinHash) and self.seed == other.seed and self._same(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), len(self), self.seed, self.hashfunc, self._bytes()))

    @classmethod
    def union(cls, *mhs: MinHash) -> MinHash:
        """The union of several.

        >>> a, b = MinHash(), MinHash()
        >>> a.update(b"x"); b.update(b"y")
        >>> MinHash.union(a, b).jaccard(a) < 1
        True
        """
        if len(mhs) < 2:
            raise ValueError("Cannot union less than 2 MinHash")
        first = mhs[0]
        made = first.copy()
        for other in mhs[1:]:
            first._check(other, "union")
            made._merge(other)
        return made

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[MinHash]:
        """One for each set.

        >>> len(MinHash.bulk([[b"a", b"b"], [b"c"]], num_perm=64))
        2
        """
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Generator[MinHash, None, None]:
        """One for each set, as they come."""
        for values in b:
            made = cls(**minhash_kwargs)
            made.update_batch(values)
            yield made


def _restore(kind: type[MinHash], num_perm: int, seed: int, hashfunc: HashFunction | None, values: bytes) -> MinHash:
    made = kind(num_perm=num_perm, seed=seed, hashfunc=hashfunc)
    made._set(values)
    return made


class MinHashLSH:
    """An index of `MinHash` by bands: finds those whose Jaccard similarity is likely above a threshold.

    >>> lsh = MinHashLSH(threshold=0.5, num_perm=128)
    >>> lsh.b, lsh.r
    (25, 5)
    >>> m = MinHash(num_perm=128)
    >>> m.update_batch([b"one", b"two", b"three"])
    >>> lsh.insert("m", m)
    >>> lsh.query(m)
    ['m']

    Candidates are not verified. `onionskin.Deduplicator` finds them faster, in bounded memory, and keeps them on disk; `onionskin.similar` verifies.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        if storage_config is not None and storage_config.get("type", "dict") != "dict":
            raise ValueError(f"storage of the type {storage_config.get('type')!r} is not there; Deduplicator keeps an index on disk")
        if threshold > 1.0 or threshold < 0.0:
            raise ValueError("threshold must be in [0.0, 1.0]")
        if num_perm < 2:
            raise ValueError("Too few permutation functions")
        if any(w < 0.0 or w > 1.0 for w in weights):
            raise ValueError("Weight must be in [0.0, 1.0]")
        if sum(weights) != 1.0:
            raise ValueError("Weights must sum to 1.0")
        self.h = num_perm
        if params is not None:
            self.b, self.r = params
            if self.b * self.r > num_perm:
                raise ValueError(
                    "The product of b and r in params is "
                    f"{self.b} * {self.r} = {self.b * self.r} -- it must be less than num_perm {num_perm}. "
                    "Did you forget to specify num_perm?"
                )
        else:
            self.b, self.r = _onionskin.optimal_bands(threshold, num_perm, weights[0], weights[1])
        if self.b < 2:
            raise ValueError("The number of bands are too small (b < 2)")
        self.prepickle = bool(prepickle)
        self.hashfunc = hashfunc
        self.hashranges = [(i * self.r, (i + 1) * self.r) for i in range(self.b)]
        # Keys in dictionaries, because they stay in the order of insertion.
        self.hashtables: list[dict[int, dict[Hashable, None]]] = [{} for _ in range(self.b)]
        self.keys: dict[Hashable, list[int]] = {}

    @property
    def buffer_size(self) -> int:
        """Nothing is buffered; kept for programs that set it."""
        return 50000

    @buffer_size.setter
    def buffer_size(self, value: int) -> None:
        pass

    def _bands(self, minhash: MinHash) -> list[int]:
        if len(minhash) != self.h:
            raise ValueError("Expecting minhash with length %d, got %d" % (self.h, len(minhash)))
        if not isinstance(minhash, MinHash):
            raise ValueError("MinHash scheme does not match: this index takes MinHash of onionskin.datasketch")
        return minhash._bands(self.b, self.r)

    def insert(self, key: Hashable, minhash: MinHash, check_duplication: bool = True) -> None:
        """Adds a sketch under a key, which must be new unless `check_duplication` is off."""
        if check_duplication and key in self.keys:
            raise ValueError("The given key already exists")
        bands = self._bands(minhash)
        self.keys[key] = bands
        for band, table in zip(bands, self.hashtables):
            bucket = table.get(band)
            if bucket is None:
                table[band] = {key: None}
            else:
                bucket[key] = None

    def query(self, minhash: MinHash) -> list[Hashable]:
        """Keys of the sketches that share a band with this one: candidates, each once."""
        found: dict[Hashable, None] = {}
        for band, table in zip(self._bands(minhash), self.hashtables):
            bucket = table.get(band)
            if bucket is not None:
                found.update(bucket)
        return list(found)

    def _query_b(self, minhash: MinHash, b: int) -> set[Hashable]:
        if b > len(self.hashtables):
            raise ValueError("b must be less or equal to the number of hash tables")
        found: set[Hashable] = set()
        for band, table in zip(self._bands(minhash)[:b], self.hashtables):
            found.update(table.get(band, ()))
        return found

    def add_to_query_buffer(self, minhash: MinHash) -> None:
        """Notes a query whose results `collect_query_buffer` intersects with those of the others."""
        self.__dict__.setdefault("_queries", []).append(set(self.query(minhash)))

    def collect_query_buffer(self) -> list[Hashable]:
        """Keys that all noted queries have found."""
        queries: list[set[Hashable]] = self.__dict__.pop("_queries", [])
        return list(set.intersection(*queries)) if queries else []

    def remove(self, key: Hashable) -> None:
        """Removes a key."""
        if key not in self.keys:
            raise ValueError("The given key does not exist")
        for band, table in zip(self.keys.pop(key), self.hashtables):
            bucket = table.get(band)
            if bucket is not None:
                bucket.pop(key, None)
                if not bucket:
                    del table[band]

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Takes in the keys of another index with the same parameters."""
        if type(self) is not type(other):
            raise ValueError(f"Cannot merge type MinHashLSH and type {type(other).__name__}.")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise ValueError("Cannot merge MinHashLSH with different initialization parameters.")
        if check_overlap and self.keys.keys() & other.keys.keys():
            raise ValueError("The keys are overlapping, duplicate key exists.")
        for key, bands in other.keys.items():
            self.keys[key] = list(bands)
            for band, table in zip(bands, self.hashtables):
                table.setdefault(band, {})[key] = None

    def is_empty(self) -> bool:
        """Whether nothing is there."""
        return not self.keys

    def __contains__(self, key: object) -> bool:
        return key in self.keys

    def get_counts(self) -> list[dict[int, int]]:
        """For each band how many keys every bucket has."""
        return [{band: len(bucket) for band, bucket in table.items()} for table in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[int, int]]:
        """The same of some keys."""
        counts: list[dict[int, int]] = [{} for _ in range(self.b)]
        for key in set(keys):
            if key not in self.keys:
                continue
            for band, count in zip(self.keys[key], counts):
                count[band] = count.get(band, 0) + 1
        return counts

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """A context in which much is inserted."""
        return MinHashLSHInsertionSession(self)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """A context in which much is removed."""
        return MinHashLSHDeletionSession(self)

    def copy(self) -> MinHashLSH:
        """Another one with the same keys."""
        return _copy.deepcopy(self)


class _Session:
    def __init__(self, lsh: MinHashLSH) -> None:
        self.lsh = lsh

    def close(self) -> None:
        """Nothing is buffered, so nothing is left to do."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class MinHashLSHInsertionSession(_Session):
    """A context in which much is inserted."""

    def __enter__(self) -> MinHashLSHInsertionSession:
        return self

    def insert(self, key: Hashable, minhash: MinHash, check_duplication: bool = True) -> None:
        """As `MinHashLSH.insert`."""
        self.lsh.insert(key, minhash, check_duplication=check_duplication)


class MinHashLSHDeletionSession(_Session):
    """A context in which much is removed."""

    def __enter__(self) -> MinHashLSHDeletionSession:
        return self

    def remove(self, key: Hashable) -> None:
        """As `MinHashLSH.remove`."""
        self.lsh.remove(key)
