"""The record of `solve`: the answer and all information needed to check it, in a versioned schema.

Objectives and errors are in squared units of the target; coefficients are in units of the target per unit of the
column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from sparsecv_mio.certificate import parts
from sparsecv_mio.certificate.inference_parts import Baselines, Bootstrap, Inference, StabilitySelection
from sparsecv_mio.certificate.predicting import DrawnSearch, LinearModel
from sparsecv_mio.digits import format_interval, format_number, format_share, format_with_zeros, several
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.model_space import NONE
from sparsecv_mio.units import CROSSING_RTOL
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    import pandas as pd

    from sparsecv_mio.certificate.accuracy import Scatter


SCHEMA = "sparsecv/2"
FIRST_SCHEMA = "sparsecv/1"  # schema of records whose pair and model may follow different rules
COUNT_SENTENCE = "only the half deviance is certified; the model predicts the expected count"
EITHER_SIDE = "too low or too high"  # an estimate may lie on either side of the CV error
OWN_ERROR = "held-out error of the averaged model, with averaging and projection repeated within every fold"
NO_AVERAGE = "no averaged model was computed; the model of the pair is used for predictions"


@dataclass(frozen=True)
class Classes:
    """The classes of a target with logistic loss, and the quality of held-out predictions.

    `null_error` is the log loss per row of the class frequencies alone. Three measures describe the predictions of
    held-out rows. `accuracy` is the share of rows whose more likely class is correct, `auc` is the area under the ROC
    curve, and `brier` is the mean squared error of the probabilities. Only the log loss is `certified`; the other three
    measures belong to the models in `chosen_folds` and are null if they would take long.
    """

    negative: str
    positive: str
    null_error: parts.Number
    accuracy: parts.Number | None = None
    auc: parts.Number | None = None
    brier: parts.Number | None = None
    certified: Literal["log_loss"] = "log_loss"


@dataclass(frozen=True)
class Counts:
    """The baseline for a target of counts: `null_error`, half the deviance per row of the mean rate.

    Half the deviance, `exp(m) - y m` minus its minimum, is `certified`.
    """

    null_error: parts.Number
    certified: Literal["half_deviance"] = "half_deviance"


@dataclass(frozen=True)
class OneSe:
    """The one-standard-error rule, which chose the pair: smallest tau, then largest gamma, within one standard error.

    `standard_error` is that of the minimum CV error. If `estimate` is true, a limit ended the search before the rule
    was certain: the minimiser, every simpler pair or the chosen pair is not known accurately enough.
    """

    standard_error: parts.Number
    estimate: bool = False


@dataclass(frozen=True)
class BoundedPair:
    """A pair with its CV error and bounds."""

    gamma: parts.Gamma
    tau: parts.Count
    cv_error: parts.Bound
    lower: parts.Number
    upper: parts.Bound


@dataclass(frozen=True)
class Least(BoundedPair):
    """The pair with the minimum CV error of the grid and its certificate, in a record whose rule chose another pair.

    The fields have the meaning of those of a `Record` without another rule: `lower <= min h over the grid <= upper`.
    """

    gap: parts.Bound
    tie_width: parts.Number
    allowance: parts.Number
    estimate: bool = False


@dataclass(frozen=True)
class Refit:
    """The full-data fit of `support`: `lower <= min f <= objective`, `objective = f(support)`."""

    gamma: parts.Gamma
    tau: parts.Count
    objective: parts.Number
    lower: parts.Number
    upper: parts.Bound
    proved: bool


@dataclass(frozen=True)
class Refined(BoundedPair):
    """An improved gamma at the reported tau: `lower <= h(gamma, tau) <= upper`; it is not part of the certificate.

    `estimate` has the meaning as in `TableRow`.
    """

    estimate: bool = False


@dataclass(frozen=True)
class DescentStep:
    """A move of a coordinate descent: the best pair that it met, its CV error, and whether it was accepted.

    `move` is `start`, `gamma` (a gamma step, with every tau and fold solved again) or `line` (other gammas at the same
    tau). `upper` is the certified upper bound; it is unknown in older descents, which only estimated their rows.
    """

    move: str
    gamma: parts.Gamma
    tau: parts.Count
    upper: parts.Bound
    cv_error: parts.Bound = float("inf")
    accepted: bool = True


@dataclass(frozen=True)
class TableRow(BoundedPair):
    """The certified interval of one (tau, gamma); the optima of `folds_decided` of its `folds` are completely known.

    If `estimate` is true, some folds are not solved. `cv_error` is then computed at the known supports with the minimum
    training objective in these folds, and moved to the nearer bound if it lies outside the interval. `status` is
    `decided` if every fold is solved. It is `excluded` if another pair is at least as good up to the gap. In this case
    `upper` is not the smallest upper bound of the table, and either `lower` is at least `1 - gap` times the smallest
    one or the whole grid is proved. It is `open` otherwise, and null in older records. `standard_error` is that of
    `cv_error` over the folds, at the same supports; it is null for a single fold, if some fold has no support yet, and
    in older records.
    """

    folds_decided: parts.Count
    folds: parts.Count
    estimate: bool = False
    status: parts.PairStatus | None = None
    standard_error: parts.Number | None = None


@dataclass(frozen=True)
class Region:
    """The part of the grid in which the best pair is certified, and this pair.

    The part contains every tau up to `up_to_tau` at every gamma, and every tau at gammas from `from_gamma` on; one of
    the two fields may be null. The part also contains the pair itself, which may have a larger tau and a smaller gamma.
    `lower` bounds the minimum of h over the part, `upper` the h of the pair, and
    `upper - lower <= gap * upper + tie_width + allowance` for the requested gap, as for the whole grid.
    """

    up_to_tau: parts.Count | None
    from_gamma: parts.Gamma | None
    gamma: parts.Gamma
    tau: parts.Count
    cv_error: parts.Bound
    lower: parts.Number
    upper: parts.Bound
    tie_width: parts.Number
    allowance: parts.Number


@dataclass(frozen=True)
class CertifiedSoFar:
    """The results that are certified if a run ended before the proof for the whole grid.

    `solved`, `excluded` and `open` are the numbers of pairs by the `status` of their rows in the table; `solved` counts
    status `decided`. `region` has the meaning as in the record, for a relative gap of 1% or the requested gap,
    whichever is larger; it is null if there is no such part.
    """

    solved: parts.Count
    excluded: parts.Count
    open: parts.Count
    region: Region | None


@dataclass(frozen=True)
class Loosest:
    """The pair with the smallest lower bound of the grid, which determines the gap; the first one in a tie."""

    gamma: parts.Gamma
    tau: parts.Count


@dataclass(frozen=True)
class Advice:
    """Options that would each complete a proof that a limit cut short; null if none is known.

    `tau` and `gamma` describe, in the form of the options, a part of the grid that contains the reported pair and is
    already proved. `time_limit` is the estimated time in seconds for the whole grid, extrapolated from the growth of
    cost with tau.
    """

    tau: str | None
    gamma: str | None
    time_limit: parts.Number | None


@dataclass(frozen=True)
class OuterAverage:
    """The averaged model made without an outer fold."""

    support: tuple[str, ...]
    coefficients: parts.Coefficients
    intercept: parts.Number


@dataclass(frozen=True)
class NestedFold:
    """The model chosen without an outer fold, and its mean squared `error` (or log loss) on this fold.

    `cv_error` is that of the chosen pair on the training rows, and `support` that of the model fitted to all of them.
    `average` is the averaged model, if one was requested; `error` then belongs to it.
    """

    fold: parts.Count
    gamma: parts.Gamma
    tau: parts.Count
    support: tuple[str, ...]
    cv_error: parts.Bound
    status: str
    error: parts.Number
    average: OuterAverage | None = None


@dataclass(frozen=True)
class NestedClasses:
    """The quality of class predictions on the outer folds, by the models chosen without them.

    `lower <= error <= upper` is certified for the mean log loss of these models. `accuracy`, `auc` and `brier` have the
    meaning as in `Classes`, over the rows of all outer folds together; `auc` is null if these rows have one class.
    """

    lower: parts.Number
    upper: parts.Bound
    accuracy: parts.Number
    auc: parts.Number | None
    brier: parts.Number


@parts.with_short_repr
@dataclass(frozen=True)
class Nested:
    """Nested cross-validation: the whole procedure is repeated without each outer fold and scored on it.

    `error` is the mean squared error (with logistic loss the mean log loss) over the rows of the finished outer folds.
    `standard_error` is its standard error over these folds; null for a single fold. `optimism` states by how many per
    cent `error` exceeds the CV error of the pair that was chosen on all rows; null if that CV error is 0 or unknown.
    With survival times, whose errors depend on the number of folds, `optimism` is null, and `null_error` is the error
    of the model without features over the same outer folds. `gain_error` has the meaning as in `Record`.
    """

    outer: parts.FoldInfo
    error: parts.Number
    standard_error: parts.Number | None
    optimism: parts.Number | None
    folds: tuple[NestedFold, ...]
    classes: NestedClasses | None = None
    null_error: parts.Number | None = None
    gain_error: parts.Number | None = None


@dataclass(frozen=True)
class GammaPiece:
    """An interval of gamma at one tau on which no CV error is below `lower`.

    `at_low` and `at_high` are upper bounds on the CV error at the ends of the interval, null if they were not needed.
    `supports` are positions in `Continuous.supports`: every optimum of every fold at any gamma of the piece is one of
    these, up to duplicate columns. `supports` is null if the bound did not need supports, because training losses alone
    give a bound above the answer.
    """

    tau: parts.Count
    low: parts.PositiveGamma
    high: parts.PositiveGamma
    lower: parts.Number
    at_low: parts.Bound
    at_high: parts.Bound
    supports: tuple[parts.Count, ...] | None


@parts.with_short_repr
@dataclass(frozen=True)
class Continuous:
    """The certificate over every gamma of an interval: pieces that cover it for every tau.

    The `lower` of the record is the minimum over the pieces, and `gap` the requested relative gap. The curve is the CV
    error of the reported tau at those gammas, ascending, at which it was computed.
    """

    low: parts.PositiveGamma
    high: parts.PositiveGamma
    gap: parts.Number
    supports: tuple[tuple[str, ...], ...]
    pieces: tuple[GammaPiece, ...]
    curve_gammas: tuple[parts.PositiveGamma, ...] = ()
    curve_errors: tuple[parts.Number, ...] = ()


@dataclass(frozen=True)
class PathRow:
    """The full-data best subset of one (gamma, tau): `lower <= min f <= upper`, `objective = f(support)`."""

    gamma: parts.Gamma
    tau: parts.Count
    support: tuple[str, ...]
    coefficients: parts.Coefficients
    intercept: parts.Number
    objective: parts.Number
    lower: parts.Number
    upper: parts.Bound
    proved: bool


@dataclass(frozen=True)
class AveragedPair:
    """A pair of the table, or a ridge fit of all features at one of its gammas, and its part in the average.

    `distance` is the mean excess of its held-out errors over those of the pair with the minimum CV error, in standard
    errors of this mean over rows. It is null if some fold has no support. `weight` is 0 for a pair that is too far
    away, and for a pair whose gamma and fit equal those of a nearer pair. `fit` and `folds` are positions in
    `Average.supports`: of the full-data subset (null for a pair that is too far away) and of the subset of each fold.
    `folds` is empty if some fold has no subset. It is also empty for pairs that are too far away, if the subsets of all
    pairs are too many to store. If `estimate` is true, some of these subsets are not known to be optimal.
    """

    gamma: parts.Gamma
    tau: parts.Count
    distance: parts.Bound
    weight: parts.Number
    fit: parts.Count | None
    folds: tuple[parts.Count, ...]
    estimate: bool

    def model(self, place: int) -> tuple[float, int]:
        """Return a key that is equal for pairs with the same model, and unique for a pair that is too far away."""
        return self.gamma, -1 - place if self.fit is None else self.fit


@dataclass(frozen=True)
class WithinFolds:
    """The averaged model made without each fold, with the weights from all rows: an optimistic error estimate.

    `folds` are positions in `Average.supports` of the models of the folds; `error` is the mean squared error of
    held-out rows.
    """

    folds: tuple[parts.Count, ...]
    error: parts.Number


@parts.with_short_repr
@dataclass(frozen=True)
class Average:
    """The average of the fits of near-optimal pairs, projected on a best subset, which predicts.

    See docs/theory/average.md. `pairs` has one entry for each row of the table. If every tau of the table is below the
    number of features and restrictions concern single features only, one entry with all features follows for each
    gamma. `model` is a full-data best subset whose target is replaced by the predictions of the average.
    `model.objective` per row, `missed`, is the mean square of the residuals of the model. It is at most `allowed`, a
    share of the minimum CV error, unless the grid has no larger tau. `fewer` is a lower bound on the objective of every
    model with fewer features; null if there are none. No CV error of the record belongs to this model; `within_folds`
    estimates its error, if requested.
    """

    supports: tuple[tuple[str, ...], ...]
    pairs: tuple[AveragedPair, ...]
    allowed: parts.Number
    missed: parts.Number
    model: PathRow
    fewer: parts.Number | None
    within_folds: WithinFolds | None = None

    @property
    def used(self) -> tuple[AveragedPair, ...]:
        """Pairs with a positive weight in the average."""
        return tuple(pair for pair in self.pairs if pair.weight > 0.0)


@dataclass(frozen=True)
class Record(parts.JsonRecord, LinearModel, DrawnSearch):
    """Answer and certificate of a cross-validation, schema `sparsecv/2`.

    **CV error.** `cv_error` is h(tau, gamma) of the reported pair per row, in squared units of the target, at the
    supports of `chosen_folds`. `lower` and `upper` contain the minimum of h over the whole requested grid (pessimistic
    over ties): they are the smallest bounds of the table. The interval of h of the reported pair itself is that of its
    row, `own_row`.

    **Status.** `proved` means `upper - lower <= gap * upper + tie_width + allowance` for the requested gap; the field
    `gap` is the relative gap reached. A proved pair is the one with the smallest upper bound. If a limit comes first,
    the reported pair is the one with the smallest `cv_error` found. If `estimate` is true, some fold of the reported
    pair is not solved. `cv_error` is then the mean of the errors in `chosen_folds`; if this mean lies outside the
    interval of the pair, it is moved to the nearer bound.

    **Other rules.** Another rule (`one_se`, or a weight of the instability) may choose another pair than the pair with
    the minimum CV error. Then `least` has the pair with the minimum CV error and the statements about the grid, and
    `least_folds` has its folds; otherwise both are null. `lower`, `upper`, `gap`, `tie_width` and `allowance` of the
    record then refer to h of the chosen pair only, and `status` to the minimum CV error.

    **Model.** `support`, `coefficients`, `intercept` and `refit` belong to the full-data model of the reported pair.
    `average` is the averaged model that predicts instead, if it was requested. If some fold of the reported pair is not
    solved, the training objective of every fold model is at most `1 + training_gap` times its minimum. `training_gap`
    is null if some fold has no such bound, and in older records.

    **Other fields.** `region` is the part of the grid in which the best pair is certified: the whole grid if the status
    is `proved`. It is null if there is no such part, and for a descent. `advice` has options that would complete the
    proof; null if it is complete and for a descent. `loosest` is the pair that determines the gap of the grid, and
    `so_far` has the results certified before the run ended. Both are null for a proved grid, for a descent and in older
    records. `mae` is the mean absolute error of held-out rows in `chosen_folds`; null in older records, with weights,
    and if it would take long. `stability` states how much the model changes if a fold is held out; null in older
    records and if it would take long. `continuous` is the certificate over an interval of gamma, if one was requested;
    the table then has the reported gamma only, and `lower` bounds the minimum of h over the interval.

    `bootstrap` and `stability_selection` have the models that the whole procedure chose from draws of the rows, with
    their frequencies, if they were requested. `gain_error` is the standard error of the gain over the model without
    features, from the differences of the folds in `chosen_folds`. Only records with survival times have it: their
    errors vary between folds with and without features.

    **Logistic loss** (`request.loss`). `classes` is set, `cv_error` is the mean log loss of held-out rows, and
    objectives are sums of log losses. `r_squared` is the explained share of the log loss of the class frequencies.

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
    gamma: parts.Gamma
    tau: parts.Count
    cv_error: parts.Bound
    lower: parts.Number
    upper: parts.Bound
    gap: parts.Bound
    tie_width: parts.Number
    allowance: parts.Number
    r_squared: parts.Number | None
    support: tuple[str, ...]
    coefficients: parts.Coefficients
    intercept: parts.Number
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
    mae: parts.Number | None = None
    stability: parts.Stability | None = None
    continuous: Continuous | None = None
    least: Least | None = None
    least_folds: parts.ChosenFolds | None = None
    average: Average | None = None
    training_gap: parts.Number | None = None
    loosest: Loosest | None = None
    classes: Classes | None = None
    counts: Counts | None = None
    so_far: CertifiedSoFar | None = None
    bootstrap: Bootstrap | None = None
    stability_selection: StabilitySelection | None = None
    baselines: Baselines | None = None
    inference: Inference | None = None
    gain_error: parts.Number | None = None

    @property
    def predictor(self) -> Record | PathRow:
        """The model that predicts: that of the reported pair, or the averaged one if it was requested."""
        return self if self.average is None else self.average.model

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the record of a JSON text, also of the previous schema if its model has the minimum CV error.

        Raises
        ------
        CorruptStore
            As for `JsonRecord.from_json`, and for a record of the previous schema with a model chosen by another rule.
        """
        if parts.read_schema(text) == FIRST_SCHEMA:
            return cls.from_any_schema(text).of_this_schema()
        return super().from_json(text)

    def of_this_schema(self) -> Self:
        """Convert a record of the previous schema, in which `upper` belonged to the reported pair, to this schema."""
        if (self.refit.gamma, self.refit.tau) != (self.gamma, self.tau):
            raise CorruptStore(
                f"record: has the older format {FIRST_SCHEMA}, in which errors and model may belong to different "
                "pairs; run `sparsecv solve` again"
            )
        own, upper, gap = self.own_row, self.upper, self.gap
        if own is not None and own.upper == upper and gap == parts.relative_gap(self.lower, upper):
            upper = least_upper(own, self.table)
            gap = parts.relative_gap(self.lower, upper)
        return replace(self, schema=SCHEMA, upper=upper, gap=gap)

    @property
    def certificate(self) -> Self | Least:
        """The pair with the minimum CV error found, and the certified interval of the minimum CV error of the grid."""
        return self.least or self

    @property
    def has_wide_ties(self) -> bool:
        """True if ties leave a certified choice a wider interval than the requested gap."""
        best = self.certificate
        return self.status == "proved" and best.tie_width > self.request.gap * best.upper

    @property
    def own_row(self) -> TableRow | None:
        """The row of the table with the reported pair and the interval of its CV error."""
        return next((row for row in self.table if (row.gamma, row.tau) == (self.gamma, self.tau)), None)

    @property
    def seen_folds(self) -> int:
        """Number of unsolved folds of the pair whose support is that of the full-data model.

        The full-data model was fitted to the held-out rows too, which lowers the CV error of these folds. Folds without
        their best subset may raise the CV error. The estimated CV error may therefore be too low or too high.
        """
        if not self.estimate or not self.support:
            return 0
        folds, model = self.chosen_folds, set(self.support)
        same = np.array([set(names) == model for names in folds.supports])
        return int(np.sum(same[folds.which] & ~np.asarray(folds.decided)))

    def __repr__(self) -> str:
        minimum, reported = self.answer_lines()
        return f"Record({minimum}\n{reported})" if minimum else f"Record({reported})"

    def answer_lines(self) -> tuple[str, str]:
        """Return a line on the minimum CV error, empty where the reported pair has it, and a line on that pair."""
        nested = "" if self.nested is None else f", nested CV error {format_number(self.nested.error)}"
        averaged = "" if self.average is None else f"; an averaged model of {len(self.average.model.support)} features"
        model = f"{averaged} is used for predictions" if averaged else ""
        error = "CV error" if self.loss.is_quadratic else self.wording.cv_error
        reported = f"{pair_in_words(self, error)}{nested}{model}"
        status = f"{self.status} except for ties" if self.has_wide_ties else self.status
        if self.least is None:
            return "", f"{status}: {reported}"
        minimum = f"{status}, minimum CV error: {pair_in_words(self.least, error)}"
        unsettled = "" if self.is_settled else " (choice not certified)"
        return minimum, f"reported by {self.rule}{unsettled}: {reported}"

    @property
    def rule(self) -> str:
        """Rule that chose the pair."""
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
        """Return the number of folds whose model has each feature, without features that no fold chooses.

        Features of the full-data model come first, then the others, both in descending order of their numbers.
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
        """Root mean squared error of held-out rows, in units of the target."""
        return math.sqrt(self.cv_error)

    def accuracy_line(self) -> str:
        """Return RMSE, MAE and R^2 of held-out rows for the screen, if known; `~` marks estimates."""
        mark = "~" if self.estimate else ""
        if self.classes is not None:
            return class_words(self.classes, mark, self.null_name)
        if not self.wording.is_sum_over_rows and self.null_error is not None:
            return gain_in_words(self.cv_error, self.null_error, mark, self.gain_error)
        if not self.loss.is_quadratic:
            explained = "?" if self.r_squared is None else f"{mark}{format_share(self.r_squared)}"
            null = (
                "" if self.null_error is None else f", {self.null_name} of these rows {format_number(self.null_error)}"
            )
            return f"share of the deviance explained {explained}{null}"
        root = f"{mark}{format_number(self.rmse)}" if math.isfinite(self.cv_error) else "?"
        middle = "" if self.mae is None else f"MAE {mark}{format_number(self.mae)}, "
        share = "?" if self.r_squared is None else f"{mark}{format_share(self.r_squared)}"
        return f"RMSE {root}, {middle}R^2 {share}"

    def to_frame(self) -> pd.DataFrame:
        """Return the table of all pairs (gamma, tau) as a pandas frame with a column for every field of `TableRow`."""
        return parts.make_frame(self.table)

    def likely(self, how: str) -> str:
        """Return a note that results of the fold models may be wrong; empty if `seen_folds` is 0.

        Parameters
        ----------
        how : str
            Possible error, such as `too low or too high`.
        """
        if not (seen := self.seen_folds):
            return ""
        some = f"{seen:,} of {self.folds.k:,} folds {'uses' if seen == 1 else 'use'}"
        cause = "the features of the full-data model, which may depend on the held-out rows of these folds"
        return f"perhaps {how}: {some} {cause}"

    def _averaged_error(self) -> list[str]:
        """Return a line on the error of the averaged model, if it is known."""
        if self.average is None:
            return [NO_AVERAGE] if self.request.model == "average" else []
        if (within := self.average.within_folds) is None:
            return []
        return [f"{OWN_ERROR}: {format_number(within.error)} (optimistic)"]

    def _class_sentence(self, classes: Classes) -> str:
        """Return a sentence on the certified loss and the class of the probabilities."""
        words = f"only the log loss is certified; the model predicts the probability of {classes.positive!r}"
        return words if self.data.class_weight is None else f"{words}; both classes have equal weight"

    @property
    def has_dispersion(self) -> bool:
        """True for counts and for trials: class weights change the number of successes."""
        return self.counts is not None or (self.data.trials is not None and self.data.class_weight is None)

    def pearson(self, data: Any) -> Scatter:
        """Return Pearson's chi-square of the full-data model of counts or trials over its degrees of freedom.

        Parameters
        ----------
        data : path, frame or Dataset
            Data of the record.

        Returns
        -------
        Scatter
            `ratio`, which is 1 for the Poisson and the binomial distribution, with its standard error.

        Raises
        ------
        BadInput
            If the record has neither Poisson loss nor trials without class weights.
        """
        if not self.has_dispersion:
            which = f"{self.loss} loss" if self.data.trials is None else "class weights"
            raise BadInput(f"pearson: requires a record with Poisson loss or trials, not {which}")
        rows, intercept = find_implementation("data_of")(self, data), self.data.intercept != Intercept.NONE
        scatter: Scatter = find_implementation("glm_criteria")([self], rows, intercept, self)[0].scatter
        return scatter

    def summary(self) -> str:
        """Return the answer in a few lines: the pair, the certified interval, the model."""
        weights = "" if self.data.weights is None else f" weighted by {self.data.weights}"
        weights += "" if self.data.trials is None else f" (outcomes) with {self.data.total_weight:,.12g} trials"
        likely, limits = self.likely(EITHER_SIDE), self.request.restrictions or NONE
        features = several(limits.n_selectable_features(self.data.p), limits.unit_of_tau)
        title = f"model on all rows at tau={self.refit.tau}, gamma={format_number(self.refit.gamma)}:"
        if self.average is not None:
            title = f"averaged model of {len(self.average.used)} near-optimal pairs, used for predictions:"
        lines = [
            *self.answer_lines(),
            f"on held-out rows{'' if self.average is None else ', model of the pair'}: {self.accuracy_line()}",
            "" if self.classes is None else self._class_sentence(self.classes),
            "" if self.counts is None else COUNT_SENTENCE,
            likely and f"~ an estimate, {likely}",
            *self._averaged_error(),
            f"{self.data.n} rows{weights}, {features}, {self.folds.k} folds, "
            f"{several(len(self.table), 'pair')} of the grid",
            "" if not limits else f"models compared: {limits.words(self.data.p)}",
            title,
        ]
        model = {**self.predictor.coefficients}
        model |= {"(intercept)": self.predictor.intercept} if self.wording.has_intercept else {}
        width = max(map(len, model))
        lines += [f"  {name:<{width}}  {format_number(value)}" for name, value in model.items()]
        return "\n".join([*filter(None, lines), *([] if self.data.reading is None else self.data.reading.code_lines)])


