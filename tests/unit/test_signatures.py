"""Signatures: few parameters, those of exported names explained. Held by walking the syntax tree of every module."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from repository import syntax

import sparsecv_mio
from sparsecv_mio import cli
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.declared_options import OF_TABLES
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.search.options import Hooks, SearchOptions

from .test_docs import listed

MOST = 8  # parameters of a function; `self` is not counted
EXPLAINED_FROM = 3  # an exported function of so many parameters explains each

# `solve` and `best_subsets` have those of their data and grid by themselves;
# a command's parameters are its options, and scikit-learn wants every setting of an estimator in `__init__`
MANY_PARAMETERS = (
    "search.api.solve", "fits.best_subsets.best_subsets", "cli",
    "sklearn.best_subset_ridge", "sklearn.best_subset_logistic",
    *(module.removeprefix("sparsecv_mio.") for module in cli.COMMANDS.values()),
)  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function or method of the package."""

    module: str  # dotted, without the package
    owner: str  # the class it belongs to, or ""
    name: str
    parameters: tuple[str, ...]
    doc: str
    elsewhere: bool  # explained elsewhere: an overload, or a command, whose options have their help
    bases: tuple[str, ...]

    @property
    def public(self) -> bool:
        parts = [*self.module.split("."), self.owner, self.name]
        return not any(part.startswith("_") for part in parts)

    def inside(self, rooms: tuple[str, ...]) -> bool:
        return any(f"{self}.".startswith(room + ".") for room in rooms)

    def __str__(self) -> str:
        return ".".join(part for part in (self.module, self.owner, self.name) if part)


def last_name(node: ast.expr) -> str:
    node = node.value if isinstance(node, ast.Subscript) else node
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def functions_of(tree: ast.Module, module: str) -> list[Function]:
    """Functions of a module and methods of its classes; functions inside of functions are nobody's to call."""
    found = []
    for holder in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        owner = holder.name if isinstance(holder, ast.ClassDef) else ""
        bases = tuple(map(last_name, holder.bases)) if isinstance(holder, ast.ClassDef) else ()
        for node in holder.body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            marks = {last_name(mark) for mark in node.decorator_list}
            every = [*node.args.posonlyargs, *node.args.args, node.args.vararg, *node.args.kwonlyargs, node.args.kwarg]
            names = [each.arg for each in every if each is not None]
            names = names[1:] if owner and "staticmethod" not in marks else names
            doc = ast.get_docstring(node) or ""
            command = cli.COMMANDS.get(node.name) == f"sparsecv_mio.{module}"  # its options explain themselves
            elsewhere = command or bool(marks & {"overload", "command"})
            found.append(Function(module, owner, node.name, tuple(names), doc, elsewhere, bases))
    return found


@cache
def package() -> list[Function]:
    root = Path(sparsecv_mio.__path__[0])
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found += functions_of(syntax(path.read_text(encoding="utf-8")), module)
    return found


def explained(doc: str) -> set[str]:
    """Names in the section `Parameters` of a docstring in numpydoc style."""
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^(\S[^:\n]*)", section[1], re.MULTILINE) if section else []
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def docstring(function: Function, every: list[Function]) -> str:
    """Its own, or that of the method of a base class which it implements."""
    if function.doc or not function.owner:
        return function.doc
    inherited = [f for f in every if f.owner in function.bases and f.name == function.name]
    return next((doc for doc in (docstring(f, every) for f in inherited) if doc), "")


def unexplained(function: Function, every: list[Function]) -> list[str]:
    if not function.public or function.elsewhere or len(function.parameters) < EXPLAINED_FROM:
        return []
    known = explained(docstring(function, every))
    return [name for name in function.parameters if name not in known]


def test_no_function_has_too_many_parameters() -> None:
    assert len(package()) > 500
    many = [f for f in package() if len(f.parameters) > MOST and not f.inside(MANY_PARAMETERS)]
    assert not many, "\n".join(f"{f} takes {len(f.parameters)} parameters" for f in many)


@pytest.mark.parametrize(
    "name", ["solve", "cross_validate", "best_subsets", "near_optimal", "read_dataset", "best_common_subset", "fit_one"]
)
def test_a_signature_and_its_docstring_name_every_option(name: str) -> None:
    function = getattr(sparsecv_mio, name, None) or {"best_common_subset": best_common_subset, "fit_one": fit_one}[name]
    parameters = inspect.signature(function).parameters
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    doc = inspect.getdoc(function) or ""
    assert set(parameters) <= explained(doc) and "**" not in doc.partition("Returns")[0]
    if name == "solve":
        declared = {field.name for cls in (Reading, SearchOptions, Restrictions, Hooks) for field in fields(cls)}
        assert declared - {"restrictions"} <= set(parameters) and set(OF_TABLES) <= set(parameters)
        shown = {key: parameters[key].default for key in ("loss", "one_se", "gap", "time_limit", "count", "na")}
        assert shown == {
            "loss": "squared",
            "one_se": False,
            "gap": 1e-4,
            "time_limit": None,
            "count": (),
            "na": "error",
        }
        assert type(shown["loss"]) is str


def exported() -> set[str]:
    """Functions and classes that the reference lists, by the modules that define them."""
    parts = (name.rpartition(".") for name in listed())
    found = (getattr(import_module(module), name) for module, _, name in parts)
    return {f"{one.__module__}.{one.__qualname__}".removeprefix("sparsecv_mio.") for one in found if callable(one)}


def test_every_parameter_of_an_exported_name_is_explained() -> None:
    names = exported()
    functions = [f for f in package() if str(f) in names or f"{f.module}.{f.owner}" in names]
    assert len(functions) > 100
    lines = [f"{f} does not explain {', '.join(lost)}" for f in functions if (lost := unexplained(f, package()))]
    assert not lines, "\n".join(lines)
