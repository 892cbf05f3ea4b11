"""Stability selection: features that the whole procedure chooses from most halves of the rows, with an error bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsecv_mio.certificate.draw_summaries import summarise_stability_selection
from sparsecv_mio.certificate.inference_parts import StabilitySelection
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.declared_options import check_whole, keywords_are
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.choices import DrawOptions, make_plan, question_of_draws, repeat_procedure, warn_of
from sparsecv_mio.inference.draws import half_draws
from sparsecv_mio.search.api import end_on_interrupt
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, with_keywords
from sparsecv_mio.search.question import Question
from sparsecv_mio.thresholds import MAX_DRAWS

WHAT = "stability_selection"
THRESHOLD = 0.75  # default minimum frequency of a selected feature


def check_pairs(pairs: int, threshold: float) -> tuple[int, float]:
    """Return a number of pairs and a threshold, or raise `BadInput` if one is out of range.

    Parameters
    ----------
    pairs : int
        Number of complementary pairs.
    threshold : float
        Minimum frequency of a selected feature.
    """
    check_whole(WHAT, pairs, 1, MAX_DRAWS // 2)
    if not 0.5 < threshold <= 1.0:
        raise BadInput(f"{WHAT}: threshold {threshold:g} is out of range; give a number above 0.5 and at most 1")
    return pairs, threshold


def parse_pairs(text: str) -> tuple[int, float]:
    """Return the number of pairs and the threshold of a text `PAIRS` or `PAIRS:THRESHOLD`.

    Parameters
    ----------
    text : str
        Text of the option.

    Examples
    --------
    >>> parse_pairs("50"), parse_pairs("100:0.9")
    ((50, 0.75), (100, 0.9))
    """
    pairs, _, threshold = text.partition(":")
    try:
        return check_pairs(int(pairs), float(threshold) if ":" in text else THRESHOLD)
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{WHAT}: {text[:30]!r} is not PAIRS or PAIRS:THRESHOLD; give 50 or 50:0.9") from None


def add_stability_selection(
    record: Record,
    question: Question,
    count: int,
    options: DrawOptions,
    threshold: float = THRESHOLD,
    deadline: Deadline | None = None,
) -> Record:
    """Return a record with stability selection by its procedure; without it if no pair was done in the time limit.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    question : Question
        Question that the record answers.
    count : int
        Number of complementary pairs.
    options : DrawOptions
        Options of the run.
    threshold : float
        Minimum frequency of a selected feature.
    deadline : Deadline, optional
        Deadline of all halves; that of the question by default.
    """
    check_pairs(count, threshold)
    draws = list(half_draws(question.dataset, question.folds, 2 * count, options.seed))
    plan = make_plan(question, draws, WHAT, options)
    record, found = repeat_procedure(record, question, draws, WHAT, options, deadline)
    if not found.models:
        return record
    made = StabilitySelection(plan, threshold, 0, 0.0, 0, 0.0, (), 0, (), found.models, found.failed)
    return replace(record, stability_selection=summarise_stability_selection(record, question.dataset, made))


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
    how = with_keywords(options or DrawOptions(), keywords, "stability_selection", ("pairs", "threshold", "folds"))
    with end_on_interrupt(Hooks(how.progress, how.stop)) as hooks:
        question = question_of_draws(record, data, WHAT, folds, how, hooks)
        return warn_of(add_stability_selection(record, question, pairs, how, threshold), record)
