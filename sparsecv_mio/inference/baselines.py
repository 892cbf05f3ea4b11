"""Baselines on the folds of a record: lasso, ridge, elastic net and abess, compared with the reported pair.

In each fold, every baseline uses the same rows, row weights, exposures and column scales as the search. Each baseline
chooses its penalty, or its size, by the smallest CV error, the criterion of the search. The standard error of the
difference between two models is paired: it is computed from the difference of their held-out errors in each fold. If
the record reports the pair of the one-standard-error rule, this rule chooses a second penalty or size of each baseline.
With nested cross-validation, the choice of every baseline is repeated for each outer fold of the record, on the rows
outside this fold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.inference_checks import compare_nested_errors, compare_with_pair
from sparsecv_mio.certificate.inference_parts import Baseline, Baselines, NestedBaseline
from sparsecv_mio.certificate.own_rows import fold_preprocessing, rows_of_record
from sparsecv_mio.certificate.parts import package_version
from sparsecv_mio.certificate.read_back import remake_outer_folds, rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import adjustment_columns
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds, inner_folds
from sparsecv_mio.data.rows_of_folds import Measures
from sparsecv_mio.data.standard import column_moments
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput, OutOfTime, match_keyword, naming_extras
from sparsecv_mio.inference import penalised_paths
from sparsecv_mio.inference.penalised_paths import L1_RATIOS, FitRows
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.problem.glm_objective import weighted_losses
from sparsecv_mio.problem.objective import standard_error
from sparsecv_mio.problem.row_losses import encode_dataset_targets, row_loss
from sparsecv_mio.search.answer.fold_models import check_of_record
from sparsecv_mio.search.deadline import Deadline, interruptible_call, run_within_limit
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.words import Intercept, Scale

ABESS = "abess"
METHODS = (*L1_RATIOS, ABESS)
DEFAULT_METHODS = tuple(L1_RATIOS)
MAX_STORED_COEFFICIENTS = 10_000  # coefficients of fold models that a record stores for each baseline
Candidates = list[tuple[float | None, float | None]]
Fit = Callable[[FitRows], FloatArray]


def parse_baselines(given: str | Iterable[str], dataset: Dataset, restrictions: Restrictions | None) -> tuple[str, ...]:
    """Return the names of baselines; raise an error for names that the data do not support, and missing packages.

    Parameters
    ----------
    given : str or iterable of str
        Names, or their list as text.
    dataset : Dataset
        Data in the form of the loss.
    restrictions : Restrictions or None
        Restrictions of the search.

    Raises
    ------
    BadInput
        If a name is unknown or given twice, or no name is given, or abess is named with adjustment columns or with
        offsets of classes.
    MissingPackage, BackendUnavailable
        If scikit-learn is not installed, or abess is named and is not installed.
    """
    words = given.split(",") if isinstance(given, str) else given if isinstance(given, Iterable) else [given]
    if dataset.survival is not None:
        raise BadInput(
            "baselines: not supported with loss cox, because single rows have no loss; leave this option out"
        )
    names = tuple(match_keyword(str(word).strip(), METHODS, "baselines") for word in words)
    if not names or len(set(names)) < len(names):
        fault = f"{', '.join(names)} has a name twice" if names else "the list is empty"
        raise BadInput(f"baselines: {fault}; give one or more of {', '.join(METHODS)}, each once")
    with naming_extras():
        import_module("sklearn.linear_model")  # before a search, so that its time limit includes the import
    if ABESS in names:
        penalised_paths.import_abess()
        if restrictions is not None and restrictions.adjust:
            raise BadInput("baselines: abess does not support adjust; leave out one of the two")
        if dataset.classes is not None and dataset.row_exposure is not None:
            raise BadInput("baselines: abess does not support offset with two classes; leave out one of the two")
    return names


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """The rows of a record and of its folds, as the fits of a baseline see them.

    Attributes
    ----------
    record : Record
        Record of the search.
    dataset : Dataset
        Data, or the expanded table of fold-specific preprocessing, whose first rows are those of the data.
    plan : FoldPlan
        Folds of `dataset`.
    n : int
        Number of rows of the data.
    free, penalised : int arrays
        Positions of unpenalised and of penalised columns, where 0 is the intercept.
    scales : (p,) array
        Scales of the columns over all rows, if `dataset` has none.
    centre : (p,) array
        Means of the columns over all rows; zero without an intercept.
    y_centre : float
        Mean of the target over all rows with a global intercept, otherwise 0.
    y_scale : float
        With squared-error loss, the standard deviation of the target over all rows (without an intercept, the root of
        its mean square); otherwise 1.
    """

    record: Record
    dataset: Dataset
    plan: FoldPlan
    n: int
    free: IntArray
    penalised: IntArray
    scales: FloatArray
    centre: FloatArray
    y_centre: float
    y_scale: float

    @classmethod
    def from_record(cls, record: Record, dataset: Dataset, plan: FoldPlan) -> ComparedRows:
        """Return the rows of a record.

        Parameters
        ----------
        record : Record
            Record of the search.
        dataset : Dataset
            Data of the record.
        plan : FoldPlan
            Folds of the record.
        """
        intercept, adjusted = record.data.intercept, adjustment_columns(record)
        if record.data.scale != Scale.NONE:  # lengths are variances times a common factor
            record = replace(record, data=replace(record.data, scale=Scale.VARIANCE))
        own = rows_of_record(record, dataset, plan)
        measures = Measures.from_rows(dataset, dataset.X, record.data.scale, slice(0, dataset.n))
        unused = np.isin(dataset.names, [*adjusted, *(record.request.restrictions or NONE).force_out])
        centre = column_moments(np.column_stack([dataset.X, dataset.y]), dataset.row_weights).mean
        free = 1 + np.flatnonzero(np.isin(dataset.names, adjusted))
        apart = dataset.y - (0.0 if intercept == Intercept.NONE else centre[-1])
        size = float(np.sqrt(np.average(apart**2, weights=dataset.row_weights)))
        return cls(
            record, own.dataset if own else dataset, own.folds if own else plan, dataset.n,
            np.append(0, free) if intercept == Intercept.FOLD else free,
            1 + np.flatnonzero(measures.varies & ~unused), measures.scale,
            np.zeros(dataset.p) if intercept == Intercept.NONE else centre[:-1],
            float(centre[-1]) if intercept == Intercept.GLOBAL else 0.0,
            size if record.loss.is_quadratic and size > 0.0 else 1.0,
        )  # fmt: skip

    def training_rows(self, fold: int | None) -> IntArray:
        """Return the training rows of a fold, or all rows of the data."""
        return np.arange(self.n) if fold is None else self.plan.train_rows(fold)

    def column_scales(self, fold: int | None) -> FloatArray:
        """Return the (p,) scales of the columns for a fit to the training rows of a fold, or to all rows."""
        scales = self.dataset.scales
        return self.scales if scales is None else scales.of_rows(self.training_rows(fold))

    def fit_rows(self, fold: int | None) -> FitRows:
        """Return the rows of a fit, to the training rows of a fold or to all rows."""
        rows, loss = self.training_rows(fold), row_loss(self.record.loss)
        y, v = encode_dataset_targets(loss, self.dataset, rows)
        X = (self.dataset.X[rows] - self.centre) / self.column_scales(fold)
        design = np.column_stack([np.ones(len(rows)), X])
        weights = self.dataset.row_weights
        total = float(len(rows) if weights is None else weights[rows].sum())
        targets = (y - self.y_centre) / self.y_scale
        return FitRows(design, self.free, self.penalised, targets, v, total, loss, self.record.loss.is_quadratic)

    def fit_models(self, fit: Fit, fold: int | None) -> FloatArray:
        """Return (M, 1 + p) intercepts and coefficients, in units of the file, of the models of a fit."""
        models = self.y_scale * fit(self.fit_rows(fold))
        models[:, 1:] /= self.column_scales(fold)
        models[:, 0] += self.y_centre - models[:, 1:] @ self.centre
        return models

    def held_out_errors(self, models: FloatArray, fold: int) -> FloatArray:
        """Return the (M,) sums of the held-out losses of a fold, of models in units of the file."""
        rows, loss = self.plan.scored_rows(fold), row_loss(self.record.loss)
        y, v = encode_dataset_targets(loss, self.dataset, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            predictors = models[:, 1:] @ self.dataset.X[rows].T + models[:, :1]
            return np.asarray(loss.losses(loss.signs(y) * predictors, y) @ v)


def make_candidates(method: str, compared: ComparedRows, check_time: Callable[[], None]) -> tuple[Candidates, Fit]:
    """Return the candidates of a method, and the function that fits them to some rows.

    The `alpha` and `l1_ratio` of a candidate are those of the target in the units of the file.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    compared : ComparedRows
        Rows of the record.
    check_time : callable
        Function that raises an error to end the fits.
    """
    record = compared.record
    if method == ABESS:
        n_train = min(len(compared.training_rows(fold)) for fold in range(compared.plan.k))
        most = min(len(compared.penalised), n_train - 2)
        sizes = sorted({min(tau, most) for tau in record.request.taus if tau > 0} or {1})
        values = record.loss.target.values
        return [(None, None)] * len(sizes), lambda rows: penalised_paths.fit_subsets(rows, values, sizes, check_time)
    paths = penalised_paths.make_paths(compared.fit_rows(None), method)
    candidates: Candidates = []
    for l1_ratio, alphas in paths:
        size = l1_ratio * compared.y_scale + (1.0 - l1_ratio)  # of the penalty for targets in the units of the file
        ratio = l1_ratio * compared.y_scale / size
        candidates += [(size * alpha, ratio) for alpha in alphas.tolist()]
    return candidates, lambda rows: penalised_paths.fit_paths(rows, paths, check_time)


class Tuned(NamedTuple):
    """A baseline whose penalty or size is chosen by folds.

    Attributes
    ----------
    candidates : list
        Penalties of the M candidates, in descending order; without penalties, their sizes ascend.
    chosen : dict of bool to int
        Index of the candidate with the smallest CV error; with the key True, that of the one-standard-error rule, if
        the record has the pair of this rule.
    errors : (K, M) array
        Sums of the held-out losses of the candidates, by fold.
    models : (M, 1 + p) array
        Intercepts and coefficients of the fits to all rows, in units of the file.
    fold_models : list of (M, 1 + p) arrays
        The same by fold; empty if there are too many numbers to store.
    """

    candidates: Candidates
    chosen: dict[bool, int]
    errors: FloatArray
    models: FloatArray
    fold_models: list[FloatArray]


def tune_baseline(method: str, compared: ComparedRows, check_time: Callable[[], None]) -> Tuned:
    """Return a baseline with its penalty or size by the smallest CV error, and by the rule of one standard error.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    compared : ComparedRows
        Rows to fit, with their folds.
    check_time : callable
        Function that raises `OutOfTime` to end the fits; it is called before each of them.
    """
    candidates, fit = make_candidates(method, compared, check_time)
    scored, k, fold_models = Scored.of(compared.dataset, compared.plan), compared.plan.k, list[FloatArray]()
    errors, width = np.empty((k, len(candidates))), 1 + compared.dataset.p
    for fold in range(k):
        check_time()
        models = compared.fit_models(fit, fold)
        errors[fold] = compared.held_out_errors(models, fold)
        fold_models += [models] if k * width <= MAX_STORED_COEFFICIENTS else []
    check_time()
    sums = np.where(np.isfinite(errors).all(axis=0), errors.sum(axis=0), np.inf)
    best = int(np.argmin(sums))
    chosen = {False: best}
    if compared.record.one_se is not None:
        spread = standard_error(errors[:, best], scored.by_fold, scored.times)
        is_within = sums / scored.total <= sums[best] / scored.total + spread
        is_within &= [l1_ratio == candidates[best][1] for _, l1_ratio in candidates]
        chosen[True] = int(np.argmax(is_within))
    return Tuned(candidates, chosen, errors, compared.fit_models(fit, None), fold_models)


def fit_baseline(method: str, compared: ComparedRows, check_time: Callable[[], None]) -> list[Baseline]:
    """Return a baseline at the candidate with the smallest CV error; that of the one-SE rule follows if requested.

    Parameters
    ----------
    method, compared, check_time
        Arguments as for `tune_baseline`.
    """
    begun, record, names = time.perf_counter(), compared.record, compared.dataset.names
    tuned = tune_baseline(method, compared, check_time)
    scored, made, seconds = Scored.of(compared.dataset, compared.plan), list[Baseline](), time.perf_counter() - begun
    for is_one_se, at in tuned.chosen.items():
        model, errors, (alpha, l1_ratio) = tuned.models[at], tuned.errors[:, at], tuned.candidates[at]
        comparison: dict[str, Any] = compare_with_pair(record, scored, errors)
        nonzero = compared.penalised[model[compared.penalised] != 0.0] - 1
        columns = np.sort(np.append(nonzero, compared.free[compared.free > 0] - 1))
        made.append(Baseline(
            method=method, alpha=alpha, l1_ratio=l1_ratio, **comparison, support=tuple(names[j] for j in nonzero),
            coefficients={names[j]: float(model[1 + j]) for j in columns},
            intercept=float(model[0]), seconds=seconds, fold_errors=tuple(errors.tolist()),
            fold_models=tuple(tuple(models[at].tolist()) for models in tuned.fold_models), one_se=is_one_se,
        ))  # fmt: skip
    return made


def add_nested_errors(
    baselines: Sequence[Baseline], record: Record, dataset: Dataset, plan: FoldPlan, check_time: Callable[[], None]
) -> list[Baseline]:
    """Return baselines with their nested CV errors, on the outer folds of the record.

    The rows outside an outer fold choose the penalty or size of a baseline again, with inner folds, imputed values and
    scales as in the search of these rows.

    Parameters
    ----------
    baselines : sequence of Baseline
        Baselines of the record.
    record : Record
        Record with outer folds.
    dataset : Dataset
        Data of the record.
    plan : FoldPlan
        Folds of the record.
    check_time : callable
        Function that raises `OutOfTime` to end the fits.
    """
    nested = record.nested
    if nested is None:
        return list(baselines)
    outer = remake_outer_folds(nested.outer, dataset, plan)
    weights = np.array([dataset.weight_of(outer.scored_rows(one.fold)) for one in nested.folds])
    errors, models = np.empty((len(baselines), len(weights))), np.empty((len(baselines), len(weights), 1 + dataset.p))
    for at, fold in enumerate(one.fold for one in nested.folds):
        train = outer.train_rows(fold)
        seen = fold_preprocessing(record).fill(dataset, train)
        training, held_out = seen.take(train), seen.take(outer.scored_rows(fold))
        compared = ComparedRows.from_record(record, training, inner_folds(plan, train, training))
        tuned = {method: tune_baseline(method, compared, check_time) for method in {one.method for one in baselines}}
        for i, one in enumerate(baselines):
            of_method = tuned[one.method]
            model = models[i, at] = of_method.models[of_method.chosen[one.one_se]]
            losses = weighted_losses(held_out, record.loss, model[0] + held_out.X @ model[1:])
            errors[i, at] = float(losses.sum()) / weights[at]
    is_stored = models[0].size <= MAX_STORED_COEFFICIENTS
    return [
        replace(one, nested=NestedBaseline(
            **compare_nested_errors(nested, weights, errors_of_one), fold_errors=tuple(errors_of_one.tolist()),
            fold_models=tuple(map(tuple, models_of_one.tolist())) if is_stored else (),
        )) for one, errors_of_one, models_of_one in zip(baselines, errors, models, strict=True)
    ]  # fmt: skip


def add_baselines(
    record: Record, dataset: Dataset, plan: FoldPlan, methods: Sequence[str], deadline: Deadline
) -> Record:
    """Return the record with baselines; after a limit or Ctrl-C with those that were done, and a warning.

    Parameters
    ----------
    record : Record
        Record of a search.
    dataset : Dataset
        Data of the record.
    plan : FoldPlan
        Folds of the record.
    methods : sequence of str
        Names of `METHODS`.
    deadline : Deadline
        Deadline of the fits.
    """
    fitted = list[Baseline]()

    def check_time() -> None:
        if deadline.has_expired():
            raise OutOfTime("the fits of a baseline did not end in time")

    def fit_all() -> None:
        check_time()
        compared = ComparedRows.from_record(record, dataset, plan)
        for method in methods:
            fitted.extend(fit_baseline(method, compared, check_time))
        fitted[:] = add_nested_errors(fitted, record, dataset, plan, check_time)

    with suppress(OutOfTime):
        run_within_limit(fit_all, deadline, lambda: None)
    done, warnings = tuple(fitted), record.warnings
    unfitted = [method for method in methods if method not in {entry.method for entry in done}]
    what = f"these were fitted: {', '.join(unfitted)}" if unfitted else "their nested CV errors were computed"
    if unfitted or (record.nested is not None and done[0].nested is None):
        why = "the run was interrupted" if deadline.stop.is_set() else "the time limit ended"
        warnings = (*warnings, f"baselines: {why} before {what}")
    packages = ("scikit-learn", ABESS) if ABESS in methods else ("scikit-learn",)
    versions = {package: package_version(package) for package in packages}
    return replace(record, warnings=warnings, baselines=Baselines(done, versions) if done else None)


def compare_baselines(
    record: Record, data: Any, *, baselines: str | Iterable[str] = DEFAULT_METHODS, folds: AnyFolds | None = None,
    time_limit: float | None = None, stop: Event | None = None,
) -> Record:  # fmt: skip
    """Fit baselines on the folds of a record, and compare their CV errors with that of the reported pair.

    Each baseline chooses its penalty by the smallest CV error on the same folds, with the same row weights, exposures
    and scales.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record, as passed to `solve`.
    baselines : str or iterable of str
        Any of `lasso`, `ridge`, `elasticnet` and `abess`; the last one needs the package abess.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds of the record, if it does not describe them.
    time_limit : float, optional
        Time limit in seconds.
    stop : threading.Event, optional
        Event that ends the fits; the first Ctrl-C by default.

    Returns
    -------
    Record
        Record with `baselines`; its `to_frame` gives the comparison as a table. After a limit or Ctrl-C it has the
        baselines that were done, and a warning.

    Raises
    ------
    BadInput
        If a name is unknown, or data or folds are not those of the record.
    MissingPackage, BackendUnavailable
        If a package is not installed.

    References
    ----------
    Tibshirani (1996), "Regression shrinkage and selection via the lasso", JRSS B 58. Zou and Hastie (2005),
    "Regularization and variable selection via the elastic net", JRSS B 67. Zhu and others (2020), "A polynomial
    algorithm for best-subset selection problem", PNAS 117 (abess).

    Examples
    --------
    >>> import sparsecv_mio as sc
    >>> record = sc.solve("instances/prostate.csv", target="lpsa", gammas=[0.01, 0.1, 1.0])
    >>> compared = sc.compare_baselines(record, "instances/prostate.csv", baselines="lasso,ridge")
    >>> [(one.method, len(one.support)) for one in compared.baselines.methods]
    [('lasso', 8), ('ridge', 8)]
    """
    if not isinstance(record, Record):
        raise BadInput("baselines: requires a record of `solve` with criterion folds; give such a record")
    dataset, plan = rows_and_folds_of_record(record, data, folds)
    check_of_record(record, dataset, plan)
    methods = parse_baselines(baselines, dataset, record.request.restrictions)
    limits = SearchOptions.of(time_limit=time_limit)
    with interruptible_call() if stop is None else nullcontext(stop) as event:
        return add_baselines(record, dataset, plan, methods, Deadline.from_options(limits, event))
