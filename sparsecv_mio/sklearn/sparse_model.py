"""The base classes of the estimators: parameters, checks of X, y and offsets, warnings, callbacks and pickling."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date
from decimal import Decimal
from functools import cached_property, partial, wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from sparsecv_mio.arrays import BoolArray, FloatArray, is_missing_cell, unmask
from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.parts import read_schema
from sparsecv_mio.certificate.predicting import expand_coefficients, linear_predictors
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.column_choice import Wanted
from sparsecv_mio.data.columns import RawColumn, build_table
from sparsecv_mio.data.dataset import Dataset, describe_value_out_of_range
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import SPECS, AnyFolds, canonical, fold_columns, is_by_row, make_folds
from sparsecv_mio.data.frames import as_pandas
from sparsecv_mio.data.loss_targets import with_offsets
from sparsecv_mio.data.missing_and_text import impute_and_encode
from sparsecv_mio.data.number_format import POINT, is_number
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.weights import least_rows, read_numbers, weighted, weighted_rows
from sparsecv_mio.declared_options import keyword_names, unexpected_keyword
from sparsecv_mio.digits import abbreviate_list, format_interval
from sparsecv_mio.errors import BadInput, SparseCVWarning, match_keyword, name_index_labels
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.model_space import (
    RESTRICTIONS,
    Bounds,
    Column,
    Restrictions,
    default_gammas,
    parse_gammas,
    parse_taus,
)
from sparsecv_mio.report.coefficients import answer_notes
from sparsecv_mio.report.record_words import describe_missing_proof
from sparsecv_mio.search.api import cross_validate, held_out_predictions
from sparsecv_mio.search.deadline import interruptible_call
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.sklearn.kept import MOST_KEPT, KeptSearch
from sparsecv_mio.targets import DEFAULT_LOSS, TargetColumns
from sparsecv_mio.words import Intercept, Missing

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.utils.validation import validate_data as validate_data
except ImportError:  # before 1.6

    def validate_data(_estimator: Any, /, *args: Any, **checks: Any) -> Any:
        """Check data, and store or compare the column names."""
        return _estimator._validate_data(*args, **checks)


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks

    CALLER = 5  # stack level of the caller of `fit`, for warnings
except ImportError:  # before 1.9
    CALLER = 4

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty class for versions of scikit-learn without callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method unchanged."""
        return method


VERBOSE_SECONDS = 1.0  # seconds between two lines of `verbose`
FINITE = "ensure_all_finite" if "ensure_all_finite" in signature(check_array).parameters else "force_all_finite"
NAN_TOO: dict[str, Any] = {"dtype": np.float64, FINITE: "allow-nan"}  # the keyword of scikit-learn 1.6 and later
MOST_DENSE = 1 << 27  # maximum number of values of a sparse X, which is made dense: 1 GiB
DEFAULT_FOLDS = 5  # number of folds for `cv=None`, as in scikit-learn
MOST_SPLITS = 1000  # maximum number of folds with separate columns in `cv_results_`


@contextmanager
def watched_search(estimator: Any, X: Any, y: Any) -> Iterator[dict[str, Any]]:
    """Yield the event `stop` and the function `progress` of a search, and notify callbacks of its start and end.

    The first Ctrl-C, or a callback that requests it, ends the search with its best answer so far.

    Parameters
    ----------
    estimator : BestSubsetRidge or BestSubsetRidgeCV
        Estimator; if its `verbose` is positive, progress is printed.
    X, y : arrays
        Data passed to the callbacks.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C was pressed, so that loops and searches of scikit-learn end; the fitted attributes are set before.
    """
    context, due, name = None, -math.inf, type(estimator).__name__
    has_callbacks = bool(getattr(estimator, "_skl_callbacks", None))
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    with interruptible_call(name) as stop:

        def report(now: Progress) -> None:
            nonlocal due
            if estimator.verbose and time.monotonic() >= due:
                bounds = format_interval(now.lower, now.upper)
                solved = f"{now.done} of {now.total} subproblems solved"
                print(f"{name}: {now.seconds:.0f} s, {solved}, {now.nodes} nodes, bounds {bounds}")
                due = time.monotonic() + VERBOSE_SECONDS
            if has_callbacks and context is not None:
                task = context.subcontext(task_name="report")
                task.call_on_fit_task_begin(estimator=estimator)
                if task.call_on_fit_task_end(estimator=estimator):  # a callback requests the end
                    stop.set()

        yield {"stop": stop, "progress": report if estimator.verbose or has_callbacks else None}
    if context is not None:
        fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
        context.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes=fitted)
    if math.isfinite(stop.since):
        answer = f"the best answer so far, with status_ {estimator.status_!r}"
        raise KeyboardInterrupt(f"{name}: stopped by Ctrl-C; the fitted attributes hold {answer}")


