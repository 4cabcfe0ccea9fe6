"""The program, the server and this package answer the same to the same requests about seen documents.

The table of requests and answers is `tests/seen_requests.jsonl`. `$0-200` in a text stands for two
hundred words, `#70000` for a string of that length. `ONIONSKIN` names the program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from onionskin import Deduplicator

TABLE = Path(__file__).parents[3] / "tests" / "seen_requests.jsonl"
TOKEN = "a-token-that-nobody-guesses"
INDEXES = {"names": ["--no-sketches"], "numbers": ["--numeric-ids", "--no-sketches"], "sketches": ["--threshold", "0.9"]}
EDGES = ["program", "server", "python"]

pytestmark = pytest.mark.skipif("ONIONSKIN" not in os.environ, reason="ONIONSKIN does not name the program")

Request = dict[str, Any]


class Refused(Exception):
    """An error of any of the three."""


def expand(value: Any) -> Any:
    if isinstance(value, str):
        if re.fullmatch(r"#\d+", value):
            return "x" * int(value[1:])
        return re.sub(r"\$(\d+)-(\d+)", lambda found: " ".join(f"word{n}" for n in range(int(found[1]), int(found[2]))), value)
    if isinstance(value, list):
        return [expand(one) for one in value]
    if isinstance(value, dict):
        return {key: expand(one) for key, one in value.items()}
    return value


def requests() -> list[Request]:
    return [expand(json.loads(line)) for line in TABLE.read_text().splitlines()]


def json_lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def program(folder: Path, *words: str, given: str = "") -> list[Any]:
    command = [os.environ["ONIONSKIN"], "seen", *words, "--quiet"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder)
    if done.returncode == 2:
        raise Refused(done.stderr)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_program(folder: Path, request: Request) -> Any:
    index = f"{request['index']}-of-program"
    if request["mode"] == "stats":
        (stats,) = program(folder, "stats", index, "--json")
        del stats["type"], stats["index"]
        return stats
    words = [request["mode"], index, "-"]
    if "threshold" in request:
        words += ["--threshold", str(request["threshold"])]
    if "option" in request:
        words.append(f"--{request['option']}")
    if "verify" in request:
        words += ["--verify", request["verify"]]
    answers = program(folder, *words, given=json_lines(request["names" if "names" in request else "documents"]))
    for answer in answers:
        del answer["type"]
    return answers


def ask_server(url: str, request: Request) -> Any:
    def ask(path: str, body: str | None, kind: str) -> str:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
        asked = urllib.request.Request(f"{url}/api/v1/seen/{path}", None if body is None else body.encode(), headers)
        try:
            with urllib.request.urlopen(asked) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            assert 400 <= error.code < 500, error
            raise Refused(json.loads(error.read())["error"]["message"]) from error

    mode = request["mode"]
    if mode == "stats":
        stats = json.loads(ask("stats", None, "application/json"))
        del stats["read_only"]
        return stats
    if mode == "remove":
        return json.loads(ask("remove", json.dumps({"names": request["names"]}), "application/json"))["removed"]
    parameters = {"if_new": "true"} if mode == "add-if-new" else {}
    if "threshold" in request:
        parameters["threshold"] = request["threshold"]
    if "option" in request:
        parameters[request["option"]] = 1
    if "verify" in request:
        parameters["verify"] = request["verify"]
    path = f"{'add' if mode == 'add-if-new' else mode}?{urllib.parse.urlencode(parameters)}"
    lines = ask(path, json_lines(request["documents"]), "application/x-ndjson")
    return [json.loads(line) for line in lines.splitlines()]


def ask_python(seen: Deduplicator, request: Request) -> Any:
    try:
        if request["mode"] == "stats":
            return seen.stats()
        if request["mode"] == "remove":
            names = request["names"]
            digits = seen.ids is int and all(name.isdigit() for name in names)
            # The package itself takes numbers for numbers; a name that is none goes as far as the
            # index.
            return seen.remove_many([int(name) for name in names]) if digits else seen._index.remove(names)
        options: dict[str, Any] = {"threshold": request["threshold"]} if "threshold" in request else {}
        if "option" in request:
            options[request["option"]] = 1
        if "verify" in request:
            options["verify"] = request["verify"]
        return [verdict.to_dict() for verdict in seen.answer(request["documents"], request["mode"], **options)]
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[[Request], Any]]]:
    folder = tmp_path_factory.mktemp("seen")
    urls: dict[str, str] = {}
    seen: dict[str, Deduplicator] = {}
    with ExitStack() as open_ones:
        for index, flags in INDEXES.items():
            for edge in EDGES:
                program(folder, "add", f"{index}-of-{edge}", *flags)
            command = [os.environ["ONIONSKIN"], "serve", "--seen", f"{index}-of-server", "--listen", "127.0.0.1:0", "--json", "--quiet"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, "ONIONSKIN_TOKEN": TOKEN})
            open_ones.callback(process.wait, timeout=30)
            open_ones.callback(process.terminate)
            assert process.stdout is not None
            open_ones.callback(process.stdout.close)
            urls[index] = json.loads(process.stdout.readline())["url"].rstrip("/")
            seen[index] = open_ones.enter_context(Deduplicator.load(folder / f"{index}-of-python"))
        yield {
            "program": lambda request: ask_program(folder, request),
            "server": lambda request: ask_server(urls[request["index"]], request),
            "python": lambda request: ask_python(seen[request["index"]], request),
        }


def test_the_three_answer_the_same(edges: dict[str, Callable[[Request], Any]]) -> None:
    table = requests()
    assert len(table) >= 30
    for request in table:
        fields = set()
        for edge, ask in edges.items():
            about = f"{edge}: {request['about']}"
            if "error" in request:
                with pytest.raises(Refused) as refused:
                    ask(request)
                assert request["error"] in str(refused.value), about
                continue
            answered = ask(request)
            if request["mode"] == "stats":
                # The others depend on when files are written.
                assert {field: answered[field] for field in request["stats"]} == request["stats"], about
                fields.add(tuple(answered))
            else:
                assert answered == request["removed" if request["mode"] == "remove" else "answers"], about
        assert len(fields) <= 1, fields
