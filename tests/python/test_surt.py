"""The keys of archives that our tests hold are those of the Python package surt."""

import pathlib

import pytest
import surt

FIXTURES = sorted(pathlib.Path(__file__).parents[2].glob("crates/onionskin-extract/**/surt*.tsv"))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
def test_fixture_is_what_surt_says(fixture):
    checked = 0
    for line in fixture.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        url, key = line.split("\t")[:2]
        assert surt.surt(url) == key, url
        checked += 1
    assert checked >= 60


def test_there_is_a_fixture():
    assert FIXTURES
