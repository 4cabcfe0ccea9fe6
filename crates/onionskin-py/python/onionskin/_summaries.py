"""What the stages tell when they are done: read-only, typed, and as dictionaries on request."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

Interval = tuple[float, float, float]
"""A value with the ends of its 95 % interval: value, low, high."""


def _grouped(value: Any) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if isinstance(value, int) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


class _Summary:
    """Shared by all: `to_dict`, and a table in notebooks."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as a dictionary of plain values."""
        fields: dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {name: _plain(value) for name, value in fields.items()}

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name.replace('_', ' '))}</th>"
            f"<td style='text-align:right'>{escape(_grouped(value))}</td></tr>"
            for name, value in self.to_dict().items()
            if value is not None and not isinstance(value, (dict, list))
        )
        return f"<table>{rows}</table>"


@dataclasses.dataclass(frozen=True)
class ScanSummary(_Summary):
    """What a scan saw."""

    atlas: Path
    documents: int
    empty_documents: int
    revisits: int
    tokens: int
    text_bytes: int
    sites: int
    links_found: int
    links: int
    chunks: dict[str, int]
    bad_records: dict[str, int]
    bad_record_examples: list[tuple[str, str]]
    skipped: dict[str, int]
    sources: int
    input_bytes: int
    resumed_documents: int
    seconds: float
    cpu_seconds: float
    peak_memory: int | None
    spilled_bytes: int

    def __repr__(self) -> str:
        bad = sum(self.bad_records.values())
        return (
            f"ScanSummary({_grouped(self.documents)} documents on {_grouped(self.sites)} sites, "
            f"{_grouped(self.links)} links, {_grouped(bad)} bad records, {self.seconds:.1f} s)"
        )


@dataclasses.dataclass(frozen=True)
class SimilarSummary(_Summary):
    """What a search for similar documents found. Recall and precision are measured on a sample: value, and the ends of the 95 % interval."""

    atlas: Path
    method: str
    cluster: str
    documents: int
    texts: int
    exact_copies: int
    filter: str | None
    expected_at_threshold: float | None
    candidates: int
    near_pairs: int
    clusters: int
    clustered_documents: int
    exact_members: int
    near_members: int
    largest_cluster: int
    same_site: int
    cross_site: int
    lowest_resemblance: float | None
    texts_read_again: bool
    recall_of_pairs: Interval | None
    recall_of_clusters: Interval | None
    precision_of_pairs: Interval | None
    resumed: bool
    seconds: float
    cpu_seconds: float
    peak_memory: int | None

    def __repr__(self) -> str:
        return (
            f"SimilarSummary({_grouped(self.exact_copies)} exact copies and {_grouped(self.near_pairs)} near pairs "
            f"among {_grouped(self.documents)} documents, {_grouped(self.clusters)} clusters, {self.seconds:.1f} s)"
        )


@dataclasses.dataclass(frozen=True)
class CollectionsSummary(_Summary):
    """What a search for mirrors found. Noise is collections of fewer than ten pages."""

    atlas: Path
    merge: str
    documents: int
    links: int
    groups: int
    noise_groups: int
    replicas: int
    pages: int
    duplicate_pages: int
    duplicate_bytes: int
    trivial_clusters: int
    kinds: dict[str, int]
    url_rules: int
    resumed: bool
    seconds: float
    cpu_seconds: float
    peak_memory: int | None

    def __repr__(self) -> str:
        return (
            f"CollectionsSummary({_grouped(self.groups)} replicated collections, {_grouped(self.noise_groups)} of them noise, "
            f"{_grouped(self.replicas)} replicas, {_grouped(self.duplicate_pages)} duplicate pages, {self.seconds:.1f} s)"
        )


@dataclasses.dataclass(frozen=True)
class ReportSummary(_Summary):
    """Where a report was written."""

    atlas: Path
    page: Path
    page_bytes: int
    files: int
    documents: int
    sites: int
    links: int

    def __repr__(self) -> str:
        return f"ReportSummary({str(self.page)!r}, {self.files} files)"


