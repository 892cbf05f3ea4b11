"""What both estimators share: data from X and y, a fit while it runs, coefficients and predictions."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.cure import frame_numbers
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import RESTRICTIONS, Column, Hierarchy, Limits, Restrictions
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.time_limit import interruptible
from sparsecv_mio.words import Intercept

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.utils.validation import validate_data as validate_data
except ImportError:  # before 1.6

    def validate_data(_estimator: Any, /, *args: Any, **checks: Any) -> Any:
        """Check data, and remember or compare the columns."""
        return _estimator._validate_data(*args, **checks)


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method."""
        return method


LINE_SECONDS = 1.0  # between two lines of `verbose`


class Watch(NamedTuple):
    """What a search is given: the event that ends it, and whom it reports to, if anybody."""

    stop: Event
    progress: Callable[[Progress], None] | None


@contextmanager
def watched(estimator: Any, X: Any, y: Any) -> Iterator[Watch]:
    """Yield what a search of an estimator is given, and tell the callbacks of its begin and its end.

    The first Ctrl-C, or a callback that asks for it, ends the search with its best answer so far.

    Parameters
    ----------
    estimator : BestSubsetRidge or BestSubsetRidgeCV
        Its `verbose` asks for lines on the screen.
    X, y : arrays
        What callbacks are told.
    """
    context = None
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    with interruptible(type(estimator).__name__) as stop:
        reports = [_lines(type(estimator).__name__)] if estimator.verbose else []
        if getattr(estimator, "_skl_callbacks", None):
            reports.append(_to_callbacks(estimator, context, stop))
        yield Watch(stop, _to_all(reports) if reports else None)
    if context is not None:
        fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
        context.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes=fitted)


def warn_unproved(estimator: Any) -> None:
    """Warn of a fit that ended without a proof, and say what is known all the same."""
    if estimator.status_ != "proved":
        why = "was interrupted" if estimator.status_ == "interrupted" else "reached its limit"
        known = f"certified are {estimator.lower_:g} and {estimator.upper_:g} as bounds"
        took = [words for words in estimator.record_.warnings if "compiling" in words]
        words = "; ".join([f"{type(estimator).__name__} {why} before the answer was proved: {known}", *took])
        warnings.warn(words, ConvergenceWarning, stacklevel=3)


def _to_all(reports: list[Callable[[Progress], None]]) -> Callable[[Progress], None]:
    def report(now: Progress) -> None:
        for each in reports:
            each(now)

    return report


def _lines(name: str) -> Callable[[Progress], None]:
    due = -math.inf

    def report(now: Progress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            bounds = f"[{now.lower:g}, {now.upper:g}]"
            print(f"{name}: {now.seconds:.0f} s, {now.done}/{now.total} decided, {now.nodes} nodes, bounds {bounds}")
            due = time.monotonic() + LINE_SECONDS

    return report


def _to_callbacks(estimator: Any, context: Any, stop: Event) -> Callable[[Progress], None]:
    """Return a report that is a task to callbacks; one of them may ask for the end."""

    def report(now: Progress) -> None:
        task = context.subcontext(task_name="report")
        task.call_on_fit_task_begin(estimator=estimator)
        if task.call_on_fit_task_end(estimator=estimator):
            stop.set()

    return report


CURES = (
    ("Input y contains NaN", ": leave out the rows without a target"),
    (r"contains NaN|fill the cell, or .*",
     "; SimpleImputer() of sklearn.impute, before it in a pipeline, fills empty cells"),
    (r"could not convert string to float.*|encode it as numbers .*",
     "; make_column_transformer((OneHotEncoder(), [columns of words]), remainder='passthrough') of sklearn.compose, "
     "before it in a pipeline, makes numbers of words"),
)  # fmt: skip


@contextmanager
def cures_named(X: Any) -> Iterator[None]:
    """Have an error about cells of X that are no numbers say in one line what of scikit-learn would make them some."""
    try:
        yield
    except ValueError as error:
        text = str(error).splitlines()[0].rstrip(".")
        cure = next((cure for words, cure in CURES if re.search(f"({words})$", text)), None)
        if cure is None:
            raise
        raise BadInput(text + _first_of(X, text) + cure) from None


def _first_of(X: Any, text: str) -> str:
    """Say where the first cell of an array is that a message of scikit-learn is about."""
    kind = float if text == "Input X contains NaN" else str if text.startswith("could not convert") else None
    cells = np.asarray(X, dtype=object) if kind is not None else np.empty(0)
    for row, line in enumerate(cells.tolist() if cells.ndim == 2 else ()):
        for column, value in enumerate(line):
            if (kind is str and isinstance(value, str)) or (kind is float and value != value):
                return f", first in row {row + 1}, column {column + 1} of X"
    return ""


class SparseLinearModel(CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """A linear model with few features, once `fit` has set `coef_` and `intercept_`."""

    fit_intercept: bool
    force_in: Column | Iterable[Column] | None
    force_out: Column | Iterable[Column] | None
    at_most: Limits | None
    hierarchy: Hierarchy | None
    nonnegative: Column | Iterable[Column] | None
    nonpositive: Column | Iterable[Column] | None

    def predict(self, X: Any) -> FloatArray:
        """Predict the target.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        with cures_named(X):
            rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return rows @ self.coef_ + self.intercept_

    def _check_parameters(self) -> None:
        """Refuse what numpy and scikit-learn would fail on without a word of the parameter."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.ndarray) and value.ndim == 0:
                raise BadInput(f"{name}: {value!r} is an array, give {value.item()!r}")
            if name in ("one_se", "fit_intercept", "refit") and not isinstance(value, bool | np.bool_):
                raise BadInput(f"{name}: {value!r} is neither True nor False")
            if name == "verbose" and not isinstance(value, Integral):
                raise BadInput(f"verbose: {value!r} is no whole number")
            if name == "n_jobs" and value is not None and not (isinstance(value, Integral) and value != 0):
                raise BadInput(f"n_jobs: {value!r} is no number of threads: give None, or -1 for all cores")

    @property
    def _intercept(self) -> Intercept:
        return Intercept.FOLD if self.fit_intercept else Intercept.NONE

    @property
    def _restrictions(self) -> Restrictions:
        given = {name: getattr(self, name) for name in RESTRICTIONS if getattr(self, name) is not None}
        return Restrictions(**given)

    def _dataset(self, X: Any, y: Any, groups: Any = None) -> Dataset:
        """Check X and y, and copy them; the columns are called as in X, or x0, x1, ..."""
        self._check_parameters()
        target = getattr(y, "name", None)
        word = next((one for one in np.ravel(np.asarray(y)).tolist() if isinstance(one, str)), None)
        if word is not None:
            raise BadInput(f"y holds text {word[:30]!r}: give numbers; LabelEncoder() makes 0, 1 of two classes")
        with cures_named(X):
            if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
                frame_numbers(X)  # names the column and the row of a cell that is no number
            rows, response = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())] or None
        given = target if isinstance(target, str) else "y"
        while given in (names or ()):
            given += "_"
        return Dataset.from_arrays(rows, response, names, given, {} if groups is None else {"groups": groups})


def by_column(coefficients: Mapping[str, float], names: tuple[str, ...]) -> FloatArray:
    """Return the coefficients of a model in the order of all columns."""
    return np.array([coefficients.get(name, 0.0) for name in names])
