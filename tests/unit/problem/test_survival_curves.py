"""Kaplan-Meier curves, baselines and Schoenfeld residuals against lifelines and statsmodels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.problem.cox_objective import Terms
from sparsecv_mio.problem.survival_curves import (
    baseline_hazards,
    check_proportional_hazards,
    find_schoenfeld_residuals,
    kaplan_meier,
)
from sparsecv_mio.targets import Ties

pd = pytest.importorskip("pandas", reason="pandas, in which the peers take data, is not installed")


def drawn(seed: int, n: int = 90, entry: bool = False, strata: bool = False, ties: Ties = Ties.EFRON) -> Dataset:
    """Return survival times with ties, in tenths, of which about two thirds are events."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    died, left = rng.exponential(size=n) * np.exp(-X[:, 0]), rng.exponential(2.0, size=n)
    time = np.ceil(10.0 * np.minimum(died, left)) / 10.0
    starts = time * rng.uniform(0.0, 0.9, n) if entry else None
    stratum = rng.integers(0, 3, n) if strata else None
    return replace(Dataset.from_arrays(X, time), survival=Survival(died <= left, starts, stratum, ties))


def lifelines(module: str = "lifelines") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module, reason="lifelines, a peer of the tests, is not installed")


@pytest.mark.parametrize("entry", [False, True], ids=["from the start", "delayed entry"])
def test_curves_are_those_of_lifelines(entry: bool) -> None:
    data, survival = drawn(1, entry=entry), drawn(1, entry=entry).survival
    weights = np.random.default_rng(2).integers(1, 4, data.n).astype(float)
    assert survival is not None
    curve = kaplan_meier(data.y, survival.is_event, survival.entry, weights)
    peer = lifelines().KaplanMeierFitter().fit(data.y, survival.is_event, entry=survival.entry, weights=weights)
    own = peer.survival_function_.loc[curve.time, "KM_estimate"].to_numpy()
    low, high = peer.confidence_interval_.loc[curve.time].to_numpy().T
    inside = own > 0.0
    assert curve.survival == pytest.approx(own, abs=1e-9) and inside.sum() > 10
    assert curve.low[inside] == pytest.approx(low[inside], abs=1e-6)
    assert curve.high[inside] == pytest.approx(high[inside], abs=1e-6)


def test_curves_are_those_of_statsmodels() -> None:
    functions = pytest.importorskip("statsmodels.duration.survfunc", reason="statsmodels is not installed")
    data, survival = drawn(3, entry=True), drawn(3, entry=True).survival
    assert survival is not None
    curve = kaplan_meier(data.y, survival.is_event, survival.entry)
    peer = functions.SurvfuncRight(data.y, survival.is_event * 1, entry=survival.entry)
    assert curve.time == pytest.approx(peer.surv_times) and curve.survival == pytest.approx(peer.surv_prob, abs=1e-12)
    assert (
        curve.find_values(curve.time[0] - 1e-9) == (1.0, 1.0, 1.0)
        and curve.find_values(np.inf)[0] == curve.survival[-1]
    )


@pytest.mark.parametrize("strata", [False, True], ids=["one stratum", "strata"])
def test_baselines_and_residuals_are_those_of_statsmodels(strata: bool) -> None:
    models = pytest.importorskip("statsmodels.duration.hazard_regression", reason="statsmodels is not installed")
    data = drawn(4, entry=True, strata=strata, ties=Ties.BRESLOW)
    survival = data.survival
    assert survival is not None
    model = models.PHReg(data.y, data.X, status=survival.is_event * 1, entry=survival.entry, strata=survival.stratum)
    fit = model.fit()
    baselines = baseline_hazards(data, np.arange(data.n), data.X @ fit.params)
    for stratum, (times, hazards, _) in zip(baselines, fit.baseline_cumulative_hazard, strict=True):
        for time, hazard in zip(times, hazards, strict=True):
            before = baselines[stratum].find_survival(time - 1e-9)  # statsmodels gives the hazard just before each time
            assert -np.log(before) == pytest.approx(hazard, rel=1e-9, abs=1e-12), (stratum, time)
    events, residuals = find_schoenfeld_residuals(data, data.X, fit.params)
    assert residuals == pytest.approx(fit.schoenfeld_residuals[events], abs=1e-9)


