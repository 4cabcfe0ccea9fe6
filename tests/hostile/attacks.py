"""Attacks on a server. Each sends many requests and says what should not have happened.

An attack gets the server and a `Strike`, which counts requests and collects problems.
"""

import contextlib
import io
import json
import socket
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import payloads
from .server import TOKEN, Server, statuses

ALLOWED = "search.example.org"
# What only the files of the machine and the server itself know.
SECRETS = (b"root:x:", TOKEN.encode())


@dataclass
class Strike:
    """One attack and what came of it."""

    server: Server
    rng: object
    verdict: object
    # 1 in the large run, less in the small one.
    scale: float
    big_pages: tuple[str, str]
    # Pages that are PDF, and take much to read.
    papers: tuple[str, str]

    def sent(self, count=1):
        self.verdict.counts["requests"] += count

    def many(self, count):
        return max(3, int(count * self.scale))

    def problem(self, text):
        self.verdict.problems.append(text)

    def raw(self, data, **options):
        """Sends bytes; nothing may be answered with a fault of the server."""
        self.sent()
        received = self.server.raw(data, **options)
        faults = [status for status in statuses(received) if status >= 500]
        if faults:
            self.problem(f"{data[:120]!r} is answered with {faults}: {received[-200:]!r}")
        if any(secret in received for secret in SECRETS):
            self.problem(f"{data[:120]!r} is answered with a secret")
        return received

    def expect(self, allowed, method, path, body=None, **headers):
        """Asks and expects one of these statuses."""
        self.sent()
        status, answer = self.server.request(method, path, body, timeout=40, **headers)
        if status not in allowed:
            self.problem(
                f"{method} {path[:120]} {headers} is answered {status}, not {sorted(allowed)}: {answer[:160]!r}"
            )
        if any(secret in answer for secret in SECRETS):
            self.problem(f"{method} {path[:120]} is answered with a secret")
        return status, answer

    def lines(self, *lines, body=b"", **options):
        return self.raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body, **options)


REFUSED = {400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 413, 414, 415, 417, 421, 422, 429, 431}
FINE = {200, 303, 302, *REFUSED}


def malformed(strike):
    """Bytes that are no requests, or nearly requests."""
    sound = f"GET /search?q=a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()
    fixed = [
        b"\0" * 5000,
        b"\r\n" * 5000 + sound,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1 x\r\nHost: localhost\r\n\r\n",
        b"GE\0T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /%zz%00%0d%0a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 200,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"X" * 70000 + b" / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET / HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        b"GET / HTTP/1.1\rHost: localhost\r\r",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ]
    # What hangs is the business of other attacks: this one hangs up.
    for data in fixed:
        strike.raw(data, timeout=0.5)
    for _ in range(strike.many(80)):
        data = bytearray(sound)
        for _ in range(strike.rng.randint(1, 6)):
            data[strike.rng.randrange(len(data))] = strike.rng.randrange(256)
        strike.raw(bytes(data), timeout=0.3)


def smuggling(strike):
    """Two opinions of where a request ends."""
    hidden = b"GET /api/v1/seen/stats HTTP/1.1\r\nHost: localhost\r\n\r\n"
    chunk = b"0\r\n\r\n" + hidden
    pairs = [
        (["Content-Length: 6", "Transfer-Encoding: chunked"], b"0\r\n\r\nG"),
        (["Content-Length: 4", "Transfer-Encoding: chunked"], chunk),
        (["Content-Length: 0", "Content-Length: 60"], hidden),
        (["Content-Length: 5, 60"], b"hello" + hidden),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], chunk),
        (["Transfer-Encoding: xchunked"], chunk),
        (["Transfer-Encoding:\x0bchunked"], chunk),
        (["Transfer-Encoding: chunked, identity"], chunk),
        (["Content-Length: +5"], b"hello" + hidden),
        (["Content-Length: -1"], hidden),
        (["Content-Length: 0x5"], b"hello" + hidden),
        (["Content-Length: 99999999999999999999"], b"hello"),
        (["Transfer-Encoding: chunked"], b"ffffffffffffffff\r\nhello"),
        (["Transfer-Encoding: chunked"], b"5;" + b"x" * 100_000 + b"\r\nhello\r\n" + chunk),
        (["Transfer-Encoding: chunked"], b"-5\r\nhello\r\n" + chunk),
        (["Transfer-Encoding: chunked"], b"0\r\n" + b"X: y\r\n" * 20_000 + b"\r\n"),
    ]
    for _ in range(strike.many(4)):
        for headers, body in pairs:
            head = ["POST /sign-in HTTP/1.1", "Host: localhost", "Content-Type: text/plain", *headers]
            received = strike.lines(*head, body=body, timeout=0.4)
            lengths = [header for header in headers if header.startswith(("Content-Length", "Transfer"))]
            if len(lengths) > 1 and 200 in statuses(received):
                strike.problem(f"{headers} is answered with 200")


