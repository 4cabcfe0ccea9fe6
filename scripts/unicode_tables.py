#!/usr/bin/env python3
"""Write crates/onionskin-core/src/unicode/tables.rs, the frozen character tables.

    python3 -m venv /tmp/ucd && /tmp/ucd/bin/pip install unicodedata2==18.0.0
    /tmp/ucd/bin/python scripts/unicode_tables.py

Running it again gives the same bytes. A stored fingerprint depends on these tables, so a new Unicode version is
a new fingerprint format, never a routine update: the checksum test in unicode/tests.rs fails when a byte changes.

Categories, names, combining classes and decompositions come from unicodedata2. Python keeps case folding in the
interpreter (`str.casefold`), not in unicodedata, so folding comes from two places:

- characters the interpreter knows too: `str.casefold`. Unicode promises never to change a folding once given;
- capitals younger than the interpreter: the small letter of the same name. Unicode promises names, too, and
  `by_name_agrees` checks the rule on the capitals that the interpreter does know. The one ligature since
  Unicode 14 that folds to two letters is spelt out in YOUNG_EXPANSIONS.

The two together give the same table under any interpreter from Unicode 14 (Python 3.11) on.
"""

import pathlib
import sys
import unicodedata

import unicodedata2 as ucd

VERSION = "18.0.0"
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "crates/onionskin-core/src/unicode/tables.rs"

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLOCK = 64
LINE = 108

# The discriminants of `CharClass`.
SEPARATOR, WORD, MARK, SINGLE, CLUSTER, IGNORED = range(6)
CLASS_NAMES = ["Separator", "Word", "Mark", "Single", "Cluster", "Ignored"]

# The bits of an entry above its class.
NFC_SUSPECT = 1 << 3
NFKC_SUSPECT = 1 << 4
FOLD_SHIFT = 5

# Twice as many slots as pairs, so that a search ends soon.
SLOT_BITS = 11
EMPTY_SLOT = 0xFFFF

# The bits of a record's quick check.
NFC_NO, NFC_MAYBE, NFKC_NO, NFKC_MAYBE = 1, 2, 4, 8

HANGUL = range(0xAC00, 0xAC00 + 11172)
JAMO_V = range(0x1161, 0x1161 + 21)
JAMO_T = range(0x11A8, 0x11A8 + 27)

# Written without spaces, and a character is about a word or a syllable.
SINGLE_NAMES = (
    "ANATOLIAN HIEROGLYPH", "BOPOMOFO ", "CHINESE ", "CJK COMPATIBILITY IDEOGRAPH", "CJK UNIFIED IDEOGRAPH",
    "CUNEIFORM ", "EGYPTIAN HIEROGLYPH", "HANGZHOU NUMERAL", "HENTAIGANA ", "HIRAGANA ", "IDEOGRAPHIC ",
    "JURCHEN ", "KHITAN ", "MASU MARK", "NUSHU ", "OLD CHINESE ", "SMALL SEAL ", "TANGUT ",
    "VERTICAL IDEOGRAPHIC ", "VERTICAL KANA ", "YI SYLLABLE",
)  # fmt: skip

# Written without spaces, and it takes a dictionary to find the words: the scripts of Line_Break=SA,
# with Balinese and Javanese, which are written the same way.
CLUSTER_NAMES = (
    "AHOM ", "BALINESE ", "JAVANESE ", "KHMER ", "LAO ", "MYANMAR ", "NEW TAI LUE ", "TAI LE ", "TAI THAM ",
    "TAI VIET ", "THAI ",
)  # fmt: skip

# Default_Ignorable_Code_Point without the two joiners, and the controls that stack hieroglyphs.
INVISIBLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip

# Letters by category, apostrophes and quotes by use: U+02BC stands where others type U+2019 or
# U+0027.
APOSTROPHES = (0x02BB, 0x02BC, 0x02BD, 0x02EE)

# Letters by category, marks by use: they lengthen or voice the kana before them, of either
# syllabary.
KANA_MARKS = (0x30FC, 0xFF70, 0xFF9E, 0xFF9F)

JOINERS = (0x200C, 0x200D)

# LATIN SMALL LIGATURE LONG S WITH DESCENDER S, a kind of sharp s.
YOUNG_EXPANSIONS = {0x1DF95: "ss"}


def decompose(c, compat):
    """The full decomposition of a code point, in canonical order, Hangul included."""
    return [ord(x) for x in ucd.normalize("NFKD" if compat else "NFD", chr(c))]