def test_nothing_is_known_after_the_last_time_of_a_stratum() -> None:
    data = drawn(7, strata=True)
    assert data.survival is not None and data.survival.stratum is not None
    for stratum, baseline in baseline_hazards(data, np.arange(data.n), data.X[:, 0]).items():
        last = data.y[data.survival.stratum == stratum].max()
        assert 0.0 < baseline.find_survival(last) < 1.0 and np.isnan(baseline.find_survival(1.001 * last))


@pytest.mark.parametrize("ties", list(Ties))
def test_residuals_add_up_to_the_slope(ties: Ties) -> None:
    data, beta = drawn(5, entry=True, strata=True, ties=ties), np.array([0.3, -0.2, 0.5])
    events, residuals = find_schoenfeld_residuals(data, data.X, beta)
    slope = Terms(data, np.arange(data.n)).derivatives(data.X @ beta, data.X)[0]
    assert residuals.sum(axis=0) == pytest.approx(-slope, abs=1e-9)
    assert sorted(events) == np.flatnonzero(Terms(data, np.arange(data.n)).event_weights).tolist()


@pytest.mark.parametrize("strata", [False, True], ids=["one stratum", "strata"])
def test_the_check_is_that_of_lifelines(strata: bool) -> None:
    """lifelines has Efron's method, and no entry times in its residuals."""
    fitters, tests = lifelines(), lifelines("lifelines.statistics")
    data = drawn(6, strata=strata)
    survival = data.survival
    assert survival is not None
    frame = pd.DataFrame(data.X, columns=list("abc")).assign(time=data.y, event=survival.is_event)
    by = ["s"] if strata else None
    frame = frame.assign(s=survival.stratum) if strata else frame
    peer = fitters.CoxPHFitter().fit(frame, "time", "event", strata=by, fit_options={"precision": 1e-12})
    found = check_proportional_hazards(data, data.X, peer.params_.to_numpy())

    def rank(time: Any, event: Any, _: Any) -> Any:
        return pd.Series(time[event.astype(bool)].rank().reindex(time.index).to_numpy(), time.index)

    truth = tests.proportional_hazard_test(peer, frame, time_transform=rank)
    assert found.statistic == pytest.approx(truth.test_statistic, rel=1e-5)
    assert found.p_value == pytest.approx(truth.p_value, rel=1e-5)
    scaled = peer.compute_residuals(frame, "scaled_schoenfeld").loc[np.flatnonzero(survival.is_event)].to_numpy()
    shown = found.effects - peer.params_.to_numpy()
    assert np.sort(shown, axis=0) == pytest.approx(np.sort(scaled, axis=0), abs=1e-5)


def test_the_check_finds_an_effect_that_changes() -> None:
    """The effect of the first column turns around at time 1; a row of weight 2 is two rows."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 2))
    first = rng.exponential(size=600) * np.exp(-X[:, 0])
    time = np.where(first < 1.0, first, 1.0 + rng.exponential(size=600) * np.exp(X[:, 0]))
    data = replace(Dataset.from_arrays(X, time), survival=Survival(np.ones(600, dtype=bool), ties=Ties.BRESLOW))
    found = check_proportional_hazards(data, X, np.array([0.3, 0.0]))
    assert found.p_value[0] < 1e-8 < 0.01 < found.p_value[1] and found.correlation[0] < -0.2
    doubled = replace(data, row_weights=np.full(600, 2.0))
    assert check_proportional_hazards(doubled, X, np.array([0.3, 0.0])).statistic == pytest.approx(
        2.0 * found.statistic
    )
