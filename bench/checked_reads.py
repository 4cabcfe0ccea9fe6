"""What it costs that every file of an atlas is compared with its checksum before it is read.

The program says in its log which files it compares, and the processor time of each. A round is the whole job on real text, as one
command and as one command per stage: a process does not compare what it has written itself, so the second is the most that it can be.
The share of the job's processor time is given for each round. Two builds of the program, one of them without the comparison, differ by
less than two runs of one of them do; so what is measured is the comparison itself.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

from common import library_texts, machine, save, write_jsonl

STAGES = [
    ["scan", "{input}", "-o", "{atlas}"],
    ["similar", "{atlas}"],
    ["collections", "{atlas}"],
    ["report", "{atlas}", "-o", "{report}"],
]


def job(*arguments):
    """Runs the program; gives the processor seconds of the process, those of comparing, and the bytes that were compared."""
    command = [os.environ["ONIONSKIN"], *map(str, arguments), "-vv", "--log-format", "json"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    compared = {"seconds": 0.0, "bytes": 0, "files": 0}
    last = ""
    for line in child.stderr:
        last = line if line.strip() else last
        if "compared with its checksum" in line:
            told = json.loads(line)
            fields = told.get("fields", told)
            compared["seconds"] += fields["cpu_seconds"]
            compared["bytes"] += fields["bytes"]
            compared["files"] += 1
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{arguments[0]} ended with {child.returncode}: {last[-300:]}")
    return usage.ru_utime + usage.ru_stime, compared


def added(results):
    results = list(results)
    compared = [compared for _, compared in results]
    total = {key: sum(one[key] for one in compared) for key in compared[0]}
    return {"cpu_seconds": sum(cpu for cpu, _ in results), "compared": total}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=pathlib.Path, help="a file or directory [default: sources of Python's library, repeated]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=pathlib.Path, help="where the atlases go [default: that for temporary files]")
    parser.add_argument("--out", type=pathlib.Path, help="also write the results into this directory, as <date>-checked_reads.json")
    asked = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory(dir=asked.work) as folder:
        folder = pathlib.Path(folder)
        source = asked.input or write_jsonl(folder / "text.jsonl", library_texts())
        files = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
        volume = sum(path.stat().st_size for path in files)
        atlas, report = folder / "atlas", folder / "report"
        for number in range(asked.rounds):
            told = {}
            for way in ("one command", "a command per stage"):
                shutil.rmtree(atlas, ignore_errors=True)
                shutil.rmtree(report, ignore_errors=True)
                if way == "one command":
                    told[way] = added([job("run", source, "-o", atlas)])
                else:
                    places = {"input": source, "atlas": atlas, "report": report}
                    told[way] = added(job(*[word.format(**places) for word in stage]) for stage in STAGES)
                cpu, compared = told[way]["cpu_seconds"], told[way]["compared"]
                told[way]["share"] = compared["seconds"] / cpu
                print(
                    f"round {number + 1}, {way:20} {cpu:8.2f} CPU s, compared {compared['bytes'] / 1e6:8.1f} MB in"
                    f" {compared['files']:4} files, {compared['seconds']:.3f} CPU s, {100 * told[way]['share']:.2f} %"
                )
            rounds.append(told)
    for way in rounds[0]:
        share = statistics.median(told[way]["share"] for told in rounds)
        print(f"{way:30} {100 * share:.2f} % of the processor time of a job on {volume / 1e6:.0f} MB")
    if asked.out:
        save(asked.out, "checked_reads", {"machine": machine([]), "input_bytes": volume, "rounds": rounds})


if __name__ == "__main__":
    main()
