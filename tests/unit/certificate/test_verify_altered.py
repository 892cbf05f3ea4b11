"""Records that the search made, altered in one place: `verify` names the field. Up to 12 features nothing is missed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cell

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.parts import ChosenFolds, relative_gap
from sparsecv_mio.certificate.records import DescentStep, Record, Refined, TableRow
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
    table = list(r.table)
    table[i] = R(table[i], **changes)
    return R(r, table=tuple(table))


def set_fields(part: Any, fields: dict[str, Any]) -> Any:
    """A part with other fields, given by their paths; a value may depend on the record."""
    for path, value in fields.items():
        name, _, rest = path.partition(".")
        new = value(part) if callable(value) else value
        part = R(part, **{name: set_fields(getattr(part, name), {rest: new}) if rest else new})
    return part


def bounds(r: Record, lower: float, upper: float, **more: Any) -> Record:
    return R(r, lower=lower, upper=upper, gap=relative_gap(lower, upper), **more)


def lowered(r: Record, **more: Any) -> Record:
    """lower = 0 for the grid and one of its pairs, that agrees with everything else of the record."""
    table = list(r.table)
    table[0] = R(table[0], lower=0.0)
    return bounds(R(r, table=tuple(table)), 0.0, r.upper, **more)


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


def move(r: Record, i: int, **changes: Any) -> Record:
    steps = list(r.descent)
    steps[i] = R(steps[i], **changes)
    return R(r, descent=tuple(steps))


def last_accepted(r: Record) -> int:
    return max(i for i, step in enumerate(r.descent) if step.accepted)


def first_open(r: Record, status: str = "") -> int:
    return next(i for i, one in enumerate(r.table) if (one.status == status if status else one.estimate))


def other_row(i: int, **changes: Callable[[TableRow], Any] | float) -> Callable[[Record], Record]:
    """The change of a row of a solved pair that is not reported."""

    def change(r: Record) -> Record:
        at = other_rows(r)[i]
        values = {name: value(r.table[at]) if callable(value) else value for name, value in changes.items()}
        return row(r, at, **values)

    return change


def coefficient(factor: float) -> dict[str, Any]:
    """The change of the first coefficient of the model."""
    return {"coefficients": lambda r: r.coefficients | {r.support[0]: factor * r.coefficients[r.support[0]]}}


Change = Callable[[Record], Record] | dict[str, Any]  # fields by path, with values that may depend on the record
CASES: dict[str, list[tuple[Change, str]]] = {
    "plain": [
        # ties and rounding that excuse a lower bound
        (lambda r: lowered(r, tie_width=r.upper), "tie_width"),
        (lambda r: lowered(r, tie_width=1e300), "tie_width"),
        ({"tie_width": lambda r: r.upper / 1000}, "tie_width"),
        ({"tie_width": -1e-3}, "tie_width"),
        (lambda r: lowered(r, allowance=r.upper), "allowance"),
        ({"allowance": lambda r: 1e-6 * float(np.ptp(data().y)) ** 2}, "allowance"),
        (lambda r: lowered(r, allowance=29 * r.upper), "allowance"),
        ({"allowance": -1e-9}, "allowance"),
        # the headline
        ({"cv_error": lambda r: r.cv_error / 2}, "cv_error"),
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
        ({"r_squared": lambda r: r.r_squared + 3e-7}, "r_squared"),
        ({"stability.estimate": True}, "stability.estimate"),
        # other rows of the table
        (other_row(3, cv_error=lambda one: one.cv_error / 2), "cv_error"),
        (lambda r: row(r, other_rows(r)[3], cv_error=r.lower, lower=r.lower), "cv_error"),
        (other_row(3, cv_error=lambda one: one.cv_error * 2), "cv_error"),
        (other_row(0, cv_error=9.0, lower=9.0, upper=9.0), "lower"),
        (lambda r: row(r, other_rows(r)[0], cv_error=r.upper, lower=r.upper, upper=r.upper), "upper"),
        (lambda r: row(r, other_rows(r)[2], lower=r.lower), "lower"),
        (other_row(2, upper=math.inf), "upper"),
        (other_row(2, standard_error=lambda one: 1.01 * (one.standard_error or 9.0)), "standard_error"),
        (lambda r: row(r, own(r), standard_error=1.00001 * (r.table[own(r)].standard_error or 9.0)), "standard_error"),
        (lambda r: R(r, table=r.table[1:]), "table"),
        (lambda r: R(r, table=(*r.table, r.table[0])), "table"),
        (lambda r: row(r, 0, folds_decided=2), "estimate"),
        (lambda r: row(R(r, estimate=True), own(r), folds_decided=2, estimate=True), "chosen_folds.decided"),
        (lambda r: row(r, 0, folds_decided=9, folds=9), "folds"),
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
        ({"folds.seed": 4}, "folds"),
        ({"folds.spec": "3"}, "folds"),
        # the fit on all rows
        ({"refit.lower": 0.0}, "refit.proved"),
        (lambda r: set_fields(r, {"refit.lower": r.refit.objective * 1.001}), "refit.lower"),
        (lambda r: set_fields(r, {"refit.upper": r.refit.objective * 2}), "refit.proved"),
        (lambda r: set_fields(r, {"refit.objective": r.refit.objective * 1.001}), "refit.objective"),
        ({"refit.tau": 1}, "refit.tau"),
        (coefficient(1.0001), "coefficients"),
        (coefficient(-1.0), "coefficients"),
        ({"coefficients": lambda r: {**r.coefficients, "x9": 1.0}}, "coefficients"),
        ({"support": lambda r: r.support[1:]}, "support"),
        ({"intercept": lambda r: r.intercept + 1e-6}, "intercept"),
        # made up
        ({"refined": lambda r: Refined(0.1, r.tau, r.cv_error * 0.7, r.lower * 0.7, r.upper * 0.7)}, "refined.upper"),
        ({"descent": lambda r: (DescentStep("start", r.gamma, r.tau, r.upper, r.cv_error),)}, "descent"),
        # data and request
        ({"data.fingerprint": "sha256:0"}, "data.fingerprint"),
        ({"data.n": 23}, "data.n"),
        ({"data.target": "z"}, "data.target"),
        ({"folds.digest": "sha256:0"}, "folds.digest"),
        ({"data.scale": "odd"}, "data.scale"),
        ({"support": ("x1", "age")}, "support"),
        ({"data.scale": "none"}, "chosen_folds"),
        ({"data.intercept": "none"}, "chosen_folds"),
        (lambda r: set_fields(r, {"request.taus": r.request.taus[1:]}), "table"),
        (lambda r: set_fields(r, {"request.gammas": r.request.gammas[1:]}), "table"),
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
        ({"tau": lambda r: r.tau + 1}, "cv_error"),
        ({"cv_error": lambda r: r.cv_error * 1.001}, "cv_error"),
        (lambda r: bounds(r, 0.0, r.upper), "lower"),
        (lambda r: bounds(r, r.lower, r.upper * 1.1), "upper"),
        ({"gap": 0.25}, "gap"),
        ({"tie_width": 0.01}, "tie_width"),
        ({"allowance": 0.01}, "allowance"),
        ({"least.gamma": 4.0}, "least"),
        ({"least.tau": 5}, "least"),
        ({"least.gamma": 0.5}, "least.gamma"),
        (lambda r: set_fields(r, {"least.cv_error": r.least.cv_error * 0.999}), "least.cv_error"),  # type: ignore[union-attr]
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
        (lambda r: set_fields(r, {"refined.cv_error": r.refined.cv_error / 2}), "refined.cv_error"),  # type: ignore[union-attr]
        (lambda r: set_fields(r, {f"refined.{name}": r.upper / 2 for name in ("cv_error", "lower", "upper")}),
         "refined.upper"),
        ({"refined.lower": 0.0}, "refined.lower"),
        (lambda r: set_fields(r, {"refined.upper": r.upper * 1.1}), "refined.upper"),
        (lambda r: set_fields(r, {"refined.tau": r.tau + 1}), "refined.tau"),
        (lambda r: set_fields(r, {"refined.gamma": r.refined.gamma * 3}), "refined"),  # type: ignore[union-attr]
    ],
    "descent": [
        ({"descent": ()}, "descent"),
        (lambda r: move(r, last_accepted(r), upper=r.upper / 2, cv_error=r.cv_error / 2), "descent"),
        (lambda r: move(r, len(r.descent) - 1, upper=r.upper / 2, cv_error=r.cv_error / 2), "descent"),
        (lambda r: move(r, 0, upper=r.upper / 2, cv_error=r.cv_error / 2), "descent"),
        (lambda r: move(r, len(r.descent) - 1, accepted=not r.descent[-1].accepted), "descent"),
        (lambda r: move(r, 1, move="jump"), "descent[1].move"),
    ],
}  # fmt: skip


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
        ({"objective": 1.0}, "path[4].objective"),
        ({"lower": 0.0}, "path[4].proved"),
        ({"lower": 1e9}, "path[4].lower"),
        ({"upper": 1.0}, "path[4].upper"),
        ({"upper": math.inf}, "path[4].proved"),
        ({"proved": False}, "path[4].proved"),
        ({"intercept": 0.0}, "path[4].intercept"),
        ({"support": ("x0",)}, "path[4].support"),
        ({"gamma": 0.4}, "path"),
        ({"tau": 3}, "path"),
        ({"coefficients": {}}, "path[4].coefficients"),
    ],
)
def test_an_altered_path_is_rejected(changes: dict[str, Any], named: str) -> None:
    rows = list(path().path)
    rows[4] = R(rows[4], **changes)
    assert verify(path(), data()).failures == ()
    assert named in [failure.field for failure in verify(R(path(), path=tuple(rows)), data()).failures]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"objective": 1.0}, "objective"),
        ({"lower": 1e9}, "lower"),
        ({"lower": 0.0}, "gap"),
        ({"lower": 0.0, "gap": 1.0}, "status"),
        ({"upper": 1e9}, "upper"),
        ({"gap": 0.5}, "gap"),
        ({"requested_gap": 1.5}, "requested_gap"),
        ({"allowance": 1e9}, "allowance"),
        ({"intercept": 0.0}, "intercept"),
        ({"gamma": 0.31}, "objective"),
        ({"tau": 1}, "support"),
        ({"tau": 8}, "tau"),
        ({"support": ("x0",)}, "coefficients"),
        ({"coefficients": {}}, "coefficients"),
    ],
)
def test_an_altered_fit_is_rejected(changes: dict[str, Any], named: str) -> None:
    assert verify(single(), data()).failures == ()
    assert named in [failure.field for failure in verify(R(single(), **changes), data()).failures]


def test_a_descent_that_a_limit_ends_before_its_first_move_has_none() -> None:
    known = record("descent")
    claims = {failure.field for failure in verify(R(known, descent=()), data()).failures}
    assert "descent" in claims
    claims = {failure.field for failure in verify(R(known, descent=(), status="limit"), data()).failures}
    assert "descent" not in claims
