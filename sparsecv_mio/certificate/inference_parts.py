"""Parts of a record that the package `inference` makes: models chosen on random draws of the rows, and baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparsecv_mio.certificate.parts import (
    Bound,
    Coefficients,
    Count,
    Gamma,
    Number,
    Seconds,
    Status,
    make_frame,
    with_short_repr,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChosenModel:
    """The model that the whole procedure chose from one draw of the rows; `draw` is the number of the draw.

    `status` and `gap` are those of the search over the draw. With the one-standard-error rule or weights of the
    instability, `proved` also means that the choice by this rule is certified. `cv_error` is the CV error on the draw.
    """

    draw: Count
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    status: Status
    gap: Bound
    cv_error: Bound


@dataclass(frozen=True)
class FailedDraw:
    """A draw from which the procedure could choose no model, for example because a fold has rows of one class only."""

    draw: Count
    reason: str


@dataclass(frozen=True)
class DrawPlan:
    """The draws of a run: the number `requested`, their `seed`, and the relative `gap` of the search over a draw.

    `units` are the drawn units, `rows` or groups of rows; the data have `n_units` of them. If `by_class` is true, the
    units of each class were drawn separately. `truncated` draws are left out, because a limit ended their search before
    their choice was certified.
    """

    requested: Count
    seed: Count
    units: str
    n_units: Count
    by_class: bool
    gap: Number
    truncated: Count = 0


@dataclass(frozen=True)
class FeatureCount:
    """The number of draws whose model has a feature, and their share of the draws with a model."""

    feature: str
    draws: Count
    frequency: Number


@dataclass(frozen=True)
class FeatureFrequency(FeatureCount):
    """The inclusion frequency of a feature, with a binomial interval (Wilson) and an interval of its coefficient.

    The binomial interval states the accuracy of the frequency for this number of draws. `coefficient_low` and
    `coefficient_high` are percentiles of the coefficient over all draws, in units of the file. The coefficient of a
    feature outside of the model is 0, and `zeros` is the share of zeros. `forced` is true for columns in every model.
    """

    lower: Number
    upper: Number
    coefficient_low: Number
    coefficient_high: Number
    zeros: Number
    forced: bool


@dataclass(frozen=True)
class SizeFrequency:
    """The number of draws whose model has the size `tau`, and their share."""

    tau: Count
    draws: Count
    frequency: Number


@dataclass(frozen=True)
class ModelFrequency:
    """The number of draws that chose exactly these features, and their share."""

    support: tuple[str, ...]
    draws: Count
    frequency: Number


@with_short_repr
@dataclass(frozen=True)
class Bootstrap:
    """The whole procedure repeated on bootstrap draws of the rows.

    `level` is that of all intervals. `certified` is the number of draws whose choice is certified within the gap.
    `features` has every feature of the answer or of some draw, the most frequent first; `sizes` and `models` are
    sorted in the same way. `chosen` has the models of all draws, and `failed` the draws without a model.
    """

    plan: DrawPlan
    level: Number
    certified: Count
    features: tuple[FeatureFrequency, ...]
    sizes: tuple[SizeFrequency, ...]
    models: tuple[ModelFrequency, ...]
    chosen: tuple[ChosenModel, ...]
    failed: tuple[FailedDraw, ...] = ()

    @property
    def fewest_draws(self) -> int:
        """Number of draws from which one of them is expected below the lower percentile, and one above the upper."""
        return math.ceil(2.0 / (1.0 - self.level) - 1e-6)

    @property
    def has_percentiles(self) -> bool:
        """True if there are enough draws for percentiles of coefficients."""
        return len(self.chosen) >= self.fewest_draws

    def to_frame(self) -> pd.DataFrame:
        """Return the frequencies and intervals of the features as a pandas frame with a row for each feature."""
        return make_frame(self.features)


@with_short_repr
@dataclass(frozen=True)
class StabilitySelection:
    """Stability selection by complementary pairs of halves (Shah and Samworth 2013).

    `pairs` is the number of pairs of which both halves have a model; frequencies count their halves. `selected` are the
    features with a frequency of at least `threshold`, without columns that are in every model. In `selected`, a factor
    whose levels enter together is one feature, under its name; `features` lists its columns. The expected number of
    selected features that a half chooses with a probability of at most `mean_size / n_features` is at most `bound`,
    which is `mean_size^2 / ((2 threshold - 1) n_features)`. `mean_size` is the mean number of features that a half
    chose, and `n_features` the number of features to choose from. The other fields are those of `Bootstrap`.
    """

    plan: DrawPlan
    threshold: Number
    pairs: Count
    mean_size: Number
    n_features: Count
    bound: Number
    selected: tuple[str, ...]
    certified: Count
    features: tuple[FeatureCount, ...]
    chosen: tuple[ChosenModel, ...]
    failed: tuple[FailedDraw, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the frequencies as a pandas frame with a row for each feature."""
        return make_frame(self.features)


@dataclass(frozen=True)
class NestedBaseline:
    """Nested cross-validation of a baseline, whose penalty or size the rows outside each outer fold choose again.

    `fold_errors` are mean losses of the finished outer folds of `nested`, as its errors are. `error` is their mean over
    the rows, `difference` is `error` minus the nested CV error of the record, and `standard_error` is the standard
    error of this difference over the outer folds, which are paired; null for a single fold. `fold_models` has the
    intercept and every coefficient by outer fold; it is empty if there are too many numbers.
    """

    error: Number
    difference: Number
    standard_error: Number | None
    fold_errors: tuple[Number, ...]
    fold_models: tuple[tuple[Number, ...], ...] = ()


