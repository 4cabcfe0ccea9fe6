"""Copies without copies, as warcio, FastWARC and PyArrow read them."""

import gzip
import io
import json
import os
import subprocess

import duckdb
import fastwarc.warc
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

ONIONSKIN = os.environ["ONIONSKIN"]


def onionskin(*arguments):
    done = subprocess.run([ONIONSKIN, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout


def cluster(atlas, clusters):
    """Gives an atlas clusters, as another program would write them: {centre: [(doc, resemblance, kind), ...]}."""
    members, stats = [], []
    for number, (centre, others) in enumerate(sorted(clusters.items())):
        for doc, resemblance, kind in sorted([(centre, 1.0, "exact"), *others]):
            members.append({"cluster": number, "doc": doc, "is_centre": doc == centre, "resemblance_to_centre": resemblance, "kind": kind})
        exact = sum(kind == "exact" for _, _, kind in others)
        lowest = min(resemblance for _, resemblance, _ in others)
        stats.append({"cluster": number, "centre": centre, "documents": len(others) + 1, "exact_copies": exact, "sites": 1, "same_site": len(others), "cross_site": 0, "lowest_resemblance": lowest})
    manifest = json.loads((atlas / "manifest.json").read_text())
    del manifest["checksum"]
    for name, rows in {"clusters": members, "cluster_stats": stats}.items():
        path = atlas / name / "part-00000.parquet"
        path.parent.mkdir()
        pq.write_table(pa.Table.from_pylist(rows), path)
        entry = {"path": f"{name}/part-00000.parquet", "rows": len(rows), "bytes": path.stat().st_size, "xxh3": xxhash.xxh3_64_hexdigest(path.read_bytes())}
        manifest["tables"][name] = {"rows": len(rows), "files": [entry]}
    (atlas / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_revisits_and_notes(tmp_path, gz, encoding):
    name = "a.warc.gz" if gz else "a.warc"
    (tmp_path / "in").mkdir()
    words = "the quick brown fox jumps over the lazy dog and is gone"
    texts = [words, words, f"<b>{words}</b>", f"{words} again", "something quite different"]
    with (tmp_path / "in" / name).open("wb") as out:
        writer = WARCWriter(out, gzip=gz, warc_version="1.1")
        writer.write_record(writer.create_warcinfo_record(name, {"software": "test"}))
        for number, text in enumerate(texts):
            body = f"<html><body><p>{text}</p></body></html>".encode()
            headers = [("Content-Type", "text/html; charset=utf-8"), ("X-Number", str(number))]
            if encoding:
                body = gzip.compress(body, mtime=0)
                headers.append(("Content-Encoding", "gzip"))
            http = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(f"http://www.example.org/{number}", "response", payload=io.BytesIO(body), http_headers=http))
    onionskin("scan", tmp_path / "in", "-o", tmp_path / "atlas", "--json", "-q")
    cluster(tmp_path / "atlas", {0: [(1, 1.0, "exact"), (2, 1.0, "exact"), (3, 0.8, "near")]})
    seen = onionskin("dedup", tmp_path / "atlas", "-o", tmp_path / "out", "--shards", "warc", "--json")
    assert (seen["revisits"], seen["metadata"]) == (1, 2)

    records = []
    with (tmp_path / "out" / "shards" / name).open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            content = record.content_stream().read()
            records.append((record.rec_type, dict(record.rec_headers.headers), record.http_headers, content))
    assert [kind for kind, *_ in records] == ["warcinfo", "response", "revisit", "response", "metadata", "response", "metadata", "response"]
    original, revisit = records[1], records[2]
    assert revisit[1]["WARC-Refers-To"] == original[1]["WARC-Record-ID"]
    assert revisit[1]["WARC-Refers-To-Target-URI"] == original[1]["WARC-Target-URI"]
    assert revisit[1]["WARC-Refers-To-Date"] == original[1]["WARC-Date"]
    assert revisit[1]["WARC-Payload-Digest"] == original[1]["WARC-Payload-Digest"]
    assert revisit[1]["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert revisit[2].get_header("X-Number") == "1" and revisit[3] == b""
    note = dict(line.split(": ", 1) for line in records[6][3].decode().splitlines())
    assert records[6][1]["WARC-Refers-To"] == records[5][1]["WARC-Record-ID"]
    assert note["near-duplicate-of-uri"] == "http://www.example.org/0"
    assert note["near-duplicate-of-record-id"] == original[1]["WARC-Record-ID"]
    assert note["resemblance"] == "0.8"

    with (tmp_path / "out" / "shards" / name).open("rb") as stream:
        kinds = [record.headers["WARC-Type"] for record in fastwarc.warc.ArchiveIterator(stream)]
    assert kinds == [kind for kind, *_ in records]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "none"])
def test_parquet(tmp_path, codec):
    (tmp_path / "in").mkdir()
    table = pa.table(
        {
            "text": [f"text number {n // 2}" for n in range(1000)],
            "id": [f"id-{n}" for n in range(1000)],
            "tags": pa.array([[n, None] if n % 3 else None for n in range(1000)], pa.list_(pa.int32())),
            "kind": pa.array(["a", "b"] * 500).dictionary_encode(),
            "when": pa.array(range(1000), pa.timestamp("ms")),
        }
    )
    pq.write_table(table, tmp_path / "in" / "a.parquet", compression=codec, row_group_size=300)
    onionskin("scan", tmp_path / "in", "-o", tmp_path / "atlas", "--json", "-q")
    cluster(tmp_path / "atlas", {n: [(n + 1, 1.0, "exact")] for n in range(0, 1000, 4)})
    onionskin("dedup", tmp_path / "atlas", "-o", tmp_path / "out", "-q")
    copy = tmp_path / "out" / "shards" / "a.parquet"
    expected = table.filter(pa.array([n % 4 != 1 for n in range(1000)]))
    assert pq.read_table(copy).cast(expected.schema) == expected
    metadata = pq.read_metadata(copy)
    assert metadata.num_row_groups == 4
    before = pq.read_metadata(tmp_path / "in" / "a.parquet")
    assert metadata.row_group(0).column(0).compression == before.row_group(0).column(0).compression

    onionskin("dedup", tmp_path / "atlas", "-o", tmp_path / "notes", "--annotate", "-q")
    rows = duckdb.sql(f"SELECT id, dup_cluster, dup_size, dup_of, dup_resemblance FROM '{tmp_path}/notes/shards/a.parquet'").fetchall()
    assert rows[:4] == [("id-0", 0, 2, None, 1.0), ("id-1", 0, 2, "id-0", 1.0), ("id-2", None, None, None, None), ("id-3", None, None, None, None)]
    assert len(rows) == 1000
