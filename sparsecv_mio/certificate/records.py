"""The record of `solve`: the answer with everything needed to check it again, under a versioned schema.

Objectives and errors are in squared units of the target, coefficients in units of the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from sparsecv_mio.certificate import json_text, parts
from sparsecv_mio.certificate.drawn import DrawnSearch
from sparsecv_mio.certificate.predicting import LinearModel
from sparsecv_mio.digits import ends_of, several, share, shown
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.units import CROSSING_RTOL
from sparsecv_mio.words import LOSS_WORDS, Loss

if TYPE_CHECKING:
    import pandas as pd


SCHEMA = "sparsecv/2"
FIRST_SCHEMA = "sparsecv/1"  # of records whose pair and model could be of two rules
NO_AVERAGE = "no averaged model was made; the model of the pair predicts"


@dataclass(frozen=True)
class Classes:
    """The classes of a target of logistic loss, and how good held-out predictions are.

    `null_error`: the log loss per row of the class frequencies alone. Of the predictions of held-out rows: `accuracy`,
    the share of rows whose class is the likelier one; `auc`, the area under the ROC curve; `brier`, the mean squared
    error of the probabilities. The log loss alone is `certified`; these three are of the models in `chosen_folds`, null
    where they would take long.
    """

    negative: str
    positive: str
    null_error: json_text.Number
    accuracy: json_text.Number | None = None
    auc: json_text.Number | None = None
    brier: json_text.Number | None = None
    certified: Literal["log_loss"] = "log_loss"


@dataclass(frozen=True)
class Counts:
    """Of a target of counts: `null_error`, half the deviance per row of the mean rate alone.

    Half the deviance, `exp(m) - y m` less its least value, is what is `certified`.
    """

    null_error: json_text.Number
    certified: Literal["half_deviance"] = "half_deviance"


@dataclass(frozen=True)
class OneSe:
    """The one-standard-error rule chose the pair: smallest tau, then largest gamma, within one SE of the minimiser.

    `standard_error` is that of the least CV error. `estimate`: a limit came before the minimiser, every simpler pair
    and the chosen one were known well enough for the rule.
    """

    standard_error: json_text.Number
    estimate: bool = False


@dataclass(frozen=True)
class BoundedPair:
    """A pair, its CV error, and bounds beside it."""

    gamma: json_text.Gamma
    tau: json_text.Count
    cv_error: json_text.Bound
    lower: json_text.Number
    upper: json_text.Bound


@dataclass(frozen=True)
class Least(BoundedPair):
    """The pair with the least CV error of the grid and its certificate, in a record whose rule chose another pair.

    The fields are those of a `Record` without another rule: `lower <= min h over the grid <= upper`.
    """

    gap: json_text.Bound
    tie_width: json_text.Number
    allowance: json_text.Number
    estimate: bool = False


@dataclass(frozen=True)
class Refit:
    """The all-rows fit behind `support`: `lower <= min f <= objective`, `objective = f(support)`."""

    gamma: json_text.Gamma
    tau: json_text.Count
    objective: json_text.Number
    lower: json_text.Number
    upper: json_text.Bound
    proved: bool


@dataclass(frozen=True)
class Refined(BoundedPair):
    """Gamma improved at the reported tau: `lower <= h(gamma, tau) <= upper`; no part of the certificate.

    `estimate` as in `TableRow`.
    """

    estimate: bool = False


@dataclass(frozen=True)
class DescentStep:
    """A move of a coordinate descent: the best pair it met and its CV error, and whether the descent went there.

    `move` is `start`, `gamma` (a gamma step, every tau and fold solved anew) or `line` (other gammas at the same tau).
    `upper` is the certified upper bound, unknown in descents of before that only estimated their rows.
    """

    move: str
    gamma: json_text.Gamma
    tau: json_text.Count
    upper: json_text.Bound
    cv_error: json_text.Bound = float("inf")
    accepted: bool = True


@dataclass(frozen=True)
class TableRow(BoundedPair):
    """The certified interval of one (gamma, tau); `folds_decided` of its `folds` have a completely known optimum.

    `estimate`: some are not. `cv_error` is then taken at the supports with the least training objective known in these
    folds, and moved to the nearer end of the interval where it lies outside. `status`: `decided`, every fold is;
    `excluded`, another pair is at least as good up to the gap: `upper` is not the least upper bound of the table, and
    `lower` is at least `1 - gap` times that, or the whole grid is proved; `open`, neither; null in older records.
    `standard_error` is that of `cv_error` over the folds, at the same supports; null for a single fold, where some fold
    has no support yet, and in older records.
    """

    folds_decided: json_text.Count
    folds: json_text.Count
    estimate: bool = False
    status: parts.PairStatus | None = None
    standard_error: json_text.Number | None = None


@dataclass(frozen=True)
class Region:
    """The part of the grid in which the best pair is proved, and that pair.

    The part holds every tau up to `up_to_tau` at every gamma, every tau from `from_gamma` on, one of which may be null,
    and the pair itself, which may have a larger tau and a smaller gamma. `lower` bounds the minimum of h over the part,
    `upper` the h of the pair, and `upper - lower <= gap * upper + tie_width + allowance` for the requested gap, as for
    the whole grid.
    """

    up_to_tau: json_text.Count | None
    from_gamma: json_text.Gamma | None
    gamma: json_text.Gamma
    tau: json_text.Count
    cv_error: json_text.Bound
    lower: json_text.Number
    upper: json_text.Bound
    tie_width: json_text.Number
    allowance: json_text.Number


@dataclass(frozen=True)
class CertifiedSoFar:
    """The results that are certified where a run ended before the proof of the whole grid.

    `solved`, `excluded`, `open`: the numbers of pairs by the `status` of their rows in the table; `solved` are those of
    status `decided`. `region`: as the `region` of the record, at a relative gap of 1%, or at the requested one where
    that is larger; null where there is no such part.
    """

    solved: json_text.Count
    excluded: json_text.Count
    open: json_text.Count
    region: Region | None


@dataclass(frozen=True)
class Loosest:
    """The pair with the least lower bound of the grid, which holds the gap open; the first where several have it."""

    gamma: json_text.Gamma
    tau: json_text.Count


@dataclass(frozen=True)
class Advice:
    """Options that would complete a proof that a limit cut short, each by itself; null where none is known.

    `tau`, `gamma`: a part of the grid, as the option takes it, that holds the reported pair and is proved already.
    `time_limit`: seconds after which the whole grid may be proved: an estimate, from how fast the costs grew with tau.
    """

    tau: str | None
    gamma: str | None
    time_limit: json_text.Number | None


@dataclass(frozen=True)
class OuterAverage:
    """The averaged model that was made without an outer fold."""

    support: tuple[str, ...]
    coefficients: json_text.Coefficients
    intercept: json_text.Number


@dataclass(frozen=True)
class NestedFold:
    """The model that was chosen without an outer fold, and its mean squared `error` there; log loss of two classes.

    `cv_error` is that of the chosen pair on the training rows, `support` that of the model on all of these. `average`:
    the averaged model, where one was asked for; the error is then its own.
    """

    fold: json_text.Count
    gamma: json_text.Gamma
    tau: json_text.Count
    support: tuple[str, ...]
    cv_error: json_text.Bound
    status: str
    error: json_text.Number
    average: OuterAverage | None = None


@dataclass(frozen=True)
class NestedClasses:
    """How well the models chosen without outer folds tell two classes apart there.

    `lower <= error <= upper` is certain of the mean log loss of these models. `accuracy`, `auc` and `brier` are of all
    rows of the outer folds together, as in `Classes`; `auc` is null where they are of one class.
    """

    lower: json_text.Number
    upper: json_text.Bound
    accuracy: json_text.Number
    auc: json_text.Number | None
    brier: json_text.Number


@dataclass(frozen=True)
class Nested:
    """Nested cross-validation: the whole procedure repeated without each outer fold, and scored there.

    `error` is the mean squared error, with logistic loss the mean log loss, over the rows of the outer folds that are
    done, `standard_error` that of it over these folds; null for a single one. `optimism` says by how many per cent
    `error` exceeds the CV error of the model's pair on all rows; null where that is 0 or unknown.
    """

    outer: parts.FoldInfo
    error: json_text.Number
    standard_error: json_text.Number | None
    optimism: json_text.Number | None
    folds: tuple[NestedFold, ...]
    classes: NestedClasses | None = None


@dataclass(frozen=True)
class GammaPiece:
    """An interval of gamma at one tau: no CV error on it is below `lower`.

    `at_low` and `at_high` bound the CV error at the ends from above, null where that was not needed. `supports` are
    places in `Continuous.supports`: every optimum of every fold, anywhere on the piece, is one of these or equal to one
    up to copies of columns; null where the bound needed none (training losses alone exceed the answer).
    """

    tau: json_text.Count
    low: json_text.PositiveGamma
    high: json_text.PositiveGamma
    lower: json_text.Number
    at_low: json_text.Bound
    at_high: json_text.Bound
    supports: tuple[json_text.Count, ...] | None


@dataclass(frozen=True)
class Continuous:
    """The certificate over every gamma of an interval: pieces that cover it for every tau.

    The `lower` of the record is the least of the pieces, `gap` the relative gap that was asked for. The curve is the CV
    error of the reported tau at some gammas, ascending, where it was needed.
    """

    low: json_text.PositiveGamma
    high: json_text.PositiveGamma
    gap: json_text.Number
    supports: tuple[tuple[str, ...], ...]
    pieces: tuple[GammaPiece, ...]
    curve_gammas: tuple[json_text.PositiveGamma, ...] = ()
    curve_errors: tuple[json_text.Number, ...] = ()


@dataclass(frozen=True)
class PathRow:
    """Best subset of one (gamma, tau) on all rows: `lower <= min f <= upper`, `objective = f(support)`."""

    gamma: json_text.Gamma
    tau: json_text.Count
    support: tuple[str, ...]
    coefficients: json_text.Coefficients
    intercept: json_text.Number
    objective: json_text.Number
    lower: json_text.Number
    upper: json_text.Bound
    proved: bool


@dataclass(frozen=True)
class AveragedPair:
    """A pair of the table, or a ridge fit of all features at a gamma of it, and its part in the average.

    `distance`: how many standard errors of its mean, over rows, its held-out errors are above those of the pair with
    the least CV error; null where some fold has no support. `weight` is 0 for what is too far, and for what has the
    gamma and the fit of a nearer pair. `fit` and `folds` are places in `Average.supports`: of the subset on all rows,
    null for what is too far, and of that of each fold; `folds` is empty where some fold has none, and, for what is too
    far, where there are too many to store. `estimate`: some of them are not known to be the best ones.
    """

    gamma: json_text.Gamma
    tau: json_text.Count
    distance: json_text.Bound
    weight: json_text.Number
    fit: json_text.Count | None
    folds: tuple[json_text.Count, ...]
    estimate: bool

    def model(self, place: int) -> tuple[float, int]:
        """Return what is equal for pairs of one model, where this one is at a place; no other has what is too far."""
        return self.gamma, -1 - place if self.fit is None else self.fit


@dataclass(frozen=True)
class WithinFolds:
    """The averaged model made without each fold, by the weights of all rows: an optimistic estimate of its error.

    `folds`: places in `Average.supports` of the models of the folds; `error`: the mean squared error of held-out rows.
    """

    folds: tuple[json_text.Count, ...]
    error: json_text.Number


@dataclass(frozen=True)
class Average:
    """The average of the fits of near-best pairs, put on a best subset, which predicts (docs/theory/average.md).

    `pairs`: one for each row of the table, then, where every tau of it is below the number of features and there are
    no restrictions but on single features, one of all features for each gamma. `model` is a best subset of all rows for
    the predictions of the average in place of the target: `model.objective` per row, `missed`, is the mean square of
    what the model leaves of them, at most `allowed`, a share of the least CV error, unless the grid has no larger tau.
    `fewer` bounds from below the objective of every model with fewer features; null where there are none. No CV error
    of the record is this model's; `within_folds` is an estimate of its error, where one was asked for.
    """

    supports: tuple[tuple[str, ...], ...]
    pairs: tuple[AveragedPair, ...]
    allowed: json_text.Number
    missed: json_text.Number
    model: PathRow
    fewer: json_text.Number | None
    within_folds: WithinFolds | None = None

    @property
    def used(self) -> tuple[AveragedPair, ...]:
        """Pairs that are part of the average."""
        return tuple(pair for pair in self.pairs if pair.weight > 0.0)


@dataclass(frozen=True)
class Record(parts.JsonRecord, LinearModel, DrawnSearch):
    """Answer and certificate of a cross-validation, schema `sparsecv/2`.

    `cv_error` is h(gamma, tau) of the reported pair per row, in squared units of the target, at the supports of
    `chosen_folds`. `lower` and `upper` hold the minimum of h over the whole requested grid (pessimistic over ties):
    the least ends of the table. `proved` means `upper - lower <= gap * upper + tie_width + allowance` for the
    requested gap; the field `gap` is the relative gap reached. A pair that is proved is the one with the least
    upper bound; when a limit comes first, it is the one with the least `cv_error` found. The interval of the
    reported pair's own h is that of its row, `own_row`. `least`: where another rule (`one_se`, a weight of the
    instability) chose another pair than that of the least CV error, that pair and all that was said of the grid,
    `least_folds` its folds; else null. `lower`, `upper`, `gap`, `tie_width` and `allowance` of the record are then
    of the h of the chosen pair alone, and `status` is that of the least CV error. `estimate`: some fold of the
    reported pair is not decided. Its `cv_error` is then the mean of the errors in `chosen_folds`, moved to the
    nearer end of the pair's interval where it lies outside. `region`: where the best pair is proved, all of the
    grid if the status is `proved`; null where it is nowhere, and for a descent. `advice`: what would complete the
    proof; null where that is done, and for a descent. `mae` is the mean absolute error of held-out rows in
    `chosen_folds`; null in older records, with weights, and where it would take long. `continuous`: where an
    interval of gamma was asked for, the certificate over all of it; the table is then of the reported gamma alone,
    and `lower` bounds the minimum of h over the interval.
    `support`, `coefficients`, `intercept` and `refit` are of the model of the reported pair on all rows.
    `stability`: how much it changes where a fold is left out; null in older records and where it would take long.
    `average`: where it was asked for, the model that predicts in place of that of the pair. `training_gap`: where some
    fold of the reported pair is not decided, the model of every fold has a training objective of at most `1 +
    training_gap` times the least one; null where that is not known of all, and in older records. `loosest`: the
    pair that holds the gap of the grid open; null where it is proved, in a descent, and in older records.
    `so_far`: the results certified before the run ended; null in the same cases.
    `classes`: with logistic loss (`request.loss`), where `cv_error` is the mean log loss of held-out rows, objectives
    are sums of log losses, and `r_squared` is the share of the log loss of the class frequencies that is explained.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio import Dataset, cross_validate, make_folds
    >>> data = Dataset.from_arrays(np.eye(6)[:, :2] * 3.0, [3.0, 1.0, 0.5, 0.0, -0.5, 0.0])
    >>> record = cross_validate(data, make_folds("loo", data), gammas=[0.1], taus=[1, 2])
    >>> record.status, record.tau, record.gamma
    ('proved', 2, 0.1)
    >>> record.lower <= record.cv_error <= record.upper
    True
    >>> Record.from_json(record.to_json()) == record
    True
    """

    schema_name: ClassVar[str] = SCHEMA

    schema: str
    status: str
    gamma: json_text.Gamma
    tau: json_text.Count
    cv_error: json_text.Bound
    lower: json_text.Number
    upper: json_text.Bound
    gap: json_text.Bound
    tie_width: json_text.Number
    allowance: json_text.Number
    r_squared: json_text.Number | None
    support: tuple[str, ...]
    coefficients: json_text.Coefficients
    intercept: json_text.Number
    one_se: OneSe | None
    refit: Refit
    table: tuple[TableRow, ...]
    chosen_folds: parts.ChosenFolds
    work: parts.Work
    data: parts.DataInfo
    folds: parts.FoldInfo
    request: parts.SearchRequest
    warnings: tuple[str, ...]
    versions: Mapping[str, str]
    refined: Refined | None = None
    descent: tuple[DescentStep, ...] = ()
    estimate: bool = False
    region: Region | None = None
    advice: Advice | None = None
    nested: Nested | None = None
    mae: json_text.Number | None = None
    stability: parts.Stability | None = None
    continuous: Continuous | None = None
    least: Least | None = None
    least_folds: parts.ChosenFolds | None = None
    average: Average | None = None
    training_gap: json_text.Number | None = None
    loosest: Loosest | None = None
    classes: Classes | None = None
    counts: Counts | None = None
    so_far: CertifiedSoFar | None = None

    @property
    def predictor(self) -> Record | PathRow:
        """What predicts: the model of the reported pair, or the averaged one where that was asked for."""
        return self if self.average is None else self.average.model

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record back; of the schema before too, where its model is that of the least CV error.

        Raises
        ------
        CorruptStore
            As `JsonRecord.from_json`, or a record of the schema before with a model by another rule.
        """
        return cls.decoded(text).of_this_schema() if parts.schema_of(text) == FIRST_SCHEMA else super().from_json(text)

    def of_this_schema(self) -> Self:
        """Return a record of the schema before as one of this: there `upper` was that of the reported pair alone."""
        if (self.refit.gamma, self.refit.tau) != (self.gamma, self.tau):
            raise CorruptStore(
                f"record: it is of an older format ({FIRST_SCHEMA}), with the errors of one pair and the model of "
                "another: run `sparsecv solve` again"
            )
        own, upper, gap = self.own_row, self.upper, self.gap
        if own is not None and own.upper == upper and gap == parts.relative_gap(self.lower, upper):
            upper = least_upper(own, self.table)
            gap = parts.relative_gap(self.lower, upper)
        return replace(self, schema=SCHEMA, upper=upper, gap=gap)

    @property
    def certificate(self) -> Self | Least:
        """The pair with the least CV error found, and the interval of the least CV error of the grid."""
        return self.least or self

    @property
    def own_row(self) -> TableRow | None:
        """The row of the table that is of the reported pair, with the interval of its own CV error."""
        return next((row for row in self.table if (row.gamma, row.tau) == (self.gamma, self.tau)), None)

    @property
    def seen_folds(self) -> int:
        """In how many open folds of the pair the support is that of the model on all rows.

        That model may have been found with the held-out rows; the CV error, an estimate, is likely too low then.
        """
        if not self.estimate or not self.support:
            return 0
        folds, model = self.chosen_folds, set(self.support)
        same = np.array([set(names) == model for names in folds.supports])
        return int(np.sum(same[folds.which] & ~np.asarray(folds.decided)))

    def __repr__(self) -> str:
        minimum, reported = self._answer()
        return f"Record({minimum}\n{reported})" if minimum else f"Record({reported})"

    def _answer(self) -> tuple[str, str]:
        """Return a line on the minimum CV error, empty where the reported pair has it, and a line on that pair."""
        nested = "" if self.nested is None else f", nested CV error {shown(self.nested.error)}"
        averaged = self.average
        model = "" if averaged is None else f"; an averaged model of {len(averaged.model.support)} features predicts"
        error = "CV error" if self.loss is Loss.SQUARED else LOSS_WORDS[self.loss].cv_error
        reported = f"{pair_in_words(self, error)}{nested}{model}"
        if self.least is None:
            return "", f"{self.status}: {reported}"
        minimum = f"{self.status}, minimum CV error: {pair_in_words(self.least, error)}"
        unsettled = "" if self.is_settled else " (choice not certified)"
        return minimum, f"reported by {self.rule}{unsettled}: {reported}"

    @property
    def rule(self) -> str:
        """The rule that chose the pair."""
        if self.one_se is not None:
            return "the one-standard-error rule"
        weighed = self.stability is not None and self.stability.chosen is not None
        return "the weighted instability" if weighed else "the minimum CV error"

    @property
    def is_settled(self) -> bool:
        """True if the choice of the requested rule is certified."""
        if self.one_se is not None:
            return not self.one_se.estimate
        chosen = None if self.stability is None else self.stability.chosen
        return chosen is None or chosen.proved

    def chosen_in(self) -> dict[str, int]:
        """Return in how many folds each feature is in the model; those in none are left out.

        Features of the model come first, then the others, those in most folds first.
        """
        folds = self.chosen_folds
        times = np.bincount(folds.which, minlength=len(folds.supports)).tolist()
        counts = dict.fromkeys(self.support, 0)
        for support, count in zip(folds.supports, times, strict=True):
            for name in support:
                counts[name] = counts.get(name, 0) + count
        place = {name: i for i, name in enumerate(self.data.names)}
        order = sorted(counts, key=lambda name: (name not in self.support, -counts[name], place.get(name, 0)))
        return {name: counts[name] for name in order}

    @property
    def rmse(self) -> float:
        """Root of the mean squared error of held-out rows: that of the CV error, in units of the target."""
        return math.sqrt(self.cv_error)

    def accuracy_line(self) -> str:
        """Return RMSE, MAE and R^2 of held-out rows for the screen, as far as they are known; `~` marks estimates."""
        mark = "~" if self.estimate else ""
        if self.classes is not None:
            return class_words(self.classes, mark)
        if self.counts is not None:
            explained = "?" if self.r_squared is None else f"{mark}{share(self.r_squared)}"
            null = shown(self.counts.null_error)
            return f"share of the deviance explained {explained}, half deviance of the mean rate {null}"
        root = f"{mark}{shown(self.rmse)}" if math.isfinite(self.cv_error) else "?"
        middle = "" if self.mae is None else f"MAE {mark}{shown(self.mae)}, "
        return f"RMSE {root}, {middle}R^2 " + ("?" if self.r_squared is None else f"{mark}{share(self.r_squared)}")

    def to_frame(self) -> pd.DataFrame:
        """Return the table of all pairs (gamma, tau) as a pandas frame, a column for every field of `TableRow`."""
        return parts.frame_of(self.table)

    def likely(self, how: str) -> str:
        """Say that what the fold models give is likely wrong, and why; nothing where `seen_folds` is 0.

        Parameters
        ----------
        how : str
            What is wrong: `too low`, say.
        """
        if not (seen := self.seen_folds):
            return ""
        some = f"{seen:,} of {self.folds.k:,} folds {'uses' if seen == 1 else 'use'}"
        word = "likely" if 2 * seen >= self.folds.k else "perhaps"
        return f"{word} {how}: {some} the features of the full-data model, perhaps found with their held-out rows"

    def _averaged_error(self) -> list[str]:
        """Return a line on the error of the averaged model, as far as it is known."""
        if self.average is None:
            return [NO_AVERAGE] if self.request.model == "average" else []
        if (within := self.average.within_folds) is None:
            return []
        return [f"error of averaged models made within every fold: {shown(within.error)} (optimistic)"]

    def _of_classes(self, classes: Classes) -> str:
        """Say what is certified, and of which class probabilities are."""
        words = f"only the log loss is certified; the model predicts the probability of {classes.positive!r}"
        return words if self.data.class_weight is None else f"{words}; both classes have equal weight"

    def summary(self) -> str:
        """Return the answer in a few lines: the pair, what is certified, the model."""
        weights = "" if self.data.weights is None else f" weighted by {self.data.weights}"
        lines = [
            *filter(None, self._answer()),
            f"on held-out rows{'' if self.average is None else ', model of the pair'}: {self.accuracy_line()}",
            *([] if self.classes is None else [self._of_classes(self.classes)]),
            *([] if self.counts is None else ["the half deviance is certified; the model predicts the expected count"]),
            *([f"~ an estimate, {words}"] if (words := self.likely("too low")) else []),
            *self._averaged_error(),
            f"{self.data.n} rows{weights}, {self.data.p} features, {self.folds.k} folds, "
            f"{several(len(self.table), 'pair')} of the grid",
            *([f"models compared: {limits.words(self.data.p)}"] if (limits := self.request.restrictions) else []),
            f"model on all rows at tau={self.refit.tau}, gamma={shown(self.refit.gamma)}:" if self.average is None
            else f"averaged model of {len(self.average.used)} near-optimal pairs, which predicts:",
        ]  # fmt: skip
        model = {**self.predictor.coefficients, "(intercept)": self.predictor.intercept}
        width = max(map(len, model))
        codes = [] if self.data.reading is None else self.data.reading.code_lines
        return "\n".join([*lines, *(f"  {name:<{width}}  {shown(value)}" for name, value in model.items()), *codes])


