"""The small run, one test per part. `ONIONSKIN` names the program."""

import os
from pathlib import Path

import pytest

from . import suite
from .parts import PARTS

SEED = int(os.environ.get("ONIONSKIN_HOSTILE_SEED", "1"))


@pytest.mark.parametrize("name", PARTS)
def test_part(name, tmp_path):
    binary = Path(os.environ["ONIONSKIN"]).resolve()
    part = PARTS[name](suite.Workshop(binary, tmp_path, SEED))
    result = suite.run_part(part, cases=part.small, jobs=os.cpu_count() or 2)
    lines = []
    assert suite.report([result], SEED, told=lines.append), "\n".join(lines)
