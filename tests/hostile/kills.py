"""SIGKILL at random moments, then the same command again: the same bytes, nothing acknowledged is lost."""

import json
import signal
import time

from . import program, suite, webs

# Commits and batches that are small enough for kills to land between them.
SMALL_COMMITS = ["--task-bytes", "65536", "--commit-bytes", "300000"]
KILLS = 3


class Kills(suite.Part):
    """A case is a job with several kills and a last run."""

    name = "kills"
    # Some kills come too late; so many cases have 300 that land.
    small, large, share = 7, 140, 3
    promised = {"kills that landed": 300}

    def prepare(self):
        self.sound = self.workshop.folder / "sound"
        pages = 800
        for _ in range(4):
            suite.empty(self.sound)
            webs.make_inputs(self.workshop, self.sound, pages, 800)
            start = time.monotonic()
            self.workshop.must("scan", "in", "-o", "scanned", "-q", *SMALL_COMMITS, folder=self.sound)
            # Kills have to land inside the work, on a fast machine too.
            if time.monotonic() - start > 0.4 or not self.workshop.is_large:
                break
            pages *= 2
        (self.sound / "many.jsonl").write_text("".join(webs.documents(self.workshop.seed, pages * 2)))
        steps = {"searched": ["similar"], "collected": ["collections"]}
        last = "scanned"
        for name, words in steps.items():
            webs.copy_tree(self.sound / last, self.sound / name)
            self.workshop.must(*words, name, "-q", folder=self.sound, timeout=300)
            last = name
        self.workshop.must("seen", "add", "filled", "many.jsonl", folder=self.sound, timeout=300)
        names = [json.loads(row)["id"] for row in (self.sound / "many.jsonl").read_text().splitlines()[::3]]
        (self.sound / "names").write_text("\n".join(json.dumps(name) for name in names))
        self.workshop.must("seen", "remove", "filled", "names", folder=self.sound, timeout=300)
        self.jobs = {
            "scan": ([], ["scan", "in", "-o", "atlas", *SMALL_COMMITS, "-q"], "atlas"),
            "run": ([], ["run", "in", "-o", "atlas", "-q"], "atlas"),
            "similar": (["scanned"], ["similar", "atlas", "-q"], "atlas"),
            "collections": (["searched"], ["collections", "atlas", "-q"], "atlas"),
            "dedup": (["collected"], ["dedup", "atlas", "-o", "out", "--shards", "all", "-q"], "out"),
            "add-if-new": (
                [],
                ["seen", "add-if-new", "index", "many.jsonl", "--batch", "40", "--json"],
                "index",
            ),
            "compact": (["filled"], ["seen", "compact", "index", "-q"], "index"),
        }
        self.whole = {name: self._whole(name) for name in self.jobs}

    def _place(self, name, folder):
        """What a job begins with."""
        webs.copy_tree(self.sound / "in", folder / "in")
        (folder / "many.jsonl").hardlink_to(self.sound / "many.jsonl")
        for source in self.jobs[name][0]:
            webs.copy_tree(self.sound / source, folder / ("index" if source == "filled" else "atlas"))

    def _whole(self, name):
        """What a job makes when nobody kills it, how long it takes, and what an index says then."""
        made, times = [], []
        for again in range(2):
            folder = suite.empty(self.workshop.folder / f"case-whole0{again}")
            self._place(name, folder)
            outcome = self.workshop.must(*self.jobs[name][1], folder=folder, timeout=300)
            made.append(webs.digest(folder / self.jobs[name][2], place=folder))
            times.append(outcome.seconds)
        checked = self._check(folder) if self.jobs[name][2] == "index" else None
        # Some files of a report have times in them.
        steady = {file: content for file, content in made[0].items() if made[1].get(file) == content}
        return steady, min(times), checked

    def _check(self, folder):
        """What an index says of every document: new, near or exact, and of which."""
        outcome = self.workshop.must(
            "seen", "check", "index", "many.jsonl", "--json", folder=folder, timeout=300
        )
        return [json.loads(line) for line in outcome.stdout.splitlines()]

    def case(self, number, folder):
        rng = self.random(number)
        name = list(self.jobs)[number % len(self.jobs)]
        _, arguments, made = self.jobs[name]
        expected, seconds, checked = self.whole[name]
        verdict = suite.Verdict(name)
        self._place(name, folder)
        acknowledged, latest, killed = set(), seconds, 0
        for _ in range(2 * KILLS):
            moment = rng.uniform(0.05, 0.9) * latest
            outcome, landed = self._killed(arguments, folder, moment)
            verdict.counts["kills that landed" if landed else "kills that came too late"] += 1
            if name == "add-if-new":
                acknowledged |= added(outcome.stdout)
            killed += landed
            if killed == KILLS:
                break
            if not landed:
                if trouble := outcome.trouble():
                    verdict.problems.append(f"`{outcome.command()}`: {trouble}")
                # The work that is left is shorter than thought.
                latest = max(0.02, latest * 0.6)
                if name in ("dedup", "scan", "run"):
                    break
        if name in ("add-if-new", "compact"):
            self._judge_index(
                verdict, folder, arguments, acknowledged, checked if name == "compact" else None
            )
        else:
            self._judge_files(verdict, folder, arguments, made, expected, landed)
        return verdict

    def _killed(self, arguments, folder, moment):
        with program.Running(self.workshop.binary, arguments, folder) as running:
            landed = not running.wait(moment)
            if landed:
                running.signal(signal.SIGKILL)
                running.wait(30)
            outcome = running.outcome()
        return outcome, landed and outcome.code == -signal.SIGKILL

    def _judge_files(self, verdict, folder, arguments, made, expected, landed):
        if landed:
            last = self.workshop.run(*arguments, folder=folder, timeout=300)
            # A kill may land between the last byte and the end of the process.
            finished = last.code == 2 and "finished" in last.stderr
            if last.trouble() or (last.code != 0 and not finished):
                verdict.problems.append(
                    f"`{last.command()}` does not resume: {last.trouble() or last.last_words()}"
                )
                return
        found = webs.digest(folder / made, place=folder)
        wrong = sorted(name for name in expected if found.get(name) != expected[name])
        verdict.expect(not wrong, f"other bytes after kills: {', '.join(wrong[:8])}")
        if made == "atlas":
            sound = self.workshop.run("verify", "atlas", "--deep", folder=folder)
            verdict.expect(sound.code == 0, f"`{sound.command()}` exits {sound.code}: {sound.stdout[:300]}")

    def _judge_index(self, verdict, folder, arguments, acknowledged, checked):
        if acknowledged:
            answers = {answer["name"]: answer["status"] for answer in self._check(folder)}
            lost = sorted(name for name in acknowledged if answers.get(name) == "new")
            verdict.expect(not lost, f"{len(lost)} acknowledged documents are lost, as {lost[:5]}")
        last = self.workshop.run(*arguments, folder=folder, timeout=300)
        if last.trouble() or last.code != 0:
            verdict.problems.append(
                f"`{last.command()}` does not resume: {last.trouble() or last.last_words()}"
            )
            return
        answers = self._check(folder)
        new = [answer["name"] for answer in answers if answer["status"] == "new"]
        if checked is None:
            verdict.expect(not new, f"{len(new)} documents are lost, as {new[:5]}")
        else:
            verdict.expect(answers == checked, "the index answers differently after kills of `compact`")
        sound = self.workshop.run("seen", "verify", "index", folder=folder)
        verdict.expect(sound.code == 0, f"`{sound.command()}` exits {sound.code}: {sound.stdout[:300]}")


def added(stdout):
    """Names that were answered on whole lines: those were acknowledged."""
    whole = stdout[: stdout.rfind(b"\n") + 1]
    answers = (json.loads(line) for line in whole.splitlines())
    return {answer["name"] for answer in answers if answer["status"] != "empty"}
