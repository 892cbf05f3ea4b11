"""The docs site: every public name and every command has its place, and every place its name."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from importlib import import_module
from types import ModuleType

import pytest
from repository import DOCS

import sparsecv_mio
from sparsecv_mio import cli
from sparsecv_mio.bounds.relaxation import Relaxation, UnitDiagonal
from sparsecv_mio.certificate.parts import Work
from sparsecv_mio.certificate.records import Record, TableRow
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.task import ScaledProblem
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.state.cells import CellTable

ROOMS = ("sparsecv_mio.oracles.glru", "sparsecv_mio.oracles.iacv", "sparsecv_mio.oracles.treecv")


def listed() -> list[str]:
    """Full names of everything in the reference, page by page."""
    names = []
    for page in sorted((DOCS / "api").glob("*.md")):
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", page.read_text(), re.DOTALL):
            module = re.findall(r"currentmodule:: (\S+)", block)[0]
            entries = re.findall(r"^   ([A-Za-z_][\w.]*)$", block, re.MULTILINE)
            names += [f"{module}.{entry}" for entry in entries]
    return names


@pytest.fixture
def cli_help(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    monkeypatch.delitem(sys.modules, "cli_help", raising=False)
    return import_module("cli_help")


def test_every_name_in_the_reference_exists_and_is_explained() -> None:
    names = listed()
    assert len(names) > 100 and len(names) == len(set(names))
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, name


@pytest.mark.parametrize("module", ["sparsecv_mio", *ROOMS])
def test_every_public_name_is_in_the_reference(module: str) -> None:
    room = sparsecv_mio if module == "sparsecv_mio" else import_module(module)
    public = {f"{module}.{name}" for name in room.__all__ if callable(getattr(room, name))}
    assert public <= set(listed())


def test_every_command_has_its_help_on_the_site(cli_help: ModuleType) -> None:
    commands = set(cli_help.commands())
    assert {(name,) for name in cli.COMMANDS} <= commands and ("glru", "loocv") in commands
    for words in [(), *commands]:
        assert cli_help.help_text(words).startswith(" ".join(("Usage: sparsecv", *words)))


def test_a_command_without_help_stops_the_build(cli_help: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="sparsecv nothing --help"):
        cli_help.help_text(("nothing",))


def test_the_site_lists_every_setting_of_the_search(cli_help: ModuleType) -> None:
    words = cli_help.settings_table().astext()
    for setting in fields(Plan):
        assert all(text in words for text in (setting.name, setting.metadata["unit"], setting.metadata["reason"]))


def resolved(name: str) -> object:
    """What a dotted name below `sparsecv_mio` stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(("sparsecv_mio", *parts[:cut])))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"there is no sparsecv_mio.{name}")


OWNERS = (
    Record, TableRow, Work, SearchOptions, CellTable, StandardData, ScaledProblem, Relaxation, UnitDiagonal,
)  # fmt: skip
CLASSES: dict[str, type] = {one.__name__: one for one in OWNERS}


def test_every_name_in_the_notation_exists() -> None:
    text = (DOCS / "notation.md").read_text()
    modules = re.findall(r"`((?:[a-z_0-9]+\.)+[A-Za-z_]+)`", text)
    assert len(modules) > 12
    for name in modules:
        if not name.startswith("sparsecv_mio."):
            resolved(name)
    members = re.findall(r"`([A-Z][A-Za-z]+)\.([a-z_]+)`", text)
    assert len(members) > 10
    for owner, member in members:
        kind = CLASSES[owner]
        known = {field.name for field in fields(kind)}
        assert member in known or hasattr(kind, member), f"{owner}.{member}"
    constants = re.findall(r"^\| (`[A-Z_`, ]+`) \| `([a-z_.]+)` \|", text, re.MULTILINE)
    assert len(constants) > 5
    for names, home in constants:
        for name in re.findall(r"[A-Z_]+", names):
            assert name in vars(import_module(f"sparsecv_mio.{home}")), f"{home}.{name}"


def test_scripts_that_pages_name_exist() -> None:
    root = DOCS.parent
    for page in (*root.glob("*.md"), *DOCS.rglob("*.md"), root / "Makefile"):
        if page.name == "CHANGELOG.md":
            continue
        named = re.findall(r"(?<![\w/])scripts/[\w/]+\.py", page.read_text(encoding="utf-8"))
        assert all((root / script).is_file() for script in named), page


def test_the_pages_of_results_are_listed_and_their_scripts_exist() -> None:
    folder = DOCS.parent / "results"
    pages = {page.name: page.read_text() for page in folder.glob("*.md")}
    listed_pages = set(re.findall(r"\]\((\w+\.md)\)", pages.pop("README.md")))
    assert listed_pages == set(pages)
    for name, text in pages.items():
        commands = re.findall(r"^    (?:python (\S+)|\S)", text, re.MULTILINE)
        assert commands, f"{name} has no command"
        assert all((DOCS.parent / script).is_file() for script in commands if script), name
        links = re.findall(r"\]\(([^)#:]+)[^)]*\)", text)
        assert all((folder / link).exists() for link in links), name
