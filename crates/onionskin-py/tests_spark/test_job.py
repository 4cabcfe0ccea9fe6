"""The whole job gives what the program gives."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import MASTER, SHORT_LIVED, by_the_program, program, same_atlas, tables
from pyspark.sql import SparkSession

from onionskin import spark as job


def executors(application: str) -> list[int]:
    """The executor processes of an application, and of no other."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and application.encode() in command:
                found.append(int(entry.name))
    return sorted(found)


def test_features_and_mirrors_with_an_executor_killed(spark: SparkSession, web: Path, tmp_path: Path) -> None:
    killed: list[int] = []
    application = spark.sparkContext.applicationId

    def kill(step: str) -> None:
        # In the middle of a step, not before it.
        time.sleep(0.7)
        alive = executors(application)
        if alive:
            os.kill(alive[0], signal.SIGKILL)
            killed.append(alive[0])

    threads = []

    def progress(stage: str, step: str) -> None:
        if step in ("rows", "near") and MASTER.startswith("local-cluster"):
            threads.append(threading.Thread(target=kill, args=(step,)))
            threads[-1].start()

    job.scan(spark, [str(web)], str(tmp_path / "ours"), progress=progress)
    job.similar(spark, str(tmp_path / "ours"), progress=progress)
    job.collections(spark, str(tmp_path / "ours"))
    for thread in threads:
        thread.join()
    if MASTER.startswith("local-cluster"):
        assert len(killed) == 2 and not set(killed) & set(executors(application))
    theirs = by_the_program(web, tmp_path / "theirs", {}, {})
    same_atlas(tmp_path / "ours", theirs)
    counts = json.loads((theirs / "manifest.json").read_text())["counts"]
    # Equal nothings would prove nothing.
    assert counts["similar.near_pairs"] > 0 and counts["collections.groups"] >= 5


def test_overlap_and_the_papers_conditions(spark: SparkSession, web: Path, tmp_path: Path) -> None:
    ours = str(tmp_path / "ours")
    job.scan(spark, [str(web)], ours, recipe="papers")
    job.similar(spark, ours, method="overlap", chunking="l2", threshold=3)
    job.collections(spark, ours, merge="strict")
    search = {"method": "overlap", "chunking": "l2", "threshold": 3}
    theirs = by_the_program(web, tmp_path / "theirs", search, {"merge": "strict"}, recipe="papers")
    same_atlas(Path(ours), theirs)
    assert json.loads((theirs / "manifest.json").read_text())["counts"]["similar.near_pairs"] > 0


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
@pytest.mark.parametrize(
    ("similar", "collections"),
    [
        # Nothing in one task: rounds of joins instead.
        ({"threshold": 0.8, "cluster": "transitive", "one_task": 0}, {"merge": "tolerant", "one_task": 0}),
        ({"exact": True, "keep": "most-linked", "one_task": 0}, {"merge": "extended", "one_task": 0}),
    ],
)
def test_by_joins_alone_and_other_choices(
    spark: SparkSession, scanned: Path, web: Path, tmp_path: Path, similar: dict[str, Any], collections: dict[str, Any]
) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(scanned, ours)
    job.similar(spark, str(ours), **similar)
    job.collections(spark, str(ours), **collections)
    for given in (similar, collections):
        given.pop("one_task", None)
    if "filter" in similar:
        similar["filter"] = "{}x{}r{}".format(*similar["filter"])
    theirs = by_the_program(web, tmp_path / "theirs", similar, collections)
    same_atlas(ours, theirs)


