"""The orders and the bounding methods that read a setting of the plan, as its metadata and as the code name them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from repository import ROOT, syntax
from rich.console import Console
from zoo import random_problem

from sparsecv_mio.report.optional_parts import print_plan
from sparsecv_mio.search.grid_search import ORDERS
from sparsecv_mio.search.orders import together
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.sources import registry
from sparsecv_mio.search.sources.registry import SOURCES

SEARCH = ROOT / "sparsecv_mio" / "search"
NAMES = {setting.name for setting in fields(Plan)}
LIMIT = {"first_node_limit", "node_growth"}  # settings that the method `node_limit` reads


def settings_in(code: ast.AST) -> set[str]:
    """Return the settings that some code reads from a plan."""
    read = {
        node.attr for node in ast.walk(code)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("plan", "self.plan")
    }  # fmt: skip
    return (read & NAMES) | (LIMIT if "node_limit" in read else set())


def definitions(path: Path) -> tuple[dict[str, ast.stmt], dict[str, Path]]:
    """Return the functions and classes of a file by name, and the files of the functions of other orders."""
    tree, files = syntax(path.read_text(encoding="utf-8")), dict[str, Path]()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sparsecv_mio.search.orders."):
            files |= {name.name: file_of(node.module or "") for name in node.names}
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}, files


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def read_by(name: str, path: Path, without: frozenset[str] = frozenset()) -> set[str]:
    """Return the settings that a function or class of a file reads, itself or through functions that it uses."""
    own, files = definitions(path)
    used = {node.id for node in ast.walk(own[name]) if isinstance(node, ast.Name)} - without - {name}
    read = settings_in(own[name])
    for other in used & {*own, *files}:
        read |= read_by(other, files.get(other, path), without | {name} if other in own else frozenset())
    return read


def readers() -> Iterator[tuple[str, set[str]]]:
    """Yield orders and bounding methods by name, each with the settings that it reads."""
    for name, order in ORDERS.items():
        yield name, read_by(order.__name__, file_of(order.__module__))
    classes = frozenset(type(source).__name__ for source in SOURCES.values())  # which may use one another
    for name, source in SOURCES.items():
        yield name, read_by(type(source).__name__, file_of(type(source).__module__), classes)


def test_the_metadata_of_a_setting_name_its_readers() -> None:
    by_reader, everywhere = dict(readers()), {"sources_off"}
    for path in SEARCH.rglob("*.py"):
        if path.parent.name not in ("orders", "sources") and path.name != "plan.py":
            everywhere |= settings_in(syntax(path.read_text(encoding="utf-8")))
    for setting in fields(Plan):
        names = {name for name, settings in by_reader.items() if setting.name in settings}
        assert names or setting.name in everywhere, f"{setting.name} is never read"
        expected = {"all"} if setting.name in everywhere else names
        assert set(setting.metadata["readers"]) == expected, (setting.name, sorted(expected))


def test_only_settings_with_a_reader_in_the_search_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A search by `together` relaxes nothing, and `given_pairs` reads no setting of `together`."""
    case = random_problem(7, rows=24, columns=6)
    for method, shown in (("rounds", True), ("algorithm1", False)):
        print_plan(Console(width=200), case.solve(method=method, gap=1e-4))
        printed = capsys.readouterr().out
        assert "relaxed_stride" not in printed and "orders" in printed
        assert ("cheap_nodes" in printed) is shown and ("looks_first" in printed) is shown


def test_the_registry_names_the_file_of_each_source() -> None:
    listed = re.findall(r"^(\w+) {2,}([a-z].+)$", registry.__doc__ or "", re.MULTILINE)
    of_source = {name: file for file, names in listed for name in names.split(", ")}
    assert of_source.pop("sources") == "file"
    assert of_source == {name: type(source).__module__.rpartition(".")[2] for name, source in SOURCES.items()}


def test_the_page_has_each_order_and_the_phases_of_together() -> None:
    page = (ROOT / "docs" / "how_it_decides.md").read_text(encoding="utf-8")
    phases = re.findall(r"^        yield (\w+)\(|^    yield (\w+)\(", inspect.getsource(together._phases), re.MULTILINE)
    table = page[page.index("| phase | source | work |") :]
    assert re.findall(r"^\| `(\w+)` \|", table[: table.index("\n\n")], re.MULTILINE) == [a or b for a, b in phases]
    assert not [name for name in ORDERS if f"`{name}`" not in page]
