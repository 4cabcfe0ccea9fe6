"""Inputs that are small on disk and large, deep or endless inside."""

import gzip
import io
import json
import zipfile
import zlib

DATE = "2024-05-06T07:08:09Z"


def warc_record(kind, fields, block):
    """One WARC record."""
    head = [f"WARC/1.1\r\nWARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{zlib.crc32(block):032x}>"]
    head += [f"{name}: {value}" for name, value in fields.items()]
    head += [f"Content-Length: {len(block)}", "", ""]
    return "\r\n".join(head).encode() + block + b"\r\n\r\n"


def response(url, body, date=DATE, content_type="text/html; charset=utf-8", **headers):
    """A crawled page."""
    if isinstance(body, str):
        body = body.encode()
    lines = [f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    block = "\r\n".join([*lines, "", ""]).encode() + body
    fields = {"WARC-Target-URI": url, "WARC-Date": date, "Content-Type": "application/http; msgtype=response"}
    return warc_record("response", fields, block)


def page(text, title="t"):
    return f"<html><head><title>{title}</title></head><body><p>{text}</p></body></html>"


def gzipped(chunk, count, level=1):
    """gzip of one chunk many times over, without ever holding it whole."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    out, many = [], chunk * max(1, min(count, (1 << 20) // max(1, len(chunk))))
    per = len(many) // len(chunk)
    for _ in range(count // per):
        out.append(packer.compress(many))
    out.append(packer.compress(chunk * (count % per)))
    return b"".join(out) + packer.flush()


def flated(chunk, count):
    """The same as a zlib stream, as PDF has it."""
    packer = zlib.compressobj(9)
    out = [packer.compress(chunk) for _ in range(count)]
    return b"".join(out) + packer.flush()


def layers(body, names):
    """A body with content codings on top of each other; the first name is applied first."""
    for name in names:
        if name in ("gzip", "x-gzip"):
            body = gzip.compress(body, 6, mtime=0)
        elif name == "deflate":
            body = zlib.compress(body, 6)
        elif name == "raw-deflate":
            packer = zlib.compressobj(6, zlib.DEFLATED, -15)
            body = packer.compress(body) + packer.flush()
        elif name == "br":
            import brotli

            body = brotli.compress(body, quality=1)
        elif name == "zstd":
            body = zstd(body)
    return body


def zstd(body, level=3):
    import pyarrow

    return pyarrow.Codec("zstd", compression_level=level).compress(body, asbytes=True)


def zstd_window(log, tail=b"x"):
    """A zstd frame that asks for a window of 2^log bytes and has hardly any content."""
    block = (1 | len(tail) << 3).to_bytes(3, "little") + tail
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, (log - 10) << 3]) + block


def zstd_runs(total):
    """A zstd frame of runs of one byte: 128 KiB for each four bytes."""
    most, blocks = 128 << 10, []
    while total > 0:
        size = min(most, total)
        total -= size
        blocks.append((int(total == 0) | 1 << 1 | size << 3).to_bytes(3, "little") + b"a")
    return b"\x28\xb5\x2f\xfd" + bytes([0x00, (17 - 10) << 3]) + b"".join(blocks)


def pdf(objects, extra=b""):
    """A PDF of these objects; the first is the catalogue."""
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.7\n")
    for number, content in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n" % number + content + b"\nendobj\n")
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1) + extra)
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def stream(content, entries=b"/Filter /FlateDecode"):
    return b"<< /Length %d " % len(content) + entries + b" >>\nstream\n" + content + b"\nendstream"


def pdf_page(contents, more=()):
    """A PDF of one page whose contents are these stream objects."""
    first = 5
    refs = b" ".join(b"%d 0 R" % (first + at) for at in range(len(contents)))
    return pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents [" + refs + b"] "
            b"/Resources << /Font << /F1 4 0 R >> >> >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            *contents,
            *more,
        ]
    )


def office(parts):
    """A zip of parts given as names and chunks with counts."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, (chunk, count) in parts.items():
            with archive.open(name, "w") as part:
                for _ in range(count):
                    part.write(chunk)
    return out.getvalue()


CONTENT_TYPES = (
    b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="xml" ContentType="application/xml"/>'
    b'<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    b'wordprocessingml.document.main+xml"/></Types>'
)
WORD = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(chunk, count, prolog=b""):
    """A text document whose body is one chunk many times over."""
    parts = {
        "[Content_Types].xml": (CONTENT_TYPES, 1),
        "word/document.xml": (b"", 0),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, (content, times) in list(parts.items())[:1]:
            archive.writestr(name, content * times)
        with archive.open("word/document.xml", "w") as part:
            part.write(b'<?xml version="1.0"?>' + prolog + b"<w:document " + WORD + b"><w:body><w:p>")
            for _ in range(count):
                part.write(chunk)
            part.write(b"</w:p></w:body></w:document>")
    return out.getvalue()


def parquet(path, text, rows, *, dictionary=True, page_bytes=None):
    """A Parquet file, or a stream, in which every row is this text: as a dictionary, or written out each time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if dictionary:
        zeros = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
        column = pa.DictionaryArray.from_arrays(zeros, pa.array([text]))
    else:
        column = pa.array([text] * rows, pa.large_string())
    # Without Arrow's own schema, readers see plain strings.
    options = {"use_dictionary": dictionary, "compression": "zstd", "data_page_size": page_bytes}
    pq.write_table(pa.table({"text": column}), path, row_group_size=rows, store_schema=False, **options)


def json_line(**fields):
    return json.dumps(fields).encode() + b"\n"
