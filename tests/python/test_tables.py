"""Every table of an atlas opens in the readers people have, with the numbers that the manifest tells."""

import json
import os
import pathlib
import subprocess

import duckdb
import polars
import pyarrow.parquet
import pytest

ONIONSKIN = os.environ["ONIONSKIN"]


def onionskin(*arguments):
    done = subprocess.run([ONIONSKIN, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    onionskin("generate", "demo", "--pages", 800, "--format", "warc", "--compress", "gz", "-o", folder / "web", "-q")
    small_parts = ["--task-bytes", 65536, "--commit-bytes", 200000]
    onionskin("scan", folder / "web", "-o", folder / "atlas", "-q", "--recipe", "papers", *small_parts)
    return folder / "atlas"


def tables(atlas):
    manifest = json.loads((atlas / "manifest.json").read_text())
    for name, table in manifest["tables"].items():
        yield name, table["rows"], [atlas / file["path"] for file in table["files"]]


def test_every_reader_counts_the_same_rows(atlas):
    seen = 0
    for name, rows, files in tables(atlas):
        if not files:
            continue
        names = [str(file) for file in files]
        assert sum(pyarrow.parquet.read_table(file).num_rows for file in files) == rows, name
        assert duckdb.sql("SELECT count(*) FROM read_parquet($files)", params={"files": names}).fetchall()[0][0] == rows, name
        assert polars.scan_parquet(names).select(polars.len()).collect().item() == rows, name
        seen += 1
    assert seen >= 8


def test_columns_are_signed_and_documents_dense(atlas):
    for name, _, files in tables(atlas):
        for file in files[:1]:
            for field in pyarrow.parquet.read_schema(file):
                assert "uint" not in str(field.type), f"{name}.{field.name} is {field.type}"
    files = [str(file) for name, _, files in tables(atlas) if name == "documents" for file in files]
    documents = duckdb.sql("SELECT doc, url, site, tokens, text_fp FROM read_parquet($files) ORDER BY doc", params={"files": files}).fetchall()
    assert [row[0] for row in documents] == list(range(len(documents)))
    assert all(row[1].startswith("http://") for row in documents)
    assert all((row[4] is None) == (row[3] == 0) for row in documents)


def test_links_join_documents(atlas):
    paths = {name: [str(file) for file in files] for name, _, files in tables(atlas)}
    joined = duckdb.sql(
        "SELECT count(*) FROM read_parquet($links) l JOIN read_parquet($docs) a ON l.src = a.doc JOIN read_parquet($docs) b ON l.dest = b.doc",
        params={"links": paths["links"], "docs": paths["documents"]},
    ).fetchall()[0][0]
    manifest = json.loads((atlas / "manifest.json").read_text())
    assert joined == manifest["counts"]["links"] > 0


def test_exact_copies_by_sql(atlas):
    truth = onionskin("demo", "-o", atlas.parent / "demo", "--pages", 800, "--json")
    documents = str(pathlib.Path(atlas.parent / "demo" / "atlas" / "documents" / "*.parquet"))
    copies = duckdb.sql(f"SELECT count(text_fp) - count(DISTINCT text_fp) FROM '{documents}'").fetchall()[0][0]
    assert copies == truth["planted"]["exact_copies"] > 0


def test_a_table_that_others_wrote_is_whole_to_them(atlas):
    """Shingles of a document, found again by an independent program in another language."""
    paths = {name: files for name, _, files in tables(atlas)}
    chunks = pyarrow.parquet.read_table(paths["chunks.w4"][0]).to_pydict()
    features = pyarrow.parquet.read_table(paths["features"][0]).to_pydict()
    sketches = pyarrow.parquet.read_table(paths["sketches"][0]).to_pydict()
    sets = {}
    for doc, fingerprint in zip(chunks["doc"], chunks["fp"]):
        sets.setdefault(doc, []).append(fingerprint % 2**64)
    checked = 0
    for doc, sketch, feature in zip(sketches["doc"][:40], sketches["sketch"], features["features"]):
        minima = naive_sketch(sets[doc], 84, 1)
        assert [value % 2**32 for value in sketch] == minima
        assert [value % 2**64 for value in feature] == naive_features(minima, 6, 14)
        checked += 1
    assert checked > 10


def scramble(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def naive_sketch(fingerprints, t, seed):
    def stream(state):
        while True:
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            yield scramble(state) >> 32

    numbers = stream(seed)
    scrambled = [scramble(fingerprint) for fingerprint in fingerprints]
    minima = []
    for i in range(t):
        a, b = next(numbers) | 1, next(numbers)
        minima.append(min((a * (x >> 32 if i % 2 else x % 2**32) + b) % 2**32 for x in scrambled))
    return minima


def naive_features(minima, k, s, polynomial=(1 << 64) | 0x53F7A83E355D5CF9):
    def remainder(a):
        while a.bit_length() > 64:
            a ^= polynomial << (a.bit_length() - 65)
        return a

    features = []
    for group in range(k):
        members = minima[group * s : (group + 1) * s]
        blocks = [group] + [members[i] | (members[i + 1] << 32 if i + 1 < s else 0) for i in range(0, s, 2)]
        string = 1
        for block in blocks:
            string = (string << 64) ^ block
        features.append(remainder(string << 64))
    return features
