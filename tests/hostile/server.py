"""A server of the program on loopback, and the simplest of clients."""

import contextlib
import http.client
import json
import shutil
import signal
import socket
import time

from . import program

# A server ends with the thread that started it, even if the suite is killed.
LEASH = ("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()
TOKEN = "correct-horse-battery-staple"


class NotStarted(Exception):
    """The server ended, or never said that it listens."""

    def __init__(self, outcome):
        super().__init__(
            f"`{outcome.command()}` does not listen, exit {outcome.code}: {outcome.stderr[-500:]}"
        )
        self.outcome = outcome


class Server:
    """Runs as long as the `with` block and not a moment longer."""

    def __init__(self, workshop, folder, *arguments, timeout=120):
        fixed = ["serve", "--listen", "127.0.0.1:0", "--json", "--token-file", "token"]
        (folder / "token").write_text(TOKEN + "\n")
        # The most memory of its own until it listened, which is when it makes its index.
        self.peak_before = 0
        self.running = program.Running(workshop.binary, [*fixed, *arguments], folder, wrapper=LEASH)
        try:
            self.address = self._listening(timeout)
        except BaseException:
            self.running.__exit__()
            raise

    def _listening(self, timeout):
        while time.monotonic() - self.running.started < timeout:
            if self.running.ended():
                self.running.wait(5)
                break
            line, newline, _ = self.running.stdout().partition(b"\n")
            if newline:
                host, port = json.loads(line)["address"].rsplit(":", 1)
                return host, int(port)
            self.peak_before = max(self.peak_before, self.own_memory())
            time.sleep(0.005)
        late = not self.running.ended()
        self.running.kill()
        self.running.wait(5)
        raise NotStarted(self.running.outcome(timed_out=late))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.running.__exit__(*error)

    def stop(self, seconds=30):
        """Asks the server to end, and returns what it came to."""
        self.running.signal(signal.SIGTERM)
        late = not self.running.wait(seconds)
        if late:
            self.running.kill()
            self.running.wait(5)
        return self.running.outcome(timed_out=late)

    def own_memory(self):
        """Memory of the server and of what it started that is not mapped from files, in bytes."""
        return program.own_memory(self.running.pid)

    def get(self, path, timeout=60, **headers):
        return self.request("GET", path, timeout=timeout, **headers)

    def request(self, method, path, body=None, timeout=60, **headers):
        """Status and body; status 0 when the server hung up."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body=body, headers=sent)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                return 0, b""

    def raw(self, data, timeout=10, most=1 << 20):
        """Sends bytes as they are and returns what comes back until the server hangs up or is silent."""
        with contextlib.suppress(OSError), socket.create_connection(self.address, timeout=timeout) as stream:
            received = b""
            try:
                stream.sendall(data)
            except OSError:
                pass
            try:
                while len(received) < most:
                    chunk = stream.recv(65536)
                    if not chunk:
                        break
                    received += chunk
            except OSError:
                pass
            return received
        return b""


def statuses(received):
    """The status codes in what a server sent."""
    found = []
    for line in received.split(b"\r\n"):
        if line.startswith(b"HTTP/1.") and len(line) >= 12 and line[9:12].isdigit():
            found.append(int(line[9:12]))
    return found
