"""What the stages report: read-only, typed, and as dictionaries on request.

The fields are those of the summaries in Rust, which `--json` and the HTTP API show too. `build` refuses a field that is missing here or there.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from pathlib import Path
from typing import Any, TypeVar, Union

Interval = tuple[float, float, float]
"""A value with the ends of its 95 % interval: value, low, high."""

Range = tuple[int, int]
"""A part of a text in characters: the first, and the one after the last."""

T = TypeVar("T")


def _grouped(value: Any) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") if isinstance(value, int) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> dict[str, Any]:
    """The types of the fields, found out once."""
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


def _convert(hint: Any, value: Any) -> Any:
    """A plain value as what the type of its field says."""
    if value is None:
        return None
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return _convert(next(one for one in arguments if one is not type(None)), value)
    if hint is Path:
        return Path(value)
    if dataclasses.is_dataclass(hint):
        return build(typing.cast("type[Any]", hint), value)
    if origin is list:
        return [_convert(arguments[0], one) for one in value]
    if origin is tuple:
        return tuple(_convert(one, part) for one, part in zip(arguments, value, strict=True))
    if origin is dict:
        return {name: _convert(arguments[1], one) for name, one in value.items()}
    return value


def build(kind: type[T], values: dict[str, Any]) -> T:
    """A summary out of the plain values that the compiled part gives. The fields must be the same, or it is a `TypeError`."""
    hints = _hints(kind)
    different = sorted(set(values) ^ set(hints))
    if different:
        raise TypeError(f"{kind.__name__} and the compiled part of onionskin disagree about {', '.join(different)}")
    return kind(**{name: _convert(hints[name], value) for name, value in values.items()})


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
class BadRecord(_Summary):
    """A record that could not be read, or a file that was skipped."""

    place: str
    reason: str


@dataclasses.dataclass(frozen=True)
class FieldNotFound(_Summary):
    """A field that was named and that no record has: `field` is `id`, `url` or `date`."""

    field: str
    names: str


@dataclasses.dataclass(frozen=True)
class ScanSummary(_Summary):
    """What a scan saw."""

    atlas: Path
    recipe: str
    documents: int
    empty_documents: int
    revisits: int
    tokens: int
    text_bytes: int
    sites: int
    links_found: int
    links_unresolved: int
    links: int
    link_remedies: list[str]
    fields_not_found: list[FieldNotFound]
    chunks: dict[str, int]
    bad_records: dict[str, int]
    bad_record_bytes: int
    bad_record_examples: list[BadRecord]
    no_text: int
    inputs_without_documents: int
    inputs_without_documents_examples: list[BadRecord]
    skipped: dict[str, int]
    unreadable_files: int
    skipped_files: list[BadRecord]
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
class Recall(_Summary):
    """What the true pairs of a sample say: the shares that are listed, that are in one cluster, and of which `dedup` keeps both documents
    (`leaked`); and of listed pairs that are true."""

    sampled: int
    with_neighbours: int
    true_pairs: int
    listed_pairs: int
    listed: Interval | None
    clustered: Interval | None
    leaked: Interval | None
    checked_pairs: int
    precision: Interval | None


@dataclasses.dataclass(frozen=True)
class Paragraphs(_Summary):
    """Duplicates by shingle paragraphs. `near` has percentages, and documents that are near-duplicates at them."""

    steps: int
    documents: int
    duplicates: int
    near: list[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class Iterations(_Summary):
    """What the first iterations found, and what all would find."""

    iterations: int
    of: int
    documents: int
    clusters: int
    duplicates: int
    estimated_clusters: Interval
    estimated_duplicates: Interval
    estimated_unique: Interval
    estimated_share: Interval


@dataclasses.dataclass(frozen=True)
class SimilarSummary(_Summary):
    """What a search for similar documents found."""

    atlas: Path
    method: str
    cluster: str
    documents: int
    texts: int
    exact_copies: int
    filter: str | None
    expected_at_threshold: float | None
    candidates: int
    crowded_buckets: int
    largest_bucket: int
    crowd_limit: int
    crowded_clusters: int
    passes: int
    near_pairs: int
    texts_read_again: bool
    recall: Recall | None
    paragraphs: Paragraphs | None
    iterations: Iterations | None
    clusters: int
    clustered_documents: int
    exact_members: int
    near_members: int
    largest_cluster: int
    one_site_clusters: int
    same_site: int
    cross_site: int
    lowest_resemblance: float | None
    spilled_bytes: int
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
    single_site: bool
    documents: int
    links: int
    trivial_clusters: int
    clustered_documents: int
    counted_links: int
    linked_pairs: int
    edges: int
    bridged: int
    components: int
    groups: int
    noise_groups: int
    replicas: int
    pages: int
    duplicate_pages: int
    duplicate_bytes: int
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
class LevelSummary(_Summary):
    """Duplicates as one search sees them. Connected is what a crawl by links reaches."""

    level: str
    title: str
    documents: int
    clusters: int
    duplicates: int
    duplicate_share: float
    unique: int
    duplicate_bytes: int
    cross_site_duplicates: int
    connected_duplicates: int
    connected_duplicate_share: float
    disconnected_duplicates: int
    disconnected_duplicate_share: float


@dataclasses.dataclass(frozen=True)
class ReportSummary(_Summary):
    """Where a report was written, and its main numbers."""

    atlas: Path
    page: Path
    page_bytes: int
    files: int
    documents: int
    sites: int
    links: int
    levels: list[LevelSummary]
    main_level: str | None
    reached: int | None
    collections: int | None
    duplicate_pages: int | None

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
class Tally(_Summary):
    """Documents, words of their texts, and bytes of their payloads."""

    documents: int
    tokens: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class DamagedInput(_Summary):
    """An input whose compressed stream is damaged; its copy ends where it does."""

    input: str
    problem: str


@dataclasses.dataclass(frozen=True)
class DedupSummary(_Summary):
    """What is kept and what is removed."""

    atlas: Path
    output: Path | None
    dry_run: bool
    kept: Tally
    removed: Tally
    removed_exact: Tally
    removed_near: Tally
    removed_same_site: Tally
    removed_cross_site: Tally
    clusters: int
    kept_for_payload: int
    files: int
    input_bytes: int
    output_bytes: int
    removed_records: int
    removed_record_bytes: int
    annotated: int
    other_records: int
    revisits: int
    metadata: int
    untouched: int
    unchecked: int
    damaged: list[DamagedInput]
    left_out: dict[str, int]
    seconds: float
    peak_memory: int | None
    spilled_bytes: int

    def __repr__(self) -> str:
        return (
            f"DedupSummary({_grouped(self.kept.documents)} kept, {_grouped(self.removed.documents)} removed: "
            f"{_grouped(self.removed_exact.documents)} exact and {_grouped(self.removed_near.documents)} near duplicates)"
        )


@dataclasses.dataclass(frozen=True)
class AvoidEntry(_Summary):
    """A replica that the next crawl can skip. Rules are as in `avoid.json`: `"host"`, `{"prefix": path}` or `{"exact": path}`."""

    group: int
    replica: int
    kind: str
    name: str
    principal: str
    root: str
    host: str
    other_ports: bool
    rules: list[Any]
    pages: int
    bytes: int
    coverage: float
    similar: int
    unique: int
    checked: str | None
    principal_reason: str | None
    principal_evidence: str | None


@dataclasses.dataclass(frozen=True)
class AvoidSummary(_Summary):
    """What the next crawl can skip, and how much that saves. `texts` has the files, by name."""

    atlas: Path
    rules: int
    pages: int
    bytes: int
    exact_pages: int
    exact_bytes: int
    near_pages: int
    near_bytes: int
    skipped_pages: int
    skipped_bytes: int
    lost_pages: int
    similar_share_before: float
    similar_share_after: float
    exact_share_before: float
    exact_share_after: float
    uncovered: int
    spared_rules: int
    capped_rules: int
    left_out: dict[str, int]
    weak: int
    protected: int
    entries: list[AvoidEntry]
    texts: dict[str, str] = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return (
            f"AvoidSummary({_grouped(len(self.entries))} copies in {_grouped(self.rules)} rules: "
            f"{_grouped(self.skipped_pages)} of {_grouped(self.pages)} pages can be skipped, {_grouped(self.lost_pages)} of them unique)"
        )


@dataclasses.dataclass(frozen=True)
class DocumentFacts(_Summary):
    """A document, as the atlas knows it."""

    doc: int
    id: str | None
    url: str | None
    host: str | None
    title: str | None
    source: str
    offset: int
    place: str
    media_type: str
    bytes: int
    tokens: int
    fetched_at: str | None
    same_name: int

    @property
    def name(self) -> str:
        """Its URL, else its id, else its number."""
        return self.url or self.id or f"doc:{self.doc}"


@dataclasses.dataclass(frozen=True)
class Overlap(_Summary):
    """What two documents share in one chunking, as sets."""

    chunking: str
    is_main: bool
    size_a: int
    size_b: int
    shared: int
    resemblance: float
    containment_a: float
    containment_b: float
    from_text: bool


@dataclasses.dataclass(frozen=True)
class SketchEvidence(_Summary):
    """The resemblance that sketches estimate."""

    resemblance: float
    standard_error: float
    length: int


@dataclasses.dataclass(frozen=True)
class FeatureEvidence(_Summary):
    """Features that agree, and how many are needed."""

    equal: int
    of: int
    needed: int
    filter: str


@dataclasses.dataclass(frozen=True)
class PairRow(_Summary):
    """A row of the table `pairs`."""

    a: int
    b: int
    shared: int
    resemblance: float
    containment_a: float
    containment_b: float
    method: str


@dataclasses.dataclass(frozen=True)
class ClusterRow(_Summary):
    """A row of the table `clusters`."""

    cluster: int
    doc: int
    is_centre: bool
    resemblance_to_centre: float
    kind: str


@dataclasses.dataclass(frozen=True)
class Passage(_Summary):
    """What both texts have, and where, in characters."""

    a: Range
    b: Range
    tokens: int
    moved: bool


@dataclasses.dataclass(frozen=True)
class Texts(_Summary):
    """Two texts, read again from the inputs: what both have, and what only one of them has, in characters."""

    text_a: str
    text_b: str
    tokens_a: int
    tokens_b: int
    shared_tokens: int
    changed_a: bool
    changed_b: bool
    least_tokens: int
    passages: list[Passage]
    only_a: list[Range]
    only_b: list[Range]

    @property
    def stretches_a(self) -> list[tuple[str, bool]]:
        """The first text in stretches, each with whether the second has it too."""
        return _stretches(self.text_a, [passage.a for passage in self.passages], self.only_a)

    @property
    def stretches_b(self) -> list[tuple[str, bool]]:
        """The second text in stretches, each with whether the first has it too."""
        return _stretches(self.text_b, [passage.b for passage in self.passages], self.only_b)


def _stretches(text: str, shared: list[Range], alone: list[Range]) -> list[tuple[str, bool]]:
    """Parts of a text in order. What is between two, white space mostly, goes with the first."""
    parts = sorted([(start, end, True) for start, end in shared] + [(start, end, False) for start, end in alone])
    begins = [start for start, _, _ in parts[1:]] + [len(text)]
    return [(text[start : max(begin, end)], both) for (start, end, both), begin in zip(parts, begins)]


@dataclasses.dataclass(frozen=True)
class Explanation(_Summary):
    """Two documents and everything that speaks for or against their being duplicates. `texts` is `None` where the inputs cannot be read again, and
    `text_problem` says why."""

    recipe: str
    a: DocumentFacts
    b: DocumentFacts
    overlaps: list[Overlap]
    sketch: SketchEvidence | None
    features: FeatureEvidence | None
    payload_equal: bool | None
    text_equal: bool | None
    same_site: bool | None
    same_domain: bool | None
    pair: PairRow | None
    cluster_a: ClusterRow | None
    cluster_b: ClusterRow | None
    text_problem: str | None
    texts: Texts | None = dataclasses.field(repr=False)

    @property
    def resemblance(self) -> float:
        """The resemblance by the chunking that sketches are made of."""
        return self.overlaps[0].resemblance if self.overlaps else 0.0

    @property
    def only_in_a(self) -> list[str]:
        """Stretches of the first text that the second has not."""
        return [text.strip() for text, shared in self.texts.stretches_a if not shared] if self.texts is not None else []

    @property
    def only_in_b(self) -> list[str]:
        """Stretches of the second text that the first has not."""
        return [text.strip() for text, shared in self.texts.stretches_b if not shared] if self.texts is not None else []

    def __repr__(self) -> str:
        return f"Explanation(doc {self.a.doc} and doc {self.b.doc}: resemblance {self.resemblance:.3f})"

    def _repr_html_(self) -> str:
        from ._pictures import explanation

        return explanation(self)
