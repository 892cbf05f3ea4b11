"""Settings of every test process, of the suite and of the examples in docstrings."""

from __future__ import annotations

import ast
import gc
import math
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ["COLUMNS"] = "200"  # of what is printed into a pipe; the terminal of whoever runs the tests does not count

# What Windows has not, or has otherwise; a test whose code names it is left out there.
_POSIX = re.compile(
    r"mkfifo|/dev/|\bpty\.|symlink_to|small_disk|unprivileged|SIGKILL|os\.kill|send_signal|\.chmod|\"bash\"|pthread_"
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without a search for garbage: a quarter of the time, and what is collected lasts to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def kernels_are_compiled_where_they_are_called() -> None:
    """Leave out the tiny runs before a clock, and before the first task of a batch: a test compiles what it calls."""
    from sparsecv_mio.batch import dispatch
    from sparsecv_mio.search import first_use

    kinds = [kind for kind in vars(first_use).values() if isinstance(kind, first_use.Kind)]
    commands = ("search", "path", "near", "common", "bounds")
    first_use._compiled |= {f"{command}_{kind.name}" for command in commands for kind in kinds}
    dispatch._compile_once = lambda: None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def a_signal_of_an_earlier_test_is_forgotten() -> None:
    """Let a signal soon after one of an earlier test be a first one."""
    from sparsecv_mio.search.deadline import StopSignal

    StopSignal.latest = -math.inf


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests of pipes, devices, links, permissions and signals where the system has no pipes with a name."""
    if hasattr(os, "mkfifo"):
        return
    sources: dict[Path, dict[str, str]] = {}
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if item.path not in sources:
            text = item.path.read_text(encoding="utf-8")
            tops = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
            lines = text.splitlines()
            starts = {node.name: min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1 for node in tops}
            sources[item.path] = {node.name: "\n".join(lines[starts[node.name] : node.end_lineno]) for node in tops}
        told = sources[item.path]
        own = told.get(item.originalname, "")
        used = [told[name] for name in set(re.findall(r"\w+", own)) & told.keys()]  # helpers and fixtures beside it
        if any(_POSIX.search(text) for text in (own, *used)):
            item.add_marker(pytest.mark.skip(reason="pipes, devices, links, permissions or signals of POSIX"))


# A module that loads a modelling package as it is imported: without it their examples cannot be collected.
_models = ["sparsecv_mio/formulation/models.py"]
# Pages whose data are no files of the repository: tests/unit/test_books.py runs them, by hand.
_pages = ["docs/books/birth_weight.md", "docs/books/heart_disease.md"]
collect_ignore = _pages if find_spec("pyomo") else [*_pages, *_models]
if find_spec("statsmodels") is None:  # their examples need the extra `inference`
    collect_ignore += ["sparsecv_mio/inference/splits.py", "docs/guide/split_inference.md"]
