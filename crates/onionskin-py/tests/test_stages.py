"""The stages as functions: what they tell, what they raise, and that they can be stopped."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import turns_of_another_thread, words_of

import onionskin


def tree(atlas: Path) -> dict[str, str]:
    """Every file of an atlas that must always be the same, with its checksum."""
    files = (file for file in sorted(atlas.rglob("*")) if file.is_file() and file.name != "costs.jsonl" and "report" not in file.parts)
    return {str(file.relative_to(atlas)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_whole_job_and_its_parts_agree(make_web: Callable[..., Path], tmp_path: Path) -> None:
    web = make_web()
    done = onionskin.run(web, tmp_path / "whole", text_is_html=True)
    assert done.outcomes == {"scan": "done", "similar": "done", "collections": "done", "report": "done"}
    assert done.scan is not None and done.similar is not None and done.collections is not None and done.report is not None
    assert done.report.page.exists()
    scanned = onionskin.scan([web], tmp_path / "parts", text_is_html=True)
    found = onionskin.similar(tmp_path / "parts")
    mirrors = onionskin.collections(tmp_path / "parts")
    assert scanned.documents == done.scan.documents == 60 and scanned.sites == 4
    assert found.clusters == done.similar.clusters == 14
    assert mirrors.groups == done.collections.groups == 1 and mirrors.replicas == 4
    assert tree(tmp_path / "whole") == tree(tmp_path / "parts")
    again = onionskin.run(web, tmp_path / "whole", text_is_html=True, with_report=False)
    assert again.outcomes == {"scan": "was_there", "similar": "was_there", "collections": "was_there", "report": "not_wanted"}
    assert again.scan is None and again.report is None
    told = json.loads(json.dumps(done.to_dict()))
    assert told["scan"]["documents"] == 60 and "60 documents on 4 sites" in repr(done.scan)
    assert "<table>" in done.scan._repr_html_()
    with pytest.raises(AttributeError):
        done.scan.documents = 3  # type: ignore[misc]


def test_progress_is_told(make_web: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events: list[dict[str, Any]] = []
    web = make_web()
    with open(web, "a") as file:
        file.write("this is not JSON\n")
    summary = onionskin.scan(web, tmp_path / "atlas", text_is_html=True, progress=events.append)
    kinds = [event["type"] for event in events]
    assert kinds[0] == "discovered" and "scanned" in kinds and "step" in kinds
    (bad,) = [event for event in events if event["type"] == "bad_record"]
    assert "web.jsonl" in bad["place"]
    assert sum(summary.bad_records.values()) == 1
    onionskin.similar(tmp_path / "atlas", progress=True)
    assert capfd.readouterr().err
    with pytest.raises(TypeError, match="progress is None, True"):
        onionskin.similar(tmp_path / "atlas", progress=3)  # type: ignore[arg-type]


def test_an_error_of_the_listener_ends_the_stage(make_web: Callable[..., Path], tmp_path: Path) -> None:
    def complain(event: dict[str, Any]) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        onionskin.scan(make_web(), tmp_path / "atlas", progress=complain)


def test_errors_have_kinds_and_hints(make_web: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(onionskin.InputError):
        onionskin.scan(tmp_path / "nothing.jsonl", tmp_path / "atlas")
    for address in ("s3://bucket/key", "https://example.org/x.jsonl"):
        with pytest.raises(onionskin.InputError, match=f"{address}: this build reads local files only"):
            onionskin.scan(address, tmp_path / "atlas")
    with pytest.raises(onionskin.AtlasError, match="no manifest|No such file"):
        onionskin.similar(tmp_path)
    web = make_web()
    onionskin.scan(web, tmp_path / "atlas")
    with pytest.raises(onionskin.OnionskinError) as raised:
        onionskin.scan(web, tmp_path / "atlas", seed=2)
    assert "overwrite" in str(raised.value) and "--" not in str(raised.value)
    assert raised.value.hint == "use another folder, or overwrite=True"
    onionskin.similar(tmp_path / "atlas", cluster="transitive")
    with pytest.raises(onionskin.OnionskinError) as raised:
        onionskin.dedup(tmp_path / "atlas", tmp_path / "out")
    assert "cluster=\"centred\"" in (raised.value.hint or ""), raised.value
    with pytest.raises(onionskin.OnionskinError) as raised:
        onionskin.collections(tmp_path / "atlas", any_site=True)
    assert "any_site=True" in (raised.value.hint or ""), raised.value
    for wrong in ({"method": "guess"}, {"threshold": 3}, {"cluster": "round"}, {"keep": "mine"}, {"memory": "much"}, {"threads": 0}):
        with pytest.raises(ValueError):
            onionskin.similar(tmp_path / "atlas", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="belongs to method='overlap'|belongs to method=\"overlap\""):
        onionskin.similar(tmp_path / "atlas", chunking="l4")
    with pytest.raises(onionskin.OnionskinError, match="memory"):
        onionskin.scan(web, tmp_path / "other", memory="1M")


@pytest.mark.parametrize("options", [{"method": "exact"}, {"method": "overlap", "chunking": "w4", "threshold": 20}, {"method": "paragraphs"}, {"exact": True}])
def test_methods(options: dict[str, Any], make_web: Callable[..., Path], tmp_path: Path) -> None:
    onionskin.scan(make_web(), tmp_path / "atlas", text_is_html=True)
    assert onionskin.similar(tmp_path / "atlas", **options).clusters == 14


def test_dedup_and_avoid(mirrored: Path, tmp_path: Path) -> None:
    summary = onionskin.dedup(mirrored, tmp_path / "out")
    assert (summary.kept.documents, summary.removed.documents) == (18, 42) and summary.output == tmp_path / "out"
    kept = [json.loads(line) for file in (tmp_path / "out").rglob("*.jsonl*") if "shards" in file.parts for line in open(file)]
    assert len(kept) == 18
    assert onionskin.dedup(mirrored, dry_run=True).removed.documents == 42
    assert summary.kept.tokens > 0 and summary.removed.tokens > 0 and summary.removed_record_bytes > 0
    assert onionskin.dedup(mirrored, dry_run=True, keep="first").removed.documents == 42
    with pytest.raises(onionskin.OnionskinError, match="nowhere.example"):
        onionskin.dedup(mirrored, dry_run=True, keep="prefer:nowhere.example")
    with pytest.raises(ValueError, match="say output"):
        onionskin.dedup(mirrored)
    # Nobody links to any of the mirrors, but all of them belong to one owner.
    skipped = onionskin.avoid(mirrored, tmp_path / "lists")
    assert skipped.weak == 0 and len(onionskin.avoid(mirrored, weak=True).entries) == 2
    # One of the mirrors has other versions of the pages: it is not skipped unless asked for.
    assert len(skipped.entries) == 2 and skipped.skipped_pages == 28
    assert all(entry.principal_reason and entry.principal_evidence for entry in skipped.entries)
    assert len(onionskin.avoid(mirrored, kinds="all").entries) == 3
    host = skipped.entries[0].host
    spared = onionskin.avoid(mirrored, protect=[host])
    assert spared.protected == 1 and host not in [entry.host for entry in spared.entries]
    with pytest.raises(ValueError, match="no host"):
        onionskin.avoid(mirrored, protect="a b")
    assert (tmp_path / "lists" / "avoid.json").exists()
    assert onionskin.avoid(mirrored, format="prefixes").texts
    with pytest.raises(ValueError, match="known are all"):
        onionskin.avoid(mirrored, kinds=["strange"])


def test_fields_are_those_of_the_compiled_part(mirrored: Path) -> None:
    """A field that Rust has and Python has not, or the other way round, is an error wherever a summary is made."""
    from onionskin import _onionskin, _summaries

    values = _onionskin.explain(str(mirrored), "doc:0", "doc:15", None, [])
    assert _summaries.build(onionskin.Explanation, values).a.doc == 0
    for changed in ({**values, "more": 1}, {name: value for name, value in values.items() if name != "pair"}):
        with pytest.raises(TypeError, match="disagree about (more|pair)$"):
            _summaries.build(onionskin.Explanation, changed)
    nested = {**values, "a": {**values["a"], "more": 1}}
    with pytest.raises(TypeError, match="DocumentFacts and the compiled part of onionskin disagree about more"):
        _summaries.build(onionskin.Explanation, nested)


def test_explain(mirrored: Path) -> None:
    same = onionskin.explain(mirrored, 0, 15)
    assert same.text_equal and same.resemblance == 1.0 and same.only_in_a == same.only_in_b == [] and same.same_site is False
    near = onionskin.explain(mirrored, "http://mirror0.example.org/docs/p0.html", "2-0")
    assert 0.8 < near.resemblance < 1.0 and len(near.only_in_a) == len(near.only_in_b) == 1 and "changed" in near.only_in_b[0]
    assert near.overlaps[0].chunking == "w4" and near.cluster_a is not None and near.cluster_b is not None and near.cluster_a.cluster == near.cluster_b.cluster
    assert "<mark" in near._repr_html_() and near.to_dict()["overlaps"][0]["chunking"] == "w4"
    with pytest.raises(onionskin.OnionskinError, match="nobody"):
        onionskin.explain(mirrored, 0, "nobody")


def test_pdf_is_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    stream = b"BT /F1 12 Tf 72 700 Td (Letters in a portable document) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (table, len(data))
    folder = tmp_path / "in" / "example.org"
    folder.mkdir(parents=True)
    (folder / "a.pdf").write_bytes(data)
    assert onionskin.scan(tmp_path / "in", tmp_path / "atlas").tokens == 5


def big_input(path: Path, megabytes: int) -> Path:
    generator = random.Random(6)
    with open(path, "w") as file:
        size = 0
        while size < megabytes << 20:
            line = json.dumps({"text": " ".join(words_of(generator, 2000))}) + "\n"
            # The same lines again and again, with a word of their own: making them costs more than
            # scanning them.
            for n in range(40):
                file.write(line.replace('": "', f'": "own{size + n} ', 1))
            size += 40 * len(line)
    return path


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_a_scan_and_the_next_call_ends_it(tmp_path: Path) -> None:
    web = big_input(tmp_path / "big.jsonl", int(os.environ.get("ONIONSKIN_INTERRUPT_MB", "150")))
    program = f"""
