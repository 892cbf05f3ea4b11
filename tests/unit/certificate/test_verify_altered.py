"""Records that the search made, altered in one place: `verify` names the field. Up to 12 features nothing is missed."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from altered_fields import set_fields
from every_support import brute_force_cell

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.parts import ChosenFolds, relative_gap
from sparsecv_mio.certificate.records import DescentStep, Record, Refined
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.problem.objective import fit, held_out_error, r_squared
from sparsecv_mio.search.api import cross_validate

from .enumerated import of_folds


@cache
def data() -> Dataset:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(24, 7)) + 2.0
    X[:, 4] = X[:, 0] + 0.4 * rng.normal(size=24)
    return Dataset.from_arrays(X, X[:, 0] - 0.7 * X[:, 2] + 0.4 * X[:, 5] + rng.normal(size=24) + 30.0)


@cache
def record(kind: str) -> Record:
    """Records of several searches on the same data."""
    more: dict[str, dict[str, Any]] = {
        "plain": {"gap": 0.0},
        "loose": {"method": "joint", "gap": 1e-4},
        "one-se": {"gap": 0.0, "one_se": True},
        "refined": {"gap": 0.0, "refine": True},
        "descent": {"method": "descent", "gap": 0.0},
        "limit": {"method": "bounds"},
        "part": {"method": "grid", "mio_budget": 24, "gap": 1e-4},
    }
    spec = "loo" if kind == "one-se" else "4"
    return cross_validate(
        data(), make_folds(spec, data(), 3), gammas=[0.02, 0.3, 4.0], taus=range(6), threads=1, **more[kind]
    )


@cache
def path() -> PathRecord:
    return best_subsets(data(), gammas=[0.02, 0.3], taus=[1, 2, 4], threads=1)


@cache
def single() -> FitRecord:
    return fit_one(data(), tau=3, gamma=0.3)


R = dataclasses.replace


def other_rows(r: Record) -> list[int]:
    """Rows of decided pairs that are not the reported one."""
    own = (r.gamma, r.tau)
    return [i for i, row in enumerate(r.table) if (row.gamma, row.tau) != own and row.folds_decided == row.folds]


def row(r: Record, i: int, **changes: Any) -> Record:
    changed: Record = set_fields(r, {f"table.{i}.{name}": value for name, value in changes.items()})
    return changed


def bounds(r: Record, lower: float, upper: float, **more: Any) -> Record:
    return R(r, lower=lower, upper=upper, gap=relative_gap(lower, upper), **more)


def lowered(r: Record, **more: Any) -> Record:
    """lower = 0 for the grid and one of its pairs, that agrees with everything else of the record."""
    return bounds(row(r, 0, lower=0.0), 0.0, r.upper, **more)


def fold(r: Record, j: int, **changes: Any) -> Record:
    folds = r.chosen_folds
    names, errors, decided = [list(f.support) for f in folds], folds.error.copy(), folds.decided.copy()
    names[j] = changes.get("support", names[j])
    errors[j] = changes.get("error", errors[j])
    decided[j] = changes.get("decided", decided[j])
    return R(r, chosen_folds=ChosenFolds.of(names, errors, decided.tolist()))


def own(r: Record) -> int:
    return next(i for i, one in enumerate(r.table) if (one.gamma, one.tau) == (r.gamma, r.tau))


def moved_one_se(r: Record, gamma: float, tau: int) -> Record:
    """Another pair in the name of the rule, with all that is true of it: its row, its folds, its fit on all rows."""
    assert r.least is not None
    at = next(one for one in r.table if (one.gamma, one.tau) == (gamma, tau))
    plan = make_folds(r.folds.spec, data(), r.folds.seed or 0)
    folds = of_folds(data(), plan, (gamma, tau), {})
    best = brute_force_cell(data().X, data().y, tau, gamma).fits[0]
    names = tuple(data().names[j] for j in best.support)
    f = best.objective
    refit = R(r.refit, gamma=gamma, tau=tau, objective=f, lower=f, upper=f)
    coefficients = dict(zip(names, best.beta.tolist(), strict=True))
    return R(
        bounds(r, at.lower, at.upper), gamma=gamma, tau=tau, cv_error=at.cv_error, chosen_folds=folds, refit=refit,
        r_squared=r_squared(data().y, plan.all_scored, at.cv_error), support=names, coefficients=coefficients,
        intercept=best.intercept, mae=None, stability=None, tie_width=0.0, allowance=0.0,
    )  # fmt: skip


def least_fold_error(r: Record) -> Record:
    assert r.least_folds is not None
    folds = r.least_folds
    return R(r, least_folds=ChosenFolds(folds.supports, folds.which, folds.error * 1.0001, folds.decided))


def on_other_support(r: Record, j: int = 1) -> Record:
    """Fold j with a support that is not optimal: its own held-out error, and sums, bounds and R^2 that agree."""
    plan = make_folds(r.folds.spec, data(), r.folds.seed or 0)
    right = r.chosen_folds[j].support
    wrong = [name for name in data().names if name not in right][: len(right)]
    columns = sorted(data().names.index(name) for name in wrong)
    model = fit(data().X, data().y, columns, r.gamma, rows=plan.train_rows(j))
    error = held_out_error(model, data().X, data().y, plan.scored_rows(j))
    changed = fold(r, j, support=wrong, error=error)
    h = float(changed.chosen_folds.error.sum()) / plan.scored
    low, high = min(h, r.lower), max(h, r.upper)
    changed = row(changed, own(r), cv_error=h, lower=low, upper=high)
    return bounds(
        changed, low, high, cv_error=h, r_squared=r_squared(data().y, plan.all_scored, h), request=R(r.request, gap=0.9)
    )


def simpler_pair(r: Record) -> tuple[float, int]:
    return max(r.request.gammas), 1


def busier_pair(r: Record) -> tuple[float, int]:
    """Within one standard error, and more complex than the rule's."""
    assert r.one_se is not None and r.least is not None
    limit = r.least.cv_error + r.one_se.standard_error
    own = r.least.gamma, r.least.tau
    fitting = [one for one in r.table if one.upper <= limit and one.tau > r.tau and (one.gamma, one.tau) != own]
    return fitting[0].gamma, fitting[0].tau