def normal(c, form):
    return ucd.normalize(form, chr(c)) == chr(c)


def plain_class(c):
    category = ucd.category(chr(c))
    if category == "Cn":
        return SEPARATOR
    if any(first <= c <= last for first, last in INVISIBLE):
        return IGNORED
    if c in APOSTROPHES:
        return SEPARATOR
    if c in JOINERS or c in KANA_MARKS or category[0] == "M":
        return MARK
    if category[0] not in "LN":
        return SEPARATOR
    name = ucd.name(chr(c))
    if name.startswith(SINGLE_NAMES):
        return SINGLE
    # Digits stand together in numbers in every script.
    if name.startswith(CLUSTER_NAMES) and category[0] == "L":
        return CLUSTER
    return WORD


def char_class(c):
    kind = plain_class(c)
    # A circled or parenthesised ideograph is still an ideograph.
    if kind == WORD and any(plain_class(d) == SINGLE for d in decompose(c, True)):
        return SINGLE
    return kind


def fold_by_name(c):
    name = ucd.name(chr(c), "")
    if "CAPITAL LETTER" not in name or ucd.category(chr(c)) != "Lu":
        return None
    try:
        small = ucd.lookup(name.replace("CAPITAL LETTER", "SMALL LETTER"))
    except KeyError:
        return None
    return [ord(small)]


def fold(c):
    if unicodedata.category(chr(c)) != "Cn":
        return [ord(x) for x in chr(c).casefold()]
    if c in YOUNG_EXPANSIONS:
        return [ord(x) for x in YOUNG_EXPANSIONS[c]]
    return fold_by_name(c) or [c]


def by_name_agrees():
    """Does the rule for young capitals give what the interpreter gives for those it knows?"""
    # LATIN CAPITAL LETTER REVERSED E is the capital of TURNED E, and sharp s folds on to "ss".
    strays = {0x018E, 0x1E9E}
    for c in SCALARS:
        if unicodedata.category(chr(c)) != "Cn" and c not in strays:
            young = fold_by_name(c)
            if young and young != fold(c):
                return False
    return True


def composites():
    """(first, second) -> composite, for every pair that composition joins, Hangul apart."""
    pairs = {}
    for c in SCALARS:
        mapping = ucd.decomposition(chr(c))
        if c in HANGUL or not mapping or mapping.startswith("<") or not normal(c, "NFC"):
            continue
        parts = [int(x, 16) for x in mapping.split()]
        if len(parts) == 2:
            pairs[tuple(parts)] = c
    return pairs


def composite_slots(pairs):
    """An open hash table over the sorted pairs, with the hash of `normal::pair`."""
    slots = [EMPTY_SLOT] * (1 << SLOT_BITS)
    for number, (first, second) in enumerate(sorted(pairs)):
        slot = (first * 0x9E3779B1 + second * 0x85EBCA6B & 0xFFFFFFFF) >> (32 - SLOT_BITS)
        while slots[slot] != EMPTY_SLOT:
            slot = (slot + 1) % len(slots)
        slots[slot] = number
    return slots


class Pool:
    """Sequences of code points, each findable as a slice of one array."""

    def __init__(self):
        self.text = ""

    def build(self, sequences):
        # Longest first, so that short ones are found inside.
        for s in sorted({"".join(map(chr, s)) for s in sequences}, key=lambda s: (-len(s), s)):
            if s not in self.text:
                self.text += s

    def slice(self, sequence):
        return self.text.index("".join(map(chr, sequence))), len(sequence)


def trie(values, limit):
    """Two stages: the number of a block for each 64 code points, and the distinct blocks."""
    blocks, index, numbers = [], [], {}
    for start in range(0, limit, BLOCK):
        block = tuple(values.get(c, 0) for c in range(start, start + BLOCK))
        if block not in numbers:
            numbers[block] = len(blocks)
            blocks.append(block)
        index.append(numbers[block])
    return index, blocks