REMEDIES = (  # what estimators have instead of options of files
    (r"give --na-values .*?(-?[\d.]+)'? \(.*?\)", r"impute it by SimpleImputer(missing_values=\1) of sklearn.impute"),
    (r"--folds '?groups:(?:[^']*'|\S+)", "cv=GroupKFold() of sklearn.model_selection, with `groups` in fit,"),
    (r"--drop (?:'([^']*)'|(\S+\b))", r"force_out='\1\2'"),
    (r"give --exposure (?:'([^']*)'|(\S+))", r"give `exposure` in fit, and force_out='\1\2'"),
)


def name_parameters(words: str) -> str:
    """Return a warning with the parameters of estimators instead of the options of commands.

    Examples
    --------
    >>> name_parameters("keep them together by --folds groups:COLUMN")
    'keep them together by cv=GroupKFold() of sklearn.model_selection, with `groups` in fit'
    >>> name_parameters("--drop 'my id' leaves it out; try --gamma 0.1:1:3")
    "force_out='my id' leaves it out; try gammas='0.1:1:3'"
    """
    for option, remedy in REMEDIES:
        words = re.sub(option, remedy, words)
    return keyword_names(words.rstrip(","))


def warn_of_result(estimator: Any, data: Dataset) -> None:
    """Warn if a fit ended without a proof, with its bounds, and of overdispersed counts and edges of the grid."""
    name = type(estimator).__name__
    if unproved := describe_missing_proof(estimator.record_):
        warnings.warn(name_parameters(f"{name} {unproved}"), ConvergenceWarning, stacklevel=CALLER)
    notes = [(SparseCVWarning, words) for words in estimator.record_.warnings]
    if isinstance(estimator, ChosenByCV):
        notes += answer_notes(estimator.record_, data)
    for category, words in notes:
        warnings.warn(f"{name}: {name_parameters(words)}", category, stacklevel=CALLER)


EMPTY_CELLS = (
    '; to impute missing values, give a CV estimator na="mean" and na_within="folds", or put SimpleImputer() of '
    "sklearn.impute before the estimator in a pipeline"
)
TEXT_CELLS = (
    "; to encode text columns, use make_pipeline(make_column_transformer((OneHotEncoder(), [text columns]), "
    "remainder='passthrough'), estimator), with make_column_transformer of sklearn.compose; OrdinalEncoder suits "
    "ordered values"
)
CURES = (("contains NaN", EMPTY_CELLS), ("could not convert string to float.*", TEXT_CELLS))


@contextmanager
def suggest_conversion(X: Any) -> Iterator[None]:
    """Name, in errors about cells of X that are not numbers, the scikit-learn step that converts them."""
    try:
        yield
    except ValueError as error:
        text = str(error).splitlines()[0].rstrip(".")
        cure = next((cure for words, cure in CURES if re.search(f"({words})$", text)), None)
        if cure is None:
            raise
        raise BadInput(text + _locate_cells(X, text) + cure) from None


def _locate_cells(X: Any, text: str) -> str:
    """Return the position of the first cell that a message is about, and the columns with such cells."""
    cells = np.asarray(X, dtype=object)
    if cells.ndim != 2:
        return ""
    words = text.startswith("could not convert")
    bad = np.array([[isinstance(value, str) if words else is_missing_cell(value) for value in line] for line in cells])
    if not bad.any():
        return ""
    (row, column), columns = np.argwhere(bad)[0], np.flatnonzero(bad.any(axis=0))
    place = f", first in row {row + 1}, column {column + 1} of X"
    if columns.size < 2:
        return place
    return f"{place} (such cells are in columns {abbreviate_list([str(j + 1) for j in columns.tolist()])})"


def check_target_cells(y: Any) -> None:
    """Raise `BadInput` if the target of a row is missing."""
    targets = np.asarray([] if y is None else np.ma.getdata(y) if np.ma.isMaskedArray(y) else y)
    is_missing = targets.dtype.kind == "f" and bool(np.isnan(targets).any())
    is_missing = is_missing or (targets.dtype.kind == "O" and any(map(is_missing_cell, targets.ravel())))
    if is_missing or (y is not None and np.ma.is_masked(y)):
        raise BadInput("Input y contains NaN; remove the rows without a target")