def halved_move(r: Record, i: int) -> Record:
    changed: Record = set_fields(r, {f"descent.{i}.upper": r.upper / 2, f"descent.{i}.cv_error": r.cv_error / 2})
    return changed


def last_accepted(r: Record) -> int:
    return max(i for i, step in enumerate(r.descent) if step.accepted)


def first_open(r: Record, status: str = "") -> int:
    return next(i for i, one in enumerate(r.table) if (one.status == status if status else one.estimate))


def other_row(i: int, **changes: Any) -> Callable[[Record], Record]:
    """The change of a row of a solved pair that is not reported."""
    return lambda r: row(r, other_rows(r)[i], **changes)


def scaled(factor: float) -> Callable[[Any], Any]:
    """The change of a number, or of the first one of several by name."""

    def change(value: Any) -> Any:
        if isinstance(value, float):
            return factor * value
        first = next(iter(value))
        return {**value, first: factor * value[first]}

    return change


Change = Callable[[Record], Record] | dict[str, Any]  # fields by path, with values that may depend on those before
CASES: dict[str, list[tuple[Change, str]]] = {
    "plain": [
        # ties and rounding that excuse a lower bound
        (lambda r: lowered(r, tie_width=r.upper), "tie_width"),
        (lambda r: lowered(r, tie_width=1e300), "tie_width"),
        (lambda r: R(r, tie_width=r.upper / 1000), "tie_width"),
        ({"tie_width": -1e-3}, "tie_width"),
        (lambda r: lowered(r, allowance=r.upper), "allowance"),
        ({"allowance": lambda _: 1e-6 * float(np.ptp(data().y)) ** 2}, "allowance"),
        (lambda r: lowered(r, allowance=29 * r.upper), "allowance"),
        ({"allowance": -1e-9}, "allowance"),
        # the headline
        ({"cv_error": scaled(0.5)}, "cv_error"),
        (lambda r: row(R(r, cv_error=r.cv_error / 2), own(r), cv_error=r.cv_error / 2), "cv_error"),
        ({"cv_error": math.inf}, "cv_error"),
        (lambda r: bounds(r, 0.0, r.upper), "lower"),
        (lowered, "status"),
        (lambda r: bounds(r, r.upper * 1.001, r.upper), "lower"),
        (lambda r: lowered(r, request=R(r.request, gap=1.0)), "request.gap"),
        (lambda r: bounds(r, r.lower, r.upper * 0.999), "upper"),
        (lambda r: bounds(r, r.lower, r.upper * 1.5), "upper"),
        (lambda r: bounds(r, r.lower, math.inf), "upper"),
        ({"gap": 0.5}, "gap"),
        ({"gamma": 4.0, "tau": 1}, "gamma"),
        ({"gamma": 0.31}, "gamma"),
        ({"estimate": True}, "estimate"),
        ({"r_squared": 0.99}, "r_squared"),
        ({"r_squared": None}, "r_squared"),
        ({"r_squared": lambda share: share + 3e-7}, "r_squared"),
        ({"stability.estimate": True}, "stability.estimate"),
        # other rows of the table
        (other_row(3, cv_error=scaled(0.5)), "cv_error"),
        (lambda r: row(r, other_rows(r)[3], cv_error=r.lower, lower=r.lower), "cv_error"),
        (other_row(3, cv_error=scaled(2.0)), "cv_error"),
        (other_row(0, cv_error=9.0, lower=9.0, upper=9.0), "lower"),
        (lambda r: row(r, other_rows(r)[0], cv_error=r.upper, lower=r.upper, upper=r.upper), "upper"),
        (lambda r: row(r, other_rows(r)[2], lower=r.lower), "lower"),
        (other_row(2, upper=math.inf), "upper"),
        (other_row(2, standard_error=scaled(1.01)), "standard_error"),
        (lambda r: row(r, own(r), standard_error=scaled(1.00001)), "standard_error"),
        ({"table": lambda rows: rows[1:]}, "table"),
        ({"table": lambda rows: (*rows, rows[0])}, "table"),
        ({"table.0.folds_decided": 2}, "estimate"),
        (lambda r: row(R(r, estimate=True), own(r), folds_decided=2, estimate=True), "chosen_folds.decided"),
        ({"table.0.folds_decided": 9, "table.0.folds": 9}, "folds"),
        # folds
        (lambda r: fold(r, 2, error=float(r.chosen_folds.error[2]) * 1.00001), "chosen_folds[2].error"),
        (lambda r: fold(r, 2, error=0.0), "chosen_folds[2].error"),
        (lambda r: fold(fold(r, 0, error=float(r.chosen_folds.error[1])), 1, error=float(r.chosen_folds.error[0])),
         "chosen_folds[0].error"),
        (on_other_support, "chosen_folds[1].support"),
        (lambda r: fold(r, 0, support=["age"]), "chosen_folds[0].support"),
        (lambda r: fold(r, 0, decided=False), "chosen_folds.decided"),
        (lambda r: R(r, chosen_folds=ChosenFolds.of(
            [f.support for f in r.chosen_folds][1:], r.chosen_folds.error[1:])), "chosen_folds"),
        *[({"status": status}, "status") for status in ("limit", "interrupted", "doubtful")],
        ({"folds.seed": 4}, "folds"),
        ({"folds.spec": "3"}, "folds"),
        # the fit on all rows
        ({"refit.lower": 0.0}, "refit.proved"),
        ({"refit.upper": scaled(2.0)}, "refit.proved"),
        ({"refit.tau": 1}, "refit.tau"),
        ({"coefficients": scaled(1.0001)}, "coefficients"),
        ({"coefficients": scaled(-1.0)}, "coefficients"),
        ({"coefficients": lambda known: {**known, "x9": 1.0}}, "coefficients"),
        ({"support": lambda names: names[1:]}, "support"),
        ({"intercept": lambda value: value + 1e-6}, "intercept"),
        # made up
        (lambda r: R(r, refined=Refined(0.1, r.tau, r.cv_error * 0.7, r.lower * 0.7, r.upper * 0.7)), "refined.upper"),
        (lambda r: R(r, descent=(DescentStep("start", r.gamma, r.tau, r.upper, r.cv_error),)), "descent"),
        # data and request
        ({"data.fingerprint": "sha256:0"}, "data.fingerprint"),
        ({"data.n": 23}, "data.n"),
        ({"data.target": "z"}, "data.target"),
        ({"folds.digest": "sha256:0"}, "folds.digest"),
        ({"data.scale": "odd"}, "data.scale"),
        ({"support": ("x1", "age")}, "support"),
        ({"data.scale": "none"}, "chosen_folds"),
        ({"data.intercept": "none"}, "chosen_folds"),
        ({"request.taus": lambda taus: taus[1:]}, "table"),
        ({"request.gammas": lambda gammas: gammas[1:]}, "table"),
    ],
    "limit": [
        ({"status": "proved", "request.gap": 0.0}, "status"),
        (lambda r: row(r, first_open(r), standard_error=-1.0), "standard_error"),
        (lambda r: row(r, first_open(r), folds_decided=4, estimate=False), "upper"),
        ({"stability.estimate": False}, "stability.estimate"),
    ],
    "loose": [(lambda r: row(r, first_open(r, "excluded"), status="open"), "status")],
    "part": [
        (lambda r: row(r, first_open(r, "open"), status="excluded"), "status"),
        ({"region.up_to_tau": 5}, "region"),
        ({"region.up_to_tau": 17}, "region.up_to_tau"),
        ({"region.from_gamma": 0.02}, "region"),
        ({"region.from_gamma": 0.5}, "region.from_gamma"),
        ({"region.tau": 1}, "region"),
        ({"region.gamma": 0.03}, "region.gamma"),
        ({"region.cv_error": 1.0}, "region.cv_error"),
        ({"region.lower": 0.0}, "region.lower"),
        ({"region.upper": 99.0}, "region.upper"),
        ({"region.tie_width": 0.5}, "region.tie_width"),
        ({"region.allowance": -1.0}, "region.allowance"),
        ({"region.up_to_tau": None, "region.from_gamma": None}, "region.up_to_tau"),
        ({"so_far.solved": 18}, "so_far.solved"),
        ({"so_far.excluded": 18}, "so_far.excluded"),
        ({"so_far.open": 0}, "so_far.open"),
        ({"so_far.region.up_to_tau": 5}, "so_far.region"),
        ({"so_far.region.lower": 0.0}, "so_far.region.lower"),
        ({"so_far.region.upper": 99.0}, "so_far.region.upper"),
        ({"so_far.region.allowance": -1.0}, "so_far.region.allowance"),
    ],
    "one-se": [
        ({"one_se": None}, "one_se"),
        ({"request.one_se": False}, "one_se"),
        (lambda r: moved_one_se(r, max(r.request.gammas), 1), "tau"),
        (lambda r: moved_one_se(r, *busier_pair(r)), "tau"),
        ({"one_se.standard_error": 3.0}, "one_se.standard_error"),
        ({"one_se.estimate": True}, "one_se.estimate"),
        ({"one_se": None, "request.one_se": False}, "least"),
        ({"least": None, "least_folds": None}, "gamma"),
        (lambda r: bounds(r, r.least.lower, r.least.upper), "upper"),  # type: ignore[union-attr]
        ({"tau": lambda tau: tau + 1}, "cv_error"),
        ({"cv_error": scaled(1.001)}, "cv_error"),
        (lambda r: bounds(r, 0.0, r.upper), "lower"),
        (lambda r: bounds(r, r.lower, r.upper * 1.1), "upper"),
        ({"gap": 0.25}, "gap"),
        ({"tie_width": 0.01}, "tie_width"),
        ({"allowance": 0.01}, "allowance"),
        ({"least.gamma": 4.0}, "least"),
        ({"least.tau": 5}, "least"),
        ({"least.gamma": 0.5}, "least.gamma"),
        ({"least.cv_error": scaled(0.999)}, "least.cv_error"),
        ({"least.lower": 0.0, "least.gap": 1.0}, "least.lower"),
        (lambda r: R(r, least=bounds(r.least, r.least.lower, r.cv_error)), "least.upper"),  # type: ignore
        ({"least.gap": 0.25}, "least.gap"),
        ({"least.tie_width": 0.01}, "least.tie_width"),
        ({"least.allowance": 0.01}, "least.allowance"),
        ({"least.estimate": True}, "least.estimate"),
        (lambda r: set_fields(r, {"least.gamma": r.gamma, "least.tau": r.tau, "least_folds": r.chosen_folds}), "least"),
        (least_fold_error, "least_folds[0].error"),
        ({"least_folds": None}, "least_folds"),
        ({"least_folds": ChosenFolds.of([()], [1.0])}, "least_folds"),
        ({"folds.seed": 4}, "folds.seed"),
    ],
    "refined": [
        (lambda r: set_fields(r, {f"refined.{name}": r.upper / 2 for name in ("cv_error", "lower", "upper")}),
         "refined.upper"),
        ({"refined.lower": 0.0}, "refined.lower"),
        (lambda r: set_fields(r, {"refined.upper": r.upper * 1.1}), "refined.upper"),
        ({"refined.tau": lambda tau: tau + 1}, "refined.tau"),
        ({"refined.gamma": scaled(3.0)}, "refined"),
    ],
    "descent": [
        ({"descent": ()}, "descent"),
        (lambda r: halved_move(r, -1), "descent"),
        (lambda r: halved_move(r, 0), "descent"),
        ({"descent.-1.accepted": lambda accepted: not accepted}, "descent"),
        ({"descent.1.move": "jump"}, "descent[1].move"),
    ],
}  # fmt: skip


