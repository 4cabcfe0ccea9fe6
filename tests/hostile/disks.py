"""Disks that are full: a named error, exit code 2, and the same bytes once there is room."""

import contextlib
import shutil
import subprocess

from . import suite, webs


class Disk:
    """A folder with little room: a small file system where mounting is possible, else files with a limit."""

    def __init__(self, folder, size, may_mount):
        self.folder, self.size = folder, size
        folder.mkdir(parents=True, exist_ok=True)
        self.mounted = may_mount and _mount(folder, size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True, capture_output=True)
            self.mounted = False

    def wrapper(self):
        """What limits the size of files where nothing could be mounted."""
        if self.mounted:
            return ()
        # The signal is ignored, so that writes fail as they do on a full disk.
        blocks = max(1, self.size // 512)
        return ("/bin/sh", "-c", f'trap "" XFSZ; ulimit -f {blocks}; exec "$@"', "sh")

    def grow(self):
        """Makes room."""
        if self.mounted:
            subprocess.run(
                ["mount", "-o", "remount,size=2g", str(self.folder)], check=True, capture_output=True
            )

    @property
    def kind(self):
        return "a small file system" if self.mounted else "a limit of file sizes"


def _mount(folder, size):
    with contextlib.suppress(OSError):
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={max(size, 65536)}", "onionskin-hostile", str(folder)],
            capture_output=True,
        )
        return done.returncode == 0
    return False


