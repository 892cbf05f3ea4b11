"""The bootstrap of the whole procedure, stability selection, and inference by splits of the rows.

Each of these three methods repeats, on draws of the rows, the procedure that gave a record, and summarises the models
that the draws choose. The formulas are those of :mod:`sparsecv_mio.certificate.inference_checks` and
:mod:`sparsecv_mio.inference.split_tests`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from sparsecv_mio.certificate.inference_checks import summarise_bootstrap, summarise_stability_selection
from sparsecv_mio.certificate.inference_parts import (
    Bootstrap,
    DrawPlan,
    FailedDraw,
    Inference,
    SplitResult,
    StabilitySelection,
)
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.declared_options import check_integer, keywords_are
from sparsecv_mio.errors import BadInput, SparseCVWarning, need_extra
from sparsecv_mio.inference.choices import (
    Choice,
    DrawOptions,
    check_draw_file,
    check_procedure,
    choose_models,
    question_of_record,
)
from sparsecv_mio.inference.draws import bootstrap_draws, find_units, half_draws
from sparsecv_mio.inference.split_tests import summarise_inference
from sparsecv_mio.search.api import add_or_warn, end_on_interrupt
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, with_keywords
from sparsecv_mio.search.question import Question
from sparsecv_mio.thresholds import MAX_DRAWS

BOOTSTRAP, STABILITY_SELECTION, INFER = "bootstrap", "stability_selection", "infer"  # options that request draws
LEVEL = 0.95  # default level of intervals
THRESHOLD = 0.75  # default minimum frequency of a selected feature
DEFAULT_SPLITS = "splits:50"
NAIVE = ("naive", "selected", "none", "ols", "wald", "full")  # words for tests on the rows that chose the model
FEW_TEST_UNITS = 15  # rows or groups of a half, below which a term needs a t statistic of 3.7 instead of 3.0 or more
MAX_STARTS = 20  # maximum number of supports of the answer that every draw tries first


@dataclass(frozen=True)
class Repetition:
    """A checked request to repeat the whole procedure on draws of the rows.

    Attributes
    ----------
    what : str
        Option that requests the draws, which decides their kind and their summary.
    n_draws : int
        Number of draws.
    level : float
        Level of all intervals, or the minimum frequency of a selected feature.
    """

    what: str
    n_draws: int
    level: float

    def check_question(self, question: Question, options: DrawOptions) -> None:
        """Raise `BadInput` if the procedure of a question cannot be repeated, or the file belongs to other draws."""
        check_procedure(question, self.what)
        find_units(question.dataset, question.folds)
        check_draw_file(question, self.what, options)

    def describe_low_power(self, question: Question) -> list[str]:
        """Return a warning if few units make the tests of a half nearly powerless; empty otherwise."""
        units = find_units(question.dataset, question.folds)
        n_units = len(units.stratum)
        if self.what != INFER or n_units >= 2 * FEW_TEST_UNITS:
            return []
        return [
            f"{INFER}: the half that tests the terms has {n_units - n_units // 2} of {n_units} {units.name}; such "
            "tests have little power, and a large p-value does not show that a term has no effect; with few candidate "
            "columns, test the full model instead"
        ]

    def add_results(
        self, record: Record, question: Question, options: DrawOptions, deadline: Deadline | None = None
    ) -> Record:
        """Return a record with the results of the draws; without them if no draw was done within the time limit.

        Parameters
        ----------
        record : Record
            Answer for all rows.
        question : Question
            Question that the record answers.
        options : DrawOptions
            Options of the run.
        deadline : Deadline, optional
            Deadline of all draws; that of the question by default.
        """
        dataset, folds = question.dataset, question.folds
        units = find_units(dataset, folds)
        if len(units.stratum) < 2:
            raise BadInput(f"{self.what}: the data have a single unit to draw ({units.name}); give other folds")
        gap = question.options.gap if options.gap is None else options.gap
        plan = DrawPlan(self.n_draws, options.seed, units.name, len(units.stratum), units.is_stratified, gap)
        draw = bootstrap_draws if self.what == BOOTSTRAP else half_draws
        starts = () if self.what == INFER else find_starts(record)  # the rows of the tests determined the supports
        asked = replace(question, gammas=record.request.gammas, taus=record.request.taus, starts=starts)
        draws = list(draw(dataset, folds, self.n_draws, options.seed))
        found = choose_models(asked, draws, self.what, options, deadline)
        record = replace(record, warnings=(*record.warnings, *found.notes))
        plan = replace(plan, truncated=found.n_truncated)
        if not found.models:
            return record
        if self.what == BOOTSTRAP:
            drawn = Bootstrap(plan, self.level, 0, (), (), (), found.models, found.failed)
            return replace(record, bootstrap=summarise_bootstrap(record, drawn))
        if self.what == STABILITY_SELECTION:
            halves = StabilitySelection(plan, self.level, 0, 0.0, 0, 0.0, (), 0, (), found.models, found.failed)
            return replace(record, stability_selection=summarise_stability_selection(record, dataset, halves))
        choices: list[Choice] = sorted([*found.models, *found.failed], key=lambda choice: choice.draw)
        tests = Inference(plan, self.level, tuple(map(_describe_split, choices)), ())
        return replace(record, inference=summarise_inference(record, dataset, folds, tests))


def find_starts(record: Record) -> tuple[tuple[str, ...], ...]:
    """Return the supports of an answer that every draw tries first: of the full data, then of the folds.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    """
    return tuple(dict.fromkeys((record.support, *record.chosen_folds.supports)))[:MAX_STARTS]


def _describe_split(choice: Choice) -> SplitResult:
    """Return the split of a half, without tests."""
    if isinstance(choice, FailedDraw):
        return SplitResult(choice.draw, None, 0, (), "failed", np.inf, note=choice.reason)
    return SplitResult(choice.draw, choice.gamma, choice.tau, choice.support, choice.status, choice.gap)


def request_bootstrap(draws: int, level: float = LEVEL) -> Repetition:
    """Return a checked request of bootstrap draws.

    Parameters
    ----------
    draws : int
        Number of draws.
    level : float
        Level of the intervals.
    """
    check_integer(BOOTSTRAP, draws, 1, MAX_DRAWS)
    return Repetition(BOOTSTRAP, int(draws), _check_level(level))


def _check_level(level: float) -> float:
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise BadInput(f"level: {level} is out of range; give a number between 0 and 1, such as {LEVEL}")
    return float(level)


def request_pairs(pairs: int | str, threshold: float = THRESHOLD) -> Repetition:
    """Return a checked request of stability selection.

    Parameters
    ----------
    pairs : int or str
        Number of complementary pairs of halves, or a text `PAIRS` or `PAIRS:THRESHOLD`.
    threshold : float
        Minimum frequency of a selected feature.

    Examples
    --------
    >>> request_pairs("100:0.9")
    Repetition(what='stability_selection', n_draws=200, level=0.9)
    """
    if isinstance(pairs, str):
        parsed = re.fullmatch(r"(\d{1,9})(?::(\d*\.?\d+))?", pairs.strip())
        if parsed is None:
            raise BadInput(
                f"{STABILITY_SELECTION}: {pairs[:30]!r} is not PAIRS or PAIRS:THRESHOLD; write for example 50:0.9"
            )
        pairs, threshold = int(parsed[1]), float(parsed[2] or threshold)
    check_integer(STABILITY_SELECTION, pairs, 1, MAX_DRAWS // 2)
    if not (isinstance(threshold, Real) and 0.5 < threshold <= 1.0):
        raise BadInput(
            f"{STABILITY_SELECTION}: threshold {threshold} is out of range; give a number above 0.5 and at most 1"
        )
    return Repetition(STABILITY_SELECTION, 2 * int(pairs), float(threshold))


def request_splits(method: int | str, level: float = LEVEL) -> Repetition:
    """Return a checked request of inference by splits.

    Parameters
    ----------
    method : int or str
        Number B of splits, or the text `splits:B`.
    level : float
        Level of all intervals together.

    Raises
    ------
    BadInput
        If the text has another form.
    MissingPackage
        If statsmodels is not installed.
    """
    is_number = isinstance(method, Integral) and not isinstance(method, bool)
    text = f"splits:{method}" if is_number else str(method).strip().lower()
    if text in NAIVE:
        raise BadInput(
            f"infer: {text!r} is not offered: the rows that chose the features would also test them, and noise would "
            f"look significant; give {DEFAULT_SPLITS}"
        )
    number = re.fullmatch(r"splits:(\d{1,9})", text)
    if number is None or not 0 < int(number[1]) <= MAX_DRAWS:
        words = f"is not of the form splits:B with 1 to {MAX_DRAWS:,} splits"
        raise BadInput(f"infer: {str(method)[:40]!r} {words}; give {DEFAULT_SPLITS}")
    need_extra("inference", INFER)
    return Repetition(INFER, int(number[1]), _check_level(level))


REQUESTS: Mapping[str, Callable[..., Repetition]] = {
    BOOTSTRAP: request_bootstrap, STABILITY_SELECTION: request_pairs, INFER: request_splits,
}  # fmt: skip


def add_repetitions(
    record: Record, question: Question, requested: Sequence[Repetition], options: DrawOptions, deadline: Deadline
) -> Record:
    """Return a record with the results of several repetitions, which share the time equally.

    A repetition that fails gives a warning.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    question : Question
        Question that the record answers.
    requested : sequence of Repetition
        Repetitions.
    options : DrawOptions
        Seed, gap and file of the draws.
    deadline : Deadline
        Deadline of all draws.
    """
    for n_left, repetition in zip(range(len(requested), 0, -1), requested, strict=True):
        part = deadline if n_left == 1 else deadline.next_part(deadline.remaining_seconds / n_left)
        add = partial(repetition.add_results, question=question, options=options, deadline=part)
        record = add_or_warn(record, repetition.what, add)
    return record


def _repeat_procedure(
    requested: Repetition, record: Record, data: Any, folds: AnyFolds | None, options: DrawOptions
) -> Record:
    """Return a record with the results of draws, and issue the new warnings for the caller of the caller."""
    with end_on_interrupt(Hooks(options.progress, options.stop)) as hooks:
        question = question_of_record(record, data, requested.what, folds, options, hooks)
        for words in requested.describe_low_power(question):
            warnings.warn(words, SparseCVWarning, stacklevel=3)
        made = requested.add_results(record, question, options)
    for words in made.warnings[len(record.warnings) :]:
        warnings.warn(words, SparseCVWarning, stacklevel=3)
    return made


@keywords_are(DrawOptions)
def bootstrap(
    record: Record,
    data: Any,
    draws: int = 200,
    *,
    level: float = LEVEL,
    folds: AnyFolds | None = None,
    options: DrawOptions | None = None,
    **keywords: Any,
) -> Record:
    """Repeat the whole procedure of a record on bootstrap draws of the rows.

    Each draw has as many rows as the data, drawn with replacement; all copies of a row are in one fold. The folds, the
    grid, the choice of tau and gamma and the fit are repeated on each draw. The search of a draw starts from the
    supports of the answer and has its own certificate. Groups of rows that are always in one fold are drawn as a
    whole, and the rows of two classes are drawn by class.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record, as passed to `solve`.
    draws : int
        Number of draws.
    level : float
        Level of the intervals.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`; required if they came from labels, pairs or a splitter.
    options : DrawOptions, optional
        Seed, gap, limits and file of the draws.
    **keywords
        Fields of `DrawOptions` by keyword.

    Returns
    -------
    Record
        The record with `bootstrap`: inclusion frequencies with binomial intervals, frequencies of sizes and models,
        percentile intervals of coefficients, and the models of all draws. After a limit or Ctrl-C it has the draws
        that were done, and a warning states their number.

    Raises
    ------
    BadInput
        If the data or folds are not those of the record, an option is wrong, or the procedure cannot be repeated.

    Notes
    -----
    The intervals describe the variation of the procedure. They are not confidence intervals with proved coverage: the
    coefficients have a point mass at 0 and are not normal, and the bootstrap is not consistent for coefficients near 0
    (Leeb and Poetscher 2005).

    Draw i of m units, from 0, copies the units `(r >> 32) * m >> 32` for the m numbers r of
    `numpy.random.PCG64(numpy.random.SeedSequence(seed, spawn_key=(1, i))).random_raw(m)`. The units of two classes are
    drawn by class: m then counts the units of the class, and r are the numbers of these units.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, Chapman and Hall, 1993.
    .. [2] W. Sauerbrei and M. Schumacher, "A bootstrap resampling procedure for model building: application to the Cox
       regression model", Statistics in Medicine 11, 2093-2109, 1992.
    .. [3] H. Leeb and B. M. Poetscher, "Model selection and inference: facts and fiction", Econometric Theory 21,
       21-59, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> import sparsecv_mio as sc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 4))
    >>> data = sc.Dataset.from_arrays(X, 2 * X[:, 1] + rng.normal(size=40))
    >>> record = sc.cross_validate(data, "5", gammas=[0.1], taus=[1, 2])
    >>> found = sc.bootstrap(record, data, draws=10, threads=1).bootstrap
    >>> found.features[0].feature, found.features[0].frequency, found.certified
    ('x1', 1.0, 10)
    """
    how = with_keywords(options or DrawOptions(), keywords, BOOTSTRAP, ("draws", "level", "folds"))
    return _repeat_procedure(request_bootstrap(draws, level), record, data, folds, how)


@keywords_are(DrawOptions)
def stability_selection(
    record: Record,
    data: Any,
    pairs: int = 50,
    *,
    threshold: float = THRESHOLD,
    folds: AnyFolds | None = None,
    options: DrawOptions | None = None,
    **keywords: Any,
) -> Record:
    """Select features that the whole procedure of a record chooses from most halves of the rows.

    The rows are divided at random into complementary halves, several times. The folds, the grid, the choice of tau and
    gamma and the fit are repeated on each half. Features with a frequency of at least the threshold are selected.
    Groups of rows that are always in one fold stay together, and the rows of two classes are divided by class.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record, as passed to `solve`.
    pairs : int
        Number of complementary pairs of halves.
    threshold : float
        Minimum frequency of a selected feature, above 0.5. Choose it before the run.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`; required if they came from labels, pairs or a splitter.
    options : DrawOptions, optional
        Seed, gap, limits and file of the halves.
    **keywords
        Fields of `DrawOptions` by keyword.

    Returns
    -------
    Record
        The record with `stability_selection`: selected features, the bound on false selections, frequencies, and the
        models of all halves. After a limit or Ctrl-C it has the halves that were done; frequencies count complete
        pairs only.

    Raises
    ------
    BadInput
        If the data or folds are not those of the record, an option is wrong, or the procedure cannot be repeated.

    Notes
    -----
    Let q be the expected number of features that the procedure chooses from a half, and p the number of features. The
    expected number of selected features that a half chooses with a probability of at most q / p is at most
    `q^2 / ((2 threshold - 1) p)` (Theorem 1 of [2]_). The theorem assumes independent and identically distributed
    units, and nothing about the procedure. The bound of the record has the mean number of chosen features instead of
    q; with a single tau both are equal. If the selection of the noise features is exchangeable, and the procedure is
    not worse than random guessing, this is also a bound on the expected number of selected noise features (Theorem 1
    of [1]_).

    Pair i of m units, from 0, sorts the units by the m numbers of
    `numpy.random.PCG64(numpy.random.SeedSequence(seed, spawn_key=(2, i))).random_raw(m)`. The first m // 2 units are
    one half, the next m // 2 units the other; with two classes the units of each class are halved in this way.

    References
    ----------
    .. [1] N. Meinshausen and P. Buehlmann, "Stability selection", Journal of the Royal Statistical Society B 72,
       417-473, 2010.
    .. [2] R. D. Shah and R. J. Samworth, "Variable selection with error control: another look at stability
       selection", Journal of the Royal Statistical Society B 75, 55-80, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> import sparsecv_mio as sc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8))
    >>> data = sc.Dataset.from_arrays(X, 2 * X[:, 1] + rng.normal(size=60))
    >>> record = sc.cross_validate(data, "5", gammas=[0.1], taus=[1])
    >>> found = sc.stability_selection(record, data, pairs=5, threshold=0.9, threads=1).stability_selection
    >>> found.selected, round(found.bound, 6)
    (('x1',), 0.15625)
    """
    how = with_keywords(options or DrawOptions(), keywords, STABILITY_SELECTION, ("pairs", "threshold", "folds"))
    return _repeat_procedure(request_pairs(pairs, threshold), record, data, folds, how)


@keywords_are(DrawOptions)
def infer(
    record: Record,
    data: Any,
    method: int | str = DEFAULT_SPLITS,
    *,
    level: float = LEVEL,
    folds: AnyFolds | None = None,
    options: DrawOptions | None = None,
    **keywords: Any,
) -> Record:
    """Test the features of chosen models on rows that did not choose them.

    For each of B random splits, the whole procedure of the record (folds, grid, choice of pair and subset) chooses a
    model from one half of the rows. The other half tests every feature of this model by least squares or by a
    generalised linear model without penalty. The p-values of all splits are combined [1]_, and inverted to intervals
    [2]_.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record.
    method : int or str
        Number B of splits, or the text `splits:B`.
    level : float
        Level of all intervals together; `1 - level` is the level of the family-wise error of the p-values.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`; required if they came from labels, pairs or a splitter. Groups that folds keep
        together are in one half.
    options : DrawOptions, optional
        Seed of the halves, gap, limits and file of the splits.
    **keywords
        Fields of `DrawOptions` by keyword.

    Returns
    -------
    Record
        The record with `inference`, which is null if a limit or Ctrl-C came before the first split was done. Warnings
        state how many splits are missing.

    Raises
    ------
    BadInput
        If the method is unknown, an option is wrong, the data or folds are not those of the record, or its procedure
        cannot be repeated.
    MissingPackage
        If statsmodels is not installed.

    Notes
    -----
    The probability that some p-value of at most `1 - level` belongs to a feature without effect in every model that
    contains it is at most `1 - level`. A feature without effect on the target has this property if these models contain
    all features with an effect.

    Split b, from 0, chooses the model on half b % 2 of pair b // 2 of `stability_selection` with the same seed, and
    tests it on all other rows.

    References
    ----------
    .. [1] Meinshausen, N., Meier, L. and Buehlmann, P. (2009). p-values for high-dimensional regression. Journal of the
       American Statistical Association 104, 1671-1681.
    .. [2] Dezeure, R., Buehlmann, P., Meier, L. and Meinshausen, N. (2015). High-dimensional inference: confidence
       intervals, p-values and R-software hdi. Statistical Science 30, 533-558.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio import Dataset, cross_validate, infer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> data = Dataset.from_arrays(X, 2.0 * X[:, 0] + rng.normal(size=80))
    >>> record = cross_validate(data, "5", gammas=[0.1], taus=[1, 2])
    >>> first = infer(record, data, "splits:10").inference.terms[0]
    >>> first.term, first.n_chosen, first.p_value < 0.001, first.interval_lower < 2.0 < first.interval_upper
    ('x0', 10, True, True)
    """
    how = with_keywords(options or DrawOptions(), keywords, INFER, ("method", "level", "folds"))
    return _repeat_procedure(request_splits(method, level), record, data, folds, how)