def rejected(r: Record) -> int:
    return next(i for i, step in enumerate(r.descent) if not step.accepted)


def worse_model(r: Record) -> Record:
    """Another model as if it were the best one on all rows."""
    names = tuple(name for name in data().names if name not in r.support)[: len(r.support)]
    model = fit(data().X, data().y, sorted(data().names.index(name) for name in names), r.gamma)
    refit = R(r.refit, objective=model.objective, lower=model.objective, upper=model.objective)
    coefficients = dict(zip(names, model.beta.tolist(), strict=True))
    return R(r, support=names, coefficients=coefficients, intercept=model.intercept, refit=refit, stability=None)


def collapsed(r: Record, end: str) -> Record:
    """An open row whose CV error and one bound are those of its other bound."""
    least = min(one.upper for one in r.table)
    i = next(i for i, one in enumerate(r.table) if one.estimate and one.lower > least)
    value = r.table[i].upper if end == "lower" else r.table[i].lower
    return row(r, i, cv_error=value, **{end: value})


def refined_elsewhere(r: Record) -> Record:
    at = next(one for one in r.table if one.tau == r.tau and one.gamma != r.gamma and one.upper > r.upper)
    ends = {f"refined.{name}": getattr(at, name) for name in ("gamma", "cv_error", "lower", "upper")}
    changed: Record = set_fields(r, ends)
    return changed