def limit_of(values):
    return (max(c for c, v in values.items() if v) // BLOCK + 1) * BLOCK


def wrapped(items, indent="    "):
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 1 > LINE and line != indent:
            lines.append(line.rstrip())
            line = indent
        line += item + ", "
    lines.append(line.rstrip())
    return "\n".join(lines)


def array(doc, name, kind, items):
    items = list(items)
    return f"/// {doc}\n#[rustfmt::skip]\npub(super) static {name}: [{kind}; {len(items)}] = [\n{wrapped(items)}\n];\n"


def blocks_array(doc, name, kind, blocks):
    body = "\n".join("    [\n" + wrapped(map(str, b), "        ") + "\n    ]," for b in blocks)
    return (
        f"/// {doc}\n#[rustfmt::skip]\n"
        f"pub(super) static {name}: [[{kind}; {BLOCK}]; {len(blocks)}] = [\n{body}\n];\n"
    )


def literal(c):
    return f"'\\u{{{c:x}}}'"


def main():
    if ucd.unidata_version != VERSION:
        sys.exit(f"unicodedata2 has Unicode {ucd.unidata_version}, the tables are {VERSION}")
    if tuple(map(int, unicodedata.unidata_version.split("."))) < (14, 0, 0):
        sys.exit("the interpreter is older than Unicode 14")
    if not by_name_agrees():
        sys.exit("names no longer predict the folding of capitals")

    pairs = composites()
    seconds = {second for _, second in pairs} | set(JAMO_V) | set(JAMO_T)

    # Case folding: most are one character away by one of few distances.
    folds = {c: f for c in SCALARS if (f := fold(c)) != [c]}
    deltas = sorted({f[0] - c for c, f in folds.items() if len(f) == 1})
    expansions = sorted({tuple(f) for f in folds.values() if len(f) > 1})
    assert max(map(len, expansions)) <= 3
    # Fold number 0 is "unchanged", then the distances, then the expansions.
    fold_number = {}
    for c, f in folds.items():
        if len(f) == 1:
            fold_number[c] = 1 + deltas.index(f[0] - c)
        else:
            fold_number[c] = 1 + len(deltas) + expansions.index(tuple(f))
    assert max(fold_number.values()) < 1 << (16 - FOLD_SHIFT)

    # Normalisation.
    pool, canonical, compatible, check = Pool(), {}, {}, {}
    for c in SCALARS:
        canon, compat = decompose(c, False), decompose(c, True)
        # NFC_Quick_Check and NFKC_Quick_Check. "Maybe" is for what can join with something before
        # it, by itself or by the head of its decomposition.
        check[c] = 0
        if not normal(c, "NFC"):
            check[c] |= NFC_NO
        elif c in seconds or canon[0] in seconds:
            check[c] |= NFC_MAYBE
        if not normal(c, "NFKC"):
            check[c] |= NFKC_NO
        elif c in seconds or canon[0] in seconds:
            check[c] |= NFKC_MAYBE
        if c in HANGUL:
            continue
        if canon != [c]:
            canonical[c] = canon
        if compat != [c]:
            compatible[c] = compat
    pool.build(list(canonical.values()) + list(compatible.values()))

    entries, records, record_numbers, record_of = {}, [(0, 0, 0, 0, 0, 0)], {(0, 0, 0, 0, 0, 0): 0}, {}
    for c in SCALARS:
        ccc = ucd.combining(chr(c))
        nfc = ccc != 0 or check[c] & (NFC_NO | NFC_MAYBE)
        nfkc = ccc != 0 or check[c] & (NFKC_NO | NFKC_MAYBE)
        # What is not suspect is a border: a starter that never joins with what is before it.
        for suspect, compat in ((nfc, False), (nfkc, True)):
            head = decompose(c, compat)[0]
            assert suspect or (ucd.combining(chr(head)) == 0 and head not in seconds)
        entries[c] = (
            char_class(c)
            | (NFC_SUSPECT if nfc else 0)
            | (NFKC_SUSPECT if nfkc else 0)
            | fold_number.get(c, 0) << FOLD_SHIFT
        )
        record = (
            *(pool.slice(canonical[c]) if c in canonical else (0, 0)),
            *(pool.slice(compatible[c]) if c in compatible else (0, 0)),
            ccc,
            check[c],
        )
        if record not in record_numbers:
            record_numbers[record] = len(records)
            records.append(record)
        record_of[c] = record_numbers[record]
    assert len(records) < 1 << 16 and len(pool.text) < 1 << 16

    # The special-purpose plane is far off: 368 characters, all alike but for gaps.
    far = {c: entries[c] for c in SCALARS if c >= 0xE0000 and entries[c]}
    assert all(v & 7 == IGNORED and v == IGNORED for v in far.values())
    far_ranges = []
    for c in sorted(far):
        if far_ranges and far_ranges[-1][1] == c - 1:
            far_ranges[-1][1] = c
        else:
            far_ranges.append([c, c])

    near = {c: v for c, v in entries.items() if c < 0xE0000}
    entry_index, entry_blocks = trie(near, limit_of(near))
    record_index, record_blocks = trie(record_of, limit_of(record_of))

    counts = [sum(1 for v in entries.values() if v & 7 == k) for k in range(6)]
    out = [
        "//! Character tables of Unicode " + VERSION + ", written by scripts/unicode_tables.py. Do not edit: a stored\n"
        "//! fingerprint depends on every number here.\n"
        "//!\n"
        "//! Classes, combining classes, decompositions and composition are Unicode " + VERSION + " as unicodedata2\n"
        "//! gives it. Case folding is full folding (C + F): Unicode 14.0.0 or later as `str.casefold` gives it, and for\n"
        "//! capitals younger than that, the small letter of the same name; they agree with CaseFolding of " + VERSION + ".\n"
        "//!\n"
        "//! Code points by class: "
        + ", ".join(f"{CLASS_NAMES[k]} {counts[k]}" for k in (1, 2, 3, 4, 5))
        + "; the others are Separator.\n"
        f"//! {len(folds)} fold, {len(expansions)} ways to more than one character; {len(canonical)} and "
        f"{len(compatible)} decompose, canonically\n"
        f"//! and compatibly, besides Hangul syllables; {len(pairs)} pairs compose.\n",
        "use super::normal::Record;\n",
        f'/// The version of all of this.\npub(super) const VERSION: &str = "{VERSION}";\n',
        f"/// Code points from here on have no entry, except those in `FAR_IGNORED`.\n"
        f"pub(super) const ENTRY_LIMIT: u32 = {len(entry_index) * BLOCK:#x};\n",
        array("The block of entries for each 64 code points.", "ENTRY_INDEX", "u16", map(str, entry_index)),
        blocks_array(
            "Entries: class in bits 0 to 2, NFC suspect in 3, NFKC suspect in 4, number of the folding above.",
            "ENTRY_BLOCKS", "u16", entry_blocks,
        ),  # fmt: skip
        array(
            "First and last of the ignored characters beyond the entries.", "FAR_IGNORED", "(u32, u32)",
            (f"({a:#x}, {b:#x})" for a, b in far_ranges),
        ),  # fmt: skip
        array("Foldings to one character, by distance: fold numbers from 1.", "FOLD_DELTAS", "i32", map(str, deltas)),
        array(
            "Foldings to two or three characters, filled up with NUL: the fold numbers after the distances.",
            "FOLD_EXPANSIONS", "[char; 3]",
            ("[" + ", ".join(literal(x) for x in (e + (0,))[:3]) + "]" for e in expansions),
        ),  # fmt: skip
        array(
            "The block of record numbers for each 64 code points; past its end, record 0.", "RECORD_INDEX", "u16",
            map(str, record_index),
        ),  # fmt: skip
        blocks_array("Numbers of records.", "RECORD_BLOCKS", "u16", record_blocks),
        array(
            "Canonical decomposition, compatible decomposition (start and length in `DECOMPOSED`), combining class, check.",
            "RECORDS", "Record",
            ("Record::new(" + ", ".join(map(str, r)) + ")" for r in records),
        ),  # fmt: skip
        array("Full decompositions, overlapping.", "DECOMPOSED", "char", (literal(ord(x)) for x in pool.text)),
        array(
            "First, second and composite, sorted; Hangul is computed.", "COMPOSITES", "(char, char, char)",
            (f"({literal(a)}, {literal(b)}, {literal(c)})" for (a, b), c in sorted(pairs.items())),
        ),  # fmt: skip
        f"/// A slot of `COMPOSITE_SLOTS` that holds nothing.\npub(super) const EMPTY_SLOT: u16 = {EMPTY_SLOT};\n",
        array(
            "Numbers of composites by hash, each in its slot or soon after.", "COMPOSITE_SLOTS", "u16",
            map(str, composite_slots(pairs)),
        ),  # fmt: skip
    ]
    OUTPUT.write_text("\n".join(out), encoding="ascii", newline="\n")
    print(
        f"{OUTPUT.name}: hot {len(entry_index) * 2} + {len(entry_blocks) * BLOCK * 2}"
        f" bytes in {len(entry_blocks)} blocks; {len(deltas)} distances, {len(expansions)} expansions;"
        f" records {len(record_index) * 2} + {len(record_blocks) * BLOCK * 2} + {len(records)} x 8; pool {len(pool.text)} x 4;"
        f" {len(pairs)} pairs",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
