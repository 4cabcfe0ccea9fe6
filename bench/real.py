"""Real text for the benches: documentation of Debian packages, fetched by name, the sources of Python's library, and licences.

Packages are fetched once, with apt-get, into a directory that is kept. Where apt-get is not to be had, they are left out, and the
benches say with how much text they worked.
"""

import html
import os
import pathlib
import re

from common import library_texts
from mirrors import fetch, unpack

# Several versions of some of them, which are near-copies, and manuals in several languages.
PACKAGES = [
    *("libboost1.74-doc", "libboost1.81-doc", "llvm-14-doc", "llvm-16-doc", "postgresql-doc-15", "git-doc"),
    *("apache2-doc", "python3.11-doc", "python-django-doc", "sqlite3-doc"),
]

TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.S | re.I)
# A page with fewer words is a frame or a redirection.
LEAST_WORDS = 30


def pages(work):
    """HTML pages of all packages: names and bytes, in a fixed order."""
    for package in PACKAGES:
        try:
            folder = work / "unpacked" / package
            unpack(fetch("apt", package, "", work / "fetched" / package), folder)
        except (RuntimeError, OSError, StopIteration) as error:
            print(f"{package} is left out: {error}")
            continue
        for directory, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = pathlib.Path(directory, name)
                if name.endswith((".html", ".htm")) and path.is_file() and not path.is_symlink():
                    yield f"{package}/{path.relative_to(folder)}", path.read_bytes()


def plain(page):
    """The text of a page, by the simplest means."""
    return html.unescape(TAG.sub(" ", page.decode("utf-8", "replace")))


def texts(work):
    """Texts as they are: of the pages, of Python's library and, on Debian, the licences of its packages, which are full of near-copies."""
    for _, page in pages(work):
        yield plain(page)
    yield from library_texts()
    for file in sorted(pathlib.Path("/usr/share/doc").glob("*/copyright")):
        try:
            yield file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            pass


def words(work, least):
    """Those texts as words alone, in lower case, so that every engine cuts them alike. What has no shingle is left out: engines differ
    in what they make of it."""
    for text in texts(work):
        found = re.findall(r"[a-z0-9]+", text.lower())
        if len(found) >= least:
            yield " ".join(found)