def move(r: Record, i: int, **factors: float) -> Record:
    """A move of a descent with numbers times a factor."""
    changed: Record = set_fields(r, {f"descent.{i}.{name}": scaled(1.0 + by) for name, by in factors.items()})
    return changed


LARGER = {"refit.objective": scaled(1.0 + 1e-5), "refit.upper": scaled(1.0 + 1e-5), "request.gap": 1e-4}
ALONE: list[tuple[str, Change, str]] = [  # alterations that one check refuses
    ("limit", lambda r: row(r, first_open(r), folds_decided=-1), "table[].folds_decided"),
    ("limit", lambda r: collapsed(r, "lower"), "table[].lower"),
    ("limit", lambda r: collapsed(r, "upper"), "table[].upper"),
    ("limit", lambda r: R(r, allowance=1e-3 * r.upper), "allowance"),
    ("descent", lambda r: move(r, last_accepted(r), upper=1e-8), "descent[].upper"),
    ("descent", lambda r: move(r, last_accepted(r), cv_error=-1e-8), "descent[].cv_error"),
    ("descent", lambda r: move(r, rejected(r), upper=-5e-7, cv_error=-5e-7), "descent[].upper"),
    ("descent", lambda r: move(r, rejected(r), cv_error=-1e-5), "descent[].cv_error"),
    ("refined", {"refined.cv_error": scaled(1.0 - 1e-8)}, "refined.cv_error"),
    ("refined", refined_elsewhere, "refined.upper"),
    ("plain", {"refit.lower": scaled(1.0 + 3e-12)}, "refit.lower"),
    ("plain", {"refit.upper": scaled(1.0 - 3e-12)}, "refit.upper"),
    ("plain", LARGER, "refit.objective"),
    ("plain", worse_model, "refit.lower"),
    ("plain", {"refit.proved": False, "stability.estimate": True}, "refit.proved"),
]


