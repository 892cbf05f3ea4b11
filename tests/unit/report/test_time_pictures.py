"""Risk groups, calibration, concordance, baseline and check of proportional hazards of records with Cox loss."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sparsecv_mio.certificate.read_back import rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.cox_objective import Terms
from sparsecv_mio.report.record_plots import PANELS_OF_LOSS, draw_panel, figure_of, standard_units
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.report.time_pictures import NO_WALD, FittedHazards, HeldOutTimes
from sparsecv_mio.search.answer.fold_models import held_out_predictions
from sparsecv_mio.search.api import solve
from sparsecv_mio.targets import Loss


def drawn(n: int = 80) -> Dataset:
    """Return survival times in tenths, with ties, three hospitals and weights."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(n, 3))
    died, left = rng.exponential(size=n) * np.exp(1.2 * X[:, 0]), rng.exponential(2.0, size=n)
    aux = {
        "dead": (died <= left).astype(float), "hospital": np.array(list("abc"))[rng.integers(0, 3, n)],
        "start": np.zeros(n), "w": rng.integers(1, 4, n).astype(float),
    }  # fmt: skip
    time = np.ceil(10.0 * np.minimum(died, left)) / 10.0
    aux["start"] = time * rng.uniform(0.0, 0.5, n)
    return Dataset.from_arrays(X, time, names=["x", "y", "z"], target="years", aux=aux)


DATA = drawn()
PLAIN = {"folds": 4}
STRATIFIED = {"folds": "2x4", "strata": "hospital", "entry": "start", "weights": "w"}


@cache
def solved(stratified: bool = False) -> Record:
    how = STRATIFIED if stratified else PLAIN
    return solve(DATA, loss="cox", event="dead", gammas=[0.1, 1.0], taus=[1, 2], threads=1, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("stratified", [False, True], ids=["plain", "strata"])
def test_pairs_are_compared_within_a_fold_and_a_stratum(stratified: bool) -> None:
    record = solved(stratified)
    data, plan = rows_and_folds_of_record(record, DATA)
    rows, survival = HeldOutTimes.from_record(record, DATA), data.survival
    assert survival is not None and rows.data.survival is not None
    entry = np.full(data.n, -np.inf) if survival.entry is None else survival.entry
    stratum = np.zeros(data.n) if survival.stratum is None else survival.stratum
    right, pairs, start = 0.0, 0, 0
    for fold in range(plan.k):
        scored = plan.scored_rows(fold)
        risk = dict(zip(scored.tolist(), rows.log_hazard[start : start + len(scored)].tolist(), strict=True))
        start += len(scored)
        for i in scored[survival.is_event[scored]].tolist():
            for j in scored.tolist():
                is_later = data.y[j] > data.y[i] or (data.y[j] == data.y[i] and not survival.is_event[j])
                if is_later and entry[j] < data.y[i] and stratum[i] == stratum[j]:
                    pairs += 1
                    right += (risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i])
    assert rows.concordance.pairs == pairs > 100
    assert rows.concordance.concordance == pytest.approx(right / pairs, abs=1e-12)
    total = data.n if data.row_weights is None else data.row_weights.sum()
    assert rows.weights.sum() == pytest.approx(total) and start == plan.scored
    assert set(rows.group) == {0, 1, 2} and sum(point.rows for point in rows.calibrate()) == pytest.approx(total)


def test_concordance_of_each_fold_is_that_of_lifelines() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        utils = pytest.importorskip("lifelines.utils", reason="lifelines, a peer of the tests, is not installed")
    record = solved()
    data, plan = rows_and_folds_of_record(record, DATA)
    rows, predicted = HeldOutTimes.from_record(record, DATA), held_out_predictions(record, DATA)
    assert data.survival is not None
    right = 0.0
    for fold in range(plan.k):
        scored = plan.scored_rows(fold)
        is_event, later = data.survival.is_event[scored], data.y[scored]
        own = later[:, None] < later
        pairs = ((own | ((later[:, None] == later) & ~is_event)) & is_event[:, None]).sum()
        right += pairs * utils.concordance_index(data.y[scored], -predicted[scored], is_event)
    assert rows.concordance.concordance == pytest.approx(right / rows.concordance.pairs, abs=1e-9)


