"""Small things to try examples on."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from pathlib import Path

_PAGES = [
    ("http://a.example/", "Onionskin is the thin paper of carbon copies, and a good name for a program that looks for them."),
    ("http://a.example/roses", "A rose is a rose is a rose, and every copy of a rose is a rose as well, by any other name."),
    ("http://a.example/news", "Nothing of this page stands anywhere else, which makes it the odd one out in this small web."),
    ("http://b.example/", "Onionskin is the thin paper of carbon copies, and a good name for a program that looks for them."),
    ("http://b.example/roses", "A rose is a rose is a rose, and every copy of a rose is a rose as well, by any other word."),
    ("http://c.example/", "Onionskin is the thin paper of carbon copies, and a good name for a program that looks for them!"),
]


def small_atlas(*, similar: bool = False, collections: bool = False) -> Path:
    """An atlas of six pages in a temporary folder, two clusters of copies among them. It is removed when the program ends.

    >>> from onionskin import Atlas
    >>> Atlas(small_atlas())["documents"].num_rows
    6
    """
    from . import _stages

    folder = Path(tempfile.mkdtemp(prefix="onionskin-small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(folder / "pages.jsonl", "w", encoding="utf-8") as file:
        for url, text in _PAGES:
            print(json.dumps({"url": url, "text": text}), file=file)
    atlas = folder / "atlas"
    _stages.scan(folder / "pages.jsonl", atlas, threads=1)
    if similar or collections:
        _stages.similar(atlas, threshold=0.5, threads=1)
    if collections:
        _stages.collections(atlas, threads=1)
    return atlas