def check_columns(frame: Any, may_be_empty: bool) -> None:
    """Raise `BadInput` for the first cell of a frame that is not a number, with advice for its kind of value.

    Parameters
    ----------
    frame : pandas.DataFrame
        Features.
    may_be_empty : bool
        True if missing cells are imputed.
    """
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice) and isinstance(twice[0], str):
        raise BadInput(f"column name {twice[0]!r} is in X more than once; give every column a different name")
    for j, name in enumerate(frame.columns):
        cells = frame.iloc[:, j]
        is_plain = cells.dtype.kind in "biuf"
        if is_plain and (may_be_empty or not cells.isna().any()):
            continue
        for row, value in enumerate(cells.tolist(), start=1):
            if is_missing_cell(value):
                if not may_be_empty:
                    raise BadInput(f"column {str(name)!r} is empty in row {row}{EMPTY_CELLS}")
            elif not isinstance(value, Real | Decimal | np.bool_):
                raise BadInput(f"column {str(name)!r} holds {_describe_value(value, str(name), row)}")


def _describe_value(value: object, name: str, row: int) -> str:
    """Return a cell that is not a number, and how to convert its column."""
    shown = f"{value!r:.40}"
    if isinstance(value, str) and is_number(value):
        return f"the number {shown} as text in row {row}; convert the column, for example by pandas.to_numeric"
    if isinstance(value, str):
        return f"text {shown} in row {row}{TEXT_CELLS}"
    if isinstance(value, date):
        days = f"(pandas.to_datetime(X[{name!r}], utc=True) - pandas.Timestamp(0, tz='UTC')).dt.days"
        how = f"{days}, or X[{name!r}].dt.epoch('d') in polars"
        return f"the date {value!s:.10} in row {row}; convert the column to days since 1970, for example by {how}"
    return f"a value of type {type(value).__name__} in row {row} ({shown}); give one real number in each cell"


class FittedModel:
    """Attributes of a fitted model: coefficients in the units of X, and the mask of its features."""

    coef_: FloatArray
    intercept_: Any
    support_: BoolArray


