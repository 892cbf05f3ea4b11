"""The bootstrap of the whole procedure: how often features, sizes and models are chosen, and percentile intervals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsecv_mio.certificate.draw_summaries import summarise_bootstrap
from sparsecv_mio.certificate.inference_parts import Bootstrap
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds
from sparsecv_mio.declared_options import check_whole, keywords_are
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.choices import DrawOptions, make_plan, question_of_draws, repeat_procedure, warn_of
from sparsecv_mio.inference.draws import bootstrap_draws
from sparsecv_mio.search.api import end_on_interrupt
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, with_keywords
from sparsecv_mio.search.question import Question
from sparsecv_mio.thresholds import MAX_DRAWS

WHAT = "bootstrap"


def add_bootstrap(
    record: Record,
    question: Question,
    count: int,
    options: DrawOptions,
    level: float = 0.95,
    deadline: Deadline | None = None,
) -> Record:
    """Return a record with the bootstrap of its procedure; without it if no draw was done within the time limit.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    question : Question
        Question that the record answers.
    count : int
        Number of draws.
    options : DrawOptions
        Options of the run.
    level : float
        Level of the intervals.
    deadline : Deadline, optional
        Deadline of all draws; that of the question by default.
    """
    check_whole(WHAT, count, 1, MAX_DRAWS)
    if not 0.0 < level < 1.0:
        raise BadInput(f"level: {level:g} is out of range; give a number between 0 and 1, such as 0.95")
    draws = list(bootstrap_draws(question.dataset, question.folds, count, options.seed))
    plan = make_plan(question, draws, WHAT, options)
    record, found = repeat_procedure(record, question, draws, WHAT, options, deadline)
    if not found.models:
        return record
    made = Bootstrap(plan, level, 0, (), (), (), found.models, found.failed)
    return replace(record, bootstrap=summarise_bootstrap(record, made))


@keywords_are(DrawOptions)
def bootstrap(
    record: Record,
    data: Any,
    draws: int = 200,
    *,
    level: float = 0.95,
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
    how = with_keywords(options or DrawOptions(), keywords, "bootstrap", ("draws", "level", "folds"))
    with end_on_interrupt(Hooks(how.progress, how.stop)) as hooks:
        question = question_of_draws(record, data, WHAT, folds, how, hooks)
        return warn_of(add_bootstrap(record, question, draws, how, level), record)
