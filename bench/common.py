"""What the benches share: running programs and measuring them, texts to run them on, and what the machine is."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

# One thread for everybody, whichever library they thread with.
ONE_THREAD = {
    name: "1"
    for name in ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM"]
}


def measure(*command, env=None):
    """Runs a program; gives the object on its last line of stdout, if there is one, with what it and its children took, and those on
    the lines before by their type."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        child = subprocess.Popen([str(word) for word in command], stdout=out, stderr=errors, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            told = errors.read().decode(errors="replace").strip()[-600:]
            raise RuntimeError(f"{pathlib.Path(str(command[0])).name} ended with {child.returncode}: {told}")
        out.seek(0)
        lines = out.read().decode().strip().splitlines()
    objects = [json.loads(line) for line in lines if line.startswith("{")]
    result = objects[-1] if lines and lines[-1].startswith("{") else {}
    if len(objects) > 1:
        result["stages"] = {told["type"]: told for told in objects[:-1] if "type" in told}
    result["process_cpu"] = usage.ru_utime + usage.ru_stime
    result["system_cpu"] = usage.ru_stime
    result["wall_seconds"] = wall
    # A program that tells its own peak is believed: what the system tells of a child counts the
    # process that it was forked from.
    result.setdefault("peak_memory", usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    return result


def peak_memory():
    """The most memory that this process has held, or nothing where the system does not tell."""
    try:
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def onionskin(*arguments, env="ONIONSKIN"):
    """Runs our program and gives what it printed, with its processor time."""
    return measure(os.environ[env], *arguments)


def best(run, times=3):
    return fastest(run() for _ in range(times))


def fastest(results):
    return min(results, key=lambda result: result["cpu_seconds"])


def generate(out, megabytes, preset, form, mean_words):
    pages = max(200, int(megabytes * 1e6 / (mean_words * 6.6)))
    arguments = ["generate", preset, "--format", form, "--pages", pages, "--mean-words", mean_words, "-o", out, "-q"]
    onionskin(*arguments)
    return out


def library_texts():
    """Real text that every machine with Python has: the sources and doc strings of its standard library."""
    import sysconfig

    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.rglob("*.py")):
        if "site-packages" in file.parts:
            continue
        try:
            yield file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            pass


def write_jsonl(path, texts):
    with path.open("w") as out:
        for text in texts:
            out.write(json.dumps({"text": text}) + "\n")
    return path


def machine(packages, crates=()):
    """What the numbers were measured on, and with which versions."""
    import tomllib
    from importlib import metadata

    name = platform.processor() or platform.machine()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    here = pathlib.Path(__file__).parent
    for lock in [here.parent / "Cargo.lock", here / "gaoya/Cargo.lock"]:
        locked = tomllib.loads(lock.read_text())["package"]
        versions.update({crate["name"]: crate["version"] for crate in locked if crate["name"] in crates})
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"processor": name, "cores": os.cpu_count(), "system": platform.platform(), "load": load, "versions": versions}


def commit():
    """What was measured: a commit, with a mark where files differ from it; nothing outside a repository."""

    def git(*arguments):
        here = pathlib.Path(__file__).parent
        return subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "..")
        return git("rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def save(directory, name, result):
    """Writes a result as `<date>-<name>.json`, with the day, the commit and the machine. The newest file of a name counts."""
    date = datetime.date.today().isoformat()
    told = {"date": date, "commit": commit(), "machine": result.get("machine") or machine([]), **result}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{date}-{name}.json"
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(f"written to {path}")