def large_headers(strike):
    """Headers, URLs and cookies of a megabyte, and thousands of them."""
    shapes = [
        ["GET / HTTP/1.1", "Host: localhost", "X: " + "x" * 1_000_000],
        ["GET / HTTP/1.1", "Host: localhost", *[f"X-{number}: y" for number in range(20_000)]],
        ["GET /" + "a" * 1_000_000 + " HTTP/1.1", "Host: localhost"],
        ["GET /?" + "a=b&" * 15_000 + " HTTP/1.1", "Host: localhost", "Connection: close"],
        [
            "GET / HTTP/1.1",
            "Host: localhost",
            "Cookie: " + "onionskin_session=x; " * 2500,
            "Connection: close",
        ],
        ["GET / HTTP/1.1", "Host: " + "l" * 60_000, "Connection: close"],
        ["GET / HTTP/1.1", "Host: localhost", "Authorization: Bearer " + "t" * 60_000, "Connection: close"],
        [
            "GET / HTTP/1.1",
            "Host: localhost",
            "Accept-Encoding: " + "gzip;q=0.1," * 5000,
            "Connection: close",
        ],
        [
            "GET /downloads/report/a HTTP/1.1",
            "Host: localhost",
            "Range: bytes=" + "0-1," * 10_000,
            "Connection: close",
        ],
    ]
    for _ in range(strike.many(8)):
        for shape in shapes:
            strike.lines(*shape, timeout=2)


def queries(strike):
    """Searches in a syntax that is not one, very long, or for everything at once."""
    shapes = [
        '"' * 2000,
        "(" * 3000 + "a" + ")" * 3000,
        "a " * 5000,
        "-a " * 2000,
        "-" * 3000,
        "a* *a * ?",
        "site:" * 1000,
        'site:"a b" -site:c',
        " ".join(f"w{number}" for number in range(3000)),
        "\0\x01\x02",
        "漢" * 4000,
        "a\u0301" * 3000,
        "\u202eabc\u200b\ufeff",
        "title:x AND (b OR c) NOT d^99999999999",
        "[a TO z] {1 TO *}",
        "/.*.*.*.*x/",
        'a~99 "a b"~99999999',
        "'; DROP TABLE documents; --",
        "<script>alert(1)</script>",
    ]
    names = ["q", "page", "per_page", "group", "fold", "sort", "site"]
    for _ in range(strike.many(4)):
        for text in shapes:
            path = strike.rng.choice(["/search", "/api/v1/search"])
            _, body = strike.expect(
                FINE, "GET", f"{path}?q={urllib.parse.quote(text)[:60_000]}", Authorization=f"Bearer {TOKEN}"
            )
            if b"<script>alert" in body:
                strike.problem("a query comes back as a script")
        for name in names:
            value = strike.rng.choice(
                ["-1", "99999999999999999999", "1e309", "", "%00", "NaN", "18446744073709551615"]
            )
            path = strike.rng.choice(
                ["/search", "/clusters", "/collections", "/api/v1/search", "/api/v1/clusters"]
            )
            strike.expect(FINE, "GET", f"{path}?q=a&{name}={value}", Authorization=f"Bearer {TOKEN}")


