"""Spark with real executor processes, and webs that the program has judged already.

`ONIONSKIN` is the program. `ONIONSKIN_SPARK_PAGES` makes the webs larger. `ONIONSKIN_SPARK_MASTER` says where Spark runs: `local-cluster[...]`,
`local[...]`, or `standalone` for a master and two workers that are started here, on loopback.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

import onionskin

PAGES = int(os.environ.get("ONIONSKIN_SPARK_PAGES", "1500"))
MASTER = os.environ.get("ONIONSKIN_SPARK_MASTER", "local-cluster[2,1,1024]")
PROGRAM = os.environ.get("ONIONSKIN", "onionskin")


# : What processes of Spark look for. Executors that a worker starts look for the worker's Spark, by
# the version of its Scala.
SURROUNDINGS = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_HOME": str(Path(pyspark.__file__).parent),
    "SPARK_SCALA_VERSION": "2.13" if pyspark.__version__.startswith("4") else "2.12",
}


# : Jobs of seconds on two processors, which the better compiler and the collector's threads would
# take away.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def program(*arguments: object) -> str:
    """Runs the program; what it prints."""
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def wait_for_port(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nobody listens on port {port}")


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if MASTER != "standalone":
        yield MASTER
        return
    folder = tmp_path_factory.mktemp("standalone")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    base = ["java", "-cp", str(jars), "-Xmx512m", "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
    address, port = "127.0.0.1", free_port()
    environment = {**os.environ, **SURROUNDINGS}
    started = []

    def start(*arguments: str) -> None:
        log = open(folder / f"{len(started)}.log", "w")  # noqa: SIM115
        started.append(subprocess.Popen([*base, *arguments], stdout=log, stderr=log, env=environment))

    try:
        start("org.apache.spark.deploy.master.Master", "--host", address, "--port", str(port), "--webui-port", str(free_port()))
        wait_for_port(port)
        for number in range(2):
            work = str(folder / f"work-{number}")
            start(
                "org.apache.spark.deploy.worker.Worker", "--host", address, "--port", str(free_port()), "--webui-port", str(free_port()),
                "--cores", "1", "--memory", "1200m", "--work-dir", work, f"spark://{address}:{port}",
            )  # fmt: skip
        yield f"spark://{address}:{port}"
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def spark(master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.update(SURROUNDINGS)
    session = (
        SparkSession.builder.master(master)
        .appName("onionskin tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.executor.cores", "1")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.executor.extraJavaOptions", SHORT_LIVED)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", os.environ.get("ONIONSKIN_SPARK_PARTITIONS", "2"))
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        # An executor that was killed on purpose is no reason to give up.
        .config("spark.deploy.maxExecutorRetries", "-1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def tables(atlas: Path, names: list[str] | None = None) -> dict[str, set[tuple[Any, ...]]]:
    """The tables of an atlas as sets of rows, by the files that its manifest names."""
    manifest = json.loads((atlas / "manifest.json").read_text())
    found = {}
    for name, entry in manifest["tables"].items():
        if names is not None and name not in names:
            continue
        rows = []
        for file in entry["files"]:
            for row in pq.ParquetFile(atlas / file["path"]).read().to_pylist():
                values = sorted(row.items())
                rows.append(tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in values))
        assert len(rows) == entry["rows"], name
        found[name] = set(rows)
        assert len(found[name]) == len(rows) or name.startswith("chunks."), f"{name} has rows twice"
    return found


def numbers(atlas: Path, name: str) -> dict[str, Any]:
    """The columns of a table of numbers, lists end to end: for tables that are too large for sets of rows."""
    import numpy

    manifest = json.loads((atlas / "manifest.json").read_text())
    found: dict[str, list[Any]] = {}
    for file in manifest["tables"][name]["files"]:
        table = pq.ParquetFile(atlas / file["path"]).read()
        for column in table.column_names:
            for chunk in table[column].chunks:
                values = chunk.flatten() if isinstance(chunk, (pa.ListArray, pa.FixedSizeListArray)) else chunk
                found.setdefault(column, []).append(numpy.asarray(values))
    return {column: numpy.concatenate(parts) for column, parts in found.items()}


def same_atlas(ours: Path, theirs: Path) -> None:
    """Every table has the same rows, and the manifests tell the same counts."""
    names = [set(json.loads((path / "manifest.json").read_text())["tables"]) for path in (ours, theirs)]
    # The program keeps chunks that it made for a search.
    assert names[0] == {name for name in names[1] if name in names[0] or not name.startswith("chunks.")}
    large = {name for name in names[0] if name.startswith("chunks.") or name in ("sketches", "features")}
    for name in sorted(large):
        x, y = numbers(ours, name), numbers(theirs, name)
        assert set(x) == set(y) and all((x[column] == y[column]).all() for column in x), name
    small = sorted(names[0] - large)
    a, b = tables(ours, small), tables(theirs, small)
    for name in a:
        assert a[name] == b[name], f"{name}: {len(a[name])} and {len(b[name])} rows; {list(a[name] ^ b[name])[:3]}"
    manifests = [json.loads((path / "manifest.json").read_text()) for path in (ours, theirs)]
    for key in ("recipe", "seed", "inputs", "counts", "extractors"):
        assert manifests[0][key] == manifests[1][key], key


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A web of mirrors in several compressed WARC files."""
    folder = tmp_path_factory.mktemp("web") / "warc"
    shards = "500K" if PAGES <= 10_000 else "16M"
    program("generate", "mirrors", "--pages", PAGES, "--format", "warc", "--compress", "gz", "--shard-bytes", shards, "-o", folder, "-q")
    return folder


def by_the_program(
    inputs: Path, atlas: Path, similar: dict[str, Any], collections: dict[str, Any], recipe: str | None = None
) -> Path:
    """The same job on this machine."""
    onionskin.scan([str(inputs)], atlas, recipe=recipe)
    onionskin.similar(atlas, recall=False, **similar)
    onionskin.collections(atlas, **collections)
    return atlas
