"""Hostile requests to a server, while another client measures how long it waits."""

import contextlib
import json
import resource
import threading
import time

from . import attacks, payloads, program, suite, webs
from .payloads import page, response
from .probe import Probe
from .program import MIB
from .server import TOKEN, NotStarted, Server

# Memory of the server; more where the program says that it needs more.
MEMORY = 256 * MIB
ALLOWANCE = 64 * MIB


class Requests(suite.Part):
    """A case is an attack of many requests on a server that all cases share."""

    name = "requests"
    # Two rounds of all attacks are more than 5,000 requests.
    small, large, share = len(attacks.ATTACKS) + 3, 2 * (len(attacks.ATTACKS) + 3), 2
    promised = {"requests": 5_000}
    parallel = False

    def prepare(self):
        self.folder = self.workshop.folder / "served"
        self.folder.mkdir()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        inputs = webs.make_inputs(self.workshop, self.folder, 300)
        count = 3_000_000 if self.workshop.is_large else 300_000
        self.big_pages = tuple(f"http://large{number}.org/" for number in range(2))
        rng = self.random(0)
        texts = [" ".join(rng.choices(webs.WORDS, k=count)) for _ in self.big_pages]
        records = [response(url, page(text)) for url, text in zip(self.big_pages, texts, strict=True)]
        self.papers = tuple(f"http://paper{number}.org/a.pdf" for number in range(2))
        for number, url in enumerate(self.papers):
            records.append(response(url, self._paper(number), content_type="application/pdf"))
        (inputs / "large.warc").write_bytes(b"".join(records))
        self.workshop.must("run", "in", "-o", "atlas", "-q", folder=self.folder, timeout=600)
        webs.make_index(self.workshop, self.folder)
        self.server, self.peak, self.waits, self.memory = None, 0, [], MEMORY
        self.stale = False
        self.done = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _paper(self, number):
        """A PDF of a few words, and of blanks that take very much more memory than the server has."""
        words = f"BT /F1 12 Tf (a paper of its own with the number {number}) Tj ET\n".encode()
        count = 400 if self.workshop.is_large else 100
        blanks = payloads.stream(payloads.flated(b" " * MIB, count))
        return payloads.pdf_page([payloads.stream(words, b""), blanks])

    def close(self):
        self.done.set()
        self._stop()

    def _stop(self):
        if self.server:
            self.server.__exit__()
            self.server = None

    def conclude(self):
        """The 99th percentile of all that the other client waited for."""
        if not self.waits:
            return None
        waits = sorted(self.waits)
        p99 = waits[len(waits) * 99 // 100]
        verdict = suite.Verdict("the other client, in all cases")
        verdict.counts["milliseconds p99"] = round(p99 * 1000)
        verdict.expect(p99 < 1, f"its 99th percentile is {p99:.2f} s of {len(waits)} requests")
        return verdict

    def _watch(self):
        """Keeps the peak of the memory of the server and of what it starts."""
        while not self.done.wait(0.02):
            server = self.server
            if server:
                self.peak = max(self.peak, server.own_memory())

    def _running(self):
        if self.stale or (self.server and self.server.running.ended()):
            self._stop()
            self.stale = False
        self.peak = 0
        if not self.server:
            self.server = self._started(["atlas", "--seen", "index", "--allow-host", attacks.ALLOWED])
            self.peak = self.server.peak_before
        return self.server

    def _started(self, arguments):
        """A server with as little memory as it takes."""
        for _ in range(2):
            memory = ["--memory", f"{self.memory // MIB}M"]
            try:
                return Server(self.workshop, self.folder, *arguments, *memory, timeout=300)
            except NotStarted as failed:
                least = program.least_memory(failed.outcome.stderr)
                if not least or least <= self.memory:
                    raise
                self.memory = least
        raise RuntimeError("the least memory that the server names is not enough for it")

    def case(self, number, folder):
        others = [self._token_required, self._read_only, self._cross_site]
        kinds = [*attacks.ATTACKS, *others]
        attack = kinds[number % len(kinds)]
        if attack in others:
            return attack(number)
        verdict = suite.Verdict(attack.__doc__.split("\n")[0].rstrip("."))
        server = self._running()
        scale = 1 if self.workshop.is_large else 0.15
        strike = attacks.Strike(server, self.random(number), verdict, scale, self.big_pages, self.papers)
        with Probe(server.address, TOKEN, webs.WORDS[0]) as probe:
            start = time.monotonic()
            attack(strike)
            # Long enough for the client to have something to compare.
            time.sleep(max(0.0, 1.0 - (time.monotonic() - start)))
        self._judge(verdict, server, probe.seen)
        return verdict

    def _judge(self, verdict, server, seen):
        waits = sorted(wait for wait, _ in seen)
        self.waits += waits
        bad = sorted({status for _, status in seen if status != 200})
        verdict.counts["requests of the other client"] += len(seen)
        verdict.expect(not bad, f"the other client is answered with {bad} of {len(seen)} times")
        # The 99th percentile, and one wait of few.
        slow = [wait for wait in waits if wait >= 1]
        verdict.expect(
            len(slow) <= max(1, len(waits) // 100),
            f"the other client waits {waits[-1]:.1f} s at most, and {len(slow)} of {len(waits)} times a second or more",
        )
        limit = self.memory + ALLOWANCE
        if self.peak > limit:
            # What it keeps is not held against the next attack.
            self.stale = True
        verdict.expect(
            self.peak <= limit, f"memory of its own {self.peak / MIB:.0f} MiB with {self.memory // MIB} MiB"
        )
        if not verdict.expect(
            not server.running.ended(), f"the server ended: {server.running.stderr()[-500:]}"
        ):
            return
        verdict.expect(server.get("/health")[0] == 200, "/health is not answered")
        verdict.expect(
            "panicked" not in server.running.stderr(), "a panic: " + server.running.stderr()[-500:]
        )
        _, metrics = server.get("/metrics", Authorization=f"Bearer {TOKEN}")
        panics = [
            line
            for line in metrics.decode().splitlines()
            if line.startswith("onionskin_panics") and not line.endswith(" 0")
        ]
        verdict.expect(not panics, f"counted: {panics}")

    def _token_required(self, number):
        """Reading with `--require-token` on loopback."""
        verdict = suite.Verdict("reading with --require-token on loopback")
        with self._other(verdict, ["--require-token", "atlas"]) as server:
            if server:
                strike = attacks.Strike(server, self.random(number), verdict, 1, self.big_pages, self.papers)
                for path in (
                    "/",
                    "/search?q=a",
                    "/metrics",
                    "/api/v1/clusters",
                    "/downloads/tables/documents/0.parquet",
                ):
                    strike.expect({302, 303, 307, 401, 403}, "GET", path)
                    strike.expect({200}, "GET", path, Authorization=f"Bearer {TOKEN}")
                strike.expect({200}, "GET", "/health")
        return verdict

    def _read_only(self, number):
        """Adding to an index that is read only."""
        verdict = suite.Verdict("adding to an index that is read only")
        before = webs.digest(self.folder / "index")
        with self._other(verdict, ["--seen", "index", "--seen-read-only"]) as server:
            if server:
                strike = attacks.Strike(server, self.random(number), verdict, 1, self.big_pages, self.papers)
                body = json.dumps({"documents": [{"name": "x", "text": "must not be added"}]})
                headers = {"Content_Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
                strike.expect({200}, "POST", "/api/v1/seen/check", body, **headers)
                for _ in range(strike.many(20)):
                    strike.expect({400, 403, 404, 405, 409}, "POST", "/api/v1/seen/add", body, **headers)
                    strike.expect(
                        {400, 403, 404, 405, 409},
                        "POST",
                        "/api/v1/seen/remove",
                        '{"names":["d2-1"]}',
                        **headers,
                    )
        verdict.expect(webs.digest(self.folder / "index") == before, "the index has changed")
        return verdict

    def _cross_site(self, number):
        """A browser on this machine asks for a page of another site, where reading needs no token."""
        verdict = suite.Verdict("what a page of another site makes a browser ask")
        with self._other(verdict, ["atlas", "--seen", "index"]) as server:
            if server:
                attacks.cross_site(attacks.Strike(server, self.random(number), verdict, 1, self.big_pages, self.papers))
        return verdict

    @contextlib.contextmanager
    def _other(self, verdict, arguments):
        """A server of its own for a case; None when it does not start, which is a failure."""
        self._stop()
        try:
            server = self._started(arguments)
        except NotStarted as failed:
            verdict.problems.append(str(failed))
            yield None
            return
        with server:
            yield server
            outcome = server.stop()
            verdict.expect(
                not outcome.trouble() and outcome.code == 0,
                f"it ends with {outcome.code}: {outcome.last_words()}",
            )