def class_words(classes: Classes, mark: str, null_name: str) -> str:
    """Return accuracy, AUC and Brier score of held-out rows for the screen, if known.

    Parameters
    ----------
    mark : str
        Prefix of an estimate.
    null_name : str
        Name of the loss of the null model.
    """
    accuracies = [
        "" if classes.accuracy is None else f"accuracy {mark}{100.0 * classes.accuracy:.1f}%",
        "" if classes.auc is None else f"AUC {mark}{classes.auc:.4f}",
        "" if classes.brier is None else f"Brier score {mark}{classes.brier:.4f}",
        f"{null_name} of these rows {classes.null_error:.6g}",
    ]
    return ", ".join(filter(None, accuracies))


GAIN_RTOL = 1e-12  # share of the null error, up to which a gain is a rounding error: the model has no features


def gain_in_words(error: float, null: float, mark: str = "", spread: float | None = None) -> str:
    """Return how much smaller a partial likelihood per event is than that of the model without features.

    Both grow with the number of folds by about the same amount, so that only gains can be compared between folds.

    Examples
    --------
    >>> gain_in_words(5.108, 5.177)
    'gain 0.0690 per event over the model without features, 5.177; share of the deviance explained 0.0133'
    >>> gain_in_words(5.2, 5.177)
    'worse than no features: gain -0.0230 per event over the model without features, 5.177'
    """
    share = format_share(1.0 - error / null) if math.isfinite(error) and null > 0.0 else "?"
    gain = format_gain(error, null, mark, spread)
    words = f"gain {gain} per event over the model without features, {format_number(null)}"
    if error - null > GAIN_RTOL * null > 0.0:
        return f"worse than no features: {words}"
    return f"{words}; share of the deviance explained {mark}{share}"


