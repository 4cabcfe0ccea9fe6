"""The same real pages in every format, with one thread and with two.

A job is `run --no-collections --no-report` with the default recipe. Text formats hold the text of the pages, WARC and the folder their
HTML. Runs with one thread and with two are in turns, and the best of each counts: a machine that is slow for a while is slow for both.
"""

import gzip
import io
import json
import shutil
import zlib

import real
from common import onionskin

# Decoded bytes of a frame or member where there are many.
PIECE = 4 << 20
TURNS = 3
WANTED = 1.8


def pieces(data):
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def warc_record(name, page):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    fields = [
        "WARC/1.0",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:uuid:{zlib.crc32(name.encode()):08x}-0000-4000-8000-000000000000>",
        "WARC-Date: 2026-01-01T00:00:00Z",
        f"WARC-Target-URI: http://docs.example.org/{name}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(head) + len(page)}",
    ]
    return "\r\n".join(fields).encode() + b"\r\n\r\n" + head + page + b"\r\n\r\n"


def write(folder, work, megabytes):
    """Name, input, and decoded bytes of each format."""
    import pyarrow
    import pyarrow.parquet
    import zstandard

    folder.mkdir()
    kept, size = [], 0
    for name, page in real.pages(work):
        if size > megabytes * 1e6:
            break
        kept.append((name, page))
        size += len(page)
    texts = [(name, real.plain(page)) for name, page in kept]
    lines = "".join(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n" for name, text in texts).encode()
    rows = []

    def add(name, file, data, decoded):
        (folder / file).write_bytes(data)
        rows.append((name, folder / file, decoded))

    add("JSON Lines", "plain.jsonl", lines, len(lines))
    # As the programs of these names write: with the size in the header.
    squeeze = zstandard.ZstdCompressor(level=3, write_content_size=True).compress
    add("JSON Lines, zstd, one frame", "one.jsonl.zst", squeeze(lines), len(lines))
    add("JSON Lines, zstd, a frame per 4 MiB", "many.jsonl.zst", b"".join(map(squeeze, pieces(lines))), len(lines))
    add("JSON Lines, gzip, one member", "one.jsonl.gz", gzip.compress(lines, 6), len(lines))
    members = b"".join(gzip.compress(piece, 6) for piece in pieces(lines))
    add("JSON Lines, gzip, a member per 4 MiB", "many.jsonl.gz", members, len(lines))
    table = pyarrow.table({"id": [name for name, _ in texts], "text": [text for _, text in texts]})
    packed = io.BytesIO()
    pyarrow.parquet.write_table(table, packed, compression="zstd", row_group_size=1000)
    add("Parquet, zstd", "plain.parquet", packed.getvalue(), sum(len(text.encode()) for _, text in texts))
    records = (gzip.compress(warc_record(name, page), 6) for name, page in kept)
    add("WARC, a gzip member per record", "pages.warc.gz", b"".join(records), size)
    for name, page in kept:
        path = folder / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page)
    rows.append(("HTML in a folder", folder / "pages", size))
    return rows, len(kept)


def job(source, atlas, threads):
    shutil.rmtree(atlas, ignore_errors=True)
    options = ["--no-collections", "--no-report", "--threads", threads, "--memory", "2G", "--json", "-q"]
    result = onionskin("run", source, "-o", atlas, *options)
    return {
        "cpu_seconds": result["process_cpu"],
        "wall_seconds": result["wall_seconds"],
        "scan_cpu": result["scan"]["cpu_seconds"],
        "scan_wall": result["scan"]["seconds"],
        "documents": result["scan"]["documents"],
        "peak_memory": result["peak_memory"],
    }


def table(folder, work, megabytes):
    rows, documents = write(folder / "formats", work, megabytes)
    print(f"\nformats: the same {documents} real pages, {megabytes:.0f} MB of HTML; the whole job with defaults, decoded MB")
    print(f"{'':40} {'MB':>6} {'cpu s':>7} {'cpu s, 2':>9} {'MB/cpu s':>9} {'scan':>7} {'wall s':>7} {'2 threads':>10} {'job':>6} {'scan':>6}")
    told = []
    for name, source, decoded in rows:
        turns = [[job(source, folder / "formats.atlas", threads) for threads in (1, 2)] for _ in range(TURNS)]
        one, two = ({key: min(turn[at][key] for turn in turns) for key in turns[0][0]} for at in (0, 1))
        row = {
            "name": name,
            "decoded_bytes": decoded,
            "one": one,
            "two": two,
            "mb_per_cpu_second": decoded / one["cpu_seconds"] / 1e6,
            "scan_mb_per_cpu_second": decoded / one["scan_cpu"] / 1e6,
            "two_threads": one["wall_seconds"] / two["wall_seconds"],
            "two_threads_scan": one["scan_wall"] / two["scan_wall"],
        }
        told.append(row)
        print(
            f"{name:40} {decoded / 1e6:6.0f} {one['cpu_seconds']:7.2f} {two['cpu_seconds']:9.2f} {row['mb_per_cpu_second']:9.1f} "
            f"{row['scan_mb_per_cpu_second']:7.1f} {one['wall_seconds']:7.2f} {two['wall_seconds']:10.2f} "
            f"{row['two_threads']:5.2f}x {row['two_threads_scan']:5.2f}x"
        )
    print(f"two threads against one: {WANTED} times is wanted, on a machine that has two cores to itself")
    return {"pages": documents, "rows": told}
