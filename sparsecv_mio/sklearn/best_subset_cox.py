"""`BestSubsetCox` for given sizes, and `BestSubsetCoxCV`, which chooses tau and gamma by cross-validation.

Targets are structured arrays of events and times, as in scikit-survival.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.certificate.concordance import assess_times
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.survival_columns import find_fields_of_times
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.problem.survival_curves import baseline_hazards
from sparsecv_mio.sklearn import sparse_model
from sparsecv_mio.targets import Loss, Ties

EVENT = "event"  # name of the events in records of estimators


def split_times(y: Any) -> tuple[BoolArray, FloatArray]:
    """Return the events and times of a structured array with a boolean and a numeric field.

    Parameters
    ----------
    y : structured array
        Events and times, as `sksurv.util.Surv.from_arrays(event, time)` makes them.

    Raises
    ------
    BadInput
        If y has other fields.

    Examples
    --------
    >>> event, time = split_times(np.array([(True, 2.0), (False, 5.0)], dtype=[("event", bool), ("time", float)]))
    >>> event.tolist(), time.tolist()
    ([True, False], [2.0, 5.0])
    """
    array, event, time = find_fields_of_times(y)
    return np.ascontiguousarray(array[event]), array[time].astype(np.float64)


class StepFunction:
    """A step function on an interval from 0, continuous from the right, like that of scikit-survival.

    Parameters
    ----------
    x : (m,) array
        Ascending times of the steps.
    y : (m,) array
        Values from these times on.
    before : float
        Value before the first step.
    last : float
        End of the interval: the last time of the rows of the fit.

    Examples
    --------
    >>> StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]), 1.0, 3.5)([0.5, 1.0, 3.0]).tolist()
    [1.0, 0.9, 0.5]
    """

    def __init__(self, x: FloatArray, y: FloatArray, before: float, last: float) -> None:
        self.x, self.y, self.before, self.domain = x, y, before, (0.0, last)

    def __call__(self, times: Any) -> FloatArray:
        """Return the values at some times; raise `BadInput` for a time outside `domain`."""
        times = np.asarray(times, dtype=np.float64)
        last = self.domain[1]
        if not np.all((times >= 0.0) & (times <= last)):
            raise BadInput(f"x: no row of the fit is observed outside 0 to {last:.12g}; give times in this interval")
        place = np.searchsorted(self.x, times, side="right")
        return np.asarray(np.concatenate([[self.before], self.y])[place])


@sparse_model.settings
class SparseHazardModel(sparse_model.SparseEstimator):
    """A linear model of the log hazard; `fit` sets `coef_`."""

    fit_intercept: bool = field(default=False, init=False)
    ties: str = "efron"

    @available_if(sparse_model.has_model)
    def predict(self, X: Any) -> FloatArray:
        """Return the log hazard ratios of rows, relative to a row of zeros.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.

        Returns
        -------
        (n,) array
            Log hazard ratios.
        """
        return self._linear_predictors(X)

    @available_if(sparse_model.has_model)
    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False) -> NDArray[Any]:
        """Return the cumulative hazards of rows, from Breslow's estimate of the baseline hazard.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        return_array : bool
            True for the values at `unique_times_` instead of functions.

        Returns
        -------
        (n,) array of StepFunction, or (n, m) array
            Cumulative hazards.
        """
        if self.baseline_ is None:
            raise BadInput("predict_cumulative_hazard_function: a fit with strata has no common baseline hazard")
        values = self.baseline_[None, :] * np.exp(self.predict(X) - self._level)[:, None]
        return self._as_functions(values, 0.0, return_array)

    @available_if(sparse_model.has_model)
    def predict_survival_function(self, X: Any, return_array: bool = False) -> NDArray[Any]:
        """Return the survival functions of rows, the exponentials of the negative cumulative hazards.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        return_array : bool
            True for the values at `unique_times_` instead of functions.

        Returns
        -------
        (n,) array of StepFunction, or (n, m) array
            Survival functions.
        """
        hazards = self.predict_cumulative_hazard_function(X, return_array=True)
        return self._as_functions(np.exp(-hazards), 1.0, return_array)

    def _as_functions(self, values: FloatArray, before: float, return_array: bool) -> NDArray[Any]:
        if return_array:
            return values
        functions = np.empty(len(values), dtype=object)
        functions[:] = [StepFunction(self.unique_times_, row, before, self._last) for row in values]
        return functions

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance of the predictions.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        y : (n,) structured array
            Events and times.

        Returns
        -------
        float
            Share of the comparable pairs of rows that are in the right order.
        """
        event, time = split_times(y)
        predicted = self.predict(X)
        rows = replace(Dataset.from_arrays(np.zeros((len(time), 1)), time), survival=Survival(event))
        return assess_times(rows, predicted).concordance

    def _make_survival_dataset(self, X: Any, y: Any, entry: Any, strata: Any, groups: Any = None) -> Dataset:
        """Return checked copies of X, times, events, entry times and strata."""
        event, time = split_times(y)
        data = self._dataset(X, time, groups)
        wrong = np.flatnonzero(~(data.y >= 0.0))
        if wrong.size:
            raise BadInput(f"y has the time {data.y[wrong[0]]:.12g} in row {wrong[0] + 1}; give times of at least 0")
        if event.sum() < 2:
            raise BadInput(f"y has {int(event.sum())} events; a Cox regression needs at least two")
        starts = None if entry is None else np.array(entry, dtype=np.float64)
        if starts is not None and not (starts.shape == data.y.shape and np.all(starts < data.y)):
            raise BadInput("entry: give a time before the time in y for each row")
        codes = None
        if strata is not None:
            codes = np.unique(np.asarray(strata).astype(str), return_inverse=True)[1].astype(np.int64)
            if codes.shape != data.y.shape:
                raise BadInput(f"strata: has the shape {codes.shape}; give a label for each of {data.n} rows")
        ties = Ties(match_keyword(self.ties, list(Ties), "ties"))
        return replace(data, survival=Survival(event, starts, codes, ties), event=EVENT)

    def _set_baseline(self, data: Dataset) -> None:
        """Set the event times, and Breslow's estimate of the cumulative hazard of the largest log hazard ratio."""
        survival = data.survival
        assert survival is not None
        self.unique_times_, self.baseline_, self._level = np.unique(data.y[survival.is_event]), None, 0.0
        self._last = float(data.y.max())
        if survival.stratum is not None or not getattr(self, "refit", True):
            return
        predictors = data.X @ self.coef_
        self._level = float(predictors.max())
        self.baseline_ = baseline_hazards(data, np.arange(data.n), predictors - self._level)[0].hazard