def held_connections(strike, count, first, seconds, drip=b""):
    """Opens connections that begin a request and do not end it, and drips bytes into them."""
    held = []
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            with contextlib.suppress(OSError):
                one = stack.enter_context(contextlib.closing(socket.socket()))
                one.settimeout(2)
                one.connect(strike.server.address)
                one.sendall(first)
                one.setblocking(False)
                held.append(one)
        strike.sent(len(held))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for one in held if drip else ():
                with contextlib.suppress(OSError):
                    one.send(drip)
            time.sleep(0.3)
        return [received_from(one) for one in held]


def received_from(one):
    with contextlib.suppress(OSError):
        return one.recv(4096)
    return b""


def slow_headers(strike):
    """Connections that send a header byte by byte."""
    held_connections(strike, strike.many(1100), b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", 4, b"x")


def slow_bodies(strike):
    """Connections that promise a body and send it byte by byte."""
    path = strike.rng.choice(["/sign-in", "/api/v1/seen/check", "/api/v1/seen/add"])
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
    held_connections(strike, strike.many(1100), head.encode() + b'{"docu', 4, b"x")


def silent(strike):
    """Connections that say nothing."""
    held_connections(strike, strike.many(1500), b"", 3)


def unfinished_sign_ins(strike):
    """Sign-ins with bodies of 15 MiB that do not end."""
    count, size = 20, 15 << 20
    head = f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {size + 1}\r\n\r\n"
    body = b"token=" + b"x" * (size - 6)

    def send(_):
        strike.sent()
        with contextlib.suppress(OSError), socket.create_connection(strike.server.address, timeout=4) as one:
            try:
                one.sendall(head.encode() + body)
            except OSError:
                return ["refused"]
            one.settimeout(1.5)
            try:
                return statuses(one.recv(4096)) or ["refused"]
            except TimeoutError:
                # It waits for more, and that is too much for a word of sixteen characters.
                return ["taken"]
        return ["refused"]

    with ThreadPoolExecutor(count) as pool:
        answers = [answer for found in pool.map(send, range(count)) for answer in found]
    taken = answers.count("taken")
    if taken:
        strike.problem(f"{taken} of {count} bodies of 15 MiB are taken from callers who have not signed in")


def sign_in_flood(strike):
    """Guesses at the token as fast as they are answered."""
    body = b"token=wrong-wrong-wrong-wrong"
    head = f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    # A stranger, whose address is not that of the other client. It has ten guesses at once.
    guesses, count, at_once, per_second = 0, max(300, strike.many(600)), 30, 5
    stranger = ("127.0.0.2", 0)
    start = time.monotonic()
    address = strike.server.address
    with contextlib.suppress(OSError), socket.create_connection(address, 2, stranger) as one:
        for _ in range(count):
            if time.monotonic() - start > 5:
                break
            one.sendall(head.encode() + body)
            strike.sent()
            received = one.recv(65536)
            if not received:
                break
            if 429 in statuses(received) or 503 in statuses(received):
                break
            guesses += 1
    seconds = time.monotonic() - start
    if guesses > at_once + per_second * seconds:
        strike.problem(f"{guesses} guesses are answered in {seconds:.1f} seconds")


def compare(strike):
    """Comparisons of two large pages, or of two PDFs, many at a time."""
    paths = []
    for pages in (strike.big_pages, strike.papers):
        a, b = (urllib.parse.quote(page, safe="") for page in pages)
        paths += [f"/compare?a={a}&b={b}", f"/api/v1/explain?a={a}&b={b}"]
    count = strike.many(60)

    def ask(number):
        strike.sent()
        # That it takes too long may be the answer; a fault or a hung connection may not.
        status, body = strike.server.request(
            "GET", paths[number % len(paths)], timeout=60, Authorization=f"Bearer {TOKEN}"
        )
        return status

    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(ask, range(count)))
    odd = [status for status in found if status not in {*FINE, 503, 504}]
    if odd:
        strike.problem(f"{len(odd)} of {count} comparisons end with {sorted(set(odd))}")


