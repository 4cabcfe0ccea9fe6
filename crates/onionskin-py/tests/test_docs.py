"""Examples in docstrings and documents run; stubs and the module have the same names."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import onionskin
from onionskin import _onionskin

ROOT = Path(os.environ.get("ONIONSKIN_SOURCES", Path(__file__).resolve().parents[3]))
MODULES = ["onionskin", "onionskin._onionskin", "onionskin._atlas", "onionskin._deduplicator", "onionskin._stages", "onionskin.datasketch", "onionskin.testing"]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def documented(module: ModuleType) -> list[tuple[str, str, dict[str, Any]]]:
    """Docstrings with examples: name, text, what names mean in them."""
    found = {}

    def visit(name: str, thing: Any) -> None:
        if name in found:
            return
        text = inspect.getdoc(thing) or ""
        found[name] = text
        if inspect.isclass(thing):
            for member in vars(thing):
                if not member.startswith("__"):
                    visit(f"{name}.{member}", getattr(thing, member))

    visit(module.__name__, module)
    for name, thing in vars(module).items():
        own = getattr(thing, "__module__", None) == module.__name__ or module is _onionskin
        if own and not inspect.ismodule(thing) and (inspect.isclass(thing) or callable(thing)):
            visit(f"{module.__name__}.{name}", thing)
    scope = {**vars(onionskin), **vars(module)}
    return [(name, text, scope) for name, text in found.items() if ">>>" in text]


EXAMPLES = [example for module in MODULES for example in documented(importlib.import_module(module))]


@pytest.mark.parametrize(("name", "text", "scope"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_examples_in_docstrings(name: str, text: str, scope: dict[str, Any]) -> None:
    run(name, text, scope)


def run(name: str, text: str, scope: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(text, dict(scope), name, None, 0)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append)
    assert results.attempted > 0
    assert results.failed == 0, "".join(told)


DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "python.md", ROOT / "crates" / "onionskin-py" / "README.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: "-".join(path.parts[-2:]))
def test_examples_in_documents(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = document.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(?:python|pycon)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    examples = [block for block in blocks if ">>>" in block]
    assert examples, "no example"
    # One after the other, as one reads them.
    run(document.name, "\n".join(examples), {})


@pytest.mark.parametrize("name", sorted(onionskin.__all__))
def test_everything_public_is_documented(name: str) -> None:
    thing = getattr(onionskin, name)
    if isinstance(thing, str):
        return
    assert inspect.getdoc(thing), name
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, value in vars(thing).items():
            if member.startswith("_") or member in ("DEFAULT",) or member in getattr(thing, "__dataclass_fields__", {}):
                continue
            assert inspect.getdoc(value), f"{name}.{member}"


def stub_names(body: list[ast.stmt]) -> dict[str, set[str]]:
    """Names of a stub, each with those of its members."""
    names: dict[str, set[str]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = set(stub_names(node.body))
        elif isinstance(node, ast.FunctionDef):
            names.setdefault(node.name, set())
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = set()
    return {name: members for name, members in names.items() if not name.startswith("_") or name in ("__version__", "_text_addresses") or name.startswith("__") or name.startswith("_")}


def test_stubs_have_the_names_of_the_module() -> None:
    stub = Path(_onionskin.__file__).with_name("_onionskin.pyi")
    if not stub.exists():
        stub = Path(onionskin.__file__).with_name("_onionskin.pyi")
    names = stub_names(ast.parse(stub.read_text(encoding="utf-8")).body)
    for alias in ("_Path", "_Listener", "_Args"):
        names.pop(alias, None)
    module_level = {"__all__", "__builtins__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__path__", "__spec__"}
    real = {name: getattr(_onionskin, name) for name in vars(_onionskin) if name not in module_level}
    assert set(names) == set(real)
    plumbing = {"__module__", "__doc__", "__new__", "__repr__", "__str__", "__reduce__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__dict__", "__weakref__", "__hash__", "__eq__", "hint"}
    for name, thing in real.items():
        if inspect.isclass(thing):
            members = set(vars(thing)) - plumbing
            assert members == names[name] - plumbing, name


def test_nothing_else_is_needed() -> None:
    """The package imports without anything that pip would have to bring."""
    import subprocess
    import sys

    program = "import sys, onionskin, onionskin.datasketch\nassert not {'numpy', 'pyarrow', 'pandas', 'polars', 'tqdm'} & set(sys.modules), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_typed_example(tmp_path: Path) -> None:
    import typed

    (tmp_path / "in.jsonl").write_text('{"text": "one two three four"}\n' * 3)
    assert typed.kernel() > 1
    assert typed.job(tmp_path / "in.jsonl", tmp_path / "atlas") == 4
    assert typed.stream(["a b c d e", "A B C D E", "f g h i j"]) == ["a b c d e", "f g h i j"]
    assert typed.drop_in() == ["x"]