@sparse_model.settings
class BestSubsetCox(sparse_model.OfOneGamma, SparseHazardModel):
    """Best-subset Cox regression of a given size, proved optimal among all subsets of at most tau features.

    Minimises the negative log partial likelihood plus `(gamma / 2) ||b||^2` over all b with at most tau nonzeros, in
    scaled columns.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several numbers give a path: the model has the largest size, and `coef_path_` has all sizes.
    gamma : float
        Ridge weight, positive.
    gap : float
        Relative gap at which a fit counts as proved.
    time_limit : float, optional
        Time limit in seconds; when it is reached, the best answer so far is kept, with valid bounds.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns: centred length 1, standard deviation 1, or the units of X.
    ties : {"efron", "breslow"}
        Method for tied events.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `tau`, and features in no model; by name or position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for: always included, not penalised, not counted in the size.
    count : {"factors", "columns"} or list of lists of columns, optional
        Columns that count as one feature and enter together.
    verbose : int
        Verbosity: with a positive number, progress is printed.

    Attributes
    ----------
    coef_ : (p,) array
        Log hazard ratios per unit of X.
    support_ : (p,) bool array
        Mask of the features of the model.
    tau_ : int
        Maximum number of features of the model.
    objective_ : float
        Smallest objective found.
    lower_, upper_ : float
        Certified bounds on the minimum objective at `tau_`.
    status_ : {"proved", "limit", "interrupted"}
        Status of all sizes of the path together.
    taus_, coef_path_ : (T,) int array, (p, T) array
        Sizes of the path, and the coefficients of all sizes.
    unique_times_ : (m,) array
        Times of events.
    record_ : PathRecord
        Record of all sizes with their bounds.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

    See Also
    --------
    BestSubsetCoxCV : Chooses tau and gamma by cross-validation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 5))
    >>> time = rng.exponential(size=80) * np.exp(-X[:, 1] + 0.8 * X[:, 3])
    >>> y = np.array([(t < 2.0, min(t, 2.0)) for t in time], dtype=[("event", bool), ("time", float)])
    >>> model = BestSubsetCox(2, gamma=0.1).fit(X, y)
    >>> model.support_.nonzero()[0].tolist(), model.status_
    ([1, 3], 'proved')
    """

    @sparse_model.with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, entry: Any = None, strata: Any = None) -> BestSubsetCox:
        """Fit the best subset of every requested size.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) structured array
            Events (a boolean field) and times (a numeric field), as in scikit-survival.
        sample_weight : (n,) array_like, optional
            Row weights; a row of weight 0 is ignored.
        entry : (n,) array_like, optional
            Times after which rows are at risk.
        strata : (n,) array_like, optional
            Stratum of each row, with its own baseline hazard.

        Returns
        -------
        BestSubsetCox
            This object.
        """
        data = self._make_survival_dataset(X, y, entry, strata)
        data = data if sample_weight is None else weighted_rows(data, sample_weight, "sample_weight")
        self._fit_sizes(data, None, loss=Loss.COX)
        self._set_baseline(data)
        return self