@dataclass(frozen=True)
class Baseline:
    """Another estimator, whose penalty or size the folds of the record chose, compared with the reported pair.

    `cv_error` is the smallest CV error over its candidates. With `one_se`, it is the CV error of the largest penalty
    (at the same `l1_ratio`), or the smallest size, within one standard error of the smallest CV error. `fold_errors`
    are its parts by fold, as in `chosen_folds`. `difference` is the CV error minus that of the fold models of the
    reported pair. `standard_error` is the standard error of this difference, computed from the paired differences of
    the folds. Both are null if a fold of the pair has no model; `standard_error` is also null for a single fold.
    `support`, `coefficients` and `intercept` belong to the full-data fit at the chosen `alpha` and `l1_ratio`, which
    are null for a method without a penalty.

    By the certified lower bound of the grid, no pair of best-subset selection has a CV error more than `possible_gain`
    per cent below `cv_error`. A negative number -g means that every pair is at least g per cent above `cv_error`.
    `possible_gain` is null without a positive bound, or if `cv_error` is 0. `fold_models` has the intercept and every
    coefficient by fold; it is empty if there are too many numbers. `nested` is null if the record has no outer folds.
    """

    method: str
    cv_error: Number
    difference: Number | None
    standard_error: Number | None
    alpha: Number | None
    l1_ratio: Number | None
    support: tuple[str, ...]
    coefficients: Coefficients
    intercept: Number
    seconds: Seconds
    possible_gain: Number | None
    fold_errors: tuple[Number, ...]
    fold_models: tuple[tuple[Number, ...], ...] = ()
    one_se: bool = False
    nested: NestedBaseline | None = None

    @property
    def label(self) -> str:
        """Name of the method, with the rule that chose its penalty or size if that is not the smallest CV error."""
        return f"{self.method} (one SE)" if self.one_se else self.method


@with_short_repr
@dataclass(frozen=True)
class Baselines:
    """Baselines on the folds of a record, in the requested order, and the versions of the packages that fitted them."""

    methods: tuple[Baseline, ...]
    versions: Mapping[str, str]

    def to_frame(self) -> pd.DataFrame:
        """Return the comparison as a pandas frame with a row for each method."""
        frame = make_frame(self.methods)
        return frame.assign(features=[len(baseline.support) for baseline in self.methods]).drop(
            columns=["support", "coefficients", "intercept", "fold_errors", "fold_models", "nested"]
        )


@dataclass(frozen=True)
class SplitTest:
    """The test of a term of the model that half of the rows chose, on the other rows.

    `p_value` belongs to the hypothesis that the coefficients of the term are 0, and `df` are its denominator degrees of
    freedom. If the other rows cannot test the term, `p_value` is 1 and `df` is 0. `estimate` and `standard_error` are
    null for such a term and for a factor of several columns.
    """

    term: str
    p_value: Number = 1.0
    df: Number = 0.0
    estimate: Number | None = None
    standard_error: Number | None = None


@dataclass(frozen=True)
class SplitResult:
    """The model that half of the rows chose, and the tests of its terms on the other `n_test` rows.

    `note` is the reason why no term could be tested; empty if there is none. If no model could be chosen, `gamma` and
    `gap` are null and `status` is `failed`.
    """

    split: Count
    gamma: Gamma | None
    tau: Count
    support: tuple[str, ...]
    status: str
    gap: Bound
    n_test: Count = 0
    tests: tuple[SplitTest, ...] = ()
    note: str = ""


@with_short_repr
@dataclass(frozen=True)
class TermInference:
    """The combined results of a term that `n_chosen` models contain: its p-value, and the interval of its coefficient.

    `estimate` is the median of the estimates of the splits. `interval_lower` and `interval_upper` are null if the
    interval is not finite, and if it is empty: `is_empty` is true if the combined test rejects every value. `n_tested`
    of the models could be tested on the other rows; each of the others has the p-value 1.
    """

    term: str
    n_chosen: Count
    p_value: Number
    estimate: Number | None
    interval_lower: Number | None
    interval_upper: Number | None
    is_empty: bool = False
    n_tested: Count | None = None  # null in records of development versions


@with_short_repr
@dataclass(frozen=True)
class Inference:
    """Tests of terms on rows that did not choose them, combined over random splits of the rows.

    `plan` has the number of requested splits, and the units that are in one half as a whole. `level` is the level of
    all intervals together. A term in no model has the p-value 1 and no entry in `terms`; a split whose half chose no
    model counts as p-values of 1 of all terms.
    """

    plan: DrawPlan
    level: Number
    splits: tuple[SplitResult, ...]
    terms: tuple[TermInference, ...]

    @property
    def n_chosen(self) -> int:
        """Number of halves that chose a model; the p-values of each other half are 1."""
        return sum(split.gamma is not None for split in self.splits)

    @property
    def n_certified(self) -> int:
        """Number of these halves whose choice is certified within the gap."""
        return sum(split.status == "proved" for split in self.splits)

    def to_frame(self) -> pd.DataFrame:
        """Return the p-values and intervals as a pandas frame with a row for each term of a chosen model."""
        return make_frame(self.terms)
