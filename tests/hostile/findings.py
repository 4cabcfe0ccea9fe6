"""Faults that were found by hand once, each as a case that fails where the fault is back."""

import contextlib
import csv
import json
import os
import time

import pyarrow as pa
import pyarrow.parquet as pq

from . import program, suite, webs
from .payloads import page, response
from .server import TOKEN, Server

FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Bench:
    """What a case works with: a folder, the program, and the verdict."""

    def __init__(self, workshop, folder, rng, verdict):
        self.workshop, self.folder, self.rng, self.verdict = workshop, folder, rng, verdict

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(self, line, *more, **options):
        outcome = self.workshop.run(*line.split(), *more, folder=self.folder, **options)
        if trouble := outcome.trouble():
            self.verdict.problems.append(f"`{outcome.command()}`: {trouble}")
        return outcome

    def must(self, line, *more, **options):
        return self.workshop.must(*line.split(), *more, folder=self.folder, **options)

    def expect(self, holds, problem):
        return self.verdict.expect(holds, problem)

    def scanned(self, line, *more):
        """What a scan says as JSON; None when it failed."""
        outcome = self.run(f"scan {line} -o atlas --json", *more)
        return outcome, json.loads(outcome.stdout) if outcome.stdout.startswith(b"{") else None

    def counted(self, told):
        return told["documents"] + sum(told["bad_records"].values()) + sum(told["skipped"].values())


def lost_catalogue(bench):
    """An index whose catalogue is lost is damaged, not empty"""
    for command in (
        "seen add-if-new index few.jsonl",
        "seen add index few.jsonl",
        "seen check index few.jsonl",
        # A server makes an index where there is none.
        "serve --seen index --listen 127.0.0.1:0",
        "serve --seen index --seen-read-only --listen 127.0.0.1:0",
    ):
        folder = suite.empty(bench.folder)
        webs.make_index(bench.workshop, folder)
        bench.write("few.jsonl", "".join(webs.documents(99, 3)))
        before = bench.must("seen check index all.jsonl --json").stdout
        (folder / "index/catalogue").unlink()
        names = sorted(path.name for path in (folder / "index").iterdir())
        refused = bench.run(command, timeout=20)
        bench.expect(refused.code == 2, f"`{refused.command()}` exits {refused.code}")
        left = sorted(path.name for path in (folder / "index").iterdir())
        bench.expect(set(names) <= set(left), f"`{refused.command()}` removes {set(names) - set(left)}")
        repaired = bench.run("seen verify index --repair")
        bench.expect(
            repaired.code in (0, 1), f"`{repaired.command()}` exits {repaired.code}: {repaired.last_words()}"
        )
        after = bench.run("seen check index all.jsonl --json").stdout
        bench.expect(after == before, "the repaired index answers differently")


def middle_of_the_log(bench):
    """A damaged batch in the middle of the log is an error for readers too"""
    index = webs.make_index(bench.workshop, bench.folder)
    log = next(index.glob("wal-*"))
    starts = webs.log_batches(log)
    sound = log.read_bytes()
    for number, start in enumerate(starts[:-2]):
        data = bytearray(sound)
        # Behind the head of the batch, in what was acknowledged.
        data[min(start + 16 + bench.rng.randrange(60), starts[number + 1] - 1)] ^= 1 << bench.rng.randrange(8)
        log.write_bytes(data)
        for command, code in (
            ("seen check index all.jsonl", 2),
            ("seen stats index", 2),
            ("seen verify index", 1),
        ):
            outcome = bench.run(command)
            bench.expect(outcome.code == code, f"batch {number}: `{outcome.command()}` exits {outcome.code}")