Estimator = TypeVar("Estimator")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def settings(kind: type[Estimator]) -> type[Estimator]:
    """Turn the fields of a class into parameters of `__init__`, by which scikit-learn compares and clones estimators.

    An unknown parameter raises an error that suggests a similar name.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(kind)
    whole, names = made.__init__, sorted(declared_field.name for declared_field in fields(made))

    @wraps(whole)
    def begin(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in names:
                raise unexpected_keyword(kind.__name__, name, names)
        whole(self, *args, **given)

    made.__init__ = begin
    return made


@settings
class SparseEstimator(FittedModel, CallbackSupportMixin, BaseEstimator):
    """A model with few features; `fit` sets `coef_` and `intercept_`."""

    scale: str = "length"
    fit_intercept: bool = True
    force_in: Column | Iterable[Column] | None = None
    force_out: Column | Iterable[Column] | None = None
    adjust: Column | Iterable[Column] | None = None
    count: str | Iterable[Iterable[Column]] | None = None
    nonnegative: Column | Iterable[Column] | None = None
    nonpositive: Column | Iterable[Column] | None = None
    coef_bounds: Bounds | None = None
    verbose: int = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling: parameters, arrays, numbers and the record as JSON text."""
        state = dict(super().__getstate__())
        if "record_" in state:
            state["record_"] = self.record_.to_json()
        if state.get("_kept") is not None:
            state["_kept"] = state["_kept"].plain()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state from `__getstate__`, also that of version 0.2.0, which stored objects."""
        state = dict(state)
        text, search = state.get("record_"), state.get("_kept")
        if isinstance(text, str):
            state["record_"] = (PathRecord if read_schema(text) == PathRecord.schema_name else Record).from_json(text)
        if isinstance(search, dict):
            state["_kept"] = KeptSearch.from_plain(search)
        super().__setstate__(state)

    def _rows(self, X: Any) -> Any:
        """Return new rows after checking their columns; X may be sparse."""
        check_is_fitted(self)
        rows, data = self._validate(X, reset=False), self.record_.data
        if not self._na.uses_imputation:
            return rows
        rows = dense(rows)
        return np.where(np.isnan(rows), [data.reading.means[name] for name in data.names], rows)

    def _validate(self, X: Any, *y: Any, **checks: Any) -> Any:
        """Return X, and y if it is given, after the checks of scikit-learn; X may be sparse."""
        X, may_be_empty = as_pandas(unmask(X)), self._na.uses_imputation
        with name_index_labels(X), suggest_conversion(X):
            if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
                check_columns(X, may_be_empty)
            values = NAN_TOO if may_be_empty else {"dtype": np.float64}
            return validate_data(self, X, *y, accept_sparse="csr", **values, **checks)

    def _linear_predictors(self, X: Any) -> FloatArray:
        """Return the linear predictors of new rows, with a warning if large terms cancel."""
        rows, model = self._rows(X), (np.ravel(self.coef_), float(np.ravel(self.intercept_)[0]))
        return linear_predictors(rows, self.record_.data.names, *model, caller=5)

    def _require_offsets(self, **given: Any) -> None:
        """Raise `BadInput` if `score` lacks the exposures or offsets with which the model was fitted."""
        check_is_fitted(self)
        for option, values in given.items():
            if values is None and getattr(self.record_.data, option) is not None:
                raise BadInput(
                    f"{option}: the model was fitted with {option}, but `score` has none; give {option}=, or one "
                    f"number for all rows, and in scikit-learn's cross-validation use set_score_request({option}=True)"
                )

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: the estimator accepts sparse X."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.allow_nan = True, self._na.uses_imputation
        return tags

    @property
    def _na(self) -> Missing:
        """Treatment of missing values in X."""
        value = getattr(self, "na", Missing.ERROR)
        if str(value).strip().lower() == Missing.DROP:
            raise BadInput("na: 'drop' is not supported by estimators; use error, mean or median")
        return Missing(match_keyword(value, [word for word in Missing if word is not Missing.DROP], "na"))

    def _check_parameters(self) -> None:
        """Raise an error that names an invalid parameter, before numpy or scikit-learn fails on it."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.ndarray) and value.ndim == 0:
                raise BadInput(f"{name}: {value!r} is an array; give the number {value.item()!r}")
            if name in ("one_se", "fit_intercept", "refit") and not isinstance(value, bool | np.bool_):
                raise BadInput(f"{name}: {value!r} is neither True nor False; give one of these")
            if name == "gamma" and not isinstance(value, Real):
                raise BadInput(f"gamma: {value!r} is not a number; give one number")
            if name == "verbose" and not isinstance(value, Integral):
                raise BadInput(f"verbose: {value!r} is not a whole number; give 0 or a positive one")
            if name == "n_jobs" and value is not None and not (isinstance(value, Integral) and value != 0):
                raise BadInput(f"n_jobs: {value!r} is not a number of threads; give None, or -1 for all cores")

    @property
    def _intercept(self) -> Intercept:
        return Intercept.FOLD if self.fit_intercept else Intercept.NONE

    @property
    def _restrictions(self) -> Restrictions:
        values = {name: getattr(self, name) for name in RESTRICTIONS if getattr(self, name, None) is not None}
        return Restrictions(**values)

    def _dataset(self, X: Any, y: Any, groups: Any = None) -> Dataset:
        """Return checked copies of X and y; columns have the names in X, or x0, x1, ..."""
        self._check_parameters()
        target = getattr(y, "name", None)
        check_target_cells(y)
        self._check_target(y)
        rows, response = self._validate(X, y, ensure_min_samples=2, y_numeric=self._y_is_numeric)
        response = self._encode_target(response)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())] or None
        rows = dense(rows)
        goal = target if isinstance(target, str) else "y"
        while goal in (names or ()):
            goal += "_"
        aux = {} if groups is None else {"groups": np.array(groups)}
        if not self._na.uses_imputation:
            return Dataset.from_arrays(rows, response, names, goal, aux)
        columns = dict(zip(names or [f"x{j}" for j in range(rows.shape[1])], rows.T, strict=True))
        for name, cells in columns.items():
            if np.isnan(cells).all():
                raise BadInput(f"column {name!r} is empty in every row; remove the column from X")
        how = Reading.from_keywords(na=self._na)
        cells = {**columns, goal: response}
        table = build_table(
            lambda name: RawColumn.from_numbers(name, cells[name], how), tuple(columns), goal, len(rows), aux
        )
        return impute_and_encode(table, how, Wanted(goal, None, None, tuple(aux), sure=True))

    _y_is_numeric = True  # scikit-learn checks that y is numeric

    def _check_target(self, y: Any) -> None:
        """Raise an error for an unsuitable y before scikit-learn does."""

    def _encode_target(self, y: Any) -> Any:
        """Return the target as numbers."""
        return y

    def _set_model(self, coefficients: FloatArray, intercept: Any) -> None:
        """Set the fitted attributes of the model."""
        self.coef_, self.intercept_ = coefficients, intercept