def hosts(strike):
    """Names in `Host` that are not this server's, or are two."""
    port = strike.server.address[1]
    end = ["Connection: close"]
    refused = [
        ["Host: evil.example"],
        [f"Host: evil.example:{port}"],
        [f"Host: 127.0.0.1:{port}@evil.example"],
        [f"Host: user@127.0.0.1:{port}"],
        [f"Host: localhost:{port}", "Host: evil.example"],
        ["Host: evil.example", f"Host: localhost:{port}"],
        ["Host: localhost", "Host: localhost"],
        ["Host: localhost.evil.example"],
        ["Host: evil.example#localhost"],
        ["Host: evil.example/localhost"],
        ["Host: localhost, evil.example"],
        ["Host: 127.0.0.1.evil.example"],
        ["Host: 128.0.0.1"],
        ["Host: [::2]"],
        ["Host: [::1"],
        ["Host: "],
        [],
        ["Host: localhost:notaport"],
        [f"Host: localhost:{port}:80"],
        ["Host: %6cocalhost"],
        [f"Host: {ALLOWED}.evil.example"],
        [f"Host: evil.{ALLOWED}"],
        ["X-Forwarded-Host: localhost", "Host: evil.example"],
    ]
    for _ in range(strike.many(4)):
        for host in refused:
            received = strike.lines(
                "GET /search?q=a HTTP/1.1", *host, f"Authorization: Bearer {TOKEN}", *end, timeout=2
            )
            if set(statuses(received)) & {200, 302, 303}:
                strike.problem(f"{host} is answered with {statuses(received)}")
        for target in (
            f"http://evil.example:{port}/search?q=a",
            f"http://localhost:{port}@evil.example/search?q=a",
        ):
            received = strike.lines(f"GET {target} HTTP/1.1", f"Host: localhost:{port}", *end, timeout=2)
            if 200 in statuses(received):
                strike.problem(f"GET {target} is answered with 200")
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", ALLOWED):
        received = strike.lines(
            "GET /search?q=a HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {TOKEN}", *end
        )
        if statuses(received) != [200]:
            strike.problem(f"`Host: {host}` with the token is answered {statuses(received)}")