@dataclasses.dataclass(frozen=True)
class RunSummary(_Summary):
    """What a whole job did. A stage that was not done this time is `None`; `outcomes` says why."""

    atlas: Path
    outcomes: dict[str, str]
    scan: ScanSummary | None
    similar: SimilarSummary | None
    collections: CollectionsSummary | None
    report: ReportSummary | None
    seconds: float
    cpu_seconds: float
    peak_memory: int | None

    def __repr__(self) -> str:
        done = ", ".join(f"{stage}: {outcome.replace('_', ' ')}" for stage, outcome in self.outcomes.items())
        return f"RunSummary({str(self.atlas)!r}, {done}, {self.seconds:.1f} s)"


@dataclasses.dataclass(frozen=True)
class DedupSummary(_Summary):
    """What is kept and what is removed."""

    atlas: Path
    output: Path | None
    kept: int
    kept_bytes: int
    removed: int
    removed_bytes: int
    removed_exact: int
    removed_exact_bytes: int
    removed_near: int
    removed_near_bytes: int
    removed_same_site: int
    removed_same_site_bytes: int
    removed_cross_site: int
    removed_cross_site_bytes: int
    clusters: int
    files: int
    input_bytes: int
    output_bytes: int
    damaged: list[tuple[str, str]]
    left_out: dict[str, int]
    seconds: float
    peak_memory: int | None

    def __repr__(self) -> str:
        return (
            f"DedupSummary({_grouped(self.kept)} kept, {_grouped(self.removed)} removed: "
            f"{_grouped(self.removed_exact)} exact and {_grouped(self.removed_near)} near copies)"
        )


@dataclasses.dataclass(frozen=True)
class AvoidEntry(_Summary):
    """A copy that the next crawl can skip."""

    group: int
    replica: int
    kind: str
    name: str
    principal: str
    root: str
    rules: int
    pages: int
    bytes: int
    coverage: float
    similar: int
    unique: int


@dataclasses.dataclass(frozen=True)
class AvoidSummary(_Summary):
    """What the next crawl can skip, and what that is worth. `texts` has the files, by name."""

    atlas: Path
    entries: list[AvoidEntry]
    rules: int
    pages: int
    bytes: int
    skipped_pages: int
    skipped_bytes: int
    lost_pages: int
    left_out: dict[str, int]
    texts: dict[str, str] = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return (
            f"AvoidSummary({_grouped(len(self.entries))} copies in {_grouped(self.rules)} rules: "
            f"{_grouped(self.skipped_pages)} of {_grouped(self.pages)} pages can be skipped, {_grouped(self.lost_pages)} of them unique)"
        )


@dataclasses.dataclass(frozen=True)
class Overlap(_Summary):
    """What two documents share in one chunking, as sets."""

    chunking: str
    size_a: int
    size_b: int
    shared: int
    resemblance: float
    containment_a: float
    containment_b: float


@dataclasses.dataclass(frozen=True)
class Explanation(_Summary):
    """Two documents and everything that speaks for or against their being copies. `text_a` and `text_b` are their texts in stretches, each with whether the other has it
    too; `unreadable` says why where they cannot be read again."""

    a: dict[str, Any]
    b: dict[str, Any]
    overlaps: list[Overlap]
    estimate: float | None
    features: tuple[int, int, int] | None
    text_equal: bool | None
    payload_equal: bool | None
    same_site: bool | None
    clusters: list[int | None]
    text_a: list[tuple[str, bool]] = dataclasses.field(repr=False)
    text_b: list[tuple[str, bool]] = dataclasses.field(repr=False)
    unreadable: str | None

    @property
    def resemblance(self) -> float:
        """The resemblance by the chunking that sketches are made of."""
        return self.overlaps[0].resemblance if self.overlaps else 0.0

    @property
    def only_in_a(self) -> list[str]:
        """Stretches of the first text that the second has not."""
        return [text.strip() for text, shared in self.text_a if not shared]

    @property
    def only_in_b(self) -> list[str]:
        """Stretches of the second text that the first has not."""
        return [text.strip() for text, shared in self.text_b if not shared]

    def __repr__(self) -> str:
        return f"Explanation(doc {self.a['doc']} and doc {self.b['doc']}: resemblance {self.resemblance:.3f})"

    def _repr_html_(self) -> str:
        from ._pictures import explanation

        return explanation(self)
