"""Searching a web with mirrors under load: `onionskin serve`, asked by wrk from 50 connections that never pause.

Two kinds of traffic, both of queries made of words of random pages (one to three words): `distinct`, where no query comes twice, so that nothing is remembered; and `zipf`, where the n-th query is asked 1/n as often as the
first, which is how people ask. Then 10,000 connections that say nothing, beside which the server must answer. wrk runs on the same cores.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import common

LUA = """local q = {%s}
local at = 0
function request() at = at + 1; return wrk.format("GET", "/search?q=" .. q[at %% #q + 1]) end
"""


def get(url, **query):
    return json.load(urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}" if query else url, timeout=60))


def queries(base, documents, wanted):
    """Different queries, of words that stand on one page."""
    found = {}
    while len(found) < wanted:
        text = get(f"{base}/api/v1/documents/{random.randrange(documents)}")["text"] or ""
        words = re.findall(r"[a-z]{2,}", text)
        if len(words) < 30:
            continue
        for n in [1, 2, 3, 2, 2, 3, 3, 2, 1, 2, 3, 2, 3]:
            at = random.randrange(len(words) - n)
            found[" ".join(random.sample(words, 2) if n == 2 else words[at : at + n])] = True
    return list(found)


def load(base, asked, connections, seconds, folder):
    """What wrk tells of a list of queries."""
    script = folder / "queries.lua"
    script.write_text(LUA % ",".join(json.dumps(urllib.parse.quote_plus(query)) for query in asked))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), base]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    milliseconds = lambda value, unit: float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]
    latency = {f"p{share}_ms": milliseconds(*re.search(rf"{share}%\s+([\d.]+)(us|ms|s)", told).groups()) for share in [50, 90, 99]}
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    return {"requests_per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1)), "failed": int(failed.group(1)) if failed else 0, **latency}


def memory(pid):
    """Memory of a process, its own and what is mapped from files."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssFile"))}
    return {"own_mb": kilobytes["RssAnon"] // 1024, "mapped_mb": kilobytes["RssFile"] // 1024}


def silent(port, wanted):
    """Opens connections that say nothing, as many as this process may; how long others then wait for an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    for _ in range(wanted):
        one = socket.socket()
        one.setblocking(False)
        try:
            one.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass
        except OSError:
            break
        held.append(one)
    waits = []
    for _ in range(5):
        start = time.monotonic()
        get(f"http://127.0.0.1:{port}/health")
        waits.append(round(time.monotonic() - start, 3))
    for one in held:
        one.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {"connections": len(held), "waited_seconds": waits}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-serve.json")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=40_000)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--atlas", type=pathlib.Path, help="an atlas that is there already")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        raise SystemExit("wrk is not installed")
    random.seed(5)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        atlas = options.atlas or folder / "atlas"
        made = {}
        if not options.atlas:
            common.onionskin("generate", "mirrors", "--pages", options.pages, "--format", "warc", "-o", folder / "web", "-q")
            common.onionskin("run", folder / "web", "-o", atlas, "--memory", options.memory, "--no-report", "-q")
        start = time.monotonic()
        command = [os.environ["ONIONSKIN"], "serve", str(atlas), "--listen", "127.0.0.1:0", "--memory", options.memory, "--json", "-q"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        base = json.loads(server.stdout.readline())["url"].rstrip("/")
        made["seconds_to_start"] = round(time.monotonic() - start, 1)
        made["index_bytes"] = sum(file.stat().st_size for file in (atlas / "search").iterdir())
        try:
            documents = json.loads((atlas / "manifest.json").read_text())["tables"]["documents"]["rows"]
            asked = queries(base, documents, options.queries)
            seen = 0
            for query in asked[:200]:
                groups = [hit["group"] for hit in get(f"{base}/api/v1/search", q=query)["results"] if hit["group"] is not None]
                assert len(groups) == len(set(groups)), f"{query}: two replicas of one collection"
                seen += len(groups)
            half = len(asked) // 2
            rows = {"distinct": load(base, asked[:half], options.connections, options.seconds, folder)}
            weights = [1 / (at + 1) for at in range(half)]
            rows["zipf"] = load(base, random.choices(asked[half : 2 * half], weights, k=100_000), options.connections, options.seconds, folder)
            rows["memory"] = memory(server.pid)
            rows["silent"] = silent(int(base.rsplit(":", 1)[1]), 10_000)
        finally:
            server.terminate()
            ended = server.wait(timeout=60)
        result = {"documents": documents, **made, "folded_results_checked": seen, **rows, "exit_code": ended}
        for key, value in result.items():
            print(f"{key}: {value}")
        if options.out:
            common.save(options.out, "serve", result)


if __name__ == "__main__":
    main()