def dense(X: Any) -> FloatArray:
    """Return X, converted to a dense array if it is sparse."""
    if not issparse(X):
        return np.asarray(X)
    n, p = X.shape  # type: ignore[attr-defined]
    if n * p > MOST_DENSE:
        raise BadInput(
            f"X is sparse with {n:,} x {p:,} cells, but fits need a dense array of at most {MOST_DENSE:,} cells; keep "
            "fewer columns, for example by SelectKBest() of sklearn.feature_selection"
        )
    return np.asarray(X.toarray())  # type: ignore[attr-defined]


KINDS_OF_CV = (
    "a number K, a text such as 'loo', '5x10', 'stratified:5', 'forward:5', 'blocks:3' or 'holdout:0.2', a splitter of "
    "scikit-learn or its splits, or a label per row"
)


def has_model(estimator: Any) -> bool:
    """Return True if there is a model for predictions; otherwise raise `AttributeError` with the reason."""
    if not getattr(estimator, "refit", True):
        name = type(estimator).__name__
        raise AttributeError(f"{name}(refit=False) has no model for predictions; fit it with refit=True")
    return True


def make_fold_plan(cv: AnyFolds, rows: Dataset) -> FoldPlan:
    """Return the folds that `cv` defines; error messages name `cv` and its allowed values."""
    if isinstance(cv, str) and fold_columns(cv):
        kind = canonical(cv).partition(":")[0]
        how = "a splitter such as GroupKFold(), and groups= in fit" if kind == "groups" else "the values of the column"
        raise BadInput(f"cv: {cv!r} names a column, but estimators take no folds from a column of X; give {how}")
    try:
        return make_folds(cv, rows, groups=rows.aux.get("groups"))
    except BadInput as error:
        text = str(error).replace(SPECS, KINDS_OF_CV)
        raise BadInput(text if text.startswith("groups") else f"cv: {text.removeprefix('folds: ')}") from None


@settings
class OfOneGamma:
    """Parameters and fitted attributes of models of given sizes at one ridge weight."""

    tau: str | int | Iterable[int] | None = field(default=None, kw_only=False)
    gamma: float = 0.1
    gap: float = 1e-7
    time_limit: float | None = None

    def _fit_sizes(self: Any, data: Dataset, sample_weight: Any, **asked: Any) -> None:
        """Find the best subset of every size, and set the fitted attributes."""
        if sample_weight is not None:
            data = weighted_rows(data, sample_weight, "sample_weight")
        within = self._restrictions.resolve_names(data.names, self.fit_intercept)
        n_train = least_rows(data, only_events=True)
        sizes = parse_taus(self.tau, within.n_selectable_features(data.p), n_train, "tau", within)
        with watched_search(self, data.X, data.y) as watch:
            record = best_subsets(
                data, gammas=[self.gamma], taus=sizes, gap=self.gap, restrictions=within, time_limit=self.time_limit,
                scale=self.scale, intercept=self._intercept, **asked, **watch,
            )  # fmt: skip
            self._keep(record)
        warn_of_result(self, data)

    def _keep(self: Any, record: PathRecord) -> None:
        """Set the fitted attributes."""
        names, last = record.data.names, record.path[-1]
        self.taus_ = np.array([row.tau for row in record.path])
        self.coef_path_ = np.column_stack([expand_coefficients(row.coefficients, names) for row in record.path])
        self.intercept_path_ = np.array([row.intercept for row in record.path])
        self._set_model(self.coef_path_[:, -1].copy(), last.intercept)
        self.tau_, self.support_ = last.tau, np.isin(names, last.support)
        self.objective_, self.lower_, self.upper_ = last.objective, last.lower, last.upper
        self.status_, self.record_ = record.status, record


def takes_no_data(method: Method) -> Method:
    """Return a method that raises `BadInput` for a table, which the function of the same name needs."""

    @wraps(method)
    def call(estimator: Any, *given: Any, **options: Any) -> Any:
        if any(np.ndim(value) > 1 for value in given):
            raise BadInput(f"{method.__name__}: takes no data: the estimator stores the data of its fit; omit them")
        return method(estimator, *given, **options)

    return cast("Method", call)


