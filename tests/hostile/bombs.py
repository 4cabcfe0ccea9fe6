"""Small inputs that are huge inside, scanned or looked for in an index with little memory.

The budget holds, and every record is counted.
"""

import gzip
import json
from dataclasses import dataclass

from . import payloads, suite
from .payloads import json_line, page, response
from .program import MIB, least_memory

# What a process may take beyond its budget.
ALLOWANCE = 64 * MIB
# What is far too much, and would harm the machine.
MOST = 2048 * MIB


@dataclass(frozen=True)
class Expected:
    """What is in an input: records in all, and documents among them, as far as that is known."""

    records: int | None = None
    documents: int | None = None
    options: tuple[str, ...] = ()


def repeated(path, chunk, count):
    """Writes one chunk many times over."""
    block = chunk * max(1, (1 << 20) // len(chunk))
    per = len(block) // len(chunk)
    with path.open("wb") as out:
        for _ in range(count // per):
            out.write(block)
        out.write(chunk * (count % per))


# Generators: (folder, rng, scale) writes inputs and says what is in them. The scale is 1 or less in
# the large run.


def warc_good(folder, rng, scale):
    """One gzip member of millions of tiny records."""
    count = int(2_000_000 * scale)
    record = payloads.warc_record(
        "resource", {"WARC-Target-URI": "http://a/", "Content-Type": "text/plain"}, b"a b c"
    )
    (folder / "good.warc.gz").write_bytes(payloads.gzipped(record, count))
    return Expected(records=count)


def warc_broken(folder, rng, scale):
    """One gzip member of millions of broken records."""
    count = int(4_000_000 * scale)
    record = rng.choice(
        [b"WARC/1.0\r\n\r\n\r\n\r\n", b"WARC/1.1\r\nContent-Length: x\r\n\r\n\r\n\r\n", b"junk\r\n\r\n"]
    )
    (folder / "broken.warc.gz").write_bytes(payloads.gzipped(record, count))
    return Expected()


def warc_members(folder, rng, scale):
    """Millions of empty gzip members between two pages."""
    count = int(1_000_000 * scale)
    member = gzip.compress(b"", mtime=0)
    first, last = (
        gzip.compress(response(f"http://{name}.org/", page(f"the {name} page")), mtime=0)
        for name in ("first", "last")
    )
    (folder / "members.warc.gz").write_bytes(first + member * count + last)
    return Expected(documents=2)


def warc_headers(folder, rng, scale):
    """Records with headers of many megabytes."""
    size = int(60_000_000 * scale)
    field = {"WARC-Target-URI": "http://a/", "X-Long": "h" * size, "Content-Type": "text/plain"}
    record = payloads.warc_record("resource", field, b"short text here")
    (folder / "headers.warc.gz").write_bytes(
        gzip.compress(record, 1) + gzip.compress(response("http://b/", page("a sound page")), 1)
    )
    return Expected()


def encoded_pages(folder, rng, scale):
    """Crawled pages whose bodies are compressed, once or in layers."""
    kinds = [
        ["gzip"],
        ["deflate"],
        ["raw-deflate"],
        ["br"],
        ["zstd"],
        ["gzip", "gzip"],
        ["br", "gzip"],
        ["gzip", "br", "gzip"],
    ]
    chosen = [rng.choice(kinds) for _ in range(8)]
    body = page("bomb ").encode() + b"word " * int(11_000_000 * scale)
    made = {}
    records = []
    for number, names in enumerate(chosen):
        key = tuple(names)
        made[key] = made.get(key) or payloads.layers(body, names)
        spelled = ", ".join("deflate" if name == "raw-deflate" else name for name in names)
        records.append(response(f"http://evil{number}.org/", made[key], Content_Encoding=spelled))
    (folder / "pages.warc.gz").write_bytes(b"".join(gzip.compress(record, 1) for record in records))
    return Expected(records=len(records))


def many_encoded(folder, rng, scale):
    """Several files of such pages at a time."""
    body = gzip.compress(page("bomb").encode() + b" " * int(60_000_000 * scale), 9, mtime=0)
    for number in range(6):
        record = response(f"http://evil{number}.org/", body, Content_Encoding="gzip")
        (folder / f"{number}.warc.gz").write_bytes(gzip.compress(record, 9))
    return Expected(records=6)


def zstd_window(folder, rng, scale):
    """zstd frames that want windows of up to 2 GiB, and runs of one byte."""
    for number, log in enumerate((27, 30, 31)):
        (folder / f"window{number}.jsonl.zst").write_bytes(
            payloads.zstd_window(log, json_line(text="a b c d"))
        )
    (folder / "runs.jsonl.zst").write_bytes(payloads.zstd_runs(int(1_000_000_000 * scale)))
    return Expected()


def zstd_bodies(folder, rng, scale):
    """Crawled pages in zstd frames with large windows, and in runs of one byte."""
    bodies = [payloads.zstd_window(log, page("small").encode()) for log in (24, 27, 31)]
    bodies += [payloads.zstd_runs(int(2_000_000_000 * scale))] * 3
    records = [
        response(f"http://z{number}.org/", body, Content_Encoding="zstd")
        for number, body in enumerate(bodies)
    ]
    (folder / "zstd.warc").write_bytes(b"".join(records))
    return Expected(records=len(records))


def parquet_tiny(folder, rng, scale):
    """One row group of millions of the same tiny row, in a few kilobytes."""
    count = int(6_000_000 * scale)
    payloads.parquet(folder / "tiny.parquet", "a", count)
    return Expected(records=count)


def parquet_page(folder, rng, scale):
    """Parquet pages of hundreds of megabytes in a few kilobytes, with and without a dictionary."""
    text = "word " * int(8_000_000 * scale)
    payloads.parquet(folder / "page.parquet", text, 3, dictionary=rng.random() < 0.5, page_bytes=1 << 30)
    return Expected(records=3)


def parquet_dictionary(folder, rng, scale):
    """A dictionary of one text of 20 KB that thousands of rows refer to."""
    text = "word " * 4_000
    count = int(20_000 * scale)
    payloads.parquet(folder / "dictionary.parquet", text, count)
    return Expected(records=count)


def jsonl_tiny(folder, rng, scale):
    """Millions of lines of one word."""
    count = int(3_000_000 * scale)
    path = folder / "tiny.jsonl"
    if rng.random() < 0.5:
        (folder / "tiny.jsonl.gz").write_bytes(payloads.gzipped(b'{"text":"a"}\n', count))
    else:
        repeated(path, b'{"text":"a"}\n', count)
    return Expected(records=count)


def jsonl_short(folder, rng, scale):
    """Millions of lines of a few words each."""
    count = int(1_000_000 * scale)
    repeated(
        folder / "short.jsonl",
        json_line(text="one two three four five six seven eight nine ten eleven twelve"),
        count,
    )
    return Expected(records=count, documents=count)


def one_document(folder, rng, scale):
    """One document of tens of megabytes: words repeated, all different, or without spaces."""
    kind = rng.choice(["same", "distinct", "cjk", "lines", "punctuation"])
    size = int(50_000_000 * scale)
    match kind:
        case "same":
            text = "a " * (size // 2)
        case "distinct":
            text = " ".join(f"{number:x}" for number in range(size // 7))
        case "cjk":
            text = "漢字文" * (size // 9)
        case "lines":
            text = "l\n" * (size // 2)
        case "punctuation":
            text = "!?" * (size // 2)
    (folder / "one.jsonl").write_text(json.dumps({"text": text}, ensure_ascii=False) + "\n")
    return Expected(records=1)


def json_depth(folder, rng, scale):
    """Objects and arrays within each other, huge strings, huge keys, huge numbers."""
    depth = int(20_000_000 * scale)
    lines = [
        b'{"text":"a b c","x":' + b"[" * depth + b"]" * depth + b"}",
        b'{"text":"a b c","x":' + b'{"a":' * (depth // 5) + b"1" + b"}" * (depth // 5) + b"}",
        b'{"' + b"k" * depth + b'":1,"text":"a b c"}',
        b'{"text":"a b c","n":' + b"9" * depth + b"}",
        b'{"text":"' + b"\\u0041" * (depth // 6) + b'"}',
        b'{"text":"unterminated ' + b"x" * depth,
        b'{"text":"sound and short"}',
    ]
    rng.shuffle(lines)
    (folder / "deep.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return Expected(records=len(lines))


def csv_quotes(folder, rng, scale):
    """A quote that nobody closes, before tens of megabytes; and rows of a million cells."""
    rows = int(1_000_000 * scale)
    with (folder / "quotes.csv").open("wb") as out:
        out.write(b'id,text,url\n1,fine words here,u\n2,"unbalanced')
        for _ in range(100):
            out.write(b"some text,that goes on,u\n3,more words,u\n" * (rows // 200))
    with (folder / "cells.csv").open("wb") as out:
        out.write(b"id,text" + b",c" * rows + b"\n" + b"1,words and words" + b",x" * rows + b"\n")
    return Expected()


def pdf_flate(folder, rng, scale):
    """PDFs whose streams are zeros or drawing without end."""
    zeros = payloads.flated(b" " * MIB, int(1500 * scale))
    drawn = payloads.flated(b"BT /F1 12 Tf (word) Tj ET\n" * 40_000, int(200 * scale))
    nested = payloads.stream(payloads.flated(zeros, 1), b"/Filter [/FlateDecode /FlateDecode]")
    (folder / "zeros.pdf").write_bytes(payloads.pdf_page([payloads.stream(zeros)]))
    (folder / "drawn.pdf").write_bytes(payloads.pdf_page([payloads.stream(drawn)] * 4))
    (folder / "nested.pdf").write_bytes(payloads.pdf_page([nested]))
    return Expected(records=3)


def pdf_predictor(folder, rng, scale):
    """PDFs whose predictors, widths and tables of objects are made up."""
    shapes = [
        (1 << 40, 2, 32, 16),
        (2_147_483_647, 12, 32, 16),
        (0, 10, 1, 8),
        (400_000_000, 12, 1, 8),
        (50_000_000, 15, 4, 16),
    ]
    for number, (columns, predictor, colours, bits) in enumerate(shapes):
        parms = b"/Filter /FlateDecode /DecodeParms << /Predictor %d /Columns %d /Colors %d /BitsPerComponent %d >>"
        content = payloads.flated(b"\2" + b"word " * 2000, 20)
        stream = payloads.stream(content, parms % (predictor, columns, colours, bits))
        (folder / f"predictor{number}.pdf").write_bytes(payloads.pdf_page([stream]))
    kids = payloads.pdf(
        [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 999999999 >>"]
    )
    (folder / "loop.pdf").write_bytes(kids)
    return Expected(records=6)


def office_bombs(folder, rng, scale):
    """Office files whose parts unpack to gigabytes, or whose entities do."""
    size = int(1000 * scale)
    (folder / "spaces.docx").write_bytes(payloads.docx(b" " * MIB, size))
    (folder / "runs.docx").write_bytes(
        payloads.docx(b"<w:r><w:t>word </w:t></w:r>" * 20_000, max(1, size // 4))
    )
    (folder / "deep.docx").write_bytes(payloads.docx(b"<w:p>" * 200_000, max(1, size // 20)))
    lol = (
        b'<!DOCTYPE lolz [<!ENTITY a0 "lol">'
        + b"".join(b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, 12))
        + b"]>"
    )
    (folder / "lol.docx").write_bytes(payloads.docx(b"<w:r><w:t>&a11;</w:t></w:r>", 1, lol))
    secret = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    (folder / "outside.docx").write_bytes(payloads.docx(b"<w:r><w:t>&e;</w:t></w:r>", 1, secret))
    return Expected(records=5)


def zip_bombs(folder, rng, scale):
    """Archives of crawls that are not, with paths that lead out of them."""
    names = {"archive/a.warc.gz": (payloads.gzipped(b"x" * 1000, 100), 1), "../../escape.txt": (b"out", 1)}
    names["pages/pages.jsonl"] = (b'{"url":"http://a/"}\n' * 1000, max(1, int(500 * scale)))
    names["datapackage.json"] = (b" " * MIB, max(1, int(500 * scale)))
    (folder / "bomb.wacz").write_bytes(payloads.office(names))
    return Expected()


def html_nesting(folder, rng, scale):
    """HTML with tags within each other, and floods of attributes, entities and comments."""
    count = int(5_000_000 * scale)
    bodies = {
        "nested": b"<div>" * count + b"end of it",
        "attributes": b"<p "
        + b" ".join(b"a%d=1" % number for number in range(count // 5))
        + b">some words</p>",
        "attribute": b'<p title="' + b"t" * (8 * count) + b'">some words</p>',
        "entities": b"<p>" + b"&amp;&#x41;&notit;" * (count // 2),
        "comments": b"<!--" * count + b"words",
        "tables": b"<table><tr><td>" * (count // 3),
        "formatting": b"<b><i><p>" * (count // 10),
    }
    for name in rng.sample(sorted(bodies), 4):
        (folder / f"{name}.html").write_bytes(bodies[name])
    return Expected(records=4)


def links(folder, rng, scale):
    """Pages of half a million links, long URLs, and a base that is one."""
    count = int(500_000 * scale)
    many = "".join(f'<a href="/p{number}">{number}</a>' for number in range(count))
    long = "".join(
        f'<a href="http://h.org/{"x" * size}">l</a>' for size in (2_000, 100_000, int(20_000_000 * scale))
    )
    hosts = "".join(
        f'<a href="http://h{number}.example{number % 977}.org/">h</a>' for number in range(count // 5)
    )
    base = f'<base href="http://{"b" * int(2_000_000 * scale)}/">' + '<a href="x">x</a>' * 200
    records = [
        response(f"http://links{number}.org/", page(body))
        for number, body in enumerate((many, long, hosts, base))
    ]
    records.append(
        response("http://" + "u" * int(5_000_000 * scale) + ".org/", page("a long URL of its own"))
    )
    (folder / "links.warc").write_bytes(b"".join(records))
    return Expected(records=len(records))


def nuls_and_charsets(folder, rng, scale):
    """Pages of NULs, of switching charsets, and declared in one they are not in."""
    size = int(30_000_000 * scale)
    bodies = [
        ("text/html; charset=utf-8", b"<p>words" + b"\0" * size + b"more"),
        ("text/html; charset=iso-2022-jp", b"<p>" + b"\x1b$B$\x22\x1b(B" * (size // 8)),
        ("text/html; charset=utf-16le", b"<p>" + b"\xd8\x00" * (size // 2)),
        ("text/html; charset=utf-7", b"<p>+ADw-" * (size // 8)),
        ("text/html", b'<meta charset="shift_jis">' + b"\x81\x40\xff" * (size // 3)),
        ("text/plain; charset=gb18030", b"\x81\x30\x81\x30" * (size // 4)),
    ]
    records = [
        response(f"http://c{number}.org/", body, content_type=kind)
        for number, (kind, body) in enumerate(bodies)
    ]
    (folder / "charsets.warc").write_bytes(b"".join(records))
    return Expected(records=len(records))


def many_hosts(folder, rng, scale):
    """Pages of hundreds of thousands of hosts."""
    count = int(300_000 * scale)
    with (folder / "hosts.jsonl").open("wb") as out:
        for number in range(count):
            out.write(
                b'{"text":"some words of it","url":"http://h%d.example%d.org/"}\n' % (number, number % 1000)
            )
    return Expected(records=count)


def chunked_lies(folder, rng, scale):
    """Chunked bodies whose chunks claim to be huge, and lengths that are wrong."""
    blocks = []
    for size in (b"ffffffffffffffff", b"7fffffff", b"-1", b"0" * int(1_000_000 * scale) + b"5"):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
        blocks.append(head + size + b"\r\n<p>words\r\n0\r\n\r\n")
    fields = {"WARC-Date": payloads.DATE, "Content-Type": "application/http; msgtype=response"}
    records = [
        payloads.warc_record("response", {"WARC-Target-URI": f"http://k{number}.org/", **fields}, block)
        for number, block in enumerate(blocks)
    ]
    long = records[0].replace(b"Content-Length: ", b"Content-Length: 99999999999", 1)
    (folder / "chunks.warc").write_bytes(b"".join(records) + long)
    return Expected()


GENERATORS = [
    warc_good,
    encoded_pages,
    parquet_tiny,
    one_document,
    pdf_predictor,
    warc_broken,
    many_encoded,
    jsonl_tiny,
    parquet_page,
    pdf_flate,
    office_bombs,
    html_nesting,
    zstd_bodies,
    links,
    json_depth,
    csv_quotes,
    zstd_window,
    nuls_and_charsets,
    parquet_dictionary,
    warc_members,
    warc_headers,
    jsonl_short,
    many_hosts,
    zip_bombs,
    chunked_lies,
]
# Those that `seen check` is given too.
CHECKED = [warc_good, encoded_pages, parquet_tiny, parquet_page, parquet_dictionary]
CASES = [(generate, False) for generate in GENERATORS] + [(generate, True) for generate in CHECKED]


class Bombs(suite.Part):
    name = "bombs"
    small, large, share = len(CASES), 300, 6
    # Some inputs take a few hundred megabytes of disk while they are made.

    def prepare(self):
        self.least = self._least()

    def _least(self):
        """The least memory of a scan, from what it says when it is given less."""
        (self.workshop.folder / "small.jsonl").write_bytes(json_line(text="a few words"))
        refused = self.workshop.run(
            "scan", "small.jsonl", "-o", "refused", "--memory", "1M", folder=self.workshop.folder
        )
        least = least_memory(refused.stderr)
        if refused.code != 2 or not least:
            raise RuntimeError(f"`{refused.command()}` exits {refused.code}: {refused.stderr}")
        self.workshop.must("seen", "add", "index", "small.jsonl", folder=self.workshop.folder)
        return least

    def case(self, number, folder):
        rng = self.random(number)
        generate, is_checked = CASES[number % len(CASES)]
        budget = rng.choice([self.least, self.least, 2 * self.least, 4 * self.least, self.least // 2])
        threads = rng.choice([1, 2, 2, 6])
        scale = rng.choice([1, 0.3, 0.1, 0.1]) if self.workshop.is_large else 0.05
        verdict = suite.Verdict(
            f"{generate.__name__} at scale {scale} with {budget // MIB}M and {threads} threads"
        )
        inputs = folder / "in"
        inputs.mkdir()
        expected = generate(inputs, rng, scale)
        if is_checked:
            self._check(verdict, folder, expected, max(budget, self.least), threads)
            return verdict
        verdict.counts["scans"] += 1
        asked = [
            "scan",
            "in",
            "-o",
            "atlas",
            "--json",
            "-q",
            "--memory",
            f"{budget // MIB}M",
            "--threads",
            threads,
        ]
        limit = 180 if self.workshop.is_large else 90
        outcome = self.workshop.run(
            *asked, *expected.options, folder=folder, timeout=limit, most_memory=max(4 * budget, MOST)
        )
        self._judge(verdict, outcome, expected, budget)
        return verdict

    def _check(self, verdict, folder, expected, budget, threads):
        """Looks for all of it in an index."""
        verdict.name += ", seen check"
        verdict.counts["checks"] += 1
        files = sorted(path.name for path in (folder / "in").iterdir())
        # A file is read by itself, or as one of a folder.
        target = f"in/{files[0]}" if len(files) == 1 and threads == 2 else "in/"
        asked = ["seen", "check", self.workshop.folder / "index", target, "--batch", 1_000_000]
        limit = 180 if self.workshop.is_large else 90
        with (folder / "answers").open("w+b") as answers:
            outcome = self.workshop.run(
                *asked,
                "--memory",
                f"{budget // MIB}M",
                "--threads",
                threads,
                folder=folder,
                timeout=limit,
                most_memory=max(4 * budget, MOST),
                stdout=answers,
            )
            answers.seek(0)
            count = sum(1 for _ in answers)
        if trouble := outcome.trouble():
            verdict.problems.append(trouble)
            return
        verdict.expect(
            outcome.peak <= budget + ALLOWANCE,
            f"peak memory {outcome.peak / MIB:.0f} MiB with a budget of {budget // MIB} MiB",
        )
        if outcome.code == 2:
            verdict.expect("in/" in outcome.stderr, f"ends without naming a file: {outcome.last_words()}")
            return
        # A row group that cannot be read is one answer for all of its rows.
        verdict.expect(0 < count <= expected.records, f"{count:,} answers of {expected.records:,} records")

    def _judge(self, verdict, outcome, expected, budget):
        if trouble := outcome.trouble():
            verdict.problems.append(trouble)
        if outcome.peak > budget + ALLOWANCE:
            verdict.problems.append(
                f"peak memory {outcome.peak / MIB:.0f} MiB with a budget of {budget // MIB} MiB"
            )
        if budget < self.least:
            ok = outcome.code == 2 and "at least" in outcome.stderr
            verdict.expect(
                ok, f"too little memory is not refused: exit {outcome.code}, {outcome.last_words()}"
            )
            return
        if outcome.trouble():
            return
        if outcome.code == 2:
            # A file that cannot be read at all may end a scan, with its name; nothing else may.
            verdict.expect("in/" in outcome.stderr, f"ends without naming a file: {outcome.last_words()}")
            return
        told = json.loads(outcome.stdout)
        bad = sum(told["bad_records"].values())
        counted = told["documents"] + bad + sum(told["skipped"].values())
        said = f"{told['documents']:,} documents, bad {told['bad_records']}, skipped {told['skipped']}"
        if expected.records is not None:
            verdict.expect(
                counted == expected.records,
                f"{expected.records:,} records were there, {counted:,} are counted: {said}",
            )
        if expected.documents is not None:
            verdict.expect(
                told["documents"] == expected.documents,
                f"{expected.documents:,} documents were there: {said}",
            )
        verdict.expect(counted > 0, f"nothing is counted: {said}")
