"""Onionskin finds the copies in a web: pages that are the same, pages that are nearly the same, and whole collections that are mirrored."""

from ._onionskin import ArrowArray, ArrowStream, __version__, chunks, text_fingerprint

__all__ = ["ArrowArray", "ArrowStream", "__version__", "chunks", "text_fingerprint"]
