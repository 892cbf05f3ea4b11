"""Every number of a record, altered: `verify` refuses it, says that it was only read, or it claims less than before."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from altered_numbers import altered, numbers

from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.search.api import cross_validate

FACTORS = (1.0 + 1e-5, 1.0 - 1e-5, 2.0, 100.0, -1.0)
READ = ("work.", "versions", "request.time_limit", "request.threads")  # facts of the run

# Bounds, grids and options that may be moved without a false claim: towards a wider interval or another request that
# the same proof meets. Everything else is refused.
WEAKER = {
    "allowance", "region.allowance", "refit.lower", "refit.upper", "request.gap", "requested_gap", "table[].lower",
    "table[].upper", "region.up_to_tau", "stability.instability_lower", "stability.instability_upper",
    "stability.chosen.allowance", "stability.chosen.intervals[].lower", "stability.chosen.intervals[].upper",
    "continuous.pieces[].lower", "continuous.pieces[].at_low", "continuous.pieces[].at_high", "sizes[].lower", "most",
    "descent[].upper", "surface.low", "surface.high", "training_gap",
}  # fmt: skip
# Of open pairs.
ESTIMATES = {"table[].cv_error", "table[].standard_error", "table[].folds_decided", "descent[].cv_error"}
CORRECT_TO = {"descent[].gamma", "continuous.curve_gammas[]"}  # a gamma so close has the same error

Made = tuple[StoredRecord, Dataset, Any]


@cache
def data(p: int = 4) -> Dataset:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(16, p)) + 2.0
    y = X[:, 0] - 0.7 * X[:, 2] + 0.4 * X[:, 3] + rng.normal(size=16) + 3.0
    return Dataset.from_arrays(X, y)


def search(p: int = 4, gammas: Any = (0.02, 0.5), taus: Any = (1, 2), **more: Any) -> Callable[[], Made]:
    def made() -> Made:
        rows, folds = data(p), make_folds("4", data(p))
        return cross_validate(rows, folds, gammas=gammas, taus=taus, threads=1, **more), rows, folds

    return made


def weighted() -> Made:
    rows = weighted_rows(data(), np.random.default_rng(3).integers(1, 4, size=16).astype(float), "w")
    folds = make_folds("4", rows)
    return cross_validate(rows, folds, gammas=(0.02, 0.5), taus=(1, 2), threads=1), rows, folds


def near(by: str, p: int = 4) -> Callable[[], Made]:
    def made() -> Made:
        folds = make_folds("4", data(p)) if by == "cv" else None
        return near_optimal(data(p), folds, gamma=0.3, taus=[1, 2], within=0.2, by=by), data(p), folds

    return made


KINDS: dict[str, Callable[[], Made]] = {
    "plain": search(),
    "limited": search(method="grid", mio_budget=4),
    "bounds": search(method="bounds"),
    "stability": search(stability=20.0),
    "nested weight": search(stability="nested", gammas=(0.5,)),
    "one-se": search(one_se=True),
    "descent": search(method="descent"),
    "refined": search(refine=True),
    "continuous": search(gammas="0.1..1", gap=1e-2),
    "restricted": search(restrictions=Restrictions(nonnegative="x0", nonpositive="x2")),
    "weighted": weighted,
    "18 features": search(18),
    "18 features, limited": search(18, method="grid", mio_budget=4),
    "18 features, stability": search(18, stability=2.0),
    "path": lambda: (best_subsets(data(), gammas=[0.02, 0.5], taus=[1, 2], threads=1), data(), None),
    "fit": lambda: (fit_one(data(), tau=2, gamma=0.3), data(), None),
    "near": near("objective"),
    "near by cv": near("cv"),
    "near, 18 features": near("objective", 18),
}
FEW = ("plain", "path", "fit", "near", "18 features, stability")  # the others take a minute together


def name_of(path: tuple[str | int, ...]) -> str:
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def said_to_be_read(report: Any, name: str) -> bool:
    """Whether a field, or the part that it is in, is among those that are only read, wholly or in what is left."""
    own = name.partition(".")[0].removesuffix("[]") if not name.startswith("coefficients") else "coefficients"
    words = [words for words, names in report.fields if {name.removesuffix("[]"), name, own} & set(names)]
    return any(
        some == "read" or "not checked" in some or "of others read" in some or "else read" in some for some in words
    )


@pytest.mark.parametrize("kind", [pytest.param(k, marks=() if k in FEW else pytest.mark.slow) for k in KINDS])
def test_every_number_is_checked_or_said_to_be_read(kind: str) -> None:
    record, rows, folds = KINDS[kind]()
    text, base = json.loads(record.to_json()), verify(record, rows, folds)
    assert base.ok
    seen: dict[str, int] = {}
    accepted = set()
    for path, value in numbers(text):
        name = name_of(path)
        if name.startswith(READ) or seen.setdefault(name, 0) >= 2:
            continue
        seen[name] += 1
        for factor in FACTORS:
            other = value * factor if isinstance(value, float) else round(value * factor)
            if other == value:
                continue
            try:
                report = verify(type(record).from_json(altered(text, path, other)), rows, folds)
            except CorruptStore:
                continue
            if report.ok and not said_to_be_read(report, name):
                accepted.add((name, factor))
    wrong = {(name, factor) for name, factor in accepted if name not in WEAKER | CORRECT_TO | ESTIMATES}
    wrong |= {(name, factor) for name, factor in accepted if name in CORRECT_TO and abs(factor - 1.0) > 1e-4}
    open_pairs = kind in ("limited", "bounds", "descent") or kind.endswith("limited")
    wrong |= {(name, factor) for name, factor in accepted if name in ESTIMATES and not open_pairs}
    assert not wrong


@pytest.mark.parametrize("seed", range(4))
def test_a_mean_absolute_error_of_a_target_far_from_0_is_right(seed: int) -> None:
    """Predictions near 1e12 are rounded by 1e-4; the differences of the targets from them were, too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3))
    rows = Dataset.from_arrays(X, 1e12 + np.rint(8.0 * (X[:, 0] - X[:, 1] + rng.normal(size=12))) / 8.0)
    record = cross_validate(rows, make_folds("3", rows), gammas=[0.1], taus=[0], intercept="global")
    near = Dataset.from_arrays(X, rows.y - 1e12)
    expected = cross_validate(near, make_folds("3", near), gammas=[0.1], taus=[0], intercept="global").mae
    assert record.mae == pytest.approx(expected, rel=1e-9) and verify(record, rows).ok


