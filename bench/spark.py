"""The whole job on Spark against the program on the same machine: one executor, two executors, and how many it would take.

Webs of two sizes, compressed WARC, scan to collections, default parameters. Spark runs in local-cluster mode: executors are processes of their own
with a core each, tables go through files, as on a cluster; what a network would cost is not in it. Clusters and collections are compared.

The model: a job of n documents takes `fixed + n * per_document / executors` seconds. Two sizes give both numbers; the COST (McSherry et al. 2015) is the
number of executors of one core from which on large jobs, where the fixed part does not count, are faster than the program on this machine, if they scale as
from one executor to two at best. Processor time is that of the whole machine, which should do nothing else. Shuffled bytes are Spark's own count, from its event log.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time


def run_job(web, atlas, executors, log):
    """One whole job; in a process of its own, so that its processor time can be told apart."""
    import pyspark
    from pyspark.sql import SparkSession

    from onionskin import spark as job

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.setdefault("SPARK_HOME", str(pathlib.Path(pyspark.__file__).parent))
    os.environ.setdefault("SPARK_SCALA_VERSION", "2.13")
    session = (
        SparkSession.builder.master(f"local-cluster[{executors},1,2048]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.executor.memory", "2g")
        .config("spark.executor.cores", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", "file://" + log)
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.rolling.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.range(10).count()
    begun = time.monotonic()
    steps, last = {}, [None, begun]

    def progress(stage, step):
        now = time.monotonic()
        if last[0]:
            steps[last[0]] = steps.get(last[0], 0) + now - last[1]
        last[:] = [stage, now]

    job.run(session, [web], atlas, progress=progress, overwrite=True)
    seconds = time.monotonic() - begun
    steps[last[0]] = steps.get(last[0], 0) + time.monotonic() - last[1]
    session.stop()
    print(json.dumps({"seconds": seconds, "stages": steps}))


def shuffled(folder):
    """Bytes that tasks wrote for others, tasks, and what they took, from the event log."""
    bytes_, tasks, jobs = 0, 0, 0
    for path in pathlib.Path(folder).rglob("*"):
        if not path.is_file() or path.name.startswith("."):
            continue
        for line in path.open():
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                bytes_ += (metrics.get("Shuffle Write Metrics") or {}).get("Shuffle Bytes Written", 0)
                tasks += 1
            elif '"SparkListenerJobStart"' in line:
                jobs += 1
    return {"shuffle_bytes": bytes_, "tasks": tasks, "jobs": jobs}


def busy():
    """Seconds that the processors of the machine were not idle: nobody waits for all processes of Spark, so that they cannot be asked."""
    user, nice, system, _, _, irq, softirq = map(int, open("/proc/stat").readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def measured(command, **environment):
    before, begun = busy(), time.monotonic()
    told = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return told.stdout, {"wall_seconds": time.monotonic() - begun, "cpu_seconds": busy() - before}


def rows(atlas, table, columns):
    import pyarrow.parquet as pq

    manifest = json.loads((atlas / "manifest.json").read_text())
    found = set()
    for file in manifest["tables"][table]["files"]:
        data = pq.ParquetFile(atlas / file["path"]).read(columns=columns)
        found |= set(zip(*(data[column].to_pylist() for column in columns)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs=2, default=[50_000, 200_000])
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-spark.json")
    parser.add_argument("--folder", default=None, help="keep webs and atlases here")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        return run_job(given.job[0], given.job[1], int(given.job[2]), given.job[3])
    # Not at the top: jobs run without this directory in the path.
    import common

    program = os.environ["ONIONSKIN"]
    folder = pathlib.Path(given.folder or tempfile.mkdtemp(prefix="onionskin-spark-"))
    folder.mkdir(parents=True, exist_ok=True)
    result = {"machine": common.machine(["pyspark", "pandas", "pyarrow"]), "runs": []}
    times = {}
    for pages in given.pages:
        web = folder / f"web-{pages}"
        if not web.exists():
            subprocess.run([program, "generate", "mirrors", "--pages", str(pages), "--format", "warc", "--compress", "gz", "--shard-bytes", "16M", "-o", web, "-q"], check=True)
        local = folder / f"program-{pages}"
        shutil.rmtree(local, ignore_errors=True)
        _, cost = measured([program, "run", str(web), "-o", str(local), "-q", "--no-report", "--no-recall", "--threads", "1"])
        _, both = measured([program, "run", str(web), "-o", str(local), "-q", "--no-report", "--no-recall", "--overwrite"])
        documents = json.loads((local / "manifest.json").read_text())["counts"]["documents"]
        bytes_ = sum(path.stat().st_size for path in web.iterdir())
        result["runs"].append({"engine": "program, 1 thread", "documents": documents, "input_bytes": bytes_, **cost})
        result["runs"].append({"engine": "program", "documents": documents, "input_bytes": bytes_, **both})
        times[("program", pages)] = both["wall_seconds"]
        print(f"{documents:>9,} pages  program, 1 thread   {cost['wall_seconds']:7.1f} s  {cost['cpu_seconds']:7.1f} CPU s")
        print(f"{documents:>9,} pages  program, all cores  {both['wall_seconds']:7.1f} s  {both['cpu_seconds']:7.1f} CPU s", flush=True)
        for executors in given.executors:
            atlas, log = folder / f"spark-{pages}-{executors}", folder / f"log-{pages}-{executors}"
            shutil.rmtree(atlas, ignore_errors=True)
            shutil.rmtree(log, ignore_errors=True)
            log.mkdir()
            told, cost = measured([sys.executable, "-P", __file__, "--job", str(web), str(atlas), str(executors), str(log)])
            job = json.loads(told.splitlines()[-1])
            for table, columns in (("clusters", ["cluster", "doc"]), ("collection_pages", ["group", "replica", "doc"])):
                assert rows(atlas, table, columns) == rows(local, table, columns), f"{table} differ"
            entry = {"engine": "spark", "executors": executors, "documents": documents, "job_seconds": job["seconds"], "stages": job["stages"], **cost, **shuffled(log)}
            result["runs"].append(entry)
            times[(executors, pages)] = job["seconds"]
            print(f"{documents:>9,} pages  Spark, {executors} executors  {job['seconds']:7.1f} s  {cost['cpu_seconds']:7.1f} CPU s  {entry['shuffle_bytes'] / documents:,.0f} bytes shuffled a page  {entry['jobs']} jobs, {entry['tasks']} tasks", flush=True)
    small, large = given.pages
    model = {}
    for executors in given.executors:
        per_page = (times[(executors, large)] - times[(executors, small)]) / (large - small)
        model[executors] = {"fixed_seconds": times[(executors, small)] - per_page * small, "seconds_per_page_and_executor": per_page * executors}
        print(f"{executors} executors: {model[executors]['fixed_seconds']:.1f} s fixed, {1e3 * per_page * executors:.3f} ms a page and executor")
    one = model[given.executors[0]]
    local_per_page = (times[("program", large)] - times[("program", small)]) / (large - small)
    # Where the fixed part is paid off: the executors that keep up with the program page by page.
    cost = one["seconds_per_page_and_executor"] / local_per_page
    result["model"] = {"by_executors": model, "program_seconds_per_page": local_per_page, "cost_executors": cost}
    print(f"the program: {1e3 * local_per_page:.3f} ms a page; COST: {cost:.1f} executors of one core keep up with it")
    if given.out:
        common.save(given.out, "spark", result)
    else:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