@settings
class ChosenByCV:
    """Parameters and fitted attributes of a model whose size and ridge weight are chosen by cross-validation."""

    taus: str | int | Iterable[int] | None = None
    gammas: str | float | Iterable[float] | None = None
    n_gammas: int | None = None
    cv: AnyFolds | None = 10
    one_se: bool = False
    gap: float = 1e-4
    time_limit: float | None = None
    n_jobs: int | None = None
    refit: bool = True
    stability: float | str | None = None
    model: str = "pair"
    na: str = "error"
    scale_within: str = "all"
    na_within: str = "all"

    def _assign_folds(self, data: Dataset, sample_weight: Any) -> tuple[Dataset, FoldPlan]:
        """Return the data with row weights, and the folds."""
        cv = DEFAULT_FOLDS if self.cv is None else self.cv
        make_plan = partial(make_fold_plan, cv)
        if sample_weight is None:
            return data, make_plan(data)
        return weighted(data, sample_weight, make_plan, name="sample_weight", by_row=is_by_row(cv, data))

    def _search_grid(self: Any, data: Dataset, plan: FoldPlan, **asked: Any) -> None:
        """Search the grid, and set the fitted attributes."""
        restrictions = self._restrictions.resolve_names(data.names, self.fit_intercept)
        shape = restrictions.n_selectable_features(data.p), least_rows(data, plan)
        loss = asked.get("loss", DEFAULT_LOSS)
        default = self.gammas is None
        gammas = default_gammas(*shape, self.n_gammas, loss) if default else parse_gammas(self.gammas, *shape)
        snapshots: list[Snapshot] = []
        with watched_search(self, data.X, data.y) as watch:
            record = cross_validate(
                data, plan, found=snapshots.append, gammas=gammas, taus=self.taus, gap=self.gap, one_se=self.one_se,
                restrictions=self._restrictions, time_limit=self.time_limit, threads=effective_n_jobs(self.n_jobs),
                scale=self.scale, intercept=self._intercept, stability=self.stability, model=self.model,
                scale_within=self.scale_within, na_within=self.na_within, **asked, **watch,
            )  # fmt: skip
            self._keep(record)
            self._kept = KeptSearch.from_search(record, snapshots[-1], data, plan) if snapshots else None
        warn_of_result(self, data)

    def _keep(self: Any, record: Record) -> None:
        """Set the fitted attributes."""
        made = "coef_", "intercept_", "support_", "cv_results_", "mse_path_", "loss_path_", "_path", "_fold_models"
        for name in made:
            self.__dict__.pop(name, None)  # cached by an earlier fit
        if self.refit:
            model = record.predictor
            self._set_model(expand_coefficients(model.coefficients, record.data.names), model.intercept)
            self.support_ = np.isin(record.data.names, model.support)
        self.tau_, self.gamma_, self.cv_error_ = record.tau, record.gamma, record.cv_error
        self.lower_, self.upper_, self.status_ = record.lower, record.upper, record.status
        self.taus_, self.gammas_ = np.array(record.request.taus), np.array(record.request.gammas)
        self.best_score_ = -record.cv_error
        self.record_ = record

    def __getattr__(self, name: str) -> Any:
        if name in ("coef_", "intercept_", "support_") and "record_" in vars(self) and not self.refit:
            raise AttributeError(f"{type(self).__name__}(refit=False) has no {name}; fit it with refit=True")
        return object.__getattribute__(self, name)  # raises again, with the reason that a property gives

    @property
    def held_out_predictions_(self: Any) -> FloatArray:
        """(m,) predictions of rows of positive weight by the model of the chosen pair without their fold; else NaN."""
        search = self._search
        return held_out_predictions(self.record_, search.dataset, search.folds)

    @property
    def _search(self: Any) -> KeptSearch:
        """Stored data of the search."""
        check_is_fitted(self)
        if self._kept is None:
            words = f"for data or searches with more than {MOST_KEPT:,} numbers only record_ is stored"
            raise AttributeError(f"this attribute is not available: {words}")
        return self._kept

    @takes_no_data
    def compare_baselines(
        self: Any, baselines: str | Iterable[str] = "lasso,ridge,elasticnet", time_limit: float | None = None
    ) -> Record:
        """Fit baselines on the folds of the search, and compare their CV errors with that of the chosen pair.

        Parameters
        ----------
        baselines : str or iterable of str
            Any of `lasso`, `ridge`, `elasticnet` and `abess`.
        time_limit : float, optional
            Time limit in seconds.

        Returns
        -------
        Record
            Copy of `record_` with `baselines`, as from :func:`sparsecv_mio.compare_baselines`.
        """
        from sparsecv_mio.inference.baselines import compare_baselines

        data, folds = self._search.dataset, self._search.folds
        return compare_baselines(self.record_, data, baselines=baselines, folds=folds, time_limit=time_limit)

    @takes_no_data
    def bootstrap(self: Any, draws: int = 200, **options: Any) -> Record:
        """Repeat the whole procedure on bootstrap draws of the rows of the fit.

        Parameters
        ----------
        draws : int
            Number of draws.
        **options
            Options of :func:`sparsecv_mio.bootstrap`; the number of threads is `n_jobs` by default.

        Returns
        -------
        Record
            The record of the fit with `bootstrap`.
        """
        return self._repeat_on_draws("bootstrap", options, draws=draws)

    @takes_no_data
    def stability_selection(self: Any, pairs: int = 50, **options: Any) -> Record:
        """Select features that the whole procedure chooses from most halves of the rows of the fit.

        Parameters
        ----------
        pairs : int
            Number of complementary pairs of halves.
        **options
            Options of :func:`sparsecv_mio.stability_selection`; the number of threads is `n_jobs` by default.

        Returns
        -------
        Record
            The record of the fit with `stability_selection`.
        """
        return self._repeat_on_draws("stability_selection", options, pairs=pairs)

    @takes_no_data
    def infer(self: Any, method: int | str = "splits:50", **options: Any) -> Record:
        """Test features on halves of the rows of the fit that did not choose them.

        Parameters
        ----------
        method : int or str
            Number B of splits, or the text `splits:B`.
        **options
            Options of :func:`sparsecv_mio.infer`; the number of threads is `n_jobs` by default.

        Returns
        -------
        Record
            The record of the fit with `inference`.
        """
        return self._repeat_on_draws("infer", options, method=method)

    def _repeat_on_draws(self: Any, name: str, options: Mapping[str, Any], **given: Any) -> Record:
        """Return the record of a function of `sparsecv_mio` for the rows, the folds and the threads of the fit."""
        search = self._search
        own = {"data": search.dataset, "folds": search.folds, "threads": effective_n_jobs(self.n_jobs)}
        made: Record = find_implementation(name)(self.record_, **{**own, **options, **given})
        return made

    @cached_property
    def cv_results_(self: Any) -> dict[str, Any]:
        """Results of all pairs, a dict of arrays."""
        check_is_fitted(self)
        if self._kept is None:
            return cv_results(self.record_)
        return cv_results(self.record_, self._kept.mse_path(), 1.0 / self._kept.factor)

    @cached_property
    def _path(self) -> tuple[FloatArray, FloatArray]:
        return self._search.coefficient_path(self.record_)

    @property
    def coef_path_(self) -> FloatArray:
        """(p, T) coefficients of all sizes at the chosen gamma."""
        return self._path[0]

    @property
    def intercept_path_(self) -> FloatArray:
        """(T,) intercepts of all sizes at the chosen gamma."""
        return self._path[1]


