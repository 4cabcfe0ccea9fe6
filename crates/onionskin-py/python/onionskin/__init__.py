"""Onionskin finds the copies in a web: pages that are the same, pages that are nearly the same, and whole collections that are mirrored.

Three ways in:

- texts at hand: `resemblance`, `sketch`, `sketches`, `features`, and `Deduplicator` for texts as they come;
- files of texts or a crawl: `run`, or its stages `scan`, `similar`, `collections`, `report`, and then `dedup` or `avoid`;
- what was found: `Atlas`, whose tables go to pandas, Polars, DuckDB, PyArrow and Hugging Face datasets without being copied.

`onionskin.datasketch` has `MinHash` and `MinHashLSH` for programs that were written for datasketch.

>>> import onionskin
>>> onionskin.resemblance("a rose is a rose is a rose", "a rose is a flower which is a rose", chunking="w2")
0.5
"""

from ._atlas import Atlas, Cluster, Collection, Member, Replica, Table
from ._deduplicator import Deduplicator
from ._onionskin import (
    ArrowArray,
    AtlasError,
    BusyError,
    FeatureFilter,
    InputError,
    OnionskinError,
    Recipe,
    Sketch,
    Verdict,
    __version__,
    chunks,
    containment,
    features,
    resemblance,
    sketch,
    sketches,
    text_fingerprint,
    tokens,
)
from ._stages import avoid, collections, dedup, explain, report, run, scan, similar
from ._summaries import (
    AvoidEntry,
    AvoidSummary,
    BadRecord,
    ClusterRow,
    CollectionsSummary,
    DamagedInput,
    DedupSummary,
    DocumentFacts,
    Explanation,
    FeatureEvidence,
    FieldNotFound,
    Iterations,
    LevelSummary,
    Overlap,
    PairRow,
    Paragraphs,
    Passage,
    Recall,
    ReportSummary,
    RunSummary,
    ScanSummary,
    SimilarSummary,
    SketchEvidence,
    Tally,
    Texts,
)

__all__ = [
    "ArrowArray",
    "Atlas",
    "AtlasError",
    "AvoidEntry",
    "AvoidSummary",
    "BadRecord",
    "BusyError",
    "Cluster",
    "ClusterRow",
    "Collection",
    "CollectionsSummary",
    "DamagedInput",
    "DedupSummary",
    "Deduplicator",
    "DocumentFacts",
    "Explanation",
    "FeatureEvidence",
    "FeatureFilter",
    "FieldNotFound",
    "InputError",
    "Iterations",
    "LevelSummary",
    "Member",
    "OnionskinError",
    "Overlap",
    "PairRow",
    "Paragraphs",
    "Passage",
    "Recall",
    "Recipe",
    "Replica",
    "ReportSummary",
    "RunSummary",
    "ScanSummary",
    "SimilarSummary",
    "Sketch",
    "SketchEvidence",
    "Table",
    "Tally",
    "Texts",
    "Verdict",
    "__version__",
    "avoid",
    "chunks",
    "collections",
    "containment",
    "dedup",
    "explain",
    "features",
    "report",
    "resemblance",
    "run",
    "scan",
    "similar",
    "sketch",
    "sketches",
    "text_fingerprint",
    "tokens",
]
