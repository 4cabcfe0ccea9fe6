"""WARC files that warcio wrote, and what warcio and FastWARC read out of ours."""

import gzip
import io
import json
import os
import subprocess
import zlib

import brotli
import duckdb
import fastwarc.warc
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

ONIONSKIN = os.environ["ONIONSKIN"]


def onionskin(*arguments):
    done = subprocess.run([ONIONSKIN, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout


def chunked(body):
    pieces = [body[i : i + 7] for i in range(0, len(body), 7)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def raw_deflate(body):
    coder = zlib.compressobj(wbits=-15)
    return coder.compress(body) + coder.flush()


BODIES = {
    "plain": ([], lambda body: body),
    "chunked": ([("Transfer-Encoding", "chunked")], chunked),
    "gzip": ([("Content-Encoding", "gzip")], gzip.compress),
    "deflate": ([("Content-Encoding", "deflate")], zlib.compress),
    "raw-deflate": ([("Content-Encoding", "deflate")], raw_deflate),
    "brotli": ([("Content-Encoding", "br")], brotli.compress),
    "both": ([("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")], lambda body: chunked(gzip.compress(body))),
}


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_what_warcio_writes_we_read(tmp_path, gz, version):
    path = tmp_path / ("a.warc.gz" if gz else "a.warc")
    texts = {}
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=gz, warc_version=version)
        writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "test"}))
        for number in range(40):
            for name, (headers, encode) in BODIES.items():
                url = f"http://www.example.org/{name}/{number}?b=2&a=1"
                words = f"page {number} served {name} with café and crème"
                body = f"<html><title>{name} {number}</title><body><p>{words}</p></body></html>".encode()
                http = StatusAndHeaders("200 OK", [("Content-Type", "text/html; charset=utf-8"), *headers], protocol="HTTP/1.1")
                record = writer.create_warc_record(url, "response", payload=io.BytesIO(encode(body)), http_headers=http)
                writer.write_record(record)
                texts[url] = (words, f"{name} {number}")
            http = StatusAndHeaders("404 Not Found", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(f"http://www.example.org/gone/{number}", "response", payload=io.BytesIO(b"gone"), http_headers=http))
            writer.write_record(writer.create_revisit_record(f"http://www.example.org/again/{number}", digest="sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", refers_to_uri="http://www.example.org/plain/0", refers_to_date="2026-01-01T00:00:00Z"))
    seen = onionskin("scan", path, "-o", tmp_path / "atlas", "--json", "-q")
    assert seen["bad_records"] == {}
    assert seen["documents"] == len(texts) + 40 and seen["revisits"] == 40
    rows = duckdb.sql(
        f"SELECT url, title, tokens, payload_sha1, epoch_us(fetched_at), \"offset\" FROM '{tmp_path}/atlas/documents/*.parquet' WHERE media_type = 'text/html' ORDER BY doc"
    ).fetchall()
    assert {row[0]: row[1] for row in rows} == {url: title for url, (_, title) in texts.items()}
    for url, _, tokens, _, _, _ in rows:
        # Names such as raw-deflate are two words.
        assert tokens == len(texts[url][0].replace("-", " ").split())

    with path.open("rb") as stream:
        expected = {}
        records = ArchiveIterator(stream)
        for record in records:
            if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
                digest = record.rec_headers.get_header("WARC-Payload-Digest")
                expected[record.rec_headers.get_header("WARC-Target-URI")] = (digest, records.get_record_offset())
    import base64

    for url, _, _, sha1, _, offset in rows:
        digest, where = expected[url]
        assert digest == "sha1:" + base64.b32encode(bytes(sha1)).decode()
        assert offset == where, url


@pytest.mark.parametrize("compress", [None, "gz"])
def test_what_we_write_others_read(tmp_path, compress):
    more = ["--compress", compress] if compress else []
    onionskin("generate", "demo", "--pages", 500, "--format", "warc", "-o", tmp_path / "web", "-q", *more)
    files = sorted((tmp_path / "web").iterdir())
    with files[0].open("rb") as stream:
        ours = [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(stream) if record.rec_type == "response"]
    with files[0].open("rb") as stream:
        theirs = [record.headers["WARC-Target-URI"] for record in fastwarc.warc.ArchiveIterator(stream, record_types=fastwarc.warc.WarcRecordType.response)]
    seen = onionskin("scan", files[0], "-o", tmp_path / "atlas", "--json", "-q")
    assert ours == theirs
    assert seen["documents"] == len(ours) > 400
    urls = duckdb.sql(f"SELECT url FROM '{tmp_path}/atlas/documents/*.parquet' ORDER BY doc").fetchall()
    assert [url for (url,) in urls] == ours


def test_damage_costs_one_record(tmp_path):
    onionskin("generate", "demo", "--pages", 500, "--format", "warc", "--compress", "gz", "-o", tmp_path / "web", "-q")
    path = sorted((tmp_path / "web").iterdir())[0]
    whole = onionskin("scan", path, "-o", tmp_path / "whole", "--json", "-q")
    data = bytearray(path.read_bytes())
    with path.open("rb") as stream:
        records = ArchiveIterator(stream)
        offsets = []
        for record in records:
            if record.rec_type == "response":
                record.content_stream().read()
                offsets.append(records.get_record_offset())
    middle = offsets[len(offsets) // 2]
    data[middle + 100 : middle + 110] = b"\0" * 10
    broken = tmp_path / "broken.warc.gz"
    broken.write_bytes(data)
    seen = onionskin("scan", broken, "-o", tmp_path / "broken", "--json", "-q")
    assert seen["documents"] >= whole["documents"] - 1
    assert sum(seen["bad_records"].values()) >= 1