class ChosenByLoss(ChosenByCV):
    """Additional fitted attributes of models with another loss than squared error."""

    @cached_property
    def loss_path_(self) -> FloatArray:
        """(G, T, K) mean losses of the folds."""
        return self._search.mse_path()

    @property
    def scores_(self: Any) -> FloatArray:
        """(G, T) scores of all pairs."""
        check_is_fitted(self)
        return np.asarray(self.cv_results_["mean_test_score"].reshape(len(self.gammas_), len(self.taus_)))


def cv_results(record: Record, mse_path: FloatArray | None = None, weights: FloatArray | None = None) -> dict[str, Any]:
    """Return a dict of arrays with an entry for every pair (gamma, tau) of the grid, as in GridSearchCV.

    Scores are negative mean squared errors, NaN if a limit left a pair without one. Scores of pairs that are not solved
    are estimates; their `lower` and `upper` bounds are certified. Means are over rows, so a fold counts by the number
    of rows that it scores. With tied subsets, the choice minimises `upper`, so another pair may have rank 1.

    Parameters
    ----------
    record : Record
        Record of a search.
    mse_path : (G, T, K) array, optional
        Errors of the folds.
    weights : (K,) array, optional
        Weights of the folds.

    Returns
    -------
    dict
        Arrays `params`, `param_tau`, `param_gamma`; `mean_test_score`, `std_test_score`, `rank_test_score` and, if
        errors of at most 1,000 folds are given, `split0_test_score` and so on; `cv_error` with its certified bounds
        `lower` and `upper` and its `standard_error` over the folds; `folds_decided`, `decided` (bool) and `status`.
    """
    splits, spread = dict[str, Any](), dict[str, Any]()
    if mse_path is not None:
        scores = -mse_path.reshape(len(record.table), -1)
        named = range(scores.shape[1] if scores.shape[1] <= MOST_SPLITS else 0)
        splits = {f"split{k}_test_score": scores[:, k] for k in named}
        middle = np.average(scores, axis=1, weights=weights)[:, None]
        spread["std_test_score"] = np.sqrt(np.average((scores - middle) ** 2, axis=1, weights=weights))
    names = "tau", "gamma", "cv_error", "lower", "upper", "standard_error", "folds_decided", "folds", "status"
    column = {name: np.array([getattr(row, name) for row in record.table]) for name in names}
    error = column["cv_error"]
    filled = np.where(np.isfinite(error), error, np.inf)
    return {
        "params": [{"tau": row.tau, "gamma": row.gamma} for row in record.table],
        "param_tau": column["tau"],
        "param_gamma": column["gamma"],
        **splits,
        "mean_test_score": np.where(np.isfinite(error), -error, np.nan),
        **spread,
        "rank_test_score": (1 + np.searchsorted(np.sort(filled), filled)).astype(np.int32),
        **{name: column[name] for name in ("cv_error", "lower", "upper")},
        "standard_error": column["standard_error"].astype(np.float64),
        "folds_decided": column["folds_decided"],
        "decided": column["folds_decided"] == column["folds"],
        "status": column["status"],
    }


