"""Runs the program within limits and reports what happened to it: exit code, output, peak memory."""

import contextlib
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

# How often memory is looked at, in milliseconds.
SAMPLE_MS = 12
MIB = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What a run of the program came to."""

    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: str
    seconds: float
    timed_out: bool
    # Peak memory of the whole process tree in bytes; 0 when it was not measured.
    peak: int = 0
    # Ended because it took more memory than the machine can give to a test.
    too_large: bool = False

    def trouble(self):
        """What no input may ever cause, or None."""
        if self.too_large:
            return f"stopped when it had {self.peak / MIB:.0f} MiB of memory"
        if self.timed_out:
            return f"no end within {self.seconds:.0f} s"
        if self.code == 101 or "panicked at" in self.stderr:
            return "panic: " + _first_line_with(self.stderr, "panicked")
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        return None

    def command(self):
        return "onionskin " + " ".join(self.arguments)

    def last_words(self):
        """The error, else the last line."""
        lines = [line for line in self.stderr.strip().splitlines() if line]
        errors = [line for line in lines if line.startswith("error")]
        return (errors or lines[-1:] or ["(nothing on stderr)"])[0][:300]


def _first_line_with(text, word):
    return next((line for line in text.splitlines() if word in line), "exit code 101")[:300]


def environment():
    """The environment of the program: nothing from outside decides what it does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ONIONSKIN", "RUST_"))}
    return {**kept, "NO_COLOR": "1", "TZ": "UTC"}


class Running:
    """A started program. It and everything that it started ends with the `with` block."""

    def __init__(self, binary, arguments, folder, *, stdin=None, stdout=None, most_memory=None, wrapper=()):
        self.arguments = tuple(map(str, arguments))
        self._out = stdout if stdout is not None else tempfile.TemporaryFile()
        self._own_out = stdout is None
        self._err = tempfile.TemporaryFile()
        # Memory is measured where there is a limit, beyond which the program is killed.
        self._most_memory = most_memory
        self._too_large = False
        self._seen = {}
        self._total = 0
        self._usage = 0
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*wrapper, str(binary), *self.arguments],
            cwd=folder,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env=environment(),
            start_new_session=True,
        )
        self._end = os.pidfd_open(self.process.pid)
        self._poll = select.poll()
        self._poll.register(self._end, select.POLLIN)
        self._code = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.wait(30)
        for file in (self._out, self._err):
            if file is not self._out or self._own_out:
                file.close()

    @property
    def pid(self):
        return self.process.pid

    def ended(self):
        return self._code is not None or bool(self._poll.poll(0))

    def signal(self, number):
        if not self.ended():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        """Kills the process and all that it started."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds):
        """Waits for the end; whether it came."""
        if self._code is not None:
            return True
        deadline = time.monotonic() + seconds
        measured = self._most_memory is not None
        while True:
            left = deadline - time.monotonic()
            if self._poll.poll(max(0.0, min(left * 1000, SAMPLE_MS) if measured else left * 1000)):
                break
            if measured and self.sample() > self._most_memory:
                self._too_large = True
                self.kill()
            if left <= 0:
                return False
        # The process is a zombie here and still holds its group: nothing it started stays behind.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self._usage = usage.ru_maxrss * 1024
        self._code = self.process.returncode = os.waitstatus_to_exitcode(status)
        os.close(self._end)
        return True

    def sample(self):
        """Looks at the memory of the process and of those that it started."""
        now = 0
        for pid in _tree(self.pid):
            high, current = _memory(pid)
            self._seen[pid] = max(self._seen.get(pid, 0), high)
            now += current
        self._total = max(self._total, now)
        return now

    def peak(self):
        """The peak of the tree, as far as it was seen."""
        if self._most_memory is None:
            return 0
        peak = max(self._total, *self._seen.values(), 0) if self._seen else self._total
        # ru_maxrss begins with what this Python had when it forked. Only above that is it the
        # program's.
        if self._usage > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024:
            peak = max(peak, self._usage)
        return peak

    def stderr(self):
        return _content(self._err).decode(errors="replace")

    def stdout(self):
        return _content(self._out) if self._own_out else b""

    def outcome(self, timed_out=False):
        return Outcome(
            arguments=self.arguments,
            code=self._code if self._code is not None else 0,
            stdout=self.stdout(),
            stderr=self.stderr(),
            seconds=time.monotonic() - self.started,
            timed_out=timed_out,
            peak=self.peak(),
            too_large=self._too_large,
        )


def run(binary, arguments, folder, *, timeout=60, most_memory=None, stdin=None, stdout=None, wrapper=()):
    """Runs the program to its end, or kills it after `timeout` seconds or with more than `most_memory` bytes.

    `stdin` is bytes or None. Memory is measured where `most_memory` is given.
    """
    with contextlib.ExitStack() as stack:
        source = None
        if stdin is not None:
            source = stack.enter_context(tempfile.TemporaryFile())
            source.write(stdin)
            source.seek(0)
        running = stack.enter_context(
            Running(
                binary,
                arguments,
                folder,
                stdin=source,
                stdout=stdout,
                most_memory=most_memory,
                wrapper=wrapper,
            )
        )
        if running.wait(timeout):
            return running.outcome()
        running.kill()
        running.wait(30)
        return running.outcome(timed_out=True)


def least_memory(text):
    """The bytes in a message like "scan needs at least 64M of memory", or None."""
    found = re.search(r"at least (\d+) ?([KMG])", text)
    return int(found[1]) * {"K": 1 << 10, "M": MIB, "G": 1 << 30}[found[2]] if found else None


def _content(file):
    # The program shares the position of the file: read without moving it.
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0)


def _tree(root):
    """A process and all that it started, and what those started."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):
                    children = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text()
                    waiting.extend(map(int, children.split()))
    return found


STATUS = re.compile(r"^(VmHWM|VmRSS|RssAnon):\s+(\d+) kB", re.MULTILINE)


def memory_fields(pid):
    """Fields of /proc/PID/status in bytes: VmHWM, VmRSS, RssAnon. Empty when the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    return {name: int(value) * 1024 for name, value in STATUS.findall(text)}


def own_memory(pid):
    """Memory of a process and of all that it started that is not mapped from files, in bytes."""
    command = _command(pid)
    # A child that has not begun its own program shares the memory of its parent.
    others = (child for child in _tree(pid) if child != pid and _command(child) != command)
    return sum(memory_fields(each).get("RssAnon", 0) for each in (pid, *others))


def _command(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _memory(pid):
    fields = memory_fields(pid)
    return fields.get("VmHWM", 0), fields.get("VmRSS", 0)