class Disks(suite.Part):
    name = "disks"
    small, large, finite = 18, 90, True

    def prepare(self):
        self.sound = self.workshop.folder / "sound"
        self.sound.mkdir()
        webs.make_inputs(self.workshop, self.sound, 600 if self.workshop.is_large else 400, 400)
        self.workshop.must("scan", "in", "-o", "scanned", "-q", folder=self.sound)
        for name, before, words in [
            ("searched", "scanned", ["similar"]),
            ("collected", "searched", ["collections"]),
        ]:
            webs.copy_tree(self.sound / before, self.sound / name)
            self.workshop.must(*words, name, "-q", folder=self.sound)
        (self.sound / "many.jsonl").write_text("".join(webs.documents(self.workshop.seed, 1500)))
        # What there is before a job, the job, and what it makes.
        self.jobs = {
            "scan": (None, ["scan", "in", "-o", "disk/atlas", "-q"], "atlas"),
            "similar": ("scanned", ["similar", "disk/atlas", "-q"], "atlas"),
            "collections": ("searched", ["collections", "disk/atlas", "-q"], "atlas"),
            "report": ("collected", ["report", "atlas", "-o", "disk/out", "--no-png", "-q"], "out"),
            "dedup": ("collected", ["dedup", "atlas", "-o", "disk/out", "--shards", "all", "-q"], "out"),
            "avoid": ("collected", ["avoid", "atlas", "-o", "disk/out", "-q"], "out"),
            "run": (None, ["run", "in", "-o", "disk/atlas", "--no-report", "-q"], "atlas"),
            "add": (None, ["seen", "add", "disk/index", "many.jsonl", "-q"], "index"),
            "stdout": ("collected", ["avoid", "atlas", "--format", "json"], None),
        }
        self.whole = {name: self._whole(name) for name in self.jobs if self.jobs[name][2]}

    def _place(self, name, folder):
        before, arguments, _ = self.jobs[name]
        webs.copy_tree(self.sound / "in", folder / "in")
        shutil.copyfile(self.sound / "many.jsonl", folder / "many.jsonl")
        if before:
            inside = "disk/atlas" in arguments
            shutil.copytree(
                self.sound / before, folder / ("disk/atlas" if inside else "atlas"), dirs_exist_ok=True
            )

    def _whole(self, name):
        """What a job makes with room enough: files, their size, and the size of what was there before."""
        made = []
        for again in range(2):
            folder = suite.empty(self.workshop.folder / f"case-whole0{again}")
            (folder / "disk").mkdir()
            self._place(name, folder)
            before = size_of(folder / "disk")
            self.workshop.must(*self.jobs[name][1], folder=folder, timeout=300)
            made.append(webs.digest(folder / "disk" / self.jobs[name][2], place=folder))
        steady = {file: content for file, content in made[0].items() if made[1].get(file) == content}
        return steady, before, size_of(folder / "disk"), largest(folder / "disk")

    def case(self, number, folder):
        rng = self.random(number)
        name = list(self.jobs)[number % len(self.jobs)]
        if name == "stdout":
            return self._full_stdout(folder)
        expected, before, after, file = self.whole[name]
        # Mounting and limits in turns, since both ways of failing exist.
        may_mount = number // len(self.jobs) % 2 == 0
        share = rng.uniform(0.05, 0.9)
        room = before + int(share * max(4096, after - before)) if may_mount else int(share * file)
        with Disk(folder / "disk", room, may_mount) as disk:
            if may_mount and not disk.mounted:
                disk.size = int(share * file)
            verdict = suite.Verdict(f"{name} with {disk.size:,} bytes, by {disk.kind}")
            verdict.counts[f"jobs on {disk.kind}"] += 1
            self._place(name, folder)
            self._judge(verdict, name, folder, disk, expected)
        return verdict

    def _judge(self, verdict, name, folder, disk, expected):
        _, arguments, made = self.jobs[name]
        full = self.workshop.run(*arguments, folder=folder, timeout=120, wrapper=disk.wrapper())
        if trouble := full.trouble():
            verdict.problems.append(f"`{full.command()}`: {trouble}")
        elif full.code == 2:
            words = ("No space", "no storage space", "too large")
            why = any(word in full.stderr for word in words)
            verdict.expect(why, f"does not say why: {full.last_words()}")
            # A copy is named by the input that it is of.
            where = "disk/" in full.stderr or "in/" in full.stderr
            verdict.expect(where, f"does not say where: {full.last_words()}")
            verdict.counts["named errors"] += 1
        else:
            verdict.expect(full.code == 0, f"exits {full.code}: {full.last_words()}")
        disk.grow()
        again = full
        if full.code != 0:
            again = self.workshop.run(*arguments, folder=folder, timeout=120)
            if again.trouble() or again.code != 0:
                verdict.problems.append(f"does not resume: {again.trouble() or again.last_words()}")
                return
        if made == "index":
            checked = self.workshop.run("seen", "check", "disk/index", "many.jsonl", "--json", folder=folder)
            new = checked.stdout.count(b'"status":"new"')
            verdict.expect(checked.code == 0 and not new, f"{new} documents are lost")
            return
        found = webs.digest(folder / "disk" / made, place=folder)
        wrong = sorted(file for file in expected if found.get(file) != expected[file])
        verdict.expect(not wrong, f"other bytes once there is room: {', '.join(wrong[:8])}")
        extra = sorted(set(found) - set(expected)) if made == "out" and name != "report" else []
        verdict.expect(not extra, f"files are left behind: {extra[:8]}")

    def _full_stdout(self, folder):
        verdict = suite.Verdict("standard output is full")
        verdict.counts["full outputs"] += 1
        self._place("stdout", folder)
        for arguments in (
            ["avoid", "atlas", "--format", "json"],
            ["collections", "atlas", "--show"],
            ["verify", "atlas"],
        ):
            with open("/dev/full", "wb") as full:
                outcome = self.workshop.run(*arguments, folder=folder, stdout=full)
            verdict.expect(not outcome.trouble(), f"`{outcome.command()}`: {outcome.trouble()}")
            verdict.expect(
                outcome.code == 2,
                f"`{outcome.command()}` exits {outcome.code} although nobody got its answer",
            )
        return verdict


def size_of(folder):
    """What files take on a file system in pages."""
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def largest(folder):
    """The largest file that a job leaves: a lower limit stops it."""
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
