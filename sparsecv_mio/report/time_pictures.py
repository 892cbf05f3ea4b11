"""Pictures of survival times for a record with Cox loss.

Risk groups, calibration and concordance use the held-out rows, each predicted by the model of the fold that holds the
row out. The baseline hazard and the check of proportional hazards use the full-data model. None of these results is
certified.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.concordance import TimeQuality, assess_times
from sparsecv_mio.certificate.parts import DataInfo
from sparsecv_mio.certificate.read_back import adapt_to_record_loss, rows_and_folds_of_record, weighted_again
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.survival_columns import split_missing
from sparsecv_mio.digits import abbreviate_list, format_number, several
from sparsecv_mio.errors import SparseCVWarning
from sparsecv_mio.problem.survival_curves import (
    BaselineHazard,
    Curve,
    HazardCheck,
    baseline_hazards,
    check_proportional_hazards,
    kaplan_meier,
    sum_at_risk,
)
from sparsecv_mio.report import figures
from sparsecv_mio.report.class_pictures import format_rows
from sparsecv_mio.report.coefficients import spreads
from sparsecv_mio.report.document import Block, ReportTable, Sentences, report_table
from sparsecv_mio.report.layout import cell
from sparsecv_mio.search.answer.fold_models import predictors_by_fold
from sparsecv_mio.units import TINY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord

RISK_GROUPS = ("low risk", "medium risk", "high risk")
COLOURS = (figures.LOWER, figures.INK, figures.UPPER)  # of the risk groups
MOST_CURVES = 6  # maximum number of strata, or of features, with a curve
NO_WALD = (
    "Confidence intervals and p values of the {}s are not given: Wald intervals ignore that the same rows "
    "chose the features and that the penalty shrinks the coefficients, so they would be too narrow."
)
ONE_TIME = (
    "Matched sets have one time each: survival curves, calibration and the check of proportional hazards do not apply."
)
WHOLE_STRATA = (
    "Calibration is not shown: each fold holds out whole strata, whose baseline hazard is not known without their rows."
)
NOT_CERTIFIED = "Only the cross-validated partial likelihood is certified, not this picture."


class CalibrationGroup(NamedTuple):
    """Held-out rows of similar predictions: their number, mean predicted survival, and Kaplan-Meier with 95% bounds."""

    rows: float
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class HeldOutTimes:
    """Times of the held-out rows with the predictions of the models of their folds.

    Attributes
    ----------
    data : Dataset
        Times and survival data of the scored rows, repeated for each fold that scores them; the strata are pairs of a
        fold and a stratum, since log hazard ratios of different models have different baselines.
    log_hazard, group, survival : (m,) arrays
        Log hazard ratio, risk group from 0, and probability to survive `moment`; NaN without training rows of the
        stratum.
    weights : (m,) array
        Row weight divided by the number of folds that score the row.
    moment : float
        Median event time of the data.
    source, predicted : (m,) arrays
        Rows of the data of the record, and their predictions, which are relative to a row of zeros.
    """

    data: Dataset
    log_hazard: FloatArray
    group: IntArray
    survival: FloatArray
    weights: FloatArray
    moment: float
    source: IntArray
    predicted: FloatArray

    @classmethod
    def from_record(cls, record: Record, data: Dataset, folds: AnyFolds | None = None) -> HeldOutTimes:
        """Return the predictions for the rows of a record with Cox loss.

        The risk groups are divided at the terciles of the log hazard ratios of the training rows of each fold, so that
        a fold with a single row has groups, too.

        Parameters
        ----------
        record : Record
            Record with Cox loss.
        data : Dataset
            The data of the record.
        folds : str, int, splitter, labels, pairs or FoldPlan, optional
            Folds as given to `solve`, if the record does not describe them.
        """
        every, source, fitted = predictors_by_fold(record, *rows_and_folds_of_record(record, data, folds))
        survival, rows, parts = every.survival, list[IntArray](), list[tuple[FloatArray, ...]]()
        assert survival is not None
        stratum = np.zeros(every.n, dtype=np.int64) if survival.stratum is None else survival.stratum
        moment = float(np.quantile(every.y[survival.is_event], 0.5, method="lower"))
        for fold, (train, scored, predictors) in enumerate(fitted):
            eta = predictors - predictors[train].mean()
            baselines = baseline_hazards(every, train, eta)
            base = {key: baseline.find_survival(moment) for key, baseline in baselines.items()}
            chance = np.array([base.get(key, math.nan) for key in stratum[scored].tolist()]) ** np.exp(eta[scored])
            cuts = np.quantile(eta[train], [1.0 / 3.0, 2.0 / 3.0])
            rows.append(scored)
            strata = fold * (stratum.max() + 1) + stratum[scored]
            parts.append((eta[scored], np.searchsorted(cuts, eta[scored]), chance, strata, predictors[scored]))
        chosen = np.concatenate(rows)
        eta, group, chance, strata, predicted = (np.concatenate(values) for values in zip(*parts, strict=True))
        times = Dataset.from_arrays(np.zeros((len(chosen), 1)), every.y[chosen])
        times = replace(times, survival=replace(survival.take(chosen), stratum=strata.astype(np.int64)))
        weights = 1.0 / np.bincount(source[chosen])[source[chosen]]
        weights = weights if every.row_weights is None else weights * every.row_weights[chosen]
        return cls(times, eta, group.astype(np.int64), chance, weights, moment, source[chosen], predicted)

    @property
    def times(self) -> Survival:
        """Events and entry times of the rows."""
        assert self.data.survival is not None
        return self.data.survival

    @property
    def concordance(self) -> TimeQuality:
        """Harrell's concordance, for pairs of rows of the same fold and stratum; each row counts once."""
        return assess_times(self.data, self.log_hazard)

    def curve(self, rows: IntArray) -> Curve:
        """Return the Kaplan-Meier curve of some of the rows."""
        entry = None if self.times.entry is None else self.times.entry[rows]
        return kaplan_meier(self.data.y[rows], self.times.is_event[rows], entry, self.weights[rows])

    def calibrate(self) -> list[CalibrationGroup]:
        """Return two to five groups of similar predicted survival at `moment`, the smallest first.

        There is no group if no row has a predicted survival, because each fold holds out whole strata.
        """
        known = np.flatnonzero(np.isfinite(self.survival))
        if not known.size:
            return []
        n_events = float(self.weights @ self.times.is_event)
        n_groups = int(np.clip(n_events // 20, 2, 5))
        cuts = np.unique(np.quantile(self.survival[known], np.arange(1, n_groups) / n_groups))
        which, found = np.searchsorted(cuts, self.survival[known]), list[CalibrationGroup]()
        for group in np.unique(which).tolist():
            rows = known[which == group]
            w, is_followed = self.weights[rows], bool(self.data.y[rows].max() >= self.moment)
            observed = self.curve(rows).find_values(self.moment) if is_followed else (math.nan,) * 3
            mean = float(np.average(self.survival[rows], weights=w))
            found.append(CalibrationGroup(float(w.sum()), mean, *observed))
        return found


@dataclass(frozen=True, eq=False)
class FittedHazards:
    """The model of all rows with its baseline and the check of proportional hazards.

    Attributes
    ----------
    baselines : dict of str to BaselineHazard
        Cumulative hazard of a row with the mean of each feature, by stratum.
    names : list of str
        Features of the model.
    check : HazardCheck
        The check.
    units : (k,) array
        Standard deviations of the features.
    mean : float
        Log hazard ratio of a row with the mean of each feature.
    """

    baselines: dict[str, BaselineHazard]
    names: list[str]
    check: HazardCheck
    units: FloatArray
    mean: float

    @classmethod
    def from_record(cls, record: Record | FitRecord | CommonRecord, data: Dataset) -> FittedHazards:
        """Return the model of a record with Cox loss for its data, which have the row weights of the record."""
        data = weighted_again(record.data, adapt_to_record_loss(record, data))
        names = list(record.coefficients)
        Z = data.X[:, [data.names.index(name) for name in names]]
        w = np.ones(data.n) if data.row_weights is None else data.row_weights
        means, beta = np.average(Z, axis=0, weights=w), np.array(list(record.coefficients.values()))
        Z = Z - means
        units = np.array(list(spreads(data, names).values()))
        check = check_proportional_hazards(data, Z, beta)
        baselines = baseline_hazards(data, np.arange(data.n), Z @ beta)
        named = {_name_stratum(data, stratum): baseline for stratum, baseline in baselines.items()}
        return cls(named, names, check, units, float(means @ beta))

    def predict_survival(self, data: DataInfo, rows: Dataset, log_hazards: FloatArray, moment: float) -> FloatArray:
        """Return the probabilities of new rows to survive a time.

        A warning counts the rows with the value NaN, in strata that the training rows do not have or whose training
        rows end before the time.

        Parameters
        ----------
        data : DataInfo
            Data of the record.
        rows : Dataset
            New rows, with the column of the strata in `aux` if the record has strata.
        log_hazards : (n,) array
            Their predictions.
        moment : float
            The time.
        """
        names = ["all rows"] * rows.n
        if data.strata is not None:
            names = [f"{data.strata} {cell(label)}" for label in split_missing(rows, data.strata)[0].tolist()]
        known = {name: baseline.find_survival(moment) for name, baseline in self.baselines.items()}
        unknown = [name for name in names if name not in known], "which the training rows do not have"
        ended = (
            [name for name in names if math.isnan(known.get(name, 0.0))],
            f"whose training rows end before {moment:g}",
        )
        for wrong, why in (unknown, ended):
            if wrong:
                strata = abbreviate_list(sorted(set(wrong)))
                words = f"survival: NA for {several(len(wrong), 'row')} of a stratum ({strata}) {why}"
                warnings.warn(words, SparseCVWarning, stacklevel=2)
        base = np.array([known.get(name, math.nan) for name in names])
        return np.asarray(base ** np.exp(log_hazards - self.mean))

    @property
    def last(self) -> float:
        """Last time of the training rows."""
        return max(baseline.last for baseline in self.baselines.values())

    @cached_property
    def doubtful_first(self) -> list[int]:
        """Positions of the features, the smallest p value of the check first."""
        return [int(place) for place in np.argsort(self.check.p_value, kind="stable")]


def _name_stratum(data: Dataset, stratum: int) -> str:
    """Return the column and the value of a stratum; its number if the data do not contain the column."""
    if data.survival is None or data.survival.stratum is None:
        return "all rows"
    if data.strata is None or data.strata not in data.aux:
        return f"{data.strata or 'stratum'} {stratum + 1}"
    labels, row = split_missing(data, data.strata)[0], int(np.argmax(data.survival.stratum == stratum))
    return f"{data.strata} {cell(labels.tolist()[row])}"


def draw_risk_groups(record: Record, rows: HeldOutTimes, ax: Axes | None = None) -> Axes:
    """Draw Kaplan-Meier curves of three risk groups of held-out rows."""
    ax = figures.prepare_axes(ax)
    for group, (name, colour) in enumerate(zip(RISK_GROUPS, COLOURS, strict=True)):
        inside = np.flatnonzero(rows.group == group)
        if not inside.size:
            continue
        curve = rows.curve(inside)
        label = f"{name}, {format_rows(float(rows.weights[inside].sum()))} rows"
        end = float(rows.data.y[inside].max())
        _draw_steps(ax, curve.time, curve.survival, end, label, colour)
        time = np.concatenate([[0.0], curve.time, [end]])
        low, high = (np.concatenate([[1.0], ends, ends[-1:]]) for ends in (curve.low, curve.high))
        if curve.time.size:
            ax.fill_between(time, low, high, step="post", color=colour, alpha=0.18, linewidth=0)
    _write_numbers_at_risk(ax, rows)
    title = f"Kaplan-Meier curves of held-out rows{_estimate(record)}"
    ax = _finish_curves(ax, record, title, more_lines=len(RISK_GROUPS))
    ax.set_xlabel(f"{ax.get_xlabel()}, and rows at risk of low, medium and high risk")
    return ax


def _write_numbers_at_risk(ax: Axes, rows: HeldOutTimes) -> None:
    """Write the numbers of rows at risk in each risk group below the ticks of the time axis."""
    last = float(rows.data.y.max())
    ticks = np.array([tick for tick in ax.get_xticks() if 0.0 <= tick <= last])
    lines = [[format_number(tick, 4) for tick in ticks.tolist()]]
    for group in range(len(RISK_GROUPS)):
        inside = np.flatnonzero(rows.group == group)
        entry = None if rows.times.entry is None else rows.times.entry[inside]
        at_risk = sum_at_risk(np.maximum(ticks, TINY), rows.data.y[inside], entry, rows.weights[inside])
        lines.append([format_rows(float(count)) for count in at_risk])
    ax.set_xticks(ticks, ["\n".join(cells) for cells in zip(*lines, strict=True)])


def draw_survival_calibration(record: Record, rows: HeldOutTimes, ax: Axes | None = None) -> Axes:
    """Draw observed against predicted survival of groups of held-out rows, at the median event time."""
    ax = figures.prepare_axes(ax, (4.8, 4.6))
    points = np.array(rows.calibrate()).reshape(-1, len(CalibrationGroup._fields))
    predicted, observed = points[:, 1], points[:, 2]
    ends = np.abs(points[:, 3:].T - observed)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=figures.FAINT, linewidth=1.0, linestyle=(0, (4, 3)), label="as predicted")
    ax.errorbar(predicted, observed, ends, fmt="o-", color=figures.LOWER, markersize=5, elinewidth=0.9, linewidth=1.1,
                capsize=2.0, label="held-out rows, 95% interval", zorder=3)  # fmt: skip
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), ylabel="observed survival (Kaplan-Meier)")
    moment = f"{figures.shorten_names([record.data.target])[0]} = {format_number(rows.moment, 4)}"
    ax.set_xlabel(f"mean predicted survival at {moment}")
    figures.write_title(ax, f"calibration of held-out rows{_estimate(record)}")
    figures.draw_outer_legend(ax)
    return ax