def format_gain(error: float, null: float, mark: str = "", spread: float | None = None) -> str:
    """Return the gain of an error over that of the model without features, with its standard error.

    Examples
    --------
    >>> format_gain(5.108, 5.177, "~", 0.0441), format_gain(5.177 + 1e-15, 5.177, "", 2e-15)
    ('~0.0690 (standard error ~0.044)', '0')
    """
    if math.isfinite(error) and abs(null - error) <= GAIN_RTOL * null:
        return f"{mark}0"
    gain = format_with_zeros(null - error, 3) if math.isfinite(error) and null > 0.0 else "?"
    return f"{mark}{gain}" + ("" if spread is None else f" (standard error {mark}{format_number(spread, 2)})")


def pair_in_words(known: Record | Least, error: str = "CV error") -> str:
    """Return a pair with its CV error, marked by `~` if it is an estimate, and the reported interval."""
    ends, mark = format_interval(known.lower, known.upper), "~" if known.estimate else ""
    pair = f"tau={known.tau}, gamma={format_number(known.gamma)}"
    return f"{pair}, {error} {mark}{format_number(known.cv_error)} in {ends}"


def find_loosest_pair(table: Sequence[TableRow]) -> Loosest | None:
    """Return the pair with the smallest lower bound; None for an empty table."""
    row = min(table, key=lambda row: row.lower, default=None)
    return None if row is None else Loosest(row.gamma, row.tau)


def least_upper(found: TableRow, table: Sequence[TableRow]) -> float:
    """Return the upper bound on the minimum CV error of a grid: the smallest one of the table.

    Parameters
    ----------
    found : TableRow
        Row of the pair with the minimum CV error found. If its upper bound is the smallest one up to rounding, its
        upper bound is returned. Otherwise the result is the smallest upper bound, but at least the CV error of this
        pair, which may be larger because of a tie.
    """
    least = min(row.upper for row in table)
    return found.upper if found.upper <= least * (1.0 + CROSSING_RTOL) else max(least, found.cv_error)
