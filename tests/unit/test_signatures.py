"""Docstrings of exported names explain every parameter."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

import pytest

import sparsecv_mio
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.declared_options import OF_TABLES
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.search.options import Hooks, SearchOptions

from .test_docs import listed


def explained(doc: str) -> set[str]:
    """Names in the section `Parameters` of a docstring in numpydoc style."""
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^(\S[^:\n]*)", section[1], re.MULTILINE) if section else []
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


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


def test_every_parameter_of_an_exported_name_is_explained() -> None:
    """A function or method of the reference with at least 3 parameters describes each."""
    functions = dict[str, Any]()
    for module, _, name in (name.rpartition(".") for name in listed()):
        one = getattr(import_module(module), name)
        members = {f"{name}.{key}": getattr(one, key) for key in vars(one)} if inspect.isclass(one) else {name: one}
        kinds = FunctionType | MethodType
        functions |= {key: value for key, value in members.items() if isinstance(value, kinds) and "._" not in key}
    silent = list[str]()
    for name, function in functions.items():
        names = set(inspect.signature(function).parameters) - {"self"}
        if len(names) >= 3 and (lost := names - explained(inspect.getdoc(function) or "")):
            silent.append(f"{name} does not explain {', '.join(lost)}")
    assert len(functions) > 100 and not silent, "\n".join(silent)
