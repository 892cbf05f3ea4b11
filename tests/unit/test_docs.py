"""The docs site: every public name and every command has its place, and every place its name."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from types import ModuleType

import pytest
from repository import DOCS

import sparsecv_mio
from sparsecv_mio import cli

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
