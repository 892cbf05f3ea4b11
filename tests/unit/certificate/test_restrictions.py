"""Records with columns that are adjusted for: as they are made and read, and altered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import adjustment_columns, check_supports
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one


def drawn() -> sc.Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 5))
    X[:, 1] = 40.0 + X[:, 1] + 0.5 * X[:, 0]
    return sc.Dataset.from_arrays(X, X @ [1.0, 0.5, -1.0, 0.0, 0.3] + rng.normal(size=24))


def solved(**more: Any) -> Record:
    return sc.cross_validate(drawn(), "4", gammas=[0.1], taus=[1, 2], gap=0.0, threads=1, adjust=["x1"], **more)


def test_no_support_and_no_tau_of_a_record_has_adjusted_columns() -> None:
    record = solved(model="average", stability=None)
    assert adjustment_columns(record) == ("x1",) and "x1" in record.coefficients and record.average is not None
    assert record.request.taus == (1, 2) and len(record.support) == record.tau == record.refit.tau
    sizes = {row.tau for row in record.table}
    assert sizes == {1, 2} and {pair.tau for pair in record.average.pairs} == {*sizes, 4}
    every = (record.support, *record.chosen_folds.supports, *record.average.supports, record.average.model.support)
    assert not any("x1" in support for support in every) and "x1" in record.average.model.coefficients
    check_supports(record)


def test_altered_records_are_refused() -> None:
    data, record = drawn(), solved()
    assert sc.verify(record, data).ok
    asked = record.request.restrictions
    assert asked is not None

    def refused(**changes: Any) -> bool:
        return not sc.verify(replace(record, **changes), data).ok

    def asking(**changes: Any) -> bool:
        return refused(request=replace(record.request, restrictions=replace(asked, **changes)))

    assert refused(support=("x1", *record.support)) and refused(tau=record.tau + 1)
    assert asking(adjust=()) and asking(adjust=(), force_in=("x1",)) and asking(adjust=("x3",))
    assert asking(adjust=("x1", "x3")) and asking(adjust=("x1", "x9")) and asking(adjust=("x1",), force_in=("x1",))
    for name, value in record.coefficients.items():
        assert refused(coefficients={**record.coefficients, name: value * 1.001}), name
    without = {name: value for name, value in record.coefficients.items() if name != "x1"}
    assert refused(coefficients=without)
    assert refused(table=tuple(replace(row, lower=row.upper * 1.01, upper=row.upper * 1.02) for row in record.table))
    misplaced = record.to_json().replace('"support": [', '"support": ["x1", ', 1)
    with pytest.raises(CorruptStore, match="coefficients do not|contains 'x1', but adjustment"):
        check_supports(Record.from_json(misplaced))


@pytest.mark.parametrize(
    "given", [{"gammas": [0.0]}, {"gammas": [0.0], "adjust": "x1"}, {"gammas": [0.1], "adjust": "x1"}]
)
def test_altered_numbers_of_fits_without_a_penalty_are_refused(given: dict[str, Any]) -> None:
    """Columns without a penalty leave the condition of a fit to their correlations: rounding is no excuse."""
    data = drawn()
    record = sc.cross_validate(data, "4", taus=[1, 2], gap=0.0, threads=1, **given)
    assert sc.verify(record, data).ok and record.mae is not None
    rows = tuple(replace(row, lower=row.lower * 1.001, upper=row.upper * 1.001) for row in record.table)
    changes: list[dict[str, Any]] = [
        {"cv_error": record.cv_error * 1.001}, {"table": rows}, {"intercept": record.intercept * 1.0001},
        {"coefficients": {name: value * 1.0001 for name, value in record.coefficients.items()}},
        {"mae": record.mae * 1.001}, {"refit": replace(record.refit, objective=record.refit.objective * 1.001)},
    ]  # fmt: skip
    assert not any(sc.verify(replace(record, **change), data).ok for change in changes)


def test_altered_lists_and_fits_are_refused() -> None:
    data = drawn()
    path = sc.best_subsets(data, gammas=[0.0, 0.1], taus=[1, 2], adjust="x1")
    near = sc.near_optimal(data, "4", gamma=0.1, taus=2, within=0.5, adjust="x1")
    fit = fit_one(data, tau=2, gamma=0.1, side=SideOptions(adjust=["x1"]))
    assert all(sc.verify(record, data).ok for record in (path, near, fit))
    row = replace(path.path[0], coefficients={**path.path[0].coefficients, "x1": 0.0})
    assert not sc.verify(replace(path, path=(row, *path.path[1:])), data).ok
    model = replace(near.models[0], value=near.models[0].value * 1.01)
    assert not sc.verify(replace(near, models=(model, *near.models[1:])), data).ok
    assert not sc.verify(replace(fit, coefficients={**fit.coefficients, "x1": 0.0}), data).ok
    assert fit.side is not None and not sc.verify(replace(fit, side=replace(fit.side, restrictions=None)), data).ok


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"adjust": "x1", "force_in": "x1"}, "^adjust, force_in: column 'x1' is in both"),
        ({"adjust": "x1", "nonnegative": "x1"}, "^adjust, nonnegative: column 'x1' is in both"),
        ({"adjust": "x1", "at_most": "1:x1,x2"}, "^adjust, at_most: column 'x1' is in both"),
        ({"adjust": ["x0", "x1", "x2", "x3", "x4"]}, "^adjust: no feature is left"),
        ({"adjust": "x1", "taus": [5]}, "^tau 5 is above the number of features that may be chosen; use at most 4"),
        ({"adjust": "x1", "refine": True}, "^adjust: not supported with refine .*; leave one of the two out$"),
        ({"adjust": "x1", "method": "descent"}, "^adjust: requires method .* not descent"),
        ({"adjust": "x1", "gammas": "0.1..1"}, "adjust requires a grid"),
        ({"adjust": "x9"}, "^adjust: 'x9' is not a feature"),
    ],
)
def test_what_does_not_go_with_it_is_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        sc.cross_validate(drawn(), "4", **({"gammas": [0.1], "taus": [1], "threads": 1} | given))
    assert "\n" not in str(caught.value)


def test_a_sign_of_every_feature_leaves_out_what_is_adjusted_for() -> None:
    record = solved(nonnegative="all")
    assert record.request.restrictions is not None and "x1" not in record.request.restrictions.nonnegative
    assert sc.verify(record, drawn()).ok