def test_predicted_survival_is_that_of_the_models_of_the_folds() -> None:
    """By dense sums in fold 0, whose predictions are those of the minimum of the penalised loss of its rows."""
    record = solved()
    data, plan = rows_and_folds_of_record(record, DATA)
    rows, train, scored = HeldOutTimes.from_record(record, DATA), plan.train_rows(0), plan.scored_rows(0)
    support = record.chosen_folds.supports[record.chosen_folds.which[0]]
    Z = data.X[:, [data.names.index(name) for name in support]]
    beta = np.linalg.lstsq(Z[scored] - Z[scored].mean(0), rows.log_hazard[: len(scored)] -
                           rows.log_hazard[: len(scored)].mean(), rcond=None)[0]  # fmt: skip
    eta = (Z - Z[train].mean(0)) @ beta
    assert rows.log_hazard[: len(scored)] == pytest.approx(eta[scored], abs=1e-9)
    slope = Terms(data, train).derivatives(eta, Z)[0]
    penalty = record.gamma * ((Z - Z.mean(0)) ** 2).sum(axis=0)
    assert slope + penalty * beta == pytest.approx(0.0, abs=1e-8)
    assert data.survival is not None
    hazard = sum(
        1.0 / np.exp(eta[train[data.y[train] >= data.y[i]]]).sum()
        for i in train[data.survival.is_event[train] & (data.y[train] <= rows.moment)]
    )
    assert rows.survival[: len(scored)] == pytest.approx(np.exp(-hazard * np.exp(eta[scored])), rel=1e-9)
    cuts = np.quantile(eta[train], [1 / 3, 2 / 3])
    assert rows.group[: len(scored)].tolist() == (eta[scored][:, None] > cuts).sum(axis=1).tolist()


def test_leave_one_out_has_groups_and_no_pairs() -> None:
    record = solve(DATA, loss="cox", event="dead", gammas=[0.1], taus=[1], folds="loo", threads=1)
    rows = HeldOutTimes.from_record(record, DATA)
    assert np.isnan(rows.concordance.concordance) and set(rows.group) == {0, 1, 2}
    assert "no two rows of a fold can be compared" in report_text(record, "md", "R", DATA, "D")


def test_pages_and_panels() -> None:
    page = report_text(solved(True), "html", "R", DATA, "D")
    for panel, (make, draw) in PANELS_OF_LOSS[Loss.COX].items():
        assert f'id="{panel}-' in page
        title = draw_panel(solved(True), panel, DATA).axes[0].get_title(loc="left")
        assert title == draw(solved(True), make.from_record(solved(True), DATA)).get_title(loc="left")
    text = report_text(solved(True), "md", "R", DATA, "D")
    assert (
        NO_WALD.format("hazard ratio") in text
        and "(intercept)" not in text
        and "hazard ratio per standard deviation" in text
    )
    assert (
        "| time | hospital a | hospital b | hospital c |" in text and "Harrell's concordance of held-out rows" in text
    )
    assert "Check of proportional hazards" in text and "Concordance, survival curves, calibration" in text
    without = report_text(solved(), "md", "R", None, "D")
    assert NO_WALD.format("hazard ratio") in without and "to include them, give the data of the record" in without
    titles = [ax.get_title(loc="left") for ax in figure_of(solved(), DATA).axes]
    assert {"Kaplan-Meier curves of held-out rows", "calibration of held-out rows"} <= set(titles)
    assert "|  | all rows |" not in text and list(FittedHazards.from_record(solved(), DATA).baselines) == ["all rows"]


def test_hazard_ratios_per_deviation_do_not_depend_on_the_unit_of_time() -> None:
    data = rows_and_folds_of_record(solved(), DATA)[0]
    assert standard_units(["x"], data) == standard_units(["x"], replace(data, y=365.0 * data.y))


def test_folds_from_python_leave_the_model_of_all_rows() -> None:
    labels = np.arange(DATA.n) % 3
    record = solve(DATA, loss="cox", event="dead", gammas=[0.1], taus=[1], folds=labels, threads=1)
    text = report_text(record, "md", "R", DATA, "D")
    assert "concordance of held-out rows are not shown: folds: " in text
    assert "Baseline survival by Breslow's estimate" in text
    assert len(HeldOutTimes.from_record(record, DATA, labels).group) == DATA.n


def test_records_without_times_have_no_such_panels() -> None:
    record = solve(DATA, folds=3, gammas=[1.0], taus=[1], threads=1)
    with pytest.raises(BadInput, match="^panel risk-groups: requires a record of `solve --loss cox`; choose another"):
        draw_panel(record, "risk-groups", DATA)
    with pytest.raises(BadInput, match="^panel hazards: requires the data of the record"):
        draw_panel(solved(), "hazards")
    with pytest.raises(BadInput, match="^panel roc: requires a record of `solve --loss logistic`"):
        draw_panel(solved(), "roc", DATA)