def class_words(classes: Classes, mark: str = "") -> str:
    """Return accuracy, AUC and Brier score of held-out rows for the screen, as far as they are known.

    Parameters
    ----------
    mark : str
        What stands before an estimate.
    """
    accuracies = [
        f"accuracy {mark}{100.0 * classes.accuracy:.1f}%" if classes.accuracy is not None else "",
        f"AUC {mark}{classes.auc:.4f}" if classes.auc is not None else "",
        f"Brier score {mark}{classes.brier:.4f}" if classes.brier is not None else "",
    ]
    return ", ".join([*filter(None, accuracies), f"log loss of the class frequencies {classes.null_error:.6g}"])


def pair_in_words(known: Record | Least, error: str = "CV error") -> str:
    """Return a pair with its CV error, an estimate marked by `~`, and the interval that is stated beside it."""
    ends, mark = ends_of(known.lower, known.upper), "~" if known.estimate else ""
    return f"tau={known.tau}, gamma={shown(known.gamma)}, {error} {mark}{shown(known.cv_error)} in {ends}"


def loosest_of(table: Sequence[TableRow]) -> Loosest | None:
    """Return the pair with the least lower bound; None for an empty table."""
    row = min(table, key=lambda row: row.lower, default=None)
    return None if row is None else Loosest(row.gamma, row.tau)


def least_upper(found: TableRow, table: Sequence[TableRow]) -> float:
    """Return the upper end of the least CV error of a grid: the least one of the table.

    Parameters
    ----------
    found : TableRow
        Of the pair with the least CV error found: its own upper end where that is the least one up to rounding. Else
        the least one, at least its CV error, which may be the larger one by a tie.
    """
    least = min(row.upper for row in table)
    return found.upper if found.upper <= least * (1.0 + CROSSING_RTOL) else max(least, found.cv_error)