@sparse_model.settings
class BestSubsetCoxCV(sparse_model.ChosenByLoss, SparseHazardModel):
    """Best-subset Cox regression whose size tau and ridge weight gamma are chosen by certified cross-validation.

    For every pair (tau, gamma), every fold is fitted with its best subset of tau features, as by
    :class:`BestSubsetCox`. The pair with the minimum cross-validated negative log partial likelihood per event
    (Verweij and van Houwelingen 1993) is refitted on all rows.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try.
    gammas : float, sequence of float or str, optional
        Ridge weights to try. The default is a logarithmic range from 1 to 100, divided by the number of rows of the
        smallest training set.
    n_gammas : int, optional
        Number of ridge weights if `gammas` is None; the default is 7.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan
        Folds: a number K of shuffled folds in which events are split evenly, or as for the other estimators.
    one_se : bool
        True to fit the smallest model within one standard error of the best.
    stability, model, scale_within, na_within
        Parameters of the other estimators; only their defaults are supported.
    na : {"error", "mean", "median"}
        Treatment of empty values (NaN) in X.
    gap : float
        Certified relative gap at which the choice counts as proved; with 0 every pair is solved.
    time_limit : float, optional
        Time limit of the search in seconds; when it is reached, the best answer so far is kept, with valid bounds.
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1, -1 all cores.
    refit : bool
        True to keep the best subset on all rows as the model.
    scale, ties, force_in, force_out, adjust, count, verbose
        Parameters as in :class:`BestSubsetCox`.

    Attributes
    ----------
    coef_, support_ : (p,) array, (p,) bool array
        Log hazard ratios per unit of X, and the mask of the features of the model.
    tau_, gamma_ : int, float
        Chosen pair.
    cv_error_ : float
        Cross-validated negative log partial likelihood per event of that pair.
    lower_, upper_ : float
        Certified bounds on the minimum CV error over all pairs.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Status of the certificate.
    unique_times_ : (m,) array
        Times of events.
    record_ : Record
        Answer and certificate; `record_.write_record(file)` saves it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

    See Also
    --------
    BestSubsetCox : The same model with given tau and gamma.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> time = rng.exponential(size=80) * np.exp(-X[:, 1] + 0.8 * X[:, 3])
    >>> y = np.array([(t < 2.0, min(t, 2.0)) for t in time], dtype=[("event", bool), ("time", float)])
    >>> model = BestSubsetCoxCV(gammas=[0.1, 1.0], cv=5).fit(X, y)
    >>> model.status_, bool(model.lower_ <= model.cv_error_ <= model.upper_)
    ('proved', True)
    >>> model.predict_survival_function(X[:2], return_array=True).shape == (2, len(model.unique_times_))
    True
    """

    @sparse_model.with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, entry: Any = None, strata: Any = None, groups: Any = None
    ) -> BestSubsetCoxCV:
        """Choose tau and gamma by cross-validation, and fit the best subset to all rows.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) structured array
            Events (a boolean field) and times (a numeric field), as in scikit-survival.
        sample_weight : (n,) array_like, optional
            Row weights, used in every fit and in the error of held-out rows.
        entry : (n,) array_like, optional
            Times after which rows are at risk.
        strata : (n,) array_like, optional
            Stratum of each row, with its own baseline hazard.
        groups : (n,) array_like, optional
            Groups of the rows, for a splitter that needs them.

        Returns
        -------
        BestSubsetCoxCV
            This object.
        """
        data, plan = self._assign_folds(self._make_survival_dataset(X, y, entry, strata, groups), sample_weight)
        self._search_grid(data, plan, loss=Loss.COX)
        self._set_baseline(data)
        return self
