"""ROC curve and calibration plot of the held-out probabilities of a record with logistic loss.

The models in `chosen_folds` are fitted again to the data of the record. Each row is predicted by the model of the fold
that holds the row out.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.accuracy import ClassQuality, class_quality, predict_positive, rank_probabilities
from sparsecv_mio.certificate.read_back import rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import MULTIPLICITY, Dataset
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report import figures
from sparsecv_mio.search.answer.fold_models import predictions_by_fold

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 10  # number of bins of a reliability curve
NORMAL = 1.959964  # 97.5% point of the normal distribution


@dataclass(frozen=True, eq=False)
class PredictedClasses:
    """Classes of the held-out rows (0 and 1), their probabilities of class 1, and the weights of the rows.

    Attributes
    ----------
    y, chance, weights : (m,) arrays
        Values by row; a row is repeated as often as a fold scores it.
    shares : (m,) array or float
        Share of its row of each prediction: 1 / the number of folds that score the row.
    trials : (m,) array or float
        Number of trials with the outcome of the row, which `weights` include; 1 for data without trials.
    """

    y: FloatArray
    chance: FloatArray
    weights: FloatArray
    shares: FloatArray | float = 1.0
    trials: FloatArray | float = 1.0

    @classmethod
    def from_record(cls, record: Record, data: Dataset, folds: AnyFolds | None = None) -> PredictedClasses:
        """Return the predictions for the rows of a record, from the models of its folds.

        Parameters
        ----------
        record : Record
            Record with logistic loss.
        data : Dataset
            The data of the record.
        folds : str, int, splitter, labels, pairs or FoldPlan, optional
            Folds as given to `solve`, if the record does not describe them.

        Raises
        ------
        BadInput
            If the record has squared-error loss, the folds came from Python and are not given, or the data differ
            from those of the record.
        """
        if record.classes is None:
            raise BadInput("ROC and calibration plots require a record with logistic loss; choose another panel")
        rows, plan = rows_and_folds_of_record(record, data, folds)
        scored, chance = predictions_by_fold(record, rows, plan)
        weights = np.ones(len(scored)) if rows.row_weights is None else rows.row_weights[scored]
        trials = 1.0 if rows.trials is None else rows.aux[MULTIPLICITY][scored]
        return cls(rows.y[scored], chance, weights, 1.0 / np.bincount(scored)[scored], trials)

    @property
    def has_repeats(self) -> bool:
        """Return True if several folds score a row."""
        return bool(np.min(self.shares, initial=1.0) < 1.0)

    @property
    def unit(self) -> str:
        """Name of a unit that the calibration counts: row, or trial."""
        return "row" if isinstance(self.trials, float) else "trial"

    @property
    def quality(self) -> ClassQuality:
        """Log loss, accuracy, AUC and Brier score."""
        return class_quality(self.y, self.chance, self.weights)

    def roc(self) -> tuple[FloatArray, FloatArray]:
        """Return the false and the true positive rates at all thresholds, from the largest probability down.

        Examples
        --------
        >>> rows = PredictedClasses(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.6, 0.2]), np.ones(3))
        >>> [rate.tolist() for rate in rows.roc()]
        [[0.0, 0.0, 1.0], [0.0, 0.5, 1.0]]
        """
        ranks = rank_probabilities(self.chance)
        place = ranks.max(initial=0) - ranks
        ones, zeros = (np.bincount(place, self.weights * (self.y == value)) for value in (1.0, 0.0))
        rates = [np.append(0.0, np.cumsum(count)) / max(float(count.sum()), np.finfo(float).tiny)
                 for count in (zeros, ones)]  # fmt: skip
        return rates[0], rates[1]

    def rates_at_half(self) -> list[float]:
        """Return the false and the true positive rate if probabilities above 0.5 predict the positive class."""
        half = predict_positive(self.chance)
        return [float(np.average(half[self.y == value], weights=self.weights[self.y == value])) if
                (self.y == value).any() else math.nan for value in (0.0, 1.0)]  # fmt: skip

    def measure(self) -> dict[str, float]:
        """Return further measures of the predictions, by name; without statsmodels, without the calibration.

        The calibration intercept is the intercept of a logistic regression of the classes with the log odds as offset.
        The calibration slope is the coefficient of the log odds in a logistic regression with an intercept. The
        standard error of the AUC is that of DeLong, DeLong and Clarke-Pearson (1988, Biometrics 44) for independent
        rows without weights.

        Examples
        --------
        >>> rows = PredictedClasses(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.6, 0.2]), np.ones(3))
        >>> found = rows.measure()
        >>> found["sensitivity (threshold 0.5)"], found["specificity (threshold 0.5)"]
        (0.5, 1.0)
        """
        false, true = self.rates_at_half()
        positive = float(np.average(self.y, weights=self.weights))
        found = {"sensitivity (threshold 0.5)": true, "specificity (threshold 0.5)": 1.0 - false}
        found["accuracy of always predicting the larger class"] = max(positive, 1.0 - positive)
        found[f"standard error of the AUC ({self.unit}s independent)"] = self._auc_standard_error()
        with suppress(ModuleNotFoundError):
            found |= self._fit_calibration()
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _auc_standard_error(self) -> float:
        """Return DeLong's standard error of the AUC; NaN for weighted or repeated rows, and for rows of one class."""
        if self.has_repeats or not np.array_equal(self.weights, np.broadcast_to(self.trials, self.weights.shape)):
            return math.nan
        ranks, variance = rank_probabilities(self.chance), 0.0
        for value in (0.0, 1.0):
            own = self.weights * (self.y == value)
            others = np.bincount(ranks, self.weights - own)
            n_own, n_others = float(own.sum()), float(others.sum())
            if n_own < 2.0 or not n_others:
                return math.nan
            below = ((np.cumsum(others) - 0.5 * others) / n_others)[ranks]  # share of the other class with less
            spread = float(own @ (below - float(own @ below) / n_own) ** 2) / (n_own - 1.0)
            variance += spread / n_own
        return math.sqrt(variance)

    def _fit_calibration(self) -> dict[str, float]:
        """Return the calibration intercept and slope by statsmodels; empty if the fit does not converge."""
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_linear_model import GLM

        tiny, once = np.finfo(float).eps, self.weights * self.shares
        log_odds = np.log(np.maximum(self.chance, tiny)) - np.log(np.maximum(1.0 - self.chance, tiny))
        ones = np.ones((len(self.y), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of separated classes, whose fits do not converge
            shift = GLM(self.y, ones, Binomial(), offset=log_odds, freq_weights=once).fit()
            line = GLM(self.y, np.column_stack((ones, log_odds)), Binomial(), freq_weights=once).fit()
        if not (shift.converged and line.converged):
            return {}
        return {"calibration intercept (slope 1)": float(shift.params[0]), "calibration slope": float(line.params[1])}


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability curve: held-out rows grouped by ten intervals of probability of width 0.1, without empty groups.

    Attributes
    ----------
    counts : (B,) array
        Number of rows, or of trials, in each group. A row that k folds score counts 1/k for each of its predictions.
    predicted, observed : (B,) arrays
        Mean probability, and share of positive rows.
    low, high : (B,) arrays
        Bounds of Wilson's 95% intervals of the share; with row weights w, for the effective number of rows or trials
        `(sum w/k)^2 / sum w^2/k`.
    """

    counts: FloatArray
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def from_predictions(cls, rows: PredictedClasses) -> Reliability:
        """Return the reliability curve of held-out rows.

        Examples
        --------
        >>> rows = PredictedClasses(np.array([0.0, 1.0, 1.0]), np.array([0.31, 0.39, 1.0]), np.ones(3))
        >>> found = Reliability.from_predictions(rows)
        >>> found.counts.tolist(), found.predicted.round(2).tolist(), found.observed.tolist()
        ([2.0, 1.0], [0.35, 1.0], [0.5, 1.0])
        """
        which = np.minimum((rows.chance * BINS).astype(np.int64), BINS - 1)
        sizes = np.broadcast_to(rows.shares * rows.trials, which.shape)
        counts = np.bincount(which, sizes, BINS).astype(np.float64)
        full, once = counts > 0.0, rows.weights * rows.shares
        weight, square = (np.bincount(which, w, BINS)[full] for w in (once, once * rows.weights / rows.trials))
        predicted, observed = (
            np.bincount(which, once * values, BINS)[full] / weight for values in (rows.chance, rows.y)
        )
        low, high = wilson(observed, weight**2 / square)
        return cls(counts[full], predicted, observed, low, high)


def format_rows(count: float) -> str:
    """Return a number of rows; with repeated folds, it may have a fraction.

    Examples
    --------
    >>> format_rows(1200.0), format_rows(6.3), format_rows(5.999999999)
    ('1,200', '6.3', '6')
    """
    return f"{count:,.1f}".removesuffix(".0")


def wilson(share: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95% interval of a share observed in a number of rows.

    Examples
    --------
    >>> [end.round(3).tolist() for end in wilson(np.array([0.0, 0.5]), np.array([10.0, 10.0]))]
    [[0.0, 0.237], [0.278, 0.763]]
    """
    squared = NORMAL**2 / rows
    middle = (share + 0.5 * squared) / (1.0 + squared)
    half = NORMAL * np.sqrt(share * (1.0 - share) / rows + 0.25 * squared / rows) / (1.0 + squared)
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def plot_roc(record: Record, data: Dataset, ax: Axes | None = None, folds: AnyFolds | None = None) -> Axes:
    """Draw the ROC curve of held-out rows, with the area below it.

    Parameters
    ----------
    record : Record
        Record with logistic loss.
    data : Dataset
        Its data.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, if the record does not describe them.

    Returns
    -------
    matplotlib Axes
        The axes; the dot marks the threshold at probability 1/2.
    """
    return draw_roc(record, PredictedClasses.from_record(record, data, folds), ax)


def plot_calibration(record: Record, data: Dataset, ax: Axes | None = None, folds: AnyFolds | None = None) -> Axes:
    """Draw the reliability curve of held-out rows: the share of positive rows by probability, with counts.

    Parameters
    ----------
    record : Record
        Record with logistic loss.
    data : Dataset
        Its data.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, if the record does not describe them.

    Returns
    -------
    matplotlib Axes
        The axes; bars are Wilson's 95% intervals, and the dashed line is perfect calibration.
    """
    return draw_calibration(record, PredictedClasses.from_record(record, data, folds), ax)


def draw_roc(record: Record, rows: PredictedClasses, ax: Axes | None = None) -> Axes:
    """Draw the ROC curve of predicted rows."""
    ax = figures.prepare_axes(ax, (4.8, 4.6))
    (false, true), auc = rows.roc(), rows.quality.auc
    shown_auc = "unknown" if math.isnan(auc) else f"{auc:.4f}"
    ax.fill_between(false, true, color=figures.LOWER, alpha=0.12, linewidth=0, step=None)
    ax.plot(false, true, color=figures.LOWER, linewidth=1.6, label=f"held-out rows, AUC {shown_auc}", zorder=3)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=figures.FAINT, linewidth=1.0, linestyle=(0, (4, 3)), label="by chance")
    if np.isfinite(at := rows.rates_at_half()).all():
        ax.plot(*at, "o", color=figures.UPPER, markersize=6, label="probability above 0.5", zorder=4, linestyle="none")
    assert record.classes is not None
    positive, negative = figures.shorten_names([record.classes.positive, record.classes.negative], 18)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=f"false positive rate ({negative} predicted as {positive})",
           ylabel=f"true positive rate ({positive})")  # fmt: skip
    ax.set_aspect("equal")
    figures.write_title(ax, f"ROC curve of held-out rows{' (estimate)' if record.estimate else ''}")
    figures.draw_outer_legend(ax)
    return ax


