"""A record that is right, altered in one thing that matters: `verify` rejects it, and never breaks down."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from altered_numbers import altered
from counts import CAMPAIGN, COUNTS
from small import Small, remembering

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.read_back import AnyRecord
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.search.api import cross_validate

Path = tuple[str | int, ...]

# Free of claims: what the run cost and was told, and what no data decide (docs/cli.md: "only read").
SILENT = re.compile(
    r"^(work|warnings|versions|advice|schema|nodes|cuts|seconds|setup_seconds|stop|raw_status|backend|formulation)"
    r"|^request\.(time_limit|threads|method|method_used|backend|formulation|engine|solver_option|mio_budget|refine|tau_step|oracles)"
    r"|^data\.reading\.|^nested\.folds\[\]\.(cv_error|status)|^refined\.gamma"
)
LOWER, UPPER = re.compile(r"(^|\.)lower$"), re.compile(r"(^|\.)upper$")
GAMMA = re.compile(r"(^|\.)gamma$|\.gammas\[\]$|from_gamma$")
MODEL = re.compile(r"(^|\.)coefficients\.")
SMALL, PLAIN, LARGE = 1e-6, 1e-5, 1e-3  # parts by which a bound, any other number, and some coefficients are altered


@dataclass(frozen=True)
class Forgery:
    """What was done to which field; `beside`: what stood in the same object, of a number."""

    field: str
    how: str
    text: str
    beside: Any = None


@cache
def silent(field: str) -> bool:
    """Whether a field claims nothing."""
    return SILENT.search(field) is not None


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, word, flag and empty list of a record."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Every list of a record that is not empty."""
    if isinstance(value, list) and value:
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from lists(inner, (*path, key))


def field_of(path: Path) -> str:
    """The path as docs/file_formats.md writes it, `table[].lower`."""
    words = "".join("[]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")


def parent(record: Any, path: Path) -> Any:
    """What holds the field."""
    for part in path[:-1]:
        record = record[part]
    return record


def other_word(word: str, rng: np.random.Generator, names: list[str]) -> str:
    """A word of the same sort."""
    sorts = (names, ["proved", "limit"], ["decided", "excluded", "open"], ["length", "variance", "none"],
             ["fold", "global", "none"], ["start", "gamma", "line"])  # fmt: skip
    for sort in sorts:
        if word in sort and len(sort) > 1:
            return str(rng.choice([one for one in sort if one != word]))
    at = int(rng.integers(len(word))) if word else 0
    return f"{word[:at]}{'1' if word[at : at + 1] != '1' else '2'}{word[at + 1 :]}"


def number(field: str, value: float, rng: np.random.Generator) -> float | None:
    """Another number; None where any nearby one is as good."""
    if GAMMA.search(field):
        return float(np.nextafter(value, math.inf if rng.random() < 0.5 else 0.0))
    if LOWER.search(field):
        return value * (1.0 + SMALL) if value > 0.0 else None
    if UPPER.search(field):
        return value * (1.0 - SMALL) if value > 0.0 else None
    if value == 0.0:
        return None
    part = LARGE if MODEL.search(field) and rng.random() < 0.5 else PLAIN
    return value * (1.0 + part * float(rng.choice([-1.0, 1.0])))


def forgery(record: dict[str, Any], rng: np.random.Generator) -> Forgery | None:
    """Alter one thing; None where what was drawn has nothing to alter that matters."""
    names = list(record["data"]["names"])
    if rng.random() < 0.2:
        found = [(path, value) for path, value in lists(record) if not silent(field_of(path))]
        path, value = found[int(rng.integers(len(found)))]
        return of_list(record, path, value, rng)
    found = [(path, value) for path, value in leaves(record) if not silent(field_of(path))]
    path, value = found[int(rng.integers(len(found)))]
    field = field_of(path)
    if isinstance(value, bool):
        return Forgery(field, f"{value} -> {not value}", altered(record, path, not value))
    if isinstance(value, int):
        new = value + int(rng.choice([-1, 1]))
        return Forgery(field, f"{value} -> {new}", altered(record, path, new))
    if isinstance(value, float):
        moved = number(field, value, rng)
        if path[-1] == "standard_error":  # of errors that are compared to a millionth of themselves
            moved = value + PLAIN * parent(record, path).get("cv_error", record["cv_error"])
        if moved is None or moved == value:
            return None
        return Forgery(field, f"{value!r} -> {moved!r}", altered(record, path, moved), parent(record, path))
    if isinstance(value, str):
        word = other_word(value, rng, names)
        return Forgery(field, f"{value} -> {word}", altered(record, path, word))
    return None