def cross_site(strike):
    """What a page of another site makes a browser ask."""
    marks = {"Sec_Fetch_Site": "cross-site", "Referer": "http://evil.example/"}
    image = {**marks, "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}
    script = {**marks, "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty", "Origin": "http://evil.example"}
    a, b = (urllib.parse.quote(page, safe="") for page in strike.big_pages)
    paths = [
        f"/compare?a={a}&b={b}",
        f"/api/v1/explain?a={a}&b={b}",
        "/api/v1/search?q=a",
        "/api/v1/clusters",
    ]
    paths += ["/downloads/tables/documents/0.parquet", "/downloads/filters/json"]
    for _ in range(strike.many(4)):
        for path in paths:
            strike.expect(REFUSED, "GET", path, **strike.rng.choice([image, script]))
        for path in ("/api/v1/seen/check", "/api/v1/seen/add", "/seen", "/sign-out"):
            strike.expect(REFUSED, "POST", path, b'{"documents":[]}', **script, Content_Type="text/plain")
            strike.expect(
                REFUSED, "POST", path, b"text=a", **image, Content_Type="application/x-www-form-urlencoded"
            )


def traversal(strike):
    """Paths that lead out of the folders of the server."""
    up = [
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%5c",
        "..\\",
        "....//",
        "%252e%252e%252f",
        "..;/",
        "%c0%ae%c0%ae/",
        "./.././",
    ]
    roots = [
        "/",
        "/assets/",
        "/downloads/report/",
        "/downloads/tables/documents/",
        "/downloads/filters/",
        "/downloads/tables/",
    ]
    files = ["etc/passwd", "token", "manifest.json", "../token", "proc/self/environ"]
    for root in roots:
        for climb in up if strike.scale >= 1 else strike.rng.sample(up, 3):
            path = root + climb * strike.rng.randint(1, 9) + strike.rng.choice(files)
            received = strike.lines(
                f"GET {path} HTTP/1.1",
                "Host: localhost",
                f"Authorization: Bearer {TOKEN}",
                "Connection: close",
                timeout=2,
            )
            # `/` with dots in it may be taken for `/`; what counts is that no file comes.
            if 200 in statuses(received) and b"<html" not in received:
                strike.problem(f"GET {path} is answered with a file: {received[-200:]!r}")
    for path in (
        "/downloads/report//etc/passwd",
        "/downloads/tables/..%00/0.parquet",
        "/assets/%00",
        "/documents/0/../../token",
    ):
        strike.lines(f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", timeout=2)


def bodies(strike):
    """JSON and Parquet that are too deep, too many, too large or of the wrong kind."""
    depth = 200_000
    shapes = [
        ("application/json", b"[" * depth),
        ("application/json", b'{"documents":' + b"[" * depth + b"]" * depth + b"}"),
        (
            "application/json",
            b'{"documents":[{"text":"a","x":' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}]}",
        ),
        ("application/json", b'{"documents":[' + b",".join([b'{"text":"a b c"}'] * 10_001) + b"]}"),
        ("application/json", b'{"documents":[{"name":"n","text":"' + b"w " * 4_000_000 + b'"}]}'),
        ("application/json", b'{"documents":[{"name":"n","html":"' + b"<b>" * 2_000_000 + b'"}]}'),
        ("application/json", b'{"documents":[{"text":"\xff\xfe"}]}'),
        ("application/json", b'{"documents":null}'),
        ("application/json", b'{"documents":[],"threshold":1e999}'),
        ("application/json", b'{"documents":[{"name":' + b"9" * 100_000 + b',"text":"a"}]}'),
        ("application/json", b""),
        ("application/x-ndjson", b'{"text":"a"}\n' * 12_000),
        ("application/x-ndjson", b"\n" * 1_000_000),
        ("application/x-ndjson", b'{"text":"' + b"a" * (17 << 20)),
        ("application/vnd.apache.parquet", b"PAR1" + b"\xff" * 1000 + b"PAR1"),
        ("application/vnd.apache.parquet", parquet_rows(2_000_000)),
        ("text/plain", b"documents"),
        ("application/x-www-form-urlencoded", b"documents=" + b"%00" * 100_000),
    ]
    for kind, body in shapes:
        for path in ("/api/v1/seen/check", "/api/v1/seen/add", "/api/v1/seen/remove"):
            strike.sent()
            status, answer = strike.server.request(
                "POST", path, body, timeout=40, Content_Type=kind, Authorization=f"Bearer {TOKEN}"
            )
            if status >= 500:
                strike.problem(f"POST {path} of {kind} {body[:40]!r} is answered {status}: {answer[:160]!r}")
    gzipped = {
        "Content_Encoding": "gzip",
        "Content_Type": "application/json",
        "Authorization": f"Bearer {TOKEN}",
    }
    strike.expect(REFUSED, "POST", "/api/v1/seen/check", b"\x1f\x8b" + b"\0" * 100, **gzipped)


def unpacking(strike):
    """Parquet of a few kilobytes that is a page of megabytes, or many rows of one long text."""
    shapes = [
        parquet_of("word " * strike.many(20_000_000), 3, dictionary=False),
        parquet_of("word " * strike.many(20_000_000), 3, dictionary=True),
        parquet_of("word " * 400_000, 9_000, dictionary=True),
        parquet_of("w " * 100_000, 9_000, dictionary=True),
    ]
    for body in shapes:
        for path in ("/api/v1/seen/check", "/api/v1/seen/add"):
            headers = {"Content_Type": "application/vnd.apache.parquet", "Authorization": f"Bearer {TOKEN}"}
            strike.expect({413}, "POST", path, body, **headers)