import json, signal, time, onionskin
# Whoever runs the tests may have them started with signals ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
def told(event):
    if event["type"] == "scanned":
        print("scanned", flush=True)
try:
    onionskin.scan({str(web)!r}, {str(tmp_path / "stopped")!r}, threads=1, memory="256M", progress=told)
except KeyboardInterrupt:
    print(json.dumps({{"interrupted": time.time()}}), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "scanned\n"
    sent = time.time()
    child.send_signal(signal.SIGINT)
    last = [line for line in child.stdout if line.startswith("{")]
    assert child.wait() == 0
    assert last, "the scan ended before it was interrupted; give it a bigger input"
    waited = json.loads(last[-1])["interrupted"] - sent
    assert waited < 2.0, waited
    assert not (tmp_path / "stopped" / "manifest.json").exists()
    onionskin.scan(web, tmp_path / "stopped", threads=2)
    onionskin.scan(web, tmp_path / "straight", threads=1)
    assert tree(tmp_path / "stopped") == tree(tmp_path / "straight")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_a_search(tmp_path: Path) -> None:
    web = big_input(tmp_path / "big.jsonl", 40)
    onionskin.scan(web, tmp_path / "atlas", threads=2)
    # In a process where no other library has anything to say about signals.
    program = f"""
import signal, onionskin
signal.signal(signal.SIGINT, signal.default_int_handler)
steps = []
def interrupt(event):
    steps.append(event.get("name", ""))
    if len(steps) == 2:
        signal.raise_signal(signal.SIGINT)
try:
    onionskin.similar({str(tmp_path / "atlas")!r}, exact=True, progress=interrupt)
except KeyboardInterrupt:
    print("interrupted after", len(steps))
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "interrupted after 2\n"
    assert "clusters" not in onionskin.Atlas(tmp_path / "atlas")
    onionskin.similar(tmp_path / "atlas", exact=True)
    assert "clusters" in onionskin.Atlas(tmp_path / "atlas")


def test_the_interpreter_is_free_during_a_scan(tmp_path: Path) -> None:
    web = big_input(tmp_path / "big.jsonl", 20)
    counted, took = turns_of_another_thread(lambda: onionskin.scan(web, tmp_path / "atlas", threads=1), pause=0.001)
    assert counted > took / 0.05, (counted, took)