def draw_calibration(record: Record, rows: PredictedClasses, ax: Axes | None = None) -> Axes:
    """Draw the reliability curve of predicted rows."""
    ax, points = figures.prepare_axes(ax, (4.8, 4.6)), Reliability.from_predictions(rows)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=figures.FAINT, linewidth=1.0, linestyle=(0, (4, 3)), label="as predicted")
    ends = np.abs(np.array([points.low, points.high]) - points.observed)
    ax.errorbar(points.predicted, points.observed, ends, fmt="o-", color=figures.LOWER, markersize=5, elinewidth=0.9,
                linewidth=1.1, capsize=2.0, label=f"held-out {rows.unit}s, 95% interval", zorder=3)  # fmt: skip
    for place, (x, count) in enumerate(zip(points.predicted, points.counts.tolist(), strict=True)):
        ax.annotate(format_rows(count), (x, -0.07 - 0.06 * (place % 2)), ha="center", va="center", fontsize=8,
                    color=figures.INK)  # fmt: skip
    assert record.classes is not None
    positive = figures.shorten_names([record.classes.positive], 18)[0]
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.17, 1.03), xlabel=f"mean probability of {positive}, in intervals of width 0.1",
           ylabel=f"observed share of {positive}")  # fmt: skip
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    figures.write_title(
        ax, f"calibration of held-out rows, with their numbers below{' (estimate)' if record.estimate else ''}"
    )
    figures.draw_outer_legend(ax)
    return ax