@pytest.fixture(scope="session")
def scanned(spark: SparkSession, web: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    atlas = tmp_path_factory.mktemp("scanned") / "atlas"
    job.scan(spark, [str(web)], str(atlas))
    return atlas


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_a_bad_file_is_a_counted_skip_with_its_name(spark: SparkSession, web: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shards = sorted(web.iterdir())[:2]
    shutil.copy(shards[0], mixed / "a-good.warc.gz")
    cut = shards[1].read_bytes()
    (mixed / "b-cut.warc.gz").write_bytes(cut[: len(cut) // 3])
    (mixed / "c-noise.warc.gz").write_bytes(gzip.compress(b"WARC/1.0\r\n" + bytes(range(256)) * 40))
    (mixed / "d.jsonl").write_text('{"text": "good enough to be read"}\n{"text": broken\n')
    job.scan(spark, [str(mixed)], str(tmp_path / "ours"))
    import onionskin

    onionskin.scan([str(mixed)], tmp_path / "theirs")
    same_atlas(tmp_path / "ours", tmp_path / "theirs")
    manifest = json.loads((tmp_path / "ours" / "manifest.json").read_text())
    bad = {Path(entry["name"]).name: entry["bad_records"] for entry in manifest["inputs"]}
    assert bad["a-good.warc.gz"] == 0 and all(bad[name] >= 1 for name in ("b-cut.warc.gz", "c-noise.warc.gz", "d.jsonl"))
    places = " ".join(example["place"] for example in manifest["bad_record_examples"])
    assert all(name in places for name in ("b-cut.warc.gz", "c-noise.warc.gz", "d.jsonl"))
    # Through Spark's own readers the same is told.
    job.scan(spark, ["file://" + str(mixed)], str(tmp_path / "fetched"), io="spark")
    fetched = json.loads((tmp_path / "fetched" / "manifest.json").read_text())
    assert [entry["bad_records"] for entry in fetched["inputs"]] == [entry["bad_records"] for entry in manifest["inputs"]]
    assert fetched["counts"]["documents"] == manifest["counts"]["documents"]
    with pytest.raises(ValueError, match="more than the 1"):
        job.scan(spark, [str(mixed)], str(tmp_path / "strict"), max_bad_records=1)


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_rows_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    import onionskin

    words = [f"w{n}" for n in range(400)]
    texts = {f"{n:03}": " ".join(words[n % 7 * 10 : n % 7 * 10 + 60] + ([str(n)] if n % 3 else [])) for n in range(60)}
    rows = [(name, text if name != "010" else None) for name, text in texts.items()]
    frame = spark.createDataFrame(rows, "id string, text string").repartition(5)
    job.run(spark, frame, str(tmp_path / "ours"), threshold=0.8)
    with open(tmp_path / "in.jsonl", "w") as file:
        for name, text in rows:
            file.write(json.dumps({"id": name, "text": text} if text else {"id": name}) + "\n")
    onionskin.run([str(tmp_path / "in.jsonl")], tmp_path / "theirs", threshold=0.8, recall=False)
    names = ["pairs", "clusters", "cluster_stats", "links"]
    assert tables(tmp_path / "ours", names) == tables(tmp_path / "theirs", names)
    counts = json.loads((tmp_path / "ours" / "manifest.json").read_text())["counts"]
    assert counts["documents"] == 59 and counts["no_text"] == 1
    with pytest.raises(ValueError, match="order_by"):
        job.scan(spark, frame.select("text"), str(tmp_path / "none"))
    with pytest.raises(ValueError, match="no column 'body'"):
        job.scan(spark, frame, str(tmp_path / "none"), text_field="body")


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_rare_things(spark: SparkSession, tmp_path: Path) -> None:
    import onionskin

    few: dict[str, Any] = {"threshold": 0.5, "keep": "earliest"}

    web = rare_web(tmp_path / "rare.warc")
    inputs = [str(web), str(tmp_path / "b.html"), str(tmp_path / "a.html"), str(tmp_path / "in.wacz")]
    job.scan(spark, inputs, str(tmp_path / "ours"), recipe="papers")
    # From the tables alone, as after a scan by the program.
    shutil.rmtree(tmp_path / "ours" / "_work")
    job.similar(spark, str(tmp_path / "ours"), filter=(20, 4, 3), **few)
    job.collections(spark, str(tmp_path / "ours"), trivial="clusters")
    onionskin.scan(inputs, tmp_path / "theirs", recipe="papers")
    onionskin.similar(tmp_path / "theirs", recall=False, filter="20x4r3", **few)
    onionskin.collections(tmp_path / "theirs", trivial="clusters")
    same_atlas(tmp_path / "ours", tmp_path / "theirs")
    counts = json.loads((tmp_path / "theirs" / "manifest.json").read_text())["counts"]
    assert counts["revisits"] == 2 and counts["empty_documents"] >= 1 and counts["similar.exact_copies"] >= 4
    rules = tables(tmp_path / "theirs", ["url_rules"])["url_rules"]
    assert len(rules) >= 2


def rare_web(path: Path) -> Path:
    """Revisits, equal payloads, dates before 1900, a parameter that stands twice, pages with and without www, an empty page; and two files and an archive beside it."""
    import hashlib
    import zipfile

    def record(kind: str, url: str, date: str, body: bytes, digest: str | None = None) -> bytes:
        http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + (body if kind == "response" else b"")
        head = ["WARC/1.0", f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", f"WARC-Date: {date}", "Content-Type: application/http; msgtype=response"]
        head += [f"WARC-Payload-Digest: {digest}"] if digest else []
        if kind == "revisit":
            head.append("WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest")
        head.append(f"Content-Length: {len(http)}")
        return "\r\n".join(head).encode() + b"\r\n\r\n" + http + b"\r\n\r\n"

    def page(n: int, changed: bool = False) -> bytes:
        words = " ".join(f"word{n}x{at}" for at in range(60)) + (" another ending of it" if changed else "")
        links = "".join(f'<a href="/p{at}.html">{at}</a>' for at in range(6))
        return f"<html><title>page {n}</title><p>{words}</p>{links}</html>".encode()

    def sha1(body: bytes) -> str:
        import base64

        return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()

    records = []
    for host, date in [("a.example", "2020-05-01T00:00:00Z"), ("www.a.example", "1850-01-01T00:00:00Z"), ("b.example", "2019-01-01T00:00:00Z")]:
        for n in range(6):
            changed = host == "b.example" and n % 2 == 0
            records.append(record("response", f"http://{host}/p{n}.html", date, page(n, changed)))
    records.append(record("revisit", "http://c.example/again", "2021-01-01T00:00:00Z", b"", sha1(page(1))))
    records.append(record("revisit", "http://c.example/p0.html", "2021-01-01T00:00:00Z", b"", sha1(page(0, True))))
    records.append(record("response", "http://c.example/empty", "2021-01-01T00:00:00Z", b"<html></html>"))
    for n in range(5):
        records.append(record("response", f"http://d.example/s?id={n}&x=1&x=1", "2021-01-01T00:00:00Z", page(50 + n)))
        records.append(record("response", f"http://d.example/s?id={n}", "2021-01-01T00:00:00Z", page(50 + n)))
    path.write_bytes(b"".join(records))
    (path.parent / "a.html").write_bytes(page(90))
    (path.parent / "b.html").write_bytes(page(91))
    with zipfile.ZipFile(path.parent / "in.wacz", "w") as archive:
        archive.writestr("datapackage.json", "{}")
        archive.writestr("archive/one.warc", record("response", "http://e.example/x", "2021-01-01T00:00:00Z", page(70)))
        archive.writestr("archive/two.warc", record("response", "http://e.example/y", "2021-01-01T00:00:00Z", page(71)))
    return path


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_an_archive_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    rare_web(tmp_path / "rare.warc")
    found = job.scan(spark, ["file://" + str(tmp_path / "in.wacz")], str(tmp_path / "atlas"), io="spark")
    assert found.counts["documents"] == 2
    urls = {dict(row)["url"] for row in tables(tmp_path / "atlas", ["documents"])["documents"]}
    assert urls == {"http://e.example/x", "http://e.example/y"}


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_a_run_is_taken_up_and_changed_inputs_are_seen(spark: SparkSession, tmp_path: Path) -> None:
    source, atlas = tmp_path / "in.jsonl", str(tmp_path / "atlas")
    source.write_text("".join(json.dumps({"id": str(n), "text": " ".join(f"w{n % 3}x{at}" for at in range(30))}) + "\n" for n in range(9)))

    class Stop(Exception):
        pass

    def stop(stage: str, step: str) -> None:
        if (stage, step) == ("similar", "near"):
            raise Stop

    with pytest.raises(Stop):
        job.run(spark, str(source), atlas, progress=stop)
    done = job.run(spark, str(source), atlas, keep_work=True)
    assert "rows" in done[0].resumed and "candidates" in done[1].resumed
    # Nothing links to anything: no collections, as in the program.
    assert [summary.stage for summary in done] == ["scan", "similar"]
    assert done[1].counts["similar.clusters"] == 3
    with open(source, "a") as file:
        file.write(json.dumps({"id": "9", "text": "one more"}) + "\n")
    with pytest.raises(FileExistsError, match="overwrite"):
        job.scan(spark, str(source), atlas)
    again = job.scan(spark, str(source), atlas, overwrite=True)
    assert again.counts["documents"] == 10 and not again.resumed
    # What an earlier search found is of other documents.
    assert "pairs" not in json.loads((tmp_path / "atlas" / "manifest.json").read_text())["tables"]
    with pytest.raises(ValueError, match="no table pairs"):
        job.read(spark, atlas, "pairs")


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_a_stopped_job_goes_on(spark: SparkSession, scanned: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(scanned, ours)

    class Stop(Exception):
        pass

    def stop(stage: str, step: str) -> None:
        if step == "near":
            raise Stop

    before = (ours / "manifest.json").read_text()
    with pytest.raises(Stop):
        job.similar(spark, str(ours), progress=stop)
    # The atlas is as it was.
    assert (ours / "manifest.json").read_text() == before
    resumed = job.similar(spark, str(ours)).resumed
    assert {"copies", "candidates", "sets"} <= set(resumed) and "near" not in resumed
    whole = tmp_path / "whole"
    shutil.copytree(scanned, whole)
    assert not job.similar(spark, str(whole)).resumed
    assert tables(ours) == tables(whole)


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_the_program_opens_it_as_its_own(spark: SparkSession, scanned: Path, web: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(scanned, ours)
    job.similar(spark, str(ours))
    job.collections(spark, str(ours))
    found = tables(ours, ["pairs", "clusters", "collections"])
    program("report", ours, "-o", tmp_path / "report", "-q")
    assert "</html>" in (tmp_path / "report" / "report.html").read_text()
    program("avoid", ours, "-o", tmp_path / "avoid", "-q")
    assert any((tmp_path / "avoid").iterdir())
    kept = program("dedup", ours, "-o", tmp_path / "dedup", "-q", "--json")
    assert json.loads(kept.splitlines()[-1])
    # And goes on with it: another search finds the same.
    program("similar", ours, "--no-recall", "-q")
    program("collections", ours, "-q")
    assert tables(ours, ["pairs", "clusters", "collections"]) == found


@pytest.mark.skipif(not MASTER.startswith("local"), reason="one place is enough")
def test_wrong_words_are_told(spark: SparkSession, scanned: Path, tmp_path: Path) -> None:
    atlas = str(scanned)
    (tmp_path / "other.jsonl").write_text('{"text": "another input"}\n')
    with pytest.raises(FileExistsError, match="overwrite"):
        job.scan(spark, [str(tmp_path / "other.jsonl")], atlas)
    with pytest.raises(FileNotFoundError, match=r"manifest\.json"):
        job.similar(spark, str(tmp_path / "nowhere"))
    for wrong, words in [
        ({"method": "best"}, "resemblance, overlap, exact"),
        ({"threshold": 1.5}, "at most 1"),
        ({"method": "overlap", "chunking": "l9", "threshold": 3}, "l9"),
        ({"preset": "sgm99"}, "sgm98-4"),
        ({"keep": "best"}, "most-linked"),
        ({"cluster": "round"}, "centred"),
    ]:
        with pytest.raises(ValueError, match=words):
            job.similar(spark, atlas, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="run similar first"):
        job.collections(spark, atlas)
    with pytest.raises(ValueError, match="tolerant"):
        job.collections(spark, atlas, merge="loose")


@pytest.mark.skipif(MASTER != "local[2]", reason="a whole job in a driver of its own: once is enough")
def test_the_command_line_by_spark_submit(web: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    import pyspark

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(arguments, capture_output=True, text=True)

    script = call(sys.executable, "-m", "onionskin.spark", "--path").stdout.strip()
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = ["spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1", "spark.sql.shuffle.partitions=2", f"spark.driver.extraJavaOptions={SHORT_LIVED}"]
    conf = [word for setting in settings for word in ("--conf", setting)]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    ours = tmp_path / "ours"
    told = call(submit, "--master", MASTER, *conf, script, "run", str(web), "-o", str(ours), "--json", "--keep", "longest")
    assert told.returncode == 0, told.stderr
    lines = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert [line["type"] for line in lines] == ["scan", "similar", "collections"]
    # spark-submit puts both streams of a program into one.
    assert "similar: candidates" in told.stdout + told.stderr and not (ours / "_work").exists()
    same_atlas(ours, by_the_program(web, tmp_path / "theirs", {"keep": "longest"}, {}))
    wrong = call(sys.executable, "-m", "onionskin.spark", "similar", str(tmp_path / "nowhere"), "--master", MASTER)
    assert wrong.returncode == 2 and "error: " in wrong.stderr and "manifest.json" in wrong.stderr