def of_list(record: dict[str, Any], path: Path, value: list[Any], rng: np.random.Generator) -> Forgery | None:
    """Leave an entry out, name one twice, or exchange two that differ."""
    field, at = field_of(path), int(rng.integers(len(value)))
    way = str(rng.choice(["dropped", "twice", "exchanged"]))
    if way == "dropped":
        return Forgery(field, f"entry {at} dropped", altered(record, path, value[:at] + value[at + 1 :]))
    if way == "twice":
        return Forgery(field, f"entry {at} twice", altered(record, path, [*value, value[at]]))
    other = int(rng.integers(len(value)))
    if value[at] == value[other]:
        return None
    mixed = list(value)
    mixed[at], mixed[other] = value[other], value[at]
    return Forgery(field, f"entries {at} and {other} exchanged", altered(record, path, mixed))


EACH = int(os.environ.get("FUZZ_FORGERIES", "15")) if CAMPAIGN else 15  # of every record
FIRST = int(os.environ.get("FUZZ_SEED", "0")) * 1000
PROBLEMS = int(os.environ.get("FUZZ_RECORDS", "10")) if CAMPAIGN else 2

Made = tuple[AnyRecord, tuple[Any, ...]]
KINDS: dict[str, Callable[[Small], Made]] = {}


def kind(make: Callable[[Small], Made]) -> Callable[[Small], Made]:
    KINDS[make.__name__] = make
    return make


def decided(problem: Small, **more: Any) -> Made:
    """A record all of whose pairs are decided, so that all of its numbers are claims."""
    sample = problem.data()
    plan = problem.plan(sample)
    how: dict[str, Any] = {"scale": problem.scale, "intercept": problem.intercept, "threads": 1, **problem.grid}
    record = cross_validate(sample, plan, **{**how, "method": "grid", "gap": 0.0, **more})
    assert all(row.status == "decided" for row in record.table)
    return record, (sample, plan)


@kind
def plain(problem: Small) -> Made:
    return decided(problem)


@kind
def one_se(problem: Small) -> Made:
    return decided(problem, one_se=True)


@kind
def restricted(problem: Small) -> Made:
    names = problem.data().names
    limits = {"at_most": [f"1:{names[1]},{names[2]}"]} if len(names) > 2 else {}
    return decided(problem, force_in=[names[0]], taus=range(1, 3), **limits)


@kind
def path(problem: Small) -> Made:
    sample = problem.data()
    return best_subsets(sample, scale=problem.scale, intercept=problem.intercept, threads=1, **problem.grid), (sample,)


@kind
def single(problem: Small) -> Made:
    sample = problem.data()
    how: dict[str, Any] = {"scale": problem.scale, "intercept": problem.intercept}
    return fit_one(sample, tau=problem.most, gamma=0.3, **how), (sample,)


def still_of_its_objective(record: FitRecord, sample: Dataset, text: str) -> bool:
    """Whether the altered coefficients of one fit have the objective of the record, which is least and hardly moves."""
    said = json.loads(text)["coefficients"]
    if sorted(said) != sorted(record.coefficients):
        return False
    at, beta = [sample.names.index(name) for name in said], np.array(list(said.values()))
    X, y = sample.X[:, at], sample.y
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    if record.data.intercept != "none":
        X, y = X - X.mean(axis=0), y - y.mean()
    weight = {"length": squares, "variance": squares / len(y), "none": np.ones(len(at))}[record.data.scale]
    value = float(((y - X @ beta) ** 2).sum() + record.gamma / 2.0 * (weight * beta) @ beta)
    return abs(value - record.objective) <= 2e-7 * value  # to the digits that `verify` compares