@pytest.mark.parametrize(("kind", "change", "field"), ALONE)
def test_one_check_refuses(kind: str, change: Change, field: str) -> None:
    true = record(kind)
    failures = verify(change(true) if callable(change) else set_fields(true, change), data()).failures
    assert [re.sub(r"\d+", "", failure.field) for failure in failures] == [field], failures


@pytest.mark.parametrize("kind", ["plain", "loose", "one-se", "refined", "descent", "limit", "part"])
def test_the_records_themselves_pass(kind: str) -> None:
    report = verify(Record.from_json(record(kind).to_json()), data())
    assert report.failures == () and report.caveat == ""


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"taus": (*range(1, 8), 8)}, "request.taus"),
        ({"taus": (1, 2, 3, 3)}, "request.taus"),
        ({"method_used": "auto"}, "request.method_used"),
        ({"method_used": "grid", "method": "joint"}, "request.method_used"),
        ({"method_used": "branching"}, "request.method_used"),
        ({"backend": "scip"}, "request.backend"),
    ],
)
def test_an_altered_request_is_rejected(changes: dict[str, Any], named: str) -> None:
    for true in (record("plain"), *((path(),) if "taus" in changes else ())):
        report = verify(R(true, request=R(true.request, **changes)), data())
        assert named in [failure.field for failure in report.failures]