def draw_baseline(record: Record, model: FittedHazards, ax: Axes | None = None) -> Axes:
    """Draw the survival of a row with the mean of each feature, for each stratum."""
    ax, names = figures.prepare_axes(ax), list(model.baselines)[:MOST_CURVES]
    for name, label in zip(names, figures.shorten_names(names), strict=True):
        baseline = model.baselines[name]
        _draw_steps(ax, baseline.time, np.exp(-baseline.hazard), float(baseline.time.max(initial=0.0)), label)
    shown = "" if len(names) == len(model.baselines) else f" ({len(names)} of {len(model.baselines)} strata)"
    return _finish_curves(ax, record, f"survival of a row with the mean of each feature{shown}")


def draw_hazards(record: Record, model: FittedHazards, ax: Axes | None = None) -> Axes:
    """Draw the running means of scaled Schoenfeld residuals plus coefficients of the features with least p values."""
    ax, check = figures.prepare_axes(ax), model.check
    shown = model.doubtful_first[:MOST_CURVES]
    width = max(len(check.time) // 3, 1)
    share = np.full(width, 1.0 / width)
    labels = dict(zip(shown, figures.shorten_names([model.names[place] for place in shown]), strict=True))
    for place, label in labels.items():
        mean = float(check.effects[:, place].mean() * model.units[place])
        smooth = np.convolve(check.effects[:, place] * model.units[place], share, "valid")
        label = f"{label}, p = {format_number(float(check.p_value[place]), 2)}"
        (line,) = ax.plot(np.convolve(check.time, share, "valid"), smooth, linewidth=1.6, label=label)
        ax.axhline(mean, color=line.get_color(), linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set(xlabel=figures.shorten_names([record.data.target])[0], ylabel="log hazard ratio per standard deviation")
    figures.write_title(ax, "log hazard ratios over time, means of a third of the events")
    figures.draw_outer_legend(ax)
    return ax


def _draw_steps(
    ax: Axes, time: FloatArray, survival: FloatArray, end: float, label: str, colour: str | None = None
) -> None:
    """Draw a survival function from time 0 to an end."""
    values = np.concatenate([[1.0], survival])
    ax.step([0.0, *time, end], [*values, values[-1]], where="post", color=colour, linewidth=1.6, label=label)


def _finish_curves(ax: Axes, record: Record, title: str, more_lines: int = 0) -> Axes:
    """Label axes with survival functions."""
    ax.set(xlabel=figures.shorten_names([record.data.target])[0], ylabel="survival", ylim=(-0.02, 1.02))
    ax.set_xlim(0.0, None)
    figures.write_title(ax, title)
    figures.draw_outer_legend(ax, more_lines)
    return ax


def _estimate(record: Record) -> str:
    return " (estimate)" if record.estimate else ""


def describe_held_out_times(rows: HeldOutTimes) -> list[Block]:
    """Return the tables on held-out rows: concordance and calibration."""
    points = rows.calibrate()
    if not points:
        return [describe_concordance(rows), Sentences((WHOLE_STRATA,))]
    caption = f"Calibration of held-out rows at the median event time, {format_number(rows.moment, 4)}, in groups of "
    caption += "similar predictions: predicted survival, and Kaplan-Meier estimates with 95% limits (not certified)."
    lines = [(format_rows(point.rows), *(_share(part) for part in point[1:])) for point in points]
    heads = ("rows", "mean predicted survival", "observed survival", "95% from", "to")
    return [describe_concordance(rows), report_table(caption, heads, lines)]


def describe_concordance(rows: HeldOutTimes) -> ReportTable:
    """Return the table on the concordance of held-out rows."""
    found = rows.concordance
    words = "Harrell's concordance of held-out rows: pairs are compared within a fold and a stratum only, because the "
    words += "models of different folds have different baselines. Concordance is not certified: it only uses ranks."
    value = "undefined: no two rows of a fold can be compared" if math.isnan(found.concordance) else ""
    measure = ("concordance", value or f"{found.concordance:.4f}"), ("pairs compared", f"{found.pairs:,.0f}")
    return report_table(words, ("measure", "value"), measure, words=1)


def describe_fitted_hazards(model: FittedHazards) -> list[Block]:
    """Return the tables on the model of all rows: baseline survival, and the check of proportional hazards."""
    caption = "Baseline survival by Breslow's estimate: survival of a row with the mean of each feature."
    times = np.unique(np.quantile(model.check.time, [0.1, 0.25, 0.5, 0.75, 0.9], method="lower"))
    lines = [(format_number(time, 4), *(_share(baseline.find_survival(time)) for baseline in model.baselines.values()))
             for time in times.tolist()]  # fmt: skip
    blocks: list[Block] = [replace(report_table(caption, ("time", *model.baselines), lines), folded=len(lines[0]) > 7)]
    if model.names:
        blocks.append(_describe_check(model))
    return blocks


def _describe_check(model: FittedHazards) -> ReportTable:
    """Return the table of the check of proportional hazards."""
    check = model.check
    caption = "Check of proportional hazards: correlation of the scaled Schoenfeld residuals with the ranks of the "
    caption += "event times (Grambsch and Therneau 1994). A small p value shows an effect that changes over time. The "
    caption += f"p values are not adjusted for {several(len(model.names), 'test')} or for the choice of the features."
    lines = [(model.names[k], f"{check.correlation[k]:.3f}", format_number(float(check.statistic[k]), 3),
              format_number(float(check.p_value[k]), 2)) for k in model.doubtful_first]  # fmt: skip
    return report_table(caption, ("feature", "correlation", "chi-square (1 df)", "p value"), lines, words=1)


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"
