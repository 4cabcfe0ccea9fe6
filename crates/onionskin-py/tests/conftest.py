"""What the tests share: small webs, and texts that are near copies of one another."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import onionskin

WORDS = [f"word{n}" for n in range(2000)]


def words_of(generator: random.Random, n: int) -> list[str]:
    return generator.choices(WORDS, k=n)


def change(generator: random.Random, words: list[str], n: int) -> list[str]:
    """The same with some words changed."""
    changed = list(words)
    for at in generator.sample(range(len(words)), n):
        changed[at] = "changed" + str(generator.randrange(10**6))
    return changed


def turns_of_another_thread(work: Callable[[], object], pause: float) -> tuple[int, float]:
    """How often another thread comes by while the work is done, and the seconds it took."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(pause)

    other = threading.Thread(target=count)
    other.start()
    start = time.perf_counter()
    work()
    took = time.perf_counter() - start
    done.set()
    other.join()
    return counted, took


@pytest.fixture
def texts() -> list[str]:
    generator = random.Random(11)
    return [" ".join(words_of(generator, generator.randrange(5, 200))) for _ in range(500)]


def write_web(path: Path, sites: int = 4, pages: int = 14, seed: int = 5) -> Path:
    """A web of mirrors: every site has the same pages, which link to one another, and some of its own. HTML in JSON lines."""
    generator = random.Random(seed)
    shared = [words_of(generator, 150) for _ in range(pages)]
    with open(path, "w", encoding="utf-8") as file:
        for site in range(sites):
            for page in range(pages):
                text = " ".join(change(generator, shared[page], 1) if site == 2 else shared[page])
                links = "".join(f'<a href="/docs/p{to}.html">x</a>' for to in range(pages) if to != page)
                url = f"http://mirror{site}.example.org/docs/p{page}.html"
                print(json.dumps({"id": f"{site}-{page}", "url": url, "text": f"<p>{text}</p>{links}"}), file=file)
            text = " ".join(words_of(generator, 80))
            print(json.dumps({"id": f"{site}-own", "url": f"http://mirror{site}.example.org/own.html", "text": f"<p>{text}</p>"}), file=file)
    return path


@pytest.fixture(scope="session")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An atlas of a web of mirrors, with everything in it."""
    folder = tmp_path_factory.mktemp("mirrored")
    onionskin.run(write_web(folder / "web.jsonl"), folder / "atlas", text_is_html=True)
    return folder / "atlas"


@pytest.fixture
def make_web(tmp_path: Path) -> Callable[..., Path]:
    def make(**options: Any) -> Path:
        return write_web(tmp_path / "web.jsonl", **options)

    return make