def vanished_input(bench):
    """An input that is gone while it is read ends the scan"""
    rows = "".join(webs.documents(1, 500)) * 60
    for cut in ("unlinked", "truncated"):
        suite.empty(bench.folder)
        path = bench.write("in/a.jsonl", rows)
        # A scan opens its inputs after it has looked at all of them, and waits at a pipe.
        pipe = bench.folder / "pipe"
        os.mkfifo(pipe)
        sizes = ["--threads", "1", "--task-bytes", "65536"]
        arguments = ["scan", "in/a.jsonl", "pipe", "-o", "atlas", "--json", *sizes]
        with program.Running(bench.workshop.binary, arguments, bench.folder) as running:
            writer = opened(pipe, running)
            if writer is None:
                running.wait(5)
                words = running.outcome().last_words()
                bench.expect(False, f"{cut}: the scan does not open the pipe: {words}")
                continue
            if cut == "unlinked":
                path.unlink()
            else:
                os.truncate(path, len(rows) // 3)
            with contextlib.suppress(BrokenPipeError):
                os.write(writer, b'{"text":"the last one"}\n')
            os.close(writer)
            bench.expect(running.wait(120), f"{cut}: no end within 120 s")
            outcome = running.outcome()
        bench.expect(not outcome.trouble(), f"{cut}: {outcome.trouble()}")
        bench.expect(outcome.code == 2, f"{cut}: exit {outcome.code}: {outcome.stdout[:300]}")
        bench.expect("a.jsonl" in outcome.stderr, f"{cut}: does not name the file: {outcome.last_words()}")
        bench.expect(not (bench.folder / "atlas/manifest.json").exists(), f"{cut}: the atlas is finished")


def opened(pipe, running):
    """A descriptor to write to a pipe, once the program reads from it; None if it ends or never does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not running.ended():
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # Nobody reads yet.
            time.sleep(0.002)
    return None


def broken_row_group(bench):
    """A broken row group counts as many records as it has rows"""
    (bench.folder / "in").mkdir()
    path = bench.folder / "in/a.parquet"
    texts = [webs.words(bench.rng, 30) for _ in range(2500)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=500)
    place = pq.ParquetFile(path).metadata.row_group(2).column(0)
    data = bytearray(path.read_bytes())
    for at in range(place.data_page_offset + 20, place.data_page_offset + 400):
        data[at] ^= 0x5A
    path.write_bytes(data)
    outcome, told = bench.scanned("in")
    if told:
        bench.expect(
            bench.counted(told) == 2500, f"2,500 rows were there: {told['documents']}, {told['bad_records']}"
        )
    else:
        bench.expect("a.parquet" in outcome.stderr, outcome.last_words())


def unreadable_file(bench):
    """One unreadable file in a folder is skipped and named; with --strict it is fatal"""
    for name in "abc":
        bench.write(f"in/{name}.html", page(webs.words(bench.rng, 50)))
    if os.geteuid() == 0:
        # Nothing is closed to root, but nobody can open a link to itself.
        (bench.folder / "in/b2.html").symlink_to("b2.html")
    else:
        bench.write("in/b2.html", "x").chmod(0)
    outcome, told = bench.scanned("in")
    if bench.expect(told is not None, f"the scan ends: {outcome.last_words()}"):
        bench.expect(told["documents"] == 3, f"3 documents were readable: {told['documents']}")
        said = outcome.stderr + outcome.stdout.decode()
        bench.expect("b2.html" in said, "the unreadable file is not named")
    strict = bench.run("scan in -o strict --strict")
    bench.expect(
        strict.code == 2 and "b2.html" in strict.stderr,
        f"--strict: exit {strict.code}, {strict.last_words()}",
    )


def links_out_of_a_folder(bench):
    """Links out of a folder are not followed unless asked, and are reported"""
    bench.write("in/a.html", page("inside of the folder"))
    bench.write("outside/secret.html", page("outside of the folder"))
    (bench.folder / "in/sym").symlink_to(bench.folder / "outside")
    (bench.folder / "in/one.html").symlink_to(bench.folder / "outside/secret.html")
    outcome, told = bench.scanned("in")
    if bench.expect(told is not None, outcome.last_words()):
        bench.expect(told["documents"] == 1, f"{told['documents']} documents, where one is inside")
        said = outcome.stderr + outcome.stdout.decode()
        bench.expect("sym" in said or "link" in said, "links that were not followed are not reported")
    followed = bench.run("scan in -o followed --follow-links --json")
    if bench.expect(followed.code == 0, f"--follow-links: {followed.last_words()}"):
        bench.expect(json.loads(followed.stdout)["documents"] >= 2, "--follow-links does not follow")


def changed_input(bench):
    """`dedup` does not copy from an input of the same length that is not the same"""
    texts = [f"{number:04} " + " ".join(["same"] * 30) for number in range(50)]
    texts = [webs.words(bench.rng, 40)[:150].ljust(150, "x") for _ in texts]
    rows = [json.dumps({"id": f"d{at:03}", "text": texts[at // 2]}) + "\n" for at in range(100)]
    bench.write("in.jsonl", "".join(rows))
    bench.must("run in.jsonl -o atlas --no-report -q")
    rows[0], rows[3] = rows[3], rows[0]
    bench.write("in.jsonl", "".join(rows))
    outcome = bench.run("dedup atlas -o out --shards all")
    if outcome.code == 0:
        kept = {
            json.loads(row)["text"]
            for path in (bench.folder / "out/shards").rglob("*.jsonl")
            for row in path.open()
        }
        bench.expect(len(kept) == 50, f"{len(kept)} of 50 texts are left, and exit 0")
    else:
        bench.expect("in.jsonl" in outcome.stderr, f"does not name the input: {outcome.last_words()}")


def changed_before_similar(bench):
    """`similar` does not compare texts that the scan did not see"""
    text = webs.words(bench.rng, 200)
    other = webs.words(bench.rng, 400)[: len(text)].ljust(len(text), "x")
    near = text.replace(text.split(" ")[100], "changed", 1)
    rows = [json.dumps({"id": name, "text": words}) + "\n" for name, words in (("a", text), ("b", near))]
    changed = rows[0] + json.dumps({"id": "b", "text": other[: len(near)].ljust(len(near), "x")}) + "\n"
    for search in ("similar atlas --json", "similar atlas --exact --json"):
        suite.empty(bench.folder)
        path = bench.write("in.jsonl", "".join(rows))
        bench.must("scan in.jsonl -o atlas -q")
        if not bench.expect(len(changed) == path.stat().st_size, "the case changes the length"):
            return
        webs.copy_tree(bench.folder / "atlas", bench.folder / "sound")
        found = json.loads(bench.must(search.replace("atlas", "sound")).stdout)
        bench.expect(found["near_pairs"] == 1, f"the sound texts are {found['near_pairs']} pairs")
        path.write_text(changed)
        outcome = bench.run(search)
        bench.expect(
            outcome.code == 2 and "in.jsonl" in outcome.stderr,
            f"`{outcome.command()}` exits {outcome.code}: {outcome.stdout[:300]} {outcome.last_words()}",
        )


def formulas(bench):
    """No cell of a CSV file begins like a formula"""
    bad = ['=HYPERLINK("http://evil","x")', "+cmd|' /C calc'!A0", "@SUM(1+1)", "-2+3+cmd", "\t=1+1"]
    records = []
    for number, title in enumerate(bad):
        text = webs.words(bench.rng, 80)
        for host in ("a", "b", "c"):
            for at in range(12):
                links = "".join(f'<a href="/{title_path(number)}{other}">{other}</a>' for other in range(12))
                body = f"<html><head><title>{escaped(title)}</title></head><body>{text} {at} {links}</body></html>"
                records.append(response(f"http://{host}{number}.org/{title_path(number)}{at}", body))
    bench.write("crawl.warc", b"".join(records))
    bench.must("run crawl.warc -o atlas -q")
    bench.must("avoid atlas -o lists --noise -q")
    found = 0
    for path in [*(bench.folder / "atlas/report").rglob("*.csv"), *(bench.folder / "lists").rglob("*.csv")]:
        with path.open(newline="") as rows:
            for row in csv.reader(rows):
                found += 1
                for cell in row:
                    formula = cell.startswith(FORMULA) and not is_number(cell)
                    bench.expect(not formula, f"{path.name}: {cell[:60]!r}")
    bench.expect(found > 0, "there is no CSV file")


def title_path(number):
    return f"=x{number}/" if number % 2 else f"x{number}/"


def escaped(title):
    return title.replace("&", "&amp;").replace('"', "&quot;")


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def nul_bytes(bench):
    """Files with a NUL in their beginning are counted in a folder"""
    bench.write("in/a.html", page("a sound page of some words"))
    bench.write("in/b.html", b"\0" + page("a page behind a NUL").encode())
    bench.write("in/c.jsonl", b'{"text":"before"}\n\0\n{"text":"after"}\n')
    outcome, told = bench.scanned("in")
    if bench.expect(told is not None, outcome.last_words()):
        bench.expect(
            bench.counted(told) >= 4,
            f"4 records were there: {told['documents']}, {told['bad_records']}, {told['skipped']}",
        )
        said = outcome.stdout.decode() + outcome.stderr
        read = told["documents"] >= 4
        bench.expect(read or "b.html" in said or "c.jsonl" in said, "no name of what was passed over")


def unbalanced_quote(bench):
    """Rows behind an unbalanced quote are not lost in silence"""
    bench.write("a.csv", 'id,text,url\n1,fine,u\n2,"unbalanced,u\n3,swallowed,u\n4,"x",u\n5,last one,u\n')
    outcome, told = bench.scanned("a.csv")
    if bench.expect(told is not None, outcome.last_words()):
        lost = 5 - told["documents"]
        bench.expect(lost == 0 or told["bad_records"], f"{lost} rows are lost and no record is bad")


def pretty_json(bench):
    """A JSON array over many lines is read or refused, never passed over"""
    bench.write(
        "pretty.json",
        json.dumps([{"id": "a", "text": "some words"}, {"id": "b", "text": "more words"}], indent=2),
    )
    outcome, told = bench.scanned("pretty.json")
    read = told is not None and told["documents"] == 2
    bench.expect(read or outcome.code != 0, "no document, and exit 0")
    bench.write("in/pretty.json", (bench.folder / "pretty.json").read_bytes())
    bench.write("in/a.html", page("some words"))
    outcome, told = bench.scanned("in", "--overwrite")
    if told:
        bench.expect(
            bench.counted(told) >= 2,
            f"the file is not counted in a folder: {told['bad_records']}, {told['skipped']}",
        )


def many_links(bench):
    """Links that are left out are counted"""
    body = "".join(f'<a href="/p{number}">p</a>' for number in range(143_217))
    bench.write("links.warc", response("http://links.org/", page(body)))
    outcome, told = bench.scanned("links.warc")
    if bench.expect(told is not None, outcome.last_words()):
        said = outcome.stdout.decode() + outcome.stderr
        dropped = 143_217 - told["links_found"]
        bench.expect(
            dropped == 0 or str(dropped) in said.replace(",", ""),
            f"{dropped} links are dropped without a word",
        )


def escapes(bench):
    """Control and bidirectional characters never reach a terminal"""
    bench.write("in/a\x1b[31mred\x07.jsonl", '{"text": broken\n{"text":"sound"}\n')
    title = "rtl \u202egnp.exe \x1b[2J \u2066hidden \x9b31m\x7f"
    bench.write("names.jsonl", json.dumps({"id": title, "text": webs.words(bench.rng, 60)}) + "\n")
    texts = webs.words(bench.rng, 60)
    records = [response(f"http://h{at}.org/x", f"<title>{title}</title><p>{texts}") for at in range(6)]
    bench.write("in/crawl.warc", b"".join(records))
    for line in (
        "run in -o atlas",
        "collections atlas --show --noise",
        "explain atlas 1 2",
        "explain atlas cluster:0",
        "explain atlas 1 2 --json",
        "explain atlas cluster:0 --json",
        "collections atlas --show --noise --json --overwrite",
        "avoid atlas --weak --noise --format json",
        "seen add index names.jsonl --json",
        "seen check index names.jsonl --json",
        "scan in/nothing\x1b[31m -o x",
    ):
        outcome = bench.run(line)
        said = outcome.stdout.decode(errors="replace") + outcome.stderr
        raw = sorted({character for character in said if character in "\x1b\x07\x7f\x9b\u202e\u2066"})
        bench.expect(not raw, f"`{line!r}` prints {raw} raw")
        bench.expect(outcome.stdout or outcome.code == 2, f"`{line!r}` prints nothing")
    # The same value, spelled.
    answers = [json.loads(line) for line in bench.run("seen check index names.jsonl --json").stdout.splitlines()]
    bench.expect(answers[0]["name"] == title, f"the name is {answers[0]['name']!r}")


def passwords(bench):
    """User names and passwords of URLs are not copied into lists and tables"""
    records = []
    texts = [webs.words(bench.rng, 80) for _ in range(15)]
    for root in (
        "http://user:hunter2@www.famous.org/",
        "http://mirror.com/",
        "http://user:hunter2@other.com/",
    ):
        for number, text in enumerate(texts):
            links = "".join(f'<a href="/p{at}.html">{at}</a>' for at in range(15))
            records.append(response(f"{root}p{number}.html" if number else root, page(f"{text} {links}")))
    for number in range(5):
        link = '<a href="http://user:hunter2@www.famous.org/">see</a>'
        records.append(
            response(f"http://voter.example-{number}.net/", page(webs.words(bench.rng, 80) + link))
        )
    bench.write("crawl.warc", b"".join(records))
    bench.must("run crawl.warc -o atlas -q")
    bench.must("avoid atlas -o lists -q")
    bench.must("dedup atlas -o kept --shards none -q")
    entries = json.loads((bench.folder / "lists/avoid.json").read_text())["entries"]
    bench.expect(entries, "the list is empty, so that this shows nothing")
    found = [
        str(path.relative_to(bench.folder))
        for top in ("lists", "kept", "atlas/report")
        for path in (bench.folder / top).rglob("*")
        if path.is_file() and b"hunter2" in path.read_bytes()
    ]
    bench.expect(not found, f"a password is in {found}")
    outcome = bench.must("collections atlas --show --list 0")
    bench.expect(b"hunter2" not in outcome.stdout, "a password is printed")
    dead = "http://mirror.com/p3.html"
    for line in ("avoid alternate atlas", "avoid alternate --json atlas"):
        outcome = bench.must(line, dead)
        bench.expect(b"other.com/p3.html" in outcome.stdout, f"`{line}` does not name the alternate")
        bench.expect(b"hunter2" not in outcome.stdout, f"a password is printed by `{line}`")
    with Server(bench.workshop, bench.folder, "atlas") as server:
        status, body = server.get(f"/api/v1/alternates?url={dead}", Authorization=f"Bearer {TOKEN}")
        bench.expect(status == 200 and b"other.com/p3.html" in body, f"alternates: {status}, {body[:300]}")
        bench.expect(b"hunter2" not in body, "a password is in the API's alternates")


def least_memory(bench):
    """Every command refuses a budget below its least, and says it"""
    bench.write("in.jsonl", "".join(webs.documents(1, 200)))
    bench.must("run in.jsonl -o atlas -q")
    for line in (
        "scan in.jsonl -o other",
        "similar atlas --overwrite",
        "collections atlas --overwrite",
        "report atlas -o out",
        "dedup atlas -o kept",
    ):
        start = time.monotonic()
        outcome = bench.run(line, "--memory", "1M")
        bench.expect(
            outcome.code == 2 and "at least" in outcome.stderr,
            f"`{line}` with 1M: exit {outcome.code}, {outcome.last_words()}",
        )
        bench.expect(time.monotonic() - start < 5, f"`{line}` takes long to refuse 1M")
    served = bench.run("serve atlas --listen 127.0.0.1:0 --memory 1M", timeout=10)
    bench.expect(
        served.code == 2 and "at least" in served.stderr,
        f"`serve` with 1M: exit {served.code}, {served.last_words()}",
    )


FINDINGS = [
    lost_catalogue,
    middle_of_the_log,
    vanished_input,
    broken_row_group,
    unreadable_file,
    links_out_of_a_folder,
    changed_input,
    changed_before_similar,
    formulas,
    nul_bytes,
    unbalanced_quote,
    pretty_json,
    many_links,
    escapes,
    passwords,
    least_memory,
]


class Findings(suite.Part):
    name = "findings"
    small, large, finite = len(FINDINGS), len(FINDINGS), True

    def case(self, number, folder):
        finding = FINDINGS[number % len(FINDINGS)]
        verdict = suite.Verdict(finding.__doc__)
        verdict.counts["findings"] += 1
        # A folder that may be emptied.
        finding(Bench(self.workshop, suite.empty(folder / "case"), self.random(number), verdict))
        return verdict
