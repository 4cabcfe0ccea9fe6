"""The small run, one test per part. `ONIONSKIN` names the program."""

import os
from pathlib import Path

import pytest

from . import suite
from .parts import PARTS

SEED = int(os.environ.get("ONIONSKIN_HOSTILE_SEED", "1"))


def done(cases, failed=(), **counts):
    """What became of a large part that promises 300 kills in 140 cases."""
    part = PARTS["kills"](suite.Workshop(Path("onionskin"), Path("."), 1, is_large=True))
    result = suite.Result(part, cases=cases)
    result.counts.update({"kills that landed": counts.get("kills", 0)})
    result.failed = {number: suite.Verdict("a case", ["it broke"]) for number in failed}
    return result


@pytest.mark.parametrize(
    ("result", "whole", "passes", "says"),
    [
        (done(140, kills=300), True, True, "no failure"),
        (done(139, kills=300), True, False, "kills: 139 cases, where a large run has 140"),
        (done(140, kills=299), True, False, "kills: 299 kills that landed, where a large run has 300"),
        # A part or some cases of it were asked for.
        (done(3, kills=2), False, True, "no failure"),
        (done(140, failed=[7], kills=300), True, False, "1 failures"),
        (done(139, failed=[7], kills=300), True, False, "139 cases"),
    ],
)
def test_report(result, whole, passes, says):
    lines = []
    assert suite.report([result], 1, told=lines.append, whole=whole) is passes
    assert says in "\n".join(lines)


@pytest.mark.parametrize("name", PARTS)
def test_part(name, tmp_path):
    binary = Path(os.environ["ONIONSKIN"]).resolve()
    part = PARTS[name](suite.Workshop(binary, tmp_path, SEED))
    result = suite.run_part(part, cases=part.small, jobs=os.cpu_count() or 2)
    lines = []
    assert suite.report([result], SEED, told=lines.append), "\n".join(lines)
