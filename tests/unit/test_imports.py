"""The import table of docs/architecture.md, held by walking the syntax tree of every module of the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numba
import pytest
from repository import syntax

import sparsecv_mio
from sparsecv_mio import satellites
from sparsecv_mio.kernels.numba_internals import QUICK

PACKAGE = "sparsecv_mio"
ROOT = Path(__file__).resolve().parents[2] / PACKAGE

BY_NAME = re.compile(rf"{PACKAGE}(\.\w+)+(:\w+)?")

GROUND = {
    "arrays", "errors", "units", "digits", "files", "words", "targets", "version", "parallel", "model_space",
    "thresholds", "declared_options", "satellites", "implementations",
}  # fmt: skip
DATA = GROUND | {"data"}
PROBLEM = DATA | {"problem"}
BOUNDS = PROBLEM | {"bounds", "trees"}
FORMULATION = BOUNDS | {"formulation"}
SEARCH = FORMULATION | {"search", "certificate"}
FITS = SEARCH | {"fits", "near", "warmup"}
REPORT = FITS | {"report", "inference"}
INTERFACE = REPORT | {"proofs", "cli"}
SATELLITES = {"check", "oracles", "batch"}
RECORDS = ("parts", "accuracy", "concordance", "predicting", "fit_records", "inference_parts", "records")

# A module may import the rooms of the longest entry that its own name starts with, and its own room.
MAY_IMPORT: dict[str, set[str]] = {
    "arrays": set(),
    "parallel": {"errors", "thresholds", "version"},
    "errors": set(),
    "units": {"errors"},
    "digits": set(),
    "version": set(),
    "thresholds": set(),
    "targets": set(),
    "words": {"errors", "targets"},
    "model_space": {"digits", "errors", "targets", "units", "words"},
    "declared_options": {"errors", "targets", "units", "words", "model_space", "thresholds"},
    "satellites": set(),
    "implementations": set(),
    "files": {"errors"},
    "kernels": set(),
    "data": GROUND,
    "problem": DATA,
    "certificate": GROUND | {"data"} | {f"problem.{x}" for x in ("objective", "glm_objective", "beyond_floats")},
    **{
        f"certificate.{part}": GROUND | {f"data.{x}" for x in ("dataset", "number_format", "reading_options")}
        for part in RECORDS
    },
    "trees": PROBLEM | {"kernels"},
    "bounds": PROBLEM | {"kernels", "trees"},
    "formulation": BOUNDS,
    "formulation.near_ties": BOUNDS | {"kernels"},
    "search": SEARCH | {"kernels"},
    "fits": SEARCH,
    "near": SEARCH | {"kernels", "fits"},
    "inference": FITS,
    "warmup": FITS | {"proofs", "kernels"},
    "report": REPORT,
    "sklearn": REPORT,
    "proofs": SEARCH | {"kernels"},
    "cli": REPORT | {"proofs"},
    # the satellites, which no other entry names
    "check": set(),
    "check.command": INTERFACE,
    "oracles": FORMULATION | {"kernels"},
    "oracles.commands": INTERFACE,
    "batch": INTERFACE | {"oracles"},
}

# Folders and files of search/ from the ground up: each may import those of its own line and of the lines before it.
SEARCH_LAYERS: tuple[set[str], ...] = (
    {"deadline", "steps"},
    {"state"},
    {"problems", "accounts", "observers"},
    {"plan", "first_use"},
    {"sources"},
    {"writer", "options", "question"},
    {"answer", "goals"},
    {"orders"},
    {"loop", "grid_search"},
    {"every_gamma"},
    {"running_search", "api"},
)

# Outside libraries that only these rooms may import. No room: nothing of the package.
ONLY_IN: dict[str, set[str]] = {
    "numba": {"kernels"},
    "pyomo": {"formulation"},
    "gurobipy": {"formulation"},
    "mosek": {"formulation"},
    "highspy": {"formulation"},
    "pyscipopt": {"formulation"},
    "clarabel": set(),
    "dask": {"parallel", "batch"},
    "distributed": {"parallel", "batch"},
}

LATE = (
    "numba", "pandas", "sklearn", "pyarrow", "matplotlib", "gurobipy", "mosek", "highspy", "pyscipopt", "pyomo",
    "distributed",
)  # fmt: skip


@cache
def imports_of(source: str, module: str, is_package: bool) -> tuple[str, ...]:
    """Return the names that a module imports; see `find_imports`."""
    return tuple(find_imports(source, module, is_package))


def find_imports(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Absolute names that a module imports anywhere, inside functions and under TYPE_CHECKING too, or loads by name.

    `from a import b` gives `a.b`: whether b is a module or a name in one, the room is in front. What is loaded by name
    is any string that begins with the package and a dot, `module:name` too.
    """
    parts = module.split(".")
    for node in ast.walk(syntax(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1 if is_package else node.level
            base = [] if node.level == 0 else parts[: len(parts) - up]
            stem = ".".join(base + ([node.module] if node.module else []))
            yield from (f"{stem}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and BY_NAME.fullmatch(node.value):
            yield node.value.replace(":", ".")


def inside(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def breaches(source: str, module: str, is_package: bool = False) -> list[str]:
    """Imports of one module that the table forbids; `module` is its full dotted name."""
    own = module.removeprefix(PACKAGE).removeprefix(".")
    entry = max((key for key in MAY_IMPORT if inside(own, key)), key=len, default=None)
    if own and entry is None:
        return [f"{module} is in no room of the table"]
    found = []
    for name in imports_of(source, module, is_package):
        if inside(name, PACKAGE):
            wanted = name.removeprefix(PACKAGE).removeprefix(".")
            if not own or wanted == "__version__":
                allowed = True
            elif inside(wanted, own.split(".")[0]):  # a record must not know who checks it
                allowed = own.removeprefix("certificate.") not in RECORDS or wanted.split(".")[1] in RECORDS
            else:
                allowed = any(inside(wanted, room) for room in MAY_IMPORT[str(entry)])
        else:
            rooms = ONLY_IN.get(name.split(".")[0])
            allowed = rooms is None or any(inside(own, room) for room in rooms)
        if not allowed:
            found.append(f"{module} imports {name}")
    return found


def modules() -> list[tuple[str, Path]]:
    rows = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT.parent).with_suffix("").parts)
        rows.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return rows


def test_every_module_keeps_the_table() -> None:
    found = modules()
    assert len(found) > 10
    broken = [line for name, path in found for line in breaches(path.read_text(), name, path.name == "__init__.py")]
    assert not broken, "\n".join(broken)


@cache
def graph() -> dict[str, set[str]]:
    """The modules that each module imports, inside functions and under TYPE_CHECKING too."""
    found = modules()
    names = {name for name, _ in found}
    edges: dict[str, set[str]] = {name: set() for name in names}
    for name, path in found:
        for wanted in imports_of(path.read_text(), name, path.name == "__init__.py"):
            while wanted and wanted not in names:
                wanted = wanted.rpartition(".")[0]
            if wanted not in ("", name):
                edges[name].add(wanted)
    return edges


def circles(edges: dict[str, set[str]]) -> set[str]:
    """The modules that lead back to themselves, by taking away those that import nothing that is left."""
    left = {name: set(wanted) for name, wanted in edges.items()}
    for turned in (False, True):  # then those that nothing that is left imports
        while True:
            imported = set().union(*left.values()) if left else set()
            out = {name for name, wanted in left.items() if (name not in imported if turned else not wanted)}
            if not out:
                break
            left = {name: wanted - out for name, wanted in left.items() if name not in out}
    return set(left)


def test_the_core_imports_no_satellite() -> None:
    """Neither in code nor by name: a satellite registers itself, and `satellites` names the folders alone."""
    assert set(satellites.SATELLITES) == SATELLITES
    for name, wanted in graph().items():
        own = f"{name}.".split(".")[1]
        taken = {other.split(".")[1] for other in wanted if other != PACKAGE} & SATELLITES - {own}
        assert taken <= ({"oracles"} if own == "batch" else set()), f"{name} imports {taken}"


def test_the_command_line_standardises_nothing() -> None:
    """A command calls library functions, which bring the data into standard coordinates."""
    numerical = {f"{PACKAGE}.data.standard", f"{PACKAGE}.problem.beyond_floats"}
    assert {name for name, wanted in graph().items() if inside(name, f"{PACKAGE}.cli") and wanted & numerical} == set()


def test_no_circle_of_imports() -> None:
    assert circles(graph()) == set()


def test_search_is_built_in_layers() -> None:
    """Every folder of `search/` stands above those it imports."""
    level = {part: floor for floor, parts in enumerate(SEARCH_LAYERS) for part in parts}
    rooms = {name.split(".")[2] for name, _ in modules() if name.startswith(f"{PACKAGE}.search.")}
    assert rooms == set(level)
    for name, wanted in graph().items():
        for other in wanted:
            ours, theirs = ([*one.split("."), "", ""][1:3] for one in (name, other))
            if ours[0] == theirs[0] == "search" and ours[1] and theirs[1] and ours[1] != theirs[1]:
                assert level[theirs[1]] <= level[ours[1]], f"{name} imports {other}"


def loaded_by(code: str, *arguments: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter loads while it runs `code`."""
    command = [sys.executable, "-X", "importtime", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {name.split(".")[0] for name in rows}


def test_importing_the_package_is_cheap() -> None:
    loaded = loaded_by(f"import {PACKAGE}")
    assert PACKAGE in loaded
    assert not loaded & set(LATE)


NOT_FOR_SOLVE = (
    "pandas", "matplotlib", "sklearn", "joblib", "jinja2", "pydantic", "scipy.optimize", "scipy.stats", "scipy.sparse",
    "scipy.special", "scipy.spatial", "scipy.fft", "pyarrow.dataset", "pyarrow.parquet", "multiprocessing", "asyncio",
    "pyomo", "distributed", "numba.np.arrayobj", "numba.np.linalg",
)  # fmt: skip
ROOMS_OF_SOLVE = {
    "bounds", "certificate", "cli", "data", "formulation", "kernels", "problem", "report", "search", "trees"
}  # fmt: skip
METHODS = {
    "problems.many_columns",
    *map("every_gamma.{}".format, ("descent", "gamma_partition", "gamma_fits", "gamma_lists")),
}


@pytest.mark.skipif(not numba.__version__.startswith(QUICK), reason="kernels of this numba need its tables")
def test_a_plain_solve_loads_what_it_uses(tmp_path: Path) -> None:
    """No library beside those of arrays and the screen, no room beside its own, no method that is not asked for."""
    table = tmp_path / "table.csv"
    rows = (f"{a},{b},{a * b % 7},{(3 * a + b) % 5}" for a in range(6) for b in range(5))
    table.write_text("\n".join(["u,v,w,y", *rows]))
    command = f"import sys; from {PACKAGE}.cli import run; code = run(sys.argv[1:]); print(code, *sys.modules)"
    arguments = [sys.executable, "-c", command, "solve", str(table), "--target", "y"]
    for _ in range(2):  # the first one may compile
        code, *names = (
            subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.split("\n")[-2].split()
        )
        loaded = set(names)
        if not (unused := {name for name in loaded for other in NOT_FOR_SOLVE if inside(name, other)}):
            break
    assert code == "0" and not unused
    ours = {name.removeprefix(f"{PACKAGE}.").split(".")[0] for name in loaded if name.startswith(f"{PACKAGE}.")}
    assert ours - GROUND <= ROOMS_OF_SOLVE | SATELLITES
    assert not {name for name in loaded for folder in SATELLITES if name.startswith(f"{PACKAGE}.{folder}.")}
    assert not {f"{PACKAGE}.search.{method}" for method in METHODS} & loaded


def test_a_plan_is_read_without_what_its_peers_need() -> None:
    loaded = loaded_by(f"import {PACKAGE}.batch.dispatch, {PACKAGE}.batch.batch_plan, {PACKAGE}.batch.one_task")
    assert PACKAGE in loaded and not loaded & {"sklearn", "pandas", "joblib", "matplotlib"}


def test_public_names_are_few_and_resolve() -> None:
    assert len(sparsecv_mio.__all__) <= 22
    assert all(getattr(sparsecv_mio, name) is not None for name in sparsecv_mio.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        sparsecv_mio.nonsense  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"]])
def test_help_loads_no_numerics(arguments: list[str]) -> None:
    # The start-up time is the modules': a bound in seconds would measure the machine.
    loaded = loaded_by(f"from {PACKAGE}.cli import main; main()", *arguments)
    assert "click" in loaded
    assert not loaded & {*LATE, "numpy", "scipy", "joblib"}