def test_an_instability_beyond_enumeration_is_compared_with_refits() -> None:
    record, rows, folds = search(18)()
    text = json.loads(record.to_json())
    for name in ("instability", "instability_lower", "instability_upper"):
        text["stability"][name] *= 100.0
    report = verify(type(record).from_json(json.dumps(text)), rows, folds)
    assert [failure.field for failure in report.failures] == ["stability.instability"]


def test_a_number_moved_into_an_interval_that_is_only_read_is_said_to_be_read() -> None:
    record, rows, folds = search(18, method="bounds", taus=(1, 2, 3))()
    assert verify(record, rows, folds).ok
    text = json.loads(record.to_json())
    own = next(row for row in text["table"] if (row["gamma"], row["tau"]) == (text["gamma"], text["tau"]))
    assert own["estimate"]
    wrong = 2.0 * own["cv_error"]
    text.update(cv_error=wrong, lower=min(wrong, text["lower"]), upper=9.0 * wrong, r_squared=None)
    own.update(cv_error=wrong, lower=wrong, upper=9.0 * wrong)
    report = verify(type(record).from_json(json.dumps(text)), rows, folds)
    read = [part for part in report.reread if part.startswith("cv_error")]
    assert read and not any("cv_error" in names for words, names in report.fields if words == "recomputed")
