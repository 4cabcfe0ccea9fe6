"""A client that means no harm, in a process of its own: how long it waits while others attack.

`python -m hostile.probe HOST PORT TOKEN WORD` asks until its input ends, then prints what it saw as JSON.
"""

import http.client
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

# A request that takes longer counts as one that was never answered.
PATIENCE = 30


class Probe:
    """Asks for as long as the `with` block lasts."""

    def __init__(self, address, token, word):
        arguments = [sys.executable, "-m", "hostile.probe", address[0], str(address[1]), token, word]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        self.process = subprocess.Popen(arguments, env=environment, **pipes)
        self.process.stdout.readline()
        self.seen = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            # Input that ends is the sign to stop.
            out, _ = self.process.communicate(timeout=2 * PATIENCE)
            self.seen = json.loads(out)
        finally:
            self.process.kill()
            self.process.wait()


def ask(host, port, token, word, number):
    """One request of its own connection: a search, and now and then a check of a document."""
    headers = {"Authorization": f"Bearer {token}", "Host": f"localhost:{port}"}
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    start = time.monotonic()
    try:
        if number % 3:
            # Never the same twice: what is remembered costs nothing.
            connection.request("GET", f"/search?q={word}+{number}", headers=headers)
        else:
            body = json.dumps(
                {"documents": [{"name": "probe", "text": f"{word} and a few words more {number}"}]}
            )
            connection.request(
                "POST", "/api/v1/seen/check", body, {**headers, "Content-Type": "application/json"}
            )
        answer = connection.getresponse()
        answer.read()
        return time.monotonic() - start, answer.status
    except (OSError, http.client.HTTPException):
        return time.monotonic() - start, 0
    finally:
        connection.close()


def main():
    host, port, token, word = sys.argv[1:]
    seen = [ask(host, int(port), token, word, 1)]
    print("ready", flush=True)
    number = 0
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        seen.append(ask(host, int(port), token, word, number))
        number += 1
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
