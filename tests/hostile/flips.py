"""Flipped bits and cuts in every file of an atlas and of an index, then every later command.

A command may answer as it does for the sound files, or fail by name. Another answer with exit code 0 is the worst
that can happen: nobody looks for it.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import suite, webs
from .damage import Damage, damage
from .server import NotStarted, Server

TIMEOUT = 60
MEMORY = ["--memory", "1G", "--threads", "2"]


@dataclass(frozen=True)
class Command:
    """A later command. `writes` names what it makes; it may be the damaged folder itself."""

    name: str
    arguments: tuple[str, ...]
    writes: str | None = None
    # Run after it, whatever became of it, to see what it left.
    then: tuple[str, ...] = ()


def command(line, writes=None, then=""):
    words = tuple(line.split())
    return Command(line, words, writes, tuple(then.split()))


ATLAS = [
    command("verify atlas --json"),
    command("verify atlas --deep --json"),
    command("similar atlas --json", "atlas"),
    command("similar atlas --exact --threshold 0.8 --json", "atlas"),
    command("similar atlas --preset sgm98-4 --json", "atlas"),
    command("similar atlas --method paragraphs --for-report --json", "atlas"),
    command("collections atlas --json", "atlas"),
    command("collections atlas --show --json"),
    command("report atlas -o out --no-png --json", "out"),
    command("avoid atlas -o out --json", "out"),
    command("avoid simulate list.json atlas --json"),
    command("avoid audit list.json atlas --date 2030-01-01 --json"),
    command("avoid alternate atlas URL --json"),
    command("dedup atlas -o out --shards all --json", "out"),
    command("dedup atlas -o out --keep longest --annotate --shards all --json", "out"),
    command("explain atlas 0 1 --json"),
    command("explain atlas cluster:0 --json"),
    command("explain atlas collection:0 --json"),
    command("evaluate atlas --truth truth.jsonl --threshold 0.8 --json"),
    command("size atlas list.txt --samples 50 --json"),
    command("seen add fresh --atlas atlas --json", then="seen check fresh last.jsonl --json"),
    command("seen check index --atlas atlas --json"),
]

INDEX = [
    command("seen check index all.jsonl --json"),
    command("seen stats index --json"),
    command("seen verify index --json"),
    command("seen add index other.jsonl --json", then="seen check index all.jsonl other.jsonl --json"),
    command("seen add-if-new index other.jsonl --json", then="seen check index all.jsonl --json"),
    command("seen remove index --name NAME --json", then="seen check index all.jsonl --json"),
    command("seen compact index --json", then="seen check index all.jsonl --json"),
]

# Asked of a server of an atlas. Answers that are JSON are compared.
ATLAS_PATHS = [
    "/api/v1/search?q=WORD",
    "/api/v1/documents/3",
    "/api/v1/clusters",
    "/api/v1/clusters/0",
    "/api/v1/collections",
    "/api/v1/collections/0",
    "/api/v1/alternates?url=URL",
    "/api/v1/explain?a=0&b=1",
    "/downloads/filters/json",
]


@dataclass(frozen=True)
class Answer:
    """What a command came to, without what differs between two runs."""

    code: int
    lines: tuple
    files: tuple


def spelled(value):
    return json.dumps(value, sort_keys=True)


class Flips(suite.Part):
    name = "flips"
    small, large, share = 60, 2000, 10

    def prepare(self):
        self.make_sound()
        self.expected = self._expected()
        self.targets = self._targets()

    def make_sound(self):
        """Everything that is damaged later, and what commands need beside it."""
        self.sound = self.workshop.folder / "sound"
        self.sound.mkdir()
        pages = 400 if self.workshop.is_large else 250
        webs.make_atlas(self.workshop, self.sound, pages)
        webs.make_index(self.workshop, self.sound)
        self.workshop.must("avoid", "atlas", "-o", "lists", "-q", folder=self.sound)
        shutil.copyfile(self.sound / "lists/avoid.json", self.sound / "list.json")
        rows = (self.sound / "truth.jsonl").read_text().splitlines()
        urls = [row["url"] for row in map(json.loads, rows) if isinstance(row.get("url"), str)]
        self.url = urls[0]
        (self.sound / "list.txt").write_text("\n".join(urls[:200]) + "\n")
        self.removed = f"d{self.workshop.seed + 2}-7"
        with Server(self.workshop, self.sound, "atlas", "--memory", "1G") as server:
            text = json.loads(server.get("/api/v1/documents/3")[1])["text"]
            self.word = max(text.split()[:30], key=len).strip(".,").lower()
            server.stop()

    def _targets(self):
        """Every file of the atlas and of the index, in an order in which each comes soon."""
        found = []
        for root in ("atlas", "index"):
            folder = self.sound / root
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            found += [str(path.relative_to(self.sound)) for path in files if ".staging" not in path.parts]
        return found

    def _expected(self):
        """What each command answers on sound files; asked twice, so that what varies is not compared."""
        found = {}
        for asked in [*ATLAS, *INDEX, "serve atlas", "serve index"]:
            answers = []
            for again in range(2):
                folder = suite.empty(self.workshop.folder / f"case-expect{again}")
                self._place(folder)
                if isinstance(asked, str):
                    answers.append(self._served(asked, folder)[1])
                else:
                    outcome, answer = self._answer(asked, folder, None)
                    if outcome.trouble() or outcome.code == 2:
                        raise RuntimeError(f"`{outcome.command()}` fails on sound files: {outcome.stderr}")
                    answers.append(answer)
                shutil.rmtree(folder)
            if isinstance(asked, str):
                steady = {
                    path: answer for path, answer in answers[0].items() if answers[1].get(path) == answer
                }
                if len(steady) < len(answers[0]) - 1:
                    raise RuntimeError(f"`{asked}` answers differently each time")
                found[asked] = steady
            else:
                files = tuple(sorted(set(answers[0].files) & set(answers[1].files)))
                if answers[0].lines != answers[1].lines:
                    raise RuntimeError(f"`{asked.name}` prints something else each time: {answers}")
                found[asked.name] = Answer(answers[0].code, answers[0].lines, files)
        return found

    def _place(self, folder):
        """Sound files in a folder, those that are only read as links."""
        for name in ("in", "atlas", "index"):
            webs.copy_tree(self.sound / name, folder / name)
        for name in ("list.json", "list.txt", "truth.jsonl", "all.jsonl", "last.jsonl", "other.jsonl"):
            (folder / name).hardlink_to(self.sound / name)

    def _arguments(self, words):
        places = {"URL": self.url, "NAME": self.removed}
        return [places.get(word, word) for word in words]

    def _answer(self, asked, folder, target):
        arguments = self._arguments(asked.arguments)
        if asked.arguments[0] in ("similar", "collections", "report", "dedup"):
            arguments += MEMORY
        outcome = self.workshop.run(*arguments, folder=folder, timeout=TIMEOUT)
        lines = [spelled(line) for line in webs.steady_output(outcome.stdout)]
        files = {}
        if asked.writes and outcome.code == 0:
            files = webs.digest(folder / asked.writes, place=folder)
            if target and target.startswith(asked.writes + "/"):
                self._forgive(files, folder, target, asked.writes)
        if asked.then and outcome.code == 0:
            after = self.workshop.run(*self._arguments(asked.then), folder=folder, timeout=TIMEOUT)
            lines += [spelled(line) for line in webs.steady_output(after.stdout)]
            if after.trouble() or after.code == 2:
                outcome = after
        return outcome, Answer(outcome.code, tuple(lines), tuple(sorted(files.items())))

    def _forgive(self, files, folder, target, root):
        """The damaged file itself counts as sound while the command has left it as it was."""
        name = target.removeprefix(root + "/")
        damaged, now = self.damaged_bytes[str(folder)], folder / target
        if (now.read_bytes() if now.exists() else None) == damaged:
            files.pop(name, None)
            if now.parent.exists():
                files[name] = webs.hash_file(self.sound / target)

    damaged_bytes = {}

    def case(self, number, folder):
        rng = self.random(number)
        # Small files come as often as large ones, and every kind of damage meets every file.
        target = self.targets[number % len(self.targets)]
        sound = (self.sound / target).read_bytes()
        done = damage(rng, sound)
        verdict = suite.Verdict(f"{target}: {done}")
        verdict.counts["damages"] += 1
        root = target.split("/")[0]
        self._damaged(folder, target, done)
        for asked in ATLAS if root == "atlas" else INDEX:
            verdict.counts["commands"] += 1
            outcome, answer = self._answer(asked, folder, target)
            self._judge(verdict, asked, outcome, answer, target, done)
            if asked.writes or asked.then:
                self._damaged(folder, target, done)
        verdict.counts["commands"] += 1
        self._judge_server(verdict, f"serve {root}", folder, target, done)
        return verdict

    def _damaged(self, folder, target, done):
        suite.empty(folder)
        self._place(folder)
        webs.damage_copy(folder / target, done.data)
        self.damaged_bytes[str(folder)] = done.data

    def _judge(self, verdict, asked, outcome, answer, target, done):
        what = f"`{outcome.command()}`"
        if trouble := outcome.trouble():
            verdict.problems.append(f"{what}: {trouble}")
            return
        if Path(target).name == "costs.jsonl" and asked.arguments[0] == "report":
            # What the stages cost is in the report where it is known; nothing is computed from it.
            return
        sound = self.expected[asked.name]
        verifies = "verify" in asked.arguments
        if outcome.code == 2 or (verifies and outcome.code == 1):
            said = outcome.stderr + outcome.stdout.decode(errors="replace")
            verdict.expect(names(said, target), f"{what} does not name {target}: {outcome.last_words()}")
            return
        if verifies:
            noticed = not self._is_checked(target, done) or bool(self._lost(target, done))
            verdict.expect(noticed, f"{what} finds nothing wrong")
            return
        if (answer.code, answer.lines) != (sound.code, sound.lines):
            lost = self._lost(target, done)
            if not (lost and only_lost(answer.lines, sound.lines, lost)):
                verdict.problems.append(
                    f"{what} answers something else: {difference(answer.lines, sound.lines)}"
                )
                return
        wrong = sorted(set(sound.files) - set(answer.files))
        if wrong and outcome.code == 0:
            verdict.problems.append(
                f"{what} writes something else: {', '.join(name for name, _ in wrong[:6])}"
            )

    def _is_checked(self, target, done):
        """Whether `verify` has to find the damage."""
        path = Path(target)
        if path.name == "manifest.json" and done.data is not None:
            # A manifest without its last line feed says the same.
            return (self.sound / target).read_bytes().strip() != done.data.strip()
        # A record of `acknowledged` that cannot be read is no damage: less is known of the log.
        unchecked = {"costs.jsonl", "lock", "catalogue.copy", "acknowledged"}
        return path.name not in unchecked and "search" not in path.parts

    def _lost(self, target, done: Damage):
        """Documents that a torn log cannot know any more, as the documentation says."""
        if not Path(target).name.startswith("wal-") or done.data is None:
            return set()
        *starts, end = webs.log_batches(self.sound / target)
        if done.kind == "append" or done.at >= end:
            return {""}
        if done.kind == "cut":
            # Batches that are there in full; the others are gone.
            whole = sum(1 for start in [*starts[1:], end] if start <= done.at)
        elif done.at >= starts[-1]:
            whole = len(starts) - 1
        else:
            return set()
        # The program may have made batches of any size: names are looked up in their bytes.
        data = (self.sound / target).read_bytes()[starts[whole] if whole < len(starts) else end :]
        rows = (self.sound / "last.jsonl").read_text().splitlines()
        names_of = (json.loads(row)["id"] for row in rows)
        return {name for name in names_of if len(name).to_bytes(2, "little") + name.encode() in data} | {""}

    def _judge_server(self, verdict, asked, folder, target, done):
        try:
            outcome, answers = self._served(asked, folder)
        except NotStarted as failed:
            outcome = failed.outcome
            if trouble := outcome.trouble():
                verdict.problems.append(f"`{outcome.command()}`: {trouble}")
                return
            ok = outcome.code == 2 and names(outcome.stderr, target)
            verdict.expect(ok, f"`{outcome.command()}` ends without naming {target}: {outcome.last_words()}")
            return
        if trouble := outcome.trouble():
            verdict.problems.append(f"`{outcome.command()}`: {trouble}")
        for path, sound in self.expected[asked].items():
            status, body = answers[path]
            refused = status in (500, 503) or status >= 400 and "damaged" in body
            ok = refused or (status, body) == sound or self._is_only_lost(body, sound[1], target, done)
            verdict.expect(ok, f"`{outcome.command()}`: {path} answers {status} {body[:150]}")

    def _is_only_lost(self, body, sound, target, done):
        """Whether a server's answers differ for documents alone that a torn log cannot know."""
        lost = self._lost(target, done)
        if not lost:
            return False
        try:
            now, before = (
                [spelled({"type": "seen", **row}) for row in json.loads(text)[0]["answers"]]
                for text in (body, sound)
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return False
        return only_lost(now, before, lost)

    def _served(self, asked, folder):
        """Starts a server, asks it everything, and stops it."""
        if asked == "serve atlas":
            arguments = ["atlas", "--memory", "1G", "--threads", "2"]
        else:
            arguments = ["--seen", "index", "--seen-read-only", "--memory", "1G"]
        with Server(self.workshop, folder, *arguments) as server:
            answers = {}
            if asked == "serve atlas":
                for path in ATLAS_PATHS:
                    full = path.replace("URL", self.url).replace("WORD", self.word)
                    status, body = server.get(full)
                    answers[path] = (status, spelled(webs.steady_output(body)))
            else:
                rows = (folder / "all.jsonl").read_text().splitlines()
                for start in range(0, len(rows), 200):
                    body = json.dumps({"documents": [json.loads(row) for row in rows[start : start + 200]]})
                    status, answer = server.request(
                        "POST", "/api/v1/seen/check", body, Content_Type="application/json"
                    )
                    answers[f"check from {start}"] = (status, spelled(webs.steady_output(answer)))
            return server.stop(), answers


def names(said, target):
    """Whether a message names the file, or the table or the folder that it belongs to."""
    path = Path(target)
    parts = [part for part in path.parts[1:] if part not in ("report",)]
    if path.name == "manifest.json":
        # What the manifest says about a table or a stage is reported in the words of that.
        return "atlas" in said or "manifest" in said
    spellings = {path.name, "/".join(parts), *(part for part in parts[:-1] if len(part) > 2)}
    spellings |= {".".join(parts[:-1])} if len(parts) > 2 else set()
    return any(spelling and spelling in said for spelling in spellings)


def only_lost(lines, sound, lost):
    """Whether answers differ for lost documents alone, which are `new` now, and in nothing else."""
    if len(lines) != len(sound):
        return False
    for now, before in zip(lines, sound, strict=True):
        if now == before:
            continue
        answer, was = json.loads(now), json.loads(before)
        if not (isinstance(answer, dict) and isinstance(was, dict)):
            return False
        if answer.get("type") == "seen":
            original = (was.get("of") or {}).get("name")
            if answer.get("name") not in lost and original not in lost:
                return False
        elif answer.get("type") not in ("seen_stats", "seen_verify", "seen_remove"):
            return False
    return True


def difference(lines, sound):
    """The first line in which two answers differ."""
    for now, before in zip(lines, sound, strict=False):
        if now != before:
            at = next((at for at, (a, b) in enumerate(zip(now, before, strict=False)) if a != b), 0)
            return f"...{now[max(0, at - 80) : at + 80]}... for ...{before[max(0, at - 80) : at + 80]}..."
    return f"{len(lines)} lines for {len(sound)}"
