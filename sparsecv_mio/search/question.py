"""The request of a caller (a *question*): the rows, folds, grid, options and hooks by which a model is chosen.

This module computes nothing from the data. A question is checked before any work starts, and
:mod:`sparsecv_mio.search.api` computes its answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import inner_folds
from sparsecv_mio.data.rows_of_folds import fills_of_folds
from sparsecv_mio.data.table_facts import should_group_levels
from sparsecv_mio.digits import abbreviate_list, quoted_name
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import EVERY_FACTOR, NONE, RESTRICTIONS, GammaInterval, interval
from sparsecv_mio.search.options import OF_GRIDS, Hooks, SearchOptions
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.words import NATIVE, Method, Model, Within

HOOKS_OF_GRIDS = ("checkpoint", "resume", "trace", "scheduler")


def check_interval(gammas: GammaInterval, options: SearchOptions, hooks: Hooks) -> None:
    """Raise `BadInput` if an option cannot be combined with an interval of gamma; the message names the option.

    Parameters
    ----------
    gammas : GammaInterval
        Interval.
    options : SearchOptions
        Options of the search.
    hooks : Hooks
        Hooks of the search.
    """
    named = f"gamma {gammas}"
    refused = [name for name in OF_GRIDS if getattr(options, name)]
    refused += [name for name in RESTRICTIONS if getattr(options.restrictions, name)]
    refused += options.by_folds
    refused += ["model"] if options.model is Model.AVERAGE else []
    refused += ["loss"] if not options.loss.is_quadratic else []
    refused += ["method"] if options.method not in (Method.AUTO, Method.ROUNDS) else []
    refused += ["backend"] if options.backend != NATIVE else []
    refused += [name for name in HOOKS_OF_GRIDS if getattr(hooks, name) is not None]
    for name in refused[:1]:
        raise BadInput(f"{named}: {name} requires a grid of gammas, not an interval; give values or LO:HI:COUNT")
    if not options.gap > 0.0:
        raise BadInput(f"{named}: gap 0 is not supported with an interval; give a positive gap")


@dataclass(frozen=True, eq=False)
class Question:
    """The choice of a model from some rows: all rows of a file, or the rows outside of an outer fold.

    Attributes
    ----------
    dataset : Dataset
        Rows.
    folds : FoldPlan
        Folds of these rows.
    gammas, taus : sequences, numbers or texts
        Grid, in the forms that :func:`~sparsecv_mio.search.api.cross_validate` accepts.
    options : SearchOptions
        Options of the search.
    hooks : Hooks
        Hooks of the caller.
    starts : tuple of tuples of str
        Features of supports to try first; a support with a column that is constant in the rows is ignored.
    """

    dataset: Dataset
    folds: FoldPlan
    gammas: Any
    taus: Any
    options: SearchOptions
    hooks: Hooks = field(default_factory=Hooks)
    starts: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("gammas", "taus"):  # an iterator could be read only once
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))

    def grid(self) -> tuple[GammaInterval | None, Grid]:
        """Return the interval of gamma, or None if gammas are a grid, and the checked grid.

        Raises
        ------
        BadInput
            If a number of the grid is out of range or not supported with the options.
        """
        dataset, within = self.dataset, self.options.by_names(self.dataset).restrictions
        every = (interval(self.gammas, "gammas") or self.gammas) if isinstance(self.gammas, str) else self.gammas
        if not isinstance(every, GammaInterval):
            grid = Grid.from_request(dataset, self.folds, every, self.taus, within, True, self.options.loss)
            if self.options.method is Method.DESCENT and grid.gammas[0] == 0.0:
                raise BadInput(
                    "gamma 0: not supported with method descent, which changes the logarithm of gamma; use another "
                    "method"
                )
            return None, grid
        check_interval(every, self.options, self.hooks)
        return every, Grid.from_request(dataset, self.folds, 1.0, self.taus, within, all_features=True)

    def check_outer_rows(self, outer: FoldPlan) -> None:
        """Raise `BadInput` if an inner fold of some outer fold has unusable training rows.

        Such rows are all of one class, have only zero counts, or lack values to impute a column within the fold, or
        they do not determine the coefficients of columns without a penalty.
        """
        within, by_names = self.options.within_folds, self.options.by_names(self.dataset)
        limits, holes = by_names.restrictions or NONE, self.dataset.holes
        has_own_values = holes is not None and bool(holes[:, np.isin(self.dataset.names, limits.adjust)].any())
        for fold in range(outer.k):
            rows = outer.train_rows(fold)
            try:
                training = within.fill(self.dataset, rows).take(rows)
                inner = inner_folds(self.folds, rows, training)
                self.options.check_data(training, inner)
                if within.na is Within.FOLDS:
                    fills_of_folds(training, inner)
                if not (self.options.by_folds and has_own_values):
                    grid = replace(self, dataset=training, folds=inner).grid()[1]
                    gammas = [1.0] if self.options.by_folds else grid.gammas.tolist()
                    standardize_and_check(training, by_names, gammas, grid.taus.tolist(), inner)
            except BadInput as error:
                reason = str(error).replace("on all rows", "on all other rows")
                raise BadInput(f"nested, with outer fold {fold + 1} held out: {reason}") from None


def _raise_if_no_count_allows(question: Question, error: BadInput) -> None:
    """Raise the error on a question that counts factors if the question that counts levels is wrong in the same way."""
    try:
        question.grid()
    except BadInput as other:
        if str(error).startswith("tau") or str(error) == str(other):
            raise error from None


def with_factors_together(question: Question) -> tuple[SearchOptions, str]:
    """Return options with which all levels of a text column enter a model together, and a note on this choice.

    This is the default of the commands `solve` and `near`, see
    :func:`sparsecv_mio.data.table_facts.should_group_levels`.

    Parameters
    ----------
    question : Question
        Question without the option `count`.

    Returns
    -------
    options : SearchOptions
        Options with `count`; those of the question if the levels enter separately.
    note : str
        Note; empty if no text column has three or more levels.
    """
    options, reading = question.options, question.dataset.reading
    never = {*options.restrictions.adjust, *options.restrictions.force_out}  # these columns do not count
    names = [] if reading is None else [
        name for name in reading.factors if name not in never and not never.issuperset(reading.column_features(name))
    ]  # fmt: skip
    if not names:
        return options, ""
    columns = abbreviate_list([quoted_name(name) for name in names])
    why = _reason_to_count_levels(question)
    if not why and should_group_levels(question.dataset, question.folds.k):
        together = replace(options.restrictions, count=EVERY_FACTOR)
        try:
            chosen = replace(options, restrictions=together)
            replace(question, options=chosen).grid()
        except BadInput as error:
            _raise_if_no_count_allows(question, error)
            why = str(error)
        else:
            return chosen, (
                f"{columns}: all levels of a column enter a model together, and the column counts as one feature in "
                "--tau; --count columns lets each level enter separately"
            )
    why = why or (
        f"this makes the proof faster with {question.folds.k} folds and {question.dataset.p} columns; --count factors "
        "counts all levels of a column as one feature"
    )
    return options, f"each level of {columns} counts as one feature in this run, because {why}"


def _reason_to_count_levels(question: Question) -> str:
    """Return the option for which each level counts as one feature, with the alternative; empty if there is none."""
    options = question.options
    together = "allows --count factors, which counts all levels of a column as one feature"
    if not options.loss.is_quadratic:
        return f"--count columns is the default with --loss {options.loss}; `solve` and `path` support --count factors"
    if isinstance(question.gammas, GammaInterval):
        return f"an interval --gamma LO..HI requires --count columns; a grid --gamma LO:HI:COUNT {together}"
    if options.model is Model.AVERAGE:
        return f"--model average requires --count columns; --model pair {together}"
    return ""