def next_to_no_effect(sample: Dataset, made: Forgery) -> bool:
    """Whether a coefficient was altered by less than what changes a prediction by 2e-7 of the largest effect."""
    old, new = (float(value) for value in made.how.split(" -> "))
    width = dict(zip(sample.names, np.ptp(sample.X, axis=0).tolist(), strict=True))
    largest = max(abs(value) * width[name] for name, value in made.beside.items())
    return abs(new - old) * width[made.field.rsplit(".", 1)[1]] <= 2e-7 * largest


def immaterial(record: AnyRecord, sample: Dataset, made: Forgery) -> bool:
    """Whether what was altered says less than before, or the same in another order, or what was asked."""
    field, how = made.field, made.how
    if isinstance(record, FitRecord) and field.startswith("coefficients.") and "->" in how:
        return still_of_its_objective(record, sample, made.text)
    if "coefficients." in field and "->" in how and next_to_no_effect(sample, made):
        return True
    if field.startswith("request.restrictions."):
        return True  # within fewer restrictions the answer may be the same, and then the record is right
    sets = ("support", "request.taus", "request.gammas", "path", "table")
    if "exchanged" in how and (field.endswith("support") or field in sets):
        return True  # in any order
    if how.startswith(("proved -> limit", "True -> False")) and field.endswith(("status", "proved")):
        return True  # claims less
    if field == "stability.estimate" and how == "False -> True":
        return True  # claims less
    if field in ("region.up_to_tau", "region.from_gamma"):
        return True  # of a smaller region the same holds
    if isinstance(record, FitRecord | PathRecord):
        # on all rows `fold` and `global` are the same model; an ulp of gamma moves no digit of an objective
        return field in ("gamma", "data.intercept", "requested_gap", "allowance", "gap", "request.one_se") or (
            field == "request.taus" or field == "request.gammas" and "twice" in how or field.startswith("request.gap")
        )
    # gaps, allowances and ties of 1e-13 by a millionth of themselves; the gap that was asked for
    return field in ("gap", "allowance", "tie_width", "region.allowance", "request.gap", "request.one_se")


def _design(design: RidgeDesign) -> tuple[str, str]:
    return design.scale, design.intercept


# of one data set, its folds and its restrictions, which no alteration that is tried changes
OF_THE_DATA: dict[tuple[Any, str], Callable[..., Any]] = {
    (RidgeDesign, "fold_optima"): lambda design, gamma, tau: (*_design(design), gamma, tau),
    (RidgeDesign, "optimal_losses"): lambda design, fold, pair, start: (*_design(design), fold, pair),
    (RidgeDesign, "refit"): lambda design, support, gamma, rows: (
        *_design(design), design.dataset.n, tuple(support), gamma, None if rows is None else rows.tobytes()
    ),
}  # fmt: skip


def accepted(name: str, problem: Small) -> str | None:
    """Alter one record in many ways; say which alteration that matters is not rejected."""
    try:
        record, context = KINDS[name](problem)
    except BadInput:  # no such folds
        return None
    kind_of, whole, rng = type(record), json.loads(record.to_json()), np.random.default_rng([7, problem.seed])
    assert verify(kind_of.from_json(json.dumps(whole)), *context).ok, problem

    def outcome(text: str) -> str:
        try:
            return "ACCEPTED" if verify(kind_of.from_json(text), *context).ok else "rejected"
        except SparseCVError as error:
            assert "\n" not in str(error)
            return "no record any more"

    with remembering(OF_THE_DATA) as afresh:
        for i in range(EACH):
            made = forgery(whole, rng)
            if made is None:
                continue
            if immaterial(record, context[0], made):
                COUNTS[f"forged records, {name}: says no more than before"] += 1
                continue
            ended = outcome(made.text)
            assert i % 50 or afresh(lambda text=made.text: outcome(text)) == ended, (problem, made)
            COUNTS[f"forged records, {name}: matters, {ended}"] += 1
            if ended == "ACCEPTED":
                return f"{name}: {problem}: {made.field}: {made.how}, the alteration {i}"
    return None


@pytest.mark.parametrize("name", KINDS)
def test_no_forgery_is_accepted(name: str) -> None:
    found = [accepted(name, Small.drawn(seed)) for seed in range(FIRST, FIRST + PROBLEMS)]
    assert not any(found), found