def test_a_support_that_is_not_optimal_is_refused_in_any_unit() -> None:
    small = Dataset.from_arrays(data().X, 1e-6 * data().y)  # objectives of 1e-12 are below every relative tolerance
    true = cross_validate(small, make_folds("4", small, 3), gammas=[0.3], taus=[2], gap=0.0, threads=1)
    best = true.chosen_folds[1].support
    altered = fold(true, 1, support=next(two for two in itertools.combinations(small.names, 2) if two != best))
    assert verify(true, small).ok
    assert "chosen_folds[1].support" in [failure.field for failure in verify(altered, small).failures]


def test_a_backend_that_the_method_could_have_used_is_read() -> None:
    true = record("loose")
    report = verify(R(true, request=R(true.request, backend="scip")), data())
    assert report.ok and any("request.backend" in words.split(", ") for words in report.reread)


def test_fields_that_no_data_decide_are_named_as_read() -> None:
    """Ties decide whether an instability is an estimate, and a warning may concern the run."""
    true = record("plain")
    assert true.warnings == () and true.stability is not None and not true.stability.estimate
    wider = R(true.stability, instability_upper=true.stability.instability_upper * (1.0 + 1e-9))
    warned = R(true, warnings=("column 'x1' is constant",))
    for altered in (true, warned, R(true, stability=wider), R(true, stability=R(wider, estimate=True))):
        report = verify(altered, data())
        assert report.ok and {"stability.estimate", "warnings"} <= set(", ".join(report.reread).split(", "))
    estimate = row(record("part"), own(record("part")), folds_decided=0, estimate=True)
    assert "stability.estimate" in [failure.field for failure in verify(estimate, data()).failures]


def test_a_standard_error_that_is_left_out_is_missed() -> None:
    true = record("plain")
    report = verify(row(true, own(true), standard_error=None), data())
    assert [failure.field for failure in report.failures] == [f"table[{own(true)}].standard_error"]


