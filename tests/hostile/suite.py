"""Cases, the parts they belong to, how they are run, and the report at the end."""

import itertools
import random
import shutil
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import program


def say(line):
    """Prints at once, for those who watch."""
    print(line, flush=True)


@dataclass
class Verdict:
    """What a case found. No problems: the case passed."""

    name: str
    problems: list[str] = field(default_factory=list)
    # What was done, for the report: runs of the program, kills that landed, requests, ...
    counts: Counter = field(default_factory=Counter)

    def expect(self, holds, problem):
        if not holds:
            self.problems.append(problem)
        return holds


class Part:
    """A kind of hostility. `case(number)` depends on the seed and the number alone."""

    name = ""
    # Cases of the small run; and those that a large run has at least.
    small = 0
    large = 0
    # What a large run has done at least, by what the report calls it.
    promised = {}
    # A part that ends when its cases are done, however much time is left.
    finite = False
    # Cases of a part that measures time run one after the other.
    parallel = True
    # How much of the time of a large run it takes.
    share = 1

    def __init__(self, workshop):
        self.workshop = workshop

    def prepare(self):
        """Makes what all cases share. Called once, before the first case."""

    def case(self, number, folder):
        """Runs one case in a folder of its own and returns its verdict."""
        raise NotImplementedError

    def close(self):
        """Ends what `prepare` began."""

    def conclude(self):
        """A verdict on all cases together, or None."""

    def random(self, number):
        return random.Random(f"{self.workshop.seed}:{self.name}:{number}")


@dataclass
class Workshop:
    """What every part works with."""

    binary: Path
    folder: Path
    seed: int
    # A large run takes larger inputs.
    is_large: bool = False

    def run(self, *arguments, folder=None, **options):
        return program.run(self.binary, arguments, folder or self.folder, **options)

    def must(self, *arguments, folder=None, **options):
        """Runs a command that prepares a case and cannot fail."""
        outcome = self.run(*arguments, folder=folder, **options)
        if outcome.trouble() or outcome.code != 0:
            raise RuntimeError(f"`{outcome.command()}` failed with {outcome.code}: {outcome.stderr[-2000:]}")
        return outcome


@dataclass
class Result:
    """What became of a part."""

    part: Part
    cases: int = 0
    failed: dict[int, Verdict] = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, number, verdict):
        self.cases += 1
        self.counts.update(verdict.counts)
        if verdict.problems:
            self.failed[number] = verdict


def run_case(part, number):
    """One case, with a folder that goes with it. A case that breaks is one that failed."""
    # Paths of the same length, since reports name their folder.
    folder = empty(part.workshop.folder / f"case-{number:07}")
    try:
        return part.case(number, folder)
    except Exception:
        return Verdict(f"case {number}", ["the case itself broke:\n" + traceback.format_exc()])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_part(part, *, cases, seconds=None, jobs=2, only=None, told=say):
    """Runs at least `cases` cases, and further ones until `seconds` are over."""
    result = Result(part)
    start = time.monotonic()
    try:
        part.prepare()
    except Exception:
        # The other parts are run all the same.
        result.add(-1, Verdict("what all cases share", ["cannot be made:\n" + traceback.format_exc()]))
        told(f"FAILED {part.name}: what all cases share cannot be made")
        return result
    numbers = iter(only) if only is not None else itertools.count()
    lock = threading.Lock()
    stopped = threading.Event()

    def next_number():
        """The next case, or None when there were enough."""
        with lock:
            number = next(numbers, None)
        if stopped.is_set() or only is not None or number is None:
            return None if stopped.is_set() else number
        passed = time.monotonic() - start
        enough = number >= cases and (part.finite or seconds is None or passed >= seconds)
        # A run never takes much longer than it was given, whatever its aim.
        late = seconds is not None and passed >= 1.5 * seconds
        return None if enough or late else number

    def work():
        while (number := next_number()) is not None:
            verdict = run_case(part, number)
            with lock:
                result.add(number, verdict)
                if verdict.problems:
                    told(f"FAILED {part.name} {number}: {verdict.name}: {verdict.problems[0]}")

    try:
        workers = jobs if part.parallel else 1
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work) for _ in range(workers)]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                stopped.set()
                raise
    finally:
        part.close()
        result.seconds = time.monotonic() - start
    if verdict := part.conclude():
        result.add(-1, verdict)
        result.cases -= 1
    return result


def shortfalls(result):
    """What a large run was to do in a part and did not."""
    part = result.part
    wanted = {"cases": part.large, **part.promised}
    done = result.counts | {"cases": result.cases}
    return [
        f"{part.name}: {done.get(what, 0):,} {what}, where a large run has {least:,}"
        for what, least in wanted.items()
        if done.get(what, 0) < least
    ]


def report(results, seed, told=say, whole=False):
    """Prints counts for each part and every failure with the command that repeats it.

    A whole run was asked for all its aims. One that ended before, because its time was over, has
    not passed.
    """
    told("")
    told(f"{'part':<10} {'cases':>7} {'aim':>7} {'failed':>7} {'seconds':>8}  done")
    for result in results:
        done = ", ".join(f"{count:,} {what}" for what, count in sorted(result.counts.items()))
        aim = result.part.large if result.part.workshop.is_large else result.part.small
        told(
            f"{result.part.name:<10} {result.cases:>7,} {aim:>7,} {len(result.failed):>7,} {result.seconds:>8.0f}  {done}"
        )
    short = [line for result in results for line in shortfalls(result)] if whole else []
    for line in short:
        told(f"\n{line}")
    if short:
        told("    the time was not enough: give more --minutes")
    failed = sum(len(result.failed) for result in results)
    if not failed and not short:
        told(f"\nno failure (seed {seed})")
        return True
    if not failed:
        return False
    told(f"\n{failed:,} failures:")
    for result in results:
        size = "" if result.part.workshop.is_large else " --small"
        for number, verdict in sorted(result.failed.items()):
            told(f"\n{result.part.name} {number if number >= 0 else 'in all'}: {verdict.name}")
            for problem in verdict.problems[:8]:
                told("    " + problem.replace("\n", "\n    "))
            if len(verdict.problems) > 8:
                told(f"    and {len(verdict.problems) - 8} more")
            # A verdict on all cases together has no case to repeat.
            case = f" --case {number}" if number >= 0 else ""
            told(f"    again: cargo xtask hostile{size} --only {result.part.name} --seed {seed}{case}")
    return False


def empty(folder):
    """Makes a folder new."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