def check_row_values(option: str, given: Any, n: int) -> FloatArray:
    """Return (n,) exposures or offsets, each in the range that fits support.

    Parameters
    ----------
    option : {"exposure", "offset"}
        Name of the argument.
    given : array_like
        Values of the rows, or one value for all rows.
    n : int
        Number of rows.

    Raises
    ------
    BadInput
        If the shape or a value is wrong.

    Examples
    --------
    >>> check_row_values("offset", 1.5, 2)
    array([1.5, 1.5])
    """
    kind = "number above 0" if option == "exposure" else "finite number"
    if isinstance(given, str):
        raise BadInput(f"{option}: {given!r} is a text; give an array with a {kind} for each row, such as X[{given!r}]")
    values = read_numbers(given, POINT, option, f"; give a {kind} for each row")
    if values.ndim > 1 or values.size not in (1, n):
        raise BadInput(f"{option} has the shape {values.shape}; give a {kind} for each of {n} rows")
    values = np.broadcast_to(values, (n,)).copy()
    wrong = np.flatnonzero(~(((values > 0.0) | (option != "exposure")) & np.isfinite(values)))
    if wrong.size:
        raise BadInput(f"{option} is {values[wrong[0]]:g} in row {wrong[0] + 1}; give a {kind} for each row")
    if fault := describe_value_out_of_range(option, values):
        raise BadInput(f"{option} {fault}, or remove the row")
    return values


def sum_offsets(n: int, **given: Any) -> FloatArray | float:
    """Return the offsets of new rows from given exposures and offsets; 0 if none is given.

    Examples
    --------
    >>> sum_offsets(2, exposure=1.0, offset=[0.5, 1.0]).tolist()
    [0.5, 1.0]
    """
    total: FloatArray | float = 0.0
    for option, values in given.items():
        if values is not None:
            checked = check_row_values(option, values, n)
            total = total + (np.log(checked) if option == "exposure" else checked)
    return total


def attach_offsets(data: Dataset, **given: Any) -> Dataset:
    """Return the data of a fit with given exposures and offsets, each as a column with the name of its argument.

    Parameters
    ----------
    data : Dataset
        Data in the form of their loss.
    **given
        Arrays `exposure` and `offset`, or None.
    """
    names = dict[str, str]()
    for option, values in given.items():
        if values is None:
            continue
        names[option] = option
        while names[option] in (*data.names, data.target, *data.aux):
            names[option] += "_"
        aux = {**data.aux, names[option]: check_row_values(option, values, data.n)}
        data = replace(data, aux=aux)
    return with_offsets(data, TargetColumns(**names))
