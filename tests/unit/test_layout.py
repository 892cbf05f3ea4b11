"""Every module is reached by a test of its room: a test that imports it, or a module of the room that imports it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from repository import ROOT

PACKAGE = ROOT / "sparsecv_mio"
TESTS = ROOT / "tests"

# Rooms with tests elsewhere too: one suite for all backends, enumeration, and a checker that is started as a command.
ELSEWHERE = {"formulation": "conformance", "trees": "brute_force", "near": "brute_force", "proofs": "unit/check"}


def modules() -> list[str]:
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py"))
    return sorted(path.as_posix() for path in paths if path.stem not in ("__init__", "__main__"))


def room(module: str) -> str:
    return module.rpartition("/")[0].partition("/")[0]


@cache
def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere, as paths in it; the check's own imports are relative."""
    text, found = path.read_text(encoding="utf-8"), set[str]()
    inside = path.relative_to(PACKAGE).parent.as_posix() if path.is_relative_to(PACKAGE) else ""
    for stem, names in re.findall(r"^ *from ([\w.]+) import (\([^)]*\)|.*)$", text, re.MULTILINE):
        base = f"{inside}/{stem[1:]}" if stem.startswith(".") else stem.removeprefix("sparsecv_mio").removeprefix(".")
        parts = [base.replace(".", "/"), *re.findall(r"\w+", names)]
        found |= {parts[0], *(f"{parts[0]}/{name}".strip("/") for name in parts[1:])}
    for name in re.findall(r"import (sparsecv_mio[\w.]*)|[\"']([\w.]+)(?::\w+)?[\"']", text):  # strings: loaded by name
        plain = "".join(name).removeprefix("sparsecv_mio.").replace(".", "/")
        found |= {plain, f"{inside}/{plain}"}
    return found


def reached(name: str) -> set[str]:
    """Modules of a room that its tests import, and those of the room that these lead to."""
    folders = [TESTS / "unit" / name, *([TESTS / ELSEWHERE[name]] if name in ELSEWHERE else [])]
    tests = (path for folder in folders for path in (folder.rglob("*.py") if name else folder.glob("*.py")))
    found = set().union(*(imported(path) for path in tests))
    while more := {one for module in found for one in wanted_by(module) if room(one) == name} - found:
        found |= more
    return found


def wanted_by(module: str) -> Iterator[str]:
    for path in (PACKAGE / f"{module}.py", PACKAGE / module / "__init__.py"):
        if path.exists():
            yield from imported(path)


def test_every_module_is_reached_by_a_test_of_its_room() -> None:
    """One test for all rooms: one process reads the files."""
    found = modules()
    missed = {name: {one for one in found if room(one) == name} - reached(name) for name in {*map(room, found)}}
    assert {name: left for name, left in missed.items() if left} == {}


def test_folders_of_tests_are_those_of_the_package() -> None:
    unit = TESTS / "unit"
    folders = {path.parent.relative_to(unit).as_posix() for path in unit.rglob("test_*.py")}
    assert {folder for folder in folders if not (PACKAGE / folder).is_dir()} == set()