def test_what_is_no_record_or_no_data_set_is_said_in_one_line() -> None:
    with pytest.raises(BadInput, match="^data: a ndarray is not a table in memory; give a table of pandas"):
        verify(path(), data().X)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="^str is not a record"):
        verify("record.json", data())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "change", "named"), [(kind, *case) for kind, cases in CASES.items() for case in cases]
)
def test_an_altered_record_is_rejected(kind: str, change: Change, named: str) -> None:
    true = record(kind)
    altered = change(true) if callable(change) else set_fields(true, change)
    assert altered != true
    report = verify(altered, data())
    assert any(named in failure.field for failure in report.failures), report.failures
    with pytest.raises(Exception, match="field"):
        report.raise_if_failed()


def test_numbers_of_unsolved_pairs_are_named_as_read() -> None:
    """No support of such a pair is in the record, so its estimate cannot be computed again."""
    words = "only read: CV errors, standard errors and solved folds of 14 unsolved pairs of the table"
    true = record("loose")
    assert (
        verify(true, data()).verdict.endswith(f"; {words}")
        and "only read" not in verify(record("plain"), data()).verdict
    )
    assert f"; {words}" in verify(R(true, cv_error=1.0), data()).verdict


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lower": 0.0}, "path[4].proved"),
        ({"upper": math.inf}, "path[4].proved"),
        ({"proved": False}, "path[4].proved"),
        ({"support": ("x0",)}, "path[4].support"),
        ({"gamma": 0.4}, "path"),
        ({"tau": 3}, "path"),
        ({"coefficients": {}}, "path[4].coefficients"),
    ],
)
def test_an_altered_path_is_rejected(changes: dict[str, Any], named: str) -> None:
    altered = set_fields(path(), {f"path.4.{name}": value for name, value in changes.items()})
    assert named in [failure.field for failure in verify(altered, data()).failures]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"lower": 0.0}, "gap"),
        ({"lower": 0.0, "gap": 1.0}, "status"),
        ({"requested_gap": 1.5}, "requested_gap"),
        ({"allowance": 1e9}, "allowance"),
        ({"gamma": 0.31}, "objective"),
        ({"tau": 1}, "support"),
        ({"tau": 8}, "tau"),
        ({"support": ("x0",)}, "coefficients"),
        ({"coefficients": {}}, "coefficients"),
    ],
)
def test_an_altered_fit_is_rejected(changes: dict[str, Any], named: str) -> None:
    assert named in [failure.field for failure in verify(R(single(), **changes), data()).failures]


def test_a_descent_that_a_limit_ends_before_its_first_move_has_none() -> None:
    known = record("descent")
    claims = {failure.field for failure in verify(R(known, descent=()), data()).failures}
    assert "descent" in claims
    claims = {failure.field for failure in verify(R(known, descent=(), status="limit"), data()).failures}
    assert "descent" not in claims


@pytest.mark.parametrize("name", ["tie_width", "allowance"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_ties_and_rounding_certify_no_choice_with_open_pairs(loss: str, name: str) -> None:
    """A second size counts as excluded by a width as large as the CV error; too many columns to try all supports."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 17))
    signal = 2.0 * X[:, 0] + 2.0 * X[:, 1] + 0.3 * rng.normal(size=40)
    y = {"squared": signal, "logistic": (signal > 0.0) * 1.0, "poisson": np.floor(np.exp(0.4 * signal))}[loss]
    data = Dataset.from_arrays(X, y)
    folds = make_folds("4", data)
    honest = cross_validate(data, folds, gammas=[1.0], taus=[1], loss=loss, threads=1)
    assert verify(honest, data).ok
    (solved,) = honest.table
    second = dataclasses.replace(
        solved, tau=2, lower=0.0, upper=math.inf, folds_decided=0, estimate=True, status="excluded"
    )
    forged = dataclasses.replace(
        honest, table=(solved, second), request=dataclasses.replace(honest.request, taus=(1, 2)), lower=0.0, gap=1.0,
        **{name: honest.upper},
    )  # fmt: skip
    assert name in [failure.field for failure in verify(forged, data).failures]