def many_words(strike):
    """Checks of texts of millions of words of one letter, eight at a time."""
    body = b'{"documents":[{"name":"n","text":"' + b"a " * 8_000_000 + b'"}]}'
    kinds = [
        ("application/json", body),
        ("application/x-ndjson", b'{"name":"n","text":"' + b"a " * 8_000_000 + b'"}\n'),
        ("text/html", b"<p>" + b"a " * 8_000_000),
    ]

    def check(number):
        strike.sent()
        kind, sent = kinds[number % len(kinds)]
        headers = {"Content_Type": kind, "Authorization": f"Bearer {TOKEN}"}
        return strike.server.request("POST", "/api/v1/seen/check", sent, timeout=60, **headers)[0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(check, range(max(8, strike.many(40)))))
    odd = sorted({status for status in found if status not in {200, 413, 503}})
    if odd:
        strike.problem(f"checks of many words are answered {odd}")


def parquet_of(text, rows, *, dictionary):
    """A body in which every row is this text."""
    out = io.BytesIO()
    payloads.parquet(out, text, rows, dictionary=dictionary, page_bytes=1 << 30)
    return out.getvalue()


def parquet_rows(count):
    """A body of a few kilobytes with millions of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"] * count, "name": ["n"] * count}), out, row_group_size=count)
    return out.getvalue()


def tokens(strike):
    """Writing without the token, or with something like it."""
    body = json.dumps({"documents": [{"name": "intruder", "text": "not to be added at all"}]})
    guesses = [
        "",
        TOKEN[:-1],
        TOKEN + "x",
        TOKEN.upper(),
        "*",
        "null",
        f"{TOKEN} {TOKEN}",
        TOKEN.encode().hex(),
    ]
    headers = [{"Authorization": f"Bearer {guess}"} for guess in guesses]
    headers += [
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"onionskin_session={TOKEN}"},
        {},
    ]
    headers += [{"X_Token": TOKEN}, {"Proxy_Authorization": f"Bearer {TOKEN}"}]
    for header in headers:
        for path in ("/api/v1/seen/add", "/api/v1/seen/remove", f"/api/v1/seen/add?token={TOKEN}"):
            strike.expect({401, 403, 429}, "POST", path, body, Content_Type="application/json", **header)


def proxied(strike):
    """Reading without the token under a name that is not this machine's, as through a proxy."""
    paths = [
        "/",
        "/search?q=a",
        "/metrics",
        "/clusters",
        "/api/v1/clusters",
        "/api/v1/openapi.json",
        "/report",
        "/downloads",
    ]
    paths += ["/downloads/tables/documents/0.parquet", "/documents/0", "/api/v1/seen/stats"]
    others = [{"Host": ALLOWED}, {"Host": ALLOWED, "X_Forwarded_For": "203.0.113.9"}]
    others += [{"X_Forwarded_For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}]
    for other in others:
        for path in paths:
            strike.expect({302, 303, 307, 401, 403}, "GET", path, **other)
        body = json.dumps({"documents": [{"name": "n", "text": "some words"}]})
        strike.expect(
            {401, 403}, "POST", "/api/v1/seen/check", body, Content_Type="application/json", **other
        )
    strike.expect({200}, "GET", "/search?q=a", Host=ALLOWED, Authorization=f"Bearer {TOKEN}")
    strike.expect({200}, "GET", "/health", Host=ALLOWED)


def unread(strike):
    """Thousands of requests on few connections whose answers nobody reads."""
    one = f"GET /downloads/tables/documents/0.parquet HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    count = strike.many(100)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            with contextlib.suppress(OSError):
                stream = stack.enter_context(socket.create_connection(strike.server.address, timeout=2))
                stream.setblocking(False)
                with contextlib.suppress(OSError):
                    stream.send(one * (count // 10 + 1))
                strike.sent(count // 10 + 1)
        time.sleep(2)


ATTACKS = [
    hosts,
    slow_bodies,
    malformed,
    compare,
    proxied,
    unfinished_sign_ins,
    sign_in_flood,
    queries,
    smuggling,
    large_headers,
    slow_headers,
    traversal,
    bodies,
    unpacking,
    many_words,
    tokens,
    silent,
    unread,
]
