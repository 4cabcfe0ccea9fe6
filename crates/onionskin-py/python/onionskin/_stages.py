"""The stages as functions. Keywords are the flags of the command line; what was begun is finished by calling again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Union

from . import _onionskin
from ._progress import Progress, listener
from ._summaries import (
    AvoidSummary,
    CollectionsSummary,
    DedupSummary,
    Explanation,
    ReportSummary,
    RunSummary,
    ScanSummary,
    SimilarSummary,
    build,
)

PathLike = Union[str, "os.PathLike[str]"]
Inputs = Union[PathLike, Iterable[PathLike]]
Memory = Union[None, int, str]
Names = Union[str, Sequence[str]]


def _memory(memory: Memory) -> str | None:
    return str(memory) if memory is not None else None


def _resources(memory: Memory, threads: int | None) -> dict[str, Any]:
    return {"memory": _memory(memory), "threads": threads}


def _inputs(inputs: Inputs) -> list[str]:
    if isinstance(inputs, (str, os.PathLike)):
        return [os.fspath(inputs)]
    return [os.fspath(one) for one in inputs]


def _run(stage: Any, *arguments: Any, progress: Progress) -> dict[str, Any]:
    tell, finish = listener(progress)
    try:
        done: dict[str, Any] = stage(*arguments, tell)
        return done
    finally:
        finish.close()


def scan(
    inputs: Inputs,
    atlas: PathLike,
    *,
    recipe: _onionskin.Recipe | str | None = None,
    seed: int = 1,
    overwrite: bool = False,
    format: str | None = None,
    text_field: Names = "text,content,raw_content",
    id_field: Names = "id,doc_id",
    url_field: Names = "url,meta.url,metadata.url",
    date_field: Names = "date,date_download,timestamp,meta.timestamp,metadata.date_download,created",
    text_is_html: bool = False,
    text_digests: bool = False,
    any_status: bool = False,
    hosts: bool = False,
    base_url: str | None = None,
    follow_links: bool = False,
    postscript: bool = False,
    pdf: Literal["built-in", "pdftotext"] = "built-in",
    max_record_bytes: int | str = "64M",
    max_bad_records: int | None = None,
    strict: bool = False,
    memory: Memory = None,
    threads: int | None = None,
    progress: Progress = None,
) -> ScanSummary:
    """Reads inputs once and makes an atlas of them, or goes on where an earlier call of the same scan was stopped.

    `inputs` are files, folders, globs or `@list`; WARC, WET, WACZ, JSON lines, Parquet, CSV, HTML, text, PDF, office files, compressed or
    not. `text_field` and the other fields are names in order of preference, as a list or with commas between them: the first that a record
    has is taken. A file of a folder that cannot be opened is skipped and counted, or with `strict` an error; an input that fails while it is read
    is always an error, after which the same call resumes. `hosts` says that the folders in a folder are hosts, whatever their names;
    `base_url` is where files come from. Links out of a folder are followed with `follow_links`; PostScript is read with
    `postscript`, by Ghostscript. `memory` is for everything, as in `"2G"`, by default half of what the machine has. The same inputs, recipe and seed give the
    same bytes, whatever memory and threads are.

    >>> import json, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with open(folder / "pages.jsonl", "w") as file:
    ...     for n in range(3):
    ...         print(json.dumps({"id": str(n), "text": "the same words on every page"}), file=file)
    >>> summary = scan(folder / "pages.jsonl", folder / "atlas")
    >>> summary.documents
    3
    """
    return build(ScanSummary, _run(_onionskin.scan, _scan_args(**_without(locals(), "progress") | {"atlas": os.fspath(atlas)}), progress=progress))


def _without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _scan_args(**values: Any) -> dict[str, Any]:
    values["inputs"] = _inputs(values["inputs"])
    values["max_record_bytes"] = str(values["max_record_bytes"])
    for field in ("text_field", "id_field", "url_field", "date_field"):
        values[field] = values[field] if isinstance(values[field], str) else ",".join(values[field])
    values["resources"] = _resources(values.pop("memory"), values.pop("threads"))
    values.setdefault("commit_bytes", None)
    values["pdf_worker"] = _pdf_worker()
    return values


def _pdf_worker() -> list[str]:
    """A process of its own for every PDF, so that a hostile file harms nobody; none where Python is part of another program."""
    if not sys.executable:
        return []
    place = str(Path(__file__).resolve().parent.parent)
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {place!r}); from onionskin._onionskin import pdf_worker; pdf_worker()"]


def similar(
    atlas: PathLike,
    *,
    method: Literal["resemblance", "overlap", "paragraphs", "exact"] = "resemblance",
    threshold: float | None = None,
    exact: bool = False,
    filter: _onionskin.FeatureFilter | str | None = None,
    chunking: str | None = None,
    engine: Literal["prefix", "iceberg", "sort"] = "prefix",
    iterations: int | None = None,
    of: int | None = None,
    cluster: Literal["centred", "transitive"] = "centred",
    keep: str = "first",
    recall: bool = True,
    for_report: bool = False,
    memory: Memory = None,
    threads: int | None = None,
    progress: Progress = None,
) -> SimilarSummary:
    """Finds pairs and clusters of similar documents in an atlas. Every pair is verified on the two documents' own chunks.

    `threshold` is a resemblance (0.9 by default); with `method="overlap"` a number of shared chunks, with `"paragraphs"` a share of identical
    paragraphs. `exact=True` misses none, by a join. `keep` says which document stands for its cluster: first, longest, most-linked,
    earliest, or `prefer:` and beginnings of addresses.

    >>> from onionskin.testing import small_atlas
    >>> similar(small_atlas(), threshold=0.5).clusters
    2
    """
    return build(SimilarSummary, _run(_onionskin.similar, _similar_args(**_without(locals(), "progress")), progress=progress))


def _similar_args(**values: Any) -> dict[str, Any]:
    values["atlas"] = os.fspath(values["atlas"])
    values["filter"] = str(values["filter"]) if values["filter"] is not None else None
    values["pdf_worker"] = _pdf_worker()
    values["resources"] = _resources(values.pop("memory"), values.pop("threads"))
    return values


def collections(
    atlas: PathLike,
    *,
    merge: Literal["tolerant", "strict", "extended"] = "tolerant",
    any_site: bool = False,
    trivial: Literal["transitive", "clusters"] = "transitive",
    url_rules: bool = True,
    memory: Memory = None,
    threads: int | None = None,
    progress: Progress = None,
) -> CollectionsSummary:
    """Finds collections of linked pages that stand in several places: mirrors. Needs the clusters that `similar` makes.

    >>> from onionskin.testing import small_atlas
    >>> atlas = small_atlas(similar=True)
    >>> collections(atlas).documents
    6
    """
    values = _without(locals(), "progress")
    return build(CollectionsSummary, _run(_onionskin.collections, _collections_args(**values), progress=progress))


def _collections_args(**values: Any) -> dict[str, Any]:
    values["atlas"] = os.fspath(values["atlas"])
    values["resources"] = _resources(values.pop("memory"), values.pop("threads"))
    return values


def report(
    atlas: PathLike,
    output: PathLike | None = None,
    *,
    seed_url: Sequence[str] = (),
    reference: PathLike | None = None,
    iterations: int | None = None,
    png: bool = False,
    memory: Memory = None,
    progress: Progress = None,
) -> ReportSummary:
    """Writes how much is copied and where: one HTML page, JSON, tables as CSV, figures as SVG (and PNG). By default into `report` in the atlas.

    >>> from onionskin.testing import small_atlas
    >>> report(small_atlas(similar=True)).page.name
    'report.html'
    """
    values = _without(locals(), "progress")
    return build(ReportSummary, _run(_onionskin.report, _report_args(**values), progress=progress))


def _report_args(**values: Any) -> dict[str, Any]:
    values["atlas"] = os.fspath(values["atlas"])
    for name in ("output", "reference"):
        values[name] = os.fspath(values[name]) if values[name] is not None else None
    values["seed_url"] = list(values["seed_url"])
    values["resources"] = _resources(values.pop("memory"), None)
    return values


def run(
    inputs: Inputs,
    atlas: PathLike,
    *,
    recipe: _onionskin.Recipe | str | None = None,
    seed: int = 1,
    overwrite: bool = False,
    format: str | None = None,
    text_field: Names = "text,content,raw_content",
    id_field: Names = "id,doc_id",
    url_field: Names = "url,meta.url,metadata.url",
    date_field: Names = "date,date_download,timestamp,meta.timestamp,metadata.date_download,created",
    text_is_html: bool = False,
    text_digests: bool = False,
    any_status: bool = False,
    hosts: bool = False,
    base_url: str | None = None,
    follow_links: bool = False,
    postscript: bool = False,
    pdf: Literal["built-in", "pdftotext"] = "built-in",
    max_record_bytes: int | str = "64M",
    max_bad_records: int | None = None,
    strict: bool = False,
    threshold: float | None = None,
    exact: bool = False,
    cluster: Literal["centred", "transitive"] = "centred",
    keep: str = "first",
    recall: bool = True,
    merge: Literal["tolerant", "strict", "extended"] = "tolerant",
    with_collections: bool = True,
    with_report: bool = True,
    memory: Memory = None,
    threads: int | None = None,
    progress: Progress = None,
) -> RunSummary:
    """The whole job: `scan`, `similar`, `collections` and `report`, or what is left of it after an earlier call of the same.

    >>> import json, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with open(folder / "pages.jsonl", "w") as file:
    ...     for n in range(3):
    ...         print(json.dumps({"id": str(n), "text": "the same words on every page"}), file=file)
    >>> done = run(folder / "pages.jsonl", folder / "atlas", with_report=False)
    >>> done.similar.exact_copies
    2
    """
    scan_args = _scan_args(
        inputs=inputs, atlas=os.fspath(atlas), recipe=recipe, seed=seed, overwrite=overwrite, format=format, text_field=text_field,
        id_field=id_field, url_field=url_field, date_field=date_field, text_is_html=text_is_html, text_digests=text_digests, any_status=any_status,
        hosts=hosts, base_url=base_url, follow_links=follow_links, postscript=postscript, pdf=pdf, max_record_bytes=max_record_bytes, max_bad_records=max_bad_records,
        strict=strict, memory=memory, threads=threads,
    )  # fmt: skip
    similar_args = _similar_args(
        atlas=atlas, method="resemblance", threshold=threshold, exact=exact, filter=None, chunking=None, engine="prefix", iterations=None,
        of=None, cluster=cluster, keep=keep, recall=recall, for_report=False, memory=memory, threads=threads,
    )  # fmt: skip
    collections_args = (
        _collections_args(atlas=atlas, merge=merge, any_site=False, trivial="transitive", url_rules=True, memory=memory, threads=threads)
        if with_collections
        else None
    )
    report_args = (
        _report_args(atlas=atlas, output=None, seed_url=(), reference=None, iterations=None, png=False, memory=memory)
        if with_report
        else None
    )
    return build(RunSummary, _run(_onionskin.run, scan_args, similar_args, collections_args, report_args, progress=progress))


def dedup(
    atlas: PathLike,
    output: PathLike | None = None,
    *,
    shards: Sequence[str] | Literal["all", "none"] | None = None,
    annotate: bool = False,
    dolma: str | None = None,
    base: PathLike | None = None,
    threshold: float | None = None,
    keep: str | None = None,
    dry_run: bool = False,
    memory: Memory = None,
    threads: int | None = None,
    progress: Progress = None,
) -> DedupSummary:
    """Lists what is kept and what is removed, and copies the inputs without the copies in them.

    `shards` are the formats whose inputs are copied: jsonl and parquet by default. `annotate=True` removes nothing and says of every document in a
    cluster that it is in one, instead of what an earlier annotation said. With `dry_run=True` nothing is written and `output` is not needed.

    >>> from onionskin.testing import small_atlas
    >>> summary = dedup(small_atlas(similar=True), dry_run=True)
    >>> summary.kept.documents, summary.removed.documents
    (3, 3)
    """
    if output is None and not dry_run:
        raise ValueError("say output, the folder of the results, or dry_run=True")
    every = ["jsonl", "parquet", "csv", "tsv", "warc"]
    formats = every if shards == "all" else [] if shards == "none" else list(shards) if shards is not None else None
    values = {
        "atlas": os.fspath(atlas),
        "output": os.fspath(output) if output is not None else None,
        "shards": formats,
        "annotate": annotate,
        "dolma": dolma,
        "base": os.fspath(base) if base is not None else None,
        "threshold": threshold,
        "keep": keep,
        "dry_run": dry_run,
        "pdf_worker": _pdf_worker(),
        "resources": _resources(memory, threads),
    }
    return build(DedupSummary, _run(_onionskin.dedup, values, progress=progress))


def avoid(
    atlas: PathLike,
    output: PathLike | None = None,
    *,
    format: str | Sequence[str] | None = None,
    kinds: Sequence[str] | Literal["all"] | None = None,
    min_coverage: float = 0.5,
    max_unique: float = 0.1,
    max_rules: int | None = None,
    noise: bool = False,
    weak: bool = False,
    protect: str | Sequence[str] = (),
    memory: Memory = None,
    progress: Progress = None,
) -> AvoidSummary:
    """Tells what the next crawl can skip, as filter files for crawlers. Needs the collections that `collections` finds.

    With `output` the files are written into that folder; all formats, unless `format` says which. `weak` includes copies of collections where nothing tells
    which copy is the original. Nothing on the hosts of `protect`, or on their subdomains, is ever skipped.

    >>> from onionskin.testing import small_atlas
    >>> avoid(small_atlas(similar=True, collections=True)).pages
    6
    """
    formats = [format] if isinstance(format, str) else list(format) if format is not None else None
    if formats is None:
        formats = _onionskin.avoid_formats() if output is not None else []
    values = {
        "atlas": os.fspath(atlas),
        "kinds": [kinds] if isinstance(kinds, str) else list(kinds) if kinds is not None else None,
        "min_coverage": min_coverage,
        "max_unique": max_unique,
        "max_rules": max_rules,
        "noise": noise,
        "weak": weak,
        "protect": [protect] if isinstance(protect, str) else list(protect),
        "memory": _memory(memory),
        "formats": formats,
    }
    done = _run(_onionskin.avoid, values, progress=progress)
    if output is not None:
        folder = Path(output)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in done["texts"].items():
            # A crawler that reads the file while it is written must see the old one or the new one.
            beside = folder / (name + ".new")
            try:
                beside.write_text(text, encoding="utf-8")
                beside.replace(folder / name)
            except OSError:
                beside.unlink(missing_ok=True)
                raise
    return build(AvoidSummary, done)


def explain(atlas: PathLike, a: int | str, b: int | str, *, base: PathLike | None = None) -> Explanation:
    """Why two documents are alike: what they share by every chunking that was kept, and their texts side by side, in a notebook as a picture.

    Documents are called by number, address or id. `base` is the folder below which inputs with relative names are now.

    >>> from onionskin.testing import small_atlas
    >>> found = explain(small_atlas(), 1, "http://b.example/roses")
    >>> round(found.resemblance, 2), found.same_site, found.only_in_a, found.only_in_b
    (0.88, False, ['name.'], ['word.'])
    """
    called = [f"doc:{one}" if isinstance(one, int) else one for one in (a, b)]
    done = _onionskin.explain(os.fspath(atlas), called[0], called[1], os.fspath(base) if base is not None else None, _pdf_worker())
    return build(Explanation, done)
