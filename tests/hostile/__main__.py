"""`python -m hostile`: the suite from the command line, as `cargo xtask hostile` calls it."""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from . import suite
from .parts import PARTS


def arguments():
    parser = argparse.ArgumentParser(prog="cargo xtask hostile", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, help="go on for about this long [default: until every part has its aim]"
    )
    parser.add_argument("--small", action="store_true", help="the small run of CI")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", action="append", choices=sorted(PARTS), help="this part; can be given again"
    )
    parser.add_argument("--case", type=int, action="append", help="this case of the part; can be given again")
    parser.add_argument("--cases", type=int, help="this many cases of each part, instead of its aim")
    parser.add_argument("--binary", type=Path, default=os.environ.get("ONIONSKIN"), help="the program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="cases at a time")
    parser.add_argument(
        "--work", type=Path, help="where folders for cases go [default: that for temporary files]"
    )
    asked = parser.parse_args()
    if asked.case and len(asked.only or []) != 1:
        parser.error("--case needs one --only")
    if not asked.binary or not asked.binary.is_file():
        parser.error("--binary or ONIONSKIN has to name the program")
    return asked


def interrupted(number, _):
    """Ends servers and file systems of cases, as an interrupt from the keyboard does."""
    raise KeyboardInterrupt(signal.Signals(number).name)


def main():
    asked = arguments()
    signal.signal(signal.SIGTERM, interrupted)
    chosen = [PARTS[name] for name in PARTS if not asked.only or name in asked.only]
    results, start = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onionskin-hostile-", dir=asked.work) as folder:
        for kind in chosen:
            place = suite.empty(Path(folder) / kind.name)
            part = kind(suite.Workshop(asked.binary.resolve(), place, asked.seed, not asked.small))
            print(f"── {kind.name}", flush=True)
            cases = asked.cases or (kind.small if asked.small else kind.large)
            seconds = None
            if asked.minutes and not kind.finite:
                # What is left is shared among the parts that are left.
                left = asked.minutes * 60 - (time.monotonic() - start)
                shares = sum(other.share for other in chosen[chosen.index(kind) :])
                seconds = max(10.0, left * kind.share / shares)
            results.append(
                suite.run_part(part, cases=cases, seconds=seconds, jobs=asked.jobs, only=asked.case)
            )
    # Who asks for less than everything gets what was asked for.
    whole = not (asked.small or asked.only or asked.case or asked.cases)
    return 0 if suite.report(results, asked.seed, whole=whole) else 1


if __name__ == "__main__":
    sys.exit(main())
