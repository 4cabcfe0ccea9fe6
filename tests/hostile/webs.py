"""Small webs, atlases and indexes that are sound, and copies of them to be damaged."""

import hashlib
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

from . import program

WORDS = [
    f"{a}{b}{c}"
    for a in ("ka", "lo", "mi", "ne", "su", "ra")
    for b in ("ten", "bor", "wil", "dan")
    for c in ("", "o", "er", "ing")
]

# What differs between two runs although nothing is wrong.
VOLATILE_KEYS = {"seconds", "cpu_seconds", "peak_memory", "resumed", "resumed_documents", "spilled_bytes"}
# Sizes of the files that are there, whatever is in them.
SIZE_KEYS = {"bytes", "bytes_per_document"}
# Files that say what a run cost, and what is not part of an atlas.
VOLATILE_FILES = {"costs.jsonl", ".staging", "search", "lock"}


def words(rng, count):
    """A text of random words."""
    return " ".join(rng.choices(WORDS, k=count))


def documents(seed, count, mean_words=60):
    """Documents as JSON lines; one in four is a copy of an earlier one or nearly."""
    rng = random.Random(seed)
    lines, texts = [], []
    for number in range(count):
        text = words(rng, rng.randint(mean_words // 2, mean_words * 3 // 2))
        if texts and rng.random() < 0.25:
            text = rng.choice(texts)
            if rng.random() < 0.5:
                cut = text.split(" ")
                cut[rng.randrange(len(cut))] = "changed"
                text = " ".join(cut)
        texts.append(text)
        lines.append(json.dumps({"id": f"d{seed}-{number}", "text": text}) + "\n")
    return lines


def make_inputs(workshop, folder, pages, more_texts=80):
    """A web with mirrors as WARC and a few flat texts as JSON lines, in `folder`/in."""
    inputs = folder / "in"
    inputs.mkdir(parents=True)
    arguments = ["mirrors", "--pages", pages, "--format", "warc", "--compress", "gz", "-o", "in/web"]
    workshop.must(
        "generate",
        *arguments,
        "--seed",
        workshop.seed,
        "--truth",
        "truth.jsonl",
        "-q",
        folder=folder,
        timeout=300,
    )
    (inputs / "texts.jsonl").write_text("".join(documents(workshop.seed, more_texts)))
    return inputs


def make_atlas(workshop, folder, pages):
    """An atlas of everything: all chunk tables, collections, and two levels of copies beside the search."""
    make_inputs(workshop, folder, pages)
    workshop.must("run", "in", "-o", "atlas", "--no-report", "-q", folder=folder, timeout=300)
    for level in (["--method", "exact"], ["--threshold", "0.7"]):
        workshop.must("similar", "atlas", "--for-report", *level, "-q", folder=folder, timeout=300)
    return folder / "atlas"


def make_index(workshop, folder, name="index"):
    """An index with several runs, removed documents, and a log with batches in it.

    Closing an index empties its log, so the program is killed once its answers are there.
    """
    first = documents(workshop.seed + 1, 400)
    last = documents(workshop.seed + 2, 160)
    (folder / "first.jsonl").write_text("".join(first))
    (folder / "last.jsonl").write_text("".join(last))
    (folder / "all.jsonl").write_text("".join(first + last))
    (folder / "other.jsonl").write_text("".join(documents(workshop.seed + 3, 60)))
    for part in (first[:150], first[150:]):
        (folder / "part.jsonl").write_text("".join(part))
        workshop.must("seen", "add", name, "part.jsonl", folder=folder)
    removed = ["--name", f"d{workshop.seed + 1}-3", "--name", f"d{workshop.seed + 1}-200"]
    workshop.must("seen", "remove", name, *removed, folder=folder)
    arguments = ["seen", "add", name, "-", "--batch", "20", "--interactive", "--json"]
    with program.Running(
        workshop.binary, arguments, folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        running.process.stdin.write("".join(last).encode())
        running.process.stdin.flush()
        for _ in last:
            if not running.process.stdout.readline():
                raise RuntimeError(f"`seen add` ended early: {running.stderr()}")
        running.kill()
        running.wait(30)
        running.process.stdin.close()
        running.process.stdout.close()
    return folder / name


def log_batches(path):
    """Where each batch of a log begins, and at last where the log ends (docs/seen.md, `wal-N`)."""
    data = path.read_bytes()
    starts, at = [], 20
    while at + 16 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        if at + 16 + length > len(data):
            break
        starts.append(at)
        at += 16 + length
    return [*starts, at]


def copy_tree(source, target):
    """Copies a folder. Parquet files are never written in place, so they are linked."""

    def place(here, there):
        if here.endswith((".parquet", ".gz")):
            os.link(here, there)
        else:
            shutil.copyfile(here, there)
        return there

    shutil.copytree(source, target, copy_function=place)


def damage_copy(path, data):
    """Writes damaged bytes where a link to a sound file may be."""
    path.unlink()
    if data is not None:
        path.write_bytes(data)


def digest(folder, skipped=VOLATILE_FILES, place=None):
    """What the files of a folder hold, by relative path. The path `place` may be in them."""
    if not folder.exists():
        return {}
    if folder.is_file():
        return {folder.name: hash_file(folder, place)}
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in skipped]
        for name in names:
            if name not in skipped:
                path = Path(parent, name)
                found[str(path.relative_to(folder))] = hash_file(path, place)
    return found


def hash_file(path, place=None):
    data = path.read_bytes()
    if place:
        data = data.replace(str(place).encode(), b"PLACE")
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def steady(value):
    """JSON without what differs between two runs."""
    if isinstance(value, dict):
        left_out = VOLATILE_KEYS | (SIZE_KEYS if str(value.get("type", "")).startswith("seen_") else set())
        return {key: steady(item) for key, item in value.items() if key not in left_out}
    if isinstance(value, list):
        return [steady(item) for item in value]
    return value


def steady_output(stdout):
    """Lines of JSON without what differs between two runs; other output as it is."""
    lines = []
    for line in stdout.decode(errors="replace").splitlines():
        try:
            lines.append(steady(json.loads(line)))
        except ValueError:
            lines.append(line)
    return lines
