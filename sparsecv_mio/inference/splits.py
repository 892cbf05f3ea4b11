"""Inference by data splitting: half of the rows choose a model by the whole procedure, the other half tests its terms.

The naive p-values of the selected model use the same rows for the choice and for the tests. Noise that was selected
because it fits these rows well then looks significant, so the package does not compute them. The tests and their
combination over splits are those of :mod:`sparsecv_mio.inference.split_tests`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.inference_parts import DrawPlan, FailedDraw, Inference, SplitResult, TermInference
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.declared_options import keywords_are
from sparsecv_mio.errors import BadInput, need_extra
from sparsecv_mio.inference.choices import (
    Choice,
    DrawOptions,
    DrawSettings,
    check_procedure,
    choose_models,
    make_plan,
    question_of_draws,
    warn_of,
)
from sparsecv_mio.inference.draws import Draw, DrawUnits, find_units, half_draws
from sparsecv_mio.inference.split_tests import combine_intervals, combine_p_values, test_terms
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.api import end_on_interrupt
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, with_keywords
from sparsecv_mio.search.question import Question
from sparsecv_mio.targets import Loss
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.words import Intercept

WHAT = "infer"
DEFAULT_SPLITS = "splits:50"
LEVEL = 0.95  # level of all intervals together, unless a caller gives another one
NAIVE = ("naive", "selected", "none", "ols", "wald", "full")  # words for tests on the rows that chose the model


def parse_splits(method: str) -> int:
    """Return the number of splits of a method of inference.

    Parameters
    ----------
    method : str
        Text `splits:B`.

    Raises
    ------
    BadInput
        If the text has another form.

    Examples
    --------
    >>> parse_splits("splits:50")
    50
    """
    text = str(method).strip().lower()
    if text in NAIVE:
        raise BadInput(
            f"infer: {text!r} is not offered: the rows that chose the features would also test them, and noise would "
            f"look significant; give {DEFAULT_SPLITS}"
        )
    number = re.fullmatch(r"splits:(\d{1,9})", text)
    if number is None or not 0 < int(number[1]) <= MAX_DRAWS:
        words = f"is not of the form splits:B with 1 to {MAX_DRAWS:,} splits"
        raise BadInput(f"infer: {str(method)[:40]!r} {words}; give {DEFAULT_SPLITS}")
    return int(number[1])


@keywords_are(DrawOptions)
def infer(
    record: Record,
    data: Any,
    method: str = DEFAULT_SPLITS,
    *,
    level: float = LEVEL,
    folds: AnyFolds | None = None,
    options: DrawOptions | None = None,
    **keywords: Any,
) -> Record:
    """Test the features of chosen models on rows that did not choose them.

    For each of B random splits, one half of the rows chooses a model by the whole procedure of the record: the folds,
    the grid, the choice of the pair and of the subset. The other half tests every feature of this model by least
    squares or by a generalised linear model without penalty. The p-values of all splits are combined [1]_, and inverted
    to intervals [2]_.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record.
    method : str
        Text `splits:B`, where B is the number of splits.
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

    References
    ----------
    .. [1] Meinshausen, N., Meier, L. and Buehlmann, P. (2009). p-values for high-dimensional regression. Journal of the
       American Statistical Association 104, 1671-1681.
    .. [2] Dezeure, R., Buehlmann, P., Meier, L. and Meinshausen, N. (2015). High-dimensional inference: confidence
       intervals, p-values and R-software hdi. Statistical Science 30, 533-558.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio import Dataset, cross_validate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> data = Dataset.from_arrays(X, 2.0 * X[:, 0] + rng.normal(size=80))
    >>> record = cross_validate(data, "5", gammas=[0.1], taus=[1, 2])
    >>> first = infer(record, data, "splits:10").inference.terms[0]
    >>> first.term, first.n_chosen, first.p_value < 0.001, first.interval_lower < 2.0 < first.interval_upper
    ('x0', 10, True, True)
    """
    how = with_keywords(options or DrawOptions(), keywords, WHAT, ("method", "level", "folds"))
    with end_on_interrupt(Hooks(how.progress, how.stop)) as hooks:
        question = question_of_draws(record, data, WHAT, folds, how, hooks)
        return warn_of(add_inference(record, question, method, how, level), record)


def check_splits(question: Question, method: str) -> int:
    """Return the number of splits of a method, after a check that splits of a question can be tested.

    Parameters
    ----------
    question : Question
        Question about all rows.
    method : str
        Text `splits:B`.

    Raises
    ------
    BadInput
        If the method is unknown, the procedure cannot be repeated on halves, or the folds are in time order.
    MissingPackage
        If statsmodels is not installed.
    """
    n_splits = parse_splits(method)
    need_extra("inference", WHAT)
    check_procedure(question, WHAT)
    find_units(question.dataset, question.folds)
    return n_splits


def add_inference(
    record: Record,
    question: Question,
    method: str,
    options: DrawOptions,
    level: float = LEVEL,
    deadline: Deadline | None = None,
) -> Record:
    """Return a record with the tests of features by splits of the rows; without them if no split was done in time.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    question : Question
        Question that the record answers.
    method : str
        Text `splits:B`.
    options : DrawOptions
        Options of the run.
    level : float
        Level of all intervals together.
    deadline : Deadline, optional
        Deadline of all splits; that of the question by default.
    """
    if not (isinstance(level, Real) and 0.0 < level < 1.0):
        raise BadInput(f"level: {level!r} is not between 0 and 1; give a level such as {LEVEL}")
    question = replace(question, gammas=record.request.gammas, taus=record.request.taus)
    inference, notes = infer_by_splits(question, check_splits(question, method), options, float(level), deadline)
    return replace(record, inference=inference, warnings=(*record.warnings, *notes))


def infer_by_splits(
    question: Question, n_splits: int, options: DrawOptions, level: float = LEVEL, deadline: Deadline | None = None
) -> tuple[Inference | None, tuple[str, ...]]:
    """Return the combined tests of random splits of the rows of a question, and warnings.

    Parameters
    ----------
    question : Question
        Question about all rows. Supports to try first are ignored, because the rows of the tests determined them.
    n_splits : int
        Number of splits.
    options : DrawOptions
        Options of the run.
    level : float
        Level of all intervals together.
    deadline : Deadline, optional
        Deadline of all splits; that of the question by default.
    """
    draws = list(half_draws(question.dataset, question.folds, n_splits, options.seed))
    plan = make_plan(question, draws, WHAT, options)
    settings = DrawSettings(WHAT, options.gap, options.store)
    chosen = choose_models(replace(question, starts=()), draws, settings, deadline)
    asked = question.options.within(question.dataset)
    has_intercept = asked.intercept is not Intercept.NONE
    tester = SplitTester(question.dataset, question.folds, asked.restrictions, asked.loss, has_intercept)
    choices: list[Choice] = sorted([*chosen.models, *chosen.failed], key=lambda choice: choice.draw)
    splits = [tester.test_split(_untested(choice), draws[choice.draw]) for choice in choices]
    return tester.summarise_splits(splits, plan, level) if splits else None, chosen.describe_missing_draws(WHAT)


def _untested(choice: Choice) -> SplitResult:
    """Return the split of a chosen model without tests."""
    if isinstance(choice, FailedDraw):
        return SplitResult(choice.draw, None, 0, (), "failed", np.inf, note=choice.reason)
    return SplitResult(choice.draw, choice.gamma, choice.tau, choice.support, choice.status, choice.gap)


@dataclass(frozen=True, eq=False)
class SplitTester:
    """The tests of chosen models on the rows that did not choose them.

    Attributes
    ----------
    dataset : Dataset
        All rows, with weights, in the form of the loss.
    folds : FoldPlan
        Folds of all rows, which determine the units that are in one half.
    restrictions : Restrictions
        Restrictions by name: adjusted columns, and columns that are one term.
    loss : Loss
        Loss of the model.
    has_intercept : bool
        True if the model has an intercept.
    """

    dataset: Dataset
    folds: FoldPlan
    restrictions: Restrictions
    loss: Loss
    has_intercept: bool

    @cached_property
    def units(self) -> DrawUnits:
        """Rows, or groups of rows, that are in one half as a whole."""
        return find_units(self.dataset, self.folds)

    @cached_property
    def clusters(self) -> IntArray | None:
        """Cluster of each row for the jackknife; None if the rows are independent and have no weights."""
        if len(self.units.stratum) < self.dataset.n:
            return self.units.of_row
        return None if self.dataset.row_weights is None else np.arange(self.dataset.n)

    def test_split(self, split: SplitResult, draw: Draw) -> SplitResult:
        """Return a split with the tests of its model on the rows that are not in its draw.

        Parameters
        ----------
        split : SplitResult
            Split with a chosen model; its tests are ignored.
        draw : Draw
            Rows that chose the model.
        """
        rows = np.setdiff1d(np.arange(self.dataset.n), draw.rows)
        if split.gamma is None:
            return replace(split, n_test=len(rows))
        together = {name: columns for columns in self.restrictions.count for name in columns}
        terms = list(dict.fromkeys(together.get(name, (name,)) for name in split.support))
        groups = None if self.clusters is None else self.clusters[rows]
        tests, df, note = test_terms(
            self.dataset.take(rows), terms, self.restrictions.adjust, self.loss, self.has_intercept, groups
        )
        return replace(split, n_test=len(rows), df=df, tests=tests, note=note)

    def summarise_splits(self, splits: Sequence[SplitResult], plan: DrawPlan, level: float) -> Inference:
        """Return the combined results of tested splits.

        Parameters
        ----------
        splits : sequence of SplitResult
            Tested splits.
        plan : DrawPlan
            Requested splits.
        level : float
            Level of all intervals together.
        """
        covariance: Any = "classical" if self.clusters is None else "jackknife"
        return Inference(plan, level, covariance, tuple(splits), combine_splits(splits, level))


def combine_splits(splits: Sequence[SplitResult], level: float) -> tuple[TermInference, ...]:
    """Return the combined results of the terms of all models, in the order of their p-values.

    Parameters
    ----------
    splits : sequence of SplitResult
        Tested models.
    level : float
        Level of all intervals together.
    """
    combined = []
    for name in dict.fromkeys(test.term for split in splits for test in split.tests):
        p_values, tests, n_chosen = np.ones(len(splits)), list[tuple[float, float, int, int]](), 0
        for place, split in enumerate(splits):
            for test in (test for test in split.tests if test.term == name):
                n_chosen += 1
                p_values[place] = len(split.tests) * test.p_value
                if test.estimate is not None and test.standard_error is not None:
                    tests.append((test.estimate, test.standard_error, split.df, len(split.tests)))
        lower, upper = combine_intervals(tests, len(splits), level) or (None, None)
        estimate = float(np.median([test[0] for test in tests])) if tests else None
        combined.append(TermInference(name, n_chosen, combine_p_values(p_values), estimate, lower, upper))
    return tuple(sorted(combined, key=lambda term: (term.p_value, -term.n_chosen)))
