"""`BestSubsetRidge` for given sizes, and `BestSubsetRidgeCV`, which chooses by certified cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Column, Hierarchy, Limits
from sparsecv_mio.search.fold_models import FoldModels, with_fold_models
from sparsecv_mio.sklearn.sparse_model import (
    ChosenByCV,
    OfOneGamma,
    SparseEstimator,
    dense,
    has_model,
    settings,
    warn_of_edges,
    warn_unproved,
    with_callbacks,
)


@settings
class SparseLinearModel(RegressorMixin, SparseEstimator):
    """A linear model with few features, once `fit` has set `coef_` and `intercept_`."""

    count: str | Iterable[Iterable[Column]] | None = None
    at_most: Limits | None = None
    hierarchy: Hierarchy | None = None
    nonnegative: Column | Iterable[Column] | None = None
    nonpositive: Column | Iterable[Column] | None = None

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
        predictions: FloatArray = self._rows(X) @ self.coef_ + self.intercept_
        return predictions

    def _set_model(self, coefficients: FloatArray, intercept: float) -> None:
        """Set what predicts."""
        self.coef_, self.intercept_ = coefficients, intercept

    def _check_target(self, y: Any) -> None:
        """Refuse text."""
        word = next((value for value in np.ravel(np.asarray(y)).tolist() if isinstance(value, str)), None)
        if word is not None:
            raise BadInput(
                f"y holds text {word[:30]!r}: give numbers; of two classes BestSubsetLogisticCV fits probabilities"
            )


@settings
class BestSubsetRidge(OfOneGamma, SparseLinearModel):
    """Best-subset ridge regression of a given size: the best of all subsets of at most tau features, proved.

    Minimises `||y - Xb||^2 + (gamma / 2) ||b||^2` over all b with at most tau nonzeros, in scaled columns.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several are a path: the model is the largest, `coef_path_` has them all. By default 1 to
        p, of p > 30 to n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight; 0 is least squares, where the columns of every model are linearly independent.
    gap : float
        Relative gap at which a fit counts as proved.
    time_limit : float, optional
        Seconds; what is known by then is kept, with valid bounds. Without one every fit is proved.
    scale : {"length", "variance", "none"}
        In which units of the columns the penalty is measured: centred length 1, standard deviation 1, or as they are.
    fit_intercept : bool
        Whether there is an intercept, which is not penalised.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `tau`, and features in none; by name, or by position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, as for the intercept: in, not penalised, not counted in the size.
    count : {"factors", "columns"} or list of lists of columns, optional
        What counts as one feature: of `"factors"` columns with names like `city=Oslo` and `city=Bergen`, which enter
        together; or such columns in lists. By default each by itself.
    at_most : str, pair or list of these, optional
        Groups of which a model has at most so many features: `"2:a,b,c"` or `(2, ["a", "b", "c"])`.
    hierarchy : str, mapping or list of str, optional
        Features that are in a model only with their parents: `"strong"` or `"weak"` by the names of products such as
        `a:b`; `"ab=a,b"` or `{"ab": ["a", "b"]}` for all, `"ab=a|b"` for at least one of these.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is not below, or not above, zero; `"all"` for every one.
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients in the units of X.
    intercept_ : float
    support_ : (p,) bool array
        The features of the model.
    tau_ : int
        Most features that it may have.
    objective_ : float
        The least that was found.
    lower_, upper_ : float
        Certified bounds of the least objective at `tau_`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Of all sizes of the path together.
    taus_ : (T,) int array
        Sizes of the path.
    coef_path_ : (p, T) array
    intercept_path_ : (T,) array
    record_ : PathRecord
        All sizes with their bounds.
    n_features_in_, feature_names_in_ : int, array
        The columns of X.

    See Also
    --------
    BestSubsetRidgeCV : Chooses tau and gamma by cross-validation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=60)
    >>> BestSubsetRidge(2, gamma=0.001).fit(X, y).coef_.round(2).tolist()
    [0.0, 2.01, 0.0, -1.0, 0.0]
    >>> path = BestSubsetRidge(range(1, 4)).fit(X, y)
    >>> path.taus_.tolist(), path.coef_path_.shape
    ([1, 2, 3], (5, 3))
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetRidge:
        """Find the best subset of every size that is asked for.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
        sample_weight : (n,) array_like, optional
            How much each row counts; 0 is as if it were not there.

        Returns
        -------
        BestSubsetRidge
            This object.
        """
        data = self._dataset(X, y)
        if sample_weight is not None:
            data = weighted_rows(data, sample_weight, "sample_weight")
        self._fit_sizes(data)
        warn_unproved(self)
        return self


@settings
class BestSubsetRidgeCV(ChosenByCV, SparseLinearModel):
    """Best-subset ridge regression, its size tau and ridge weight gamma chosen by certified cross-validation.

    Every fold of every pair (tau, gamma) is fitted by the best of all subsets of tau features,
    `min ||y - Xb||^2 + (gamma / 2) ||b||^2` in scaled columns; the pair with the least cross-validation error is
    refitted on all rows. With the defaults, `sparsecv solve` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try; by default 1 to p, of p > 30 to n_train / 8, but at least 10 and at
        most 50, and p (up to 300, below n_train).
    gammas : float, sequence of float or str, optional
        Ridge weights to try; by default 0.001 to 10, of p >= n_train 0.05 to 10, logarithmic.
    n_gammas : int, optional
        How many, where `gammas` is None; by default 15, of p >= n_train 9.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan
        A number K: shuffled by a fixed seed; a text as for `sparsecv solve --folds`, `"5x10"` or `"loo"` for one; any
        splitter of scikit-learn or its splits, which may overlap; a label per row, or a column of labels per repeat.
    one_se : bool
        Fit the smallest model within one standard error of the best.
    stability : float or "nested", optional
        Fit the pair with the least `CV error + stability * instability`, where the instability is the largest change
        that leaving out a fold makes to the squared errors of all rows; `"nested"`: with a weight that nested
        cross-validation chooses, about six times as long. Not together with `one_se`.
    model : {"pair", "average"}
        What predicts: the best subset at the pair that is chosen, or the average of the near-best pairs put on the
        fewest features that keep it. The certificate is of the pair in either case; not together with `one_se` or
        `stability`.
    na : {"error", "mean", "median"}
        Treatment of empty values (NaN) in X: an error, or a fill by the mean or the median of the column. New rows
        are filled by the values of the fit.
    scale_within, na_within : {"all", "folds"}
        Rows that determine the scales of columns and the values that fill empty cells: all rows, or in each fold its
        training rows. With `"folds"`, neither depends on the held-out rows, as with `cross_val_predict`.
    gap : float
        Certified relative gap at which the choice counts as proved; 0 decides every pair.
    time_limit : float, optional
        Seconds for the search; what is known by then is kept, with valid bounds. Without one the choice is proved.
    n_jobs : int, optional
        Threads, as elsewhere in scikit-learn: None is 1, -1 all cores. The answer is the same.
    scale : {"length", "variance", "none"}
        In which units of the columns the penalty is measured: centred length 1, standard deviation 1, or as they are.
    fit_intercept : bool
        Whether every fit has an intercept, which is not penalised.
    refit : bool
        Keep the best subset on all rows as the model; False leaves the choice of tau and gamma and `cv_results_` alone,
        and nothing to predict by.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `taus`, and features in none; by name, or by position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, as for the intercept: in, not penalised, not counted in the size.
    count : {"factors", "columns"} or list of lists of columns, optional
        What counts as one feature: of `"factors"` columns with names like `city=Oslo` and `city=Bergen`, which enter
        together; or such columns in lists. By default each by itself.
    at_most : str, pair or list of these, optional
        Groups of which a model has at most so many features: `"2:a,b,c"` or `(2, ["a", "b", "c"])`.
    hierarchy : str, mapping or list of str, optional
        Features that are in a model only with their parents: `"strong"` or `"weak"` by the names of products such as
        `a:b`; `"ab=a,b"` or `{"ab": ["a", "b"]}` for all, `"ab=a|b"` for at least one of these.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is not below, or not above, zero; `"all"` for every one.
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients of the model that predicts, in the units of X; this and the next two with `refit` only.
    intercept_ : float
    support_ : (p,) bool array
        The features of that model.
    tau_, gamma_ : int, float
        The pair that was chosen; with `model="average"` the model that predicts is of no pair.
    cv_error_ : float
        The mean squared error of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds of the least cross-validation error of all pairs. Where `one_se` or `stability` chose another
        pair they are of its own error, and those of the least one are `record_.least.lower` and `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
    best_score_ : float
        `-cv_error_`: scikit-learn's score, the larger the better.
    taus_, gammas_ : (T,) int array, (G,) array
        The grid, ascending.
    cv_results_ : dict of arrays
        All pairs, as :func:`~sparsecv_mio.sklearn.sparse_model.cv_results` says.
    mse_path_ : (G, T, K) array
        Mean squared error of every fold at every pair. Where the best subset of a fold is not known, as its pair was
        ruled out by bounds, the error is that of the best one found, an estimate, or NaN; `cv_results_["decided"]`
        says of which pairs all are known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, by the best subsets that the search knows on all rows; only that of `tau_` is
        proved (`BestSubsetRidge(taus, gamma=gamma_)` proves all).
    record_ : Record
        Answer and certificate; `record_.write_record(file)` keeps it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        The columns of X.

    See Also
    --------
    BestSubsetRidge : The same model where tau and gamma are given.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=60)
    >>> model = BestSubsetRidgeCV(gammas=[0.001, 0.1], cv=5).fit(X, y)
    >>> model.status_, model.tau_, model.support_.nonzero()[0].tolist()
    ('proved', 2, [1, 3])
    >>> bool(model.lower_ <= model.cv_error_ <= model.upper_)
    True
    """

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BestSubsetRidgeCV:
        """Choose tau and gamma, and fit the best subset on all rows.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
        sample_weight : (n,) array_like, optional
            How much each row counts, in every fit and in the error of held-out rows; 0 is as if it were not there.
        groups : (n,) array_like, optional
            For a splitter that needs them.

        Returns
        -------
        BestSubsetRidgeCV
            This object.
        """
        data, plan = self._dealt(self._dataset(X, y, groups), sample_weight)
        self._search_over(data, plan)
        warn_unproved(self)
        warn_of_edges(self)
        return self

    @available_if(has_model)
    def predict(self, X: Any) -> FloatArray:
        """Predict the target; there is no such method with `refit=False`.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.

        Returns
        -------
        (n,) array
        """
        return super().predict(X)

    @available_if(has_model)
    def predict_interval(self, X: Any, level: float = 0.9) -> FloatArray:
        """Return prediction intervals: CV+, by the models of the folds, which are fitted again when first asked for.

        Of rows that are exchangeable with those of the fit at least `2 level - 1` lie in theirs, less `sqrt(2 / n)` for
        K folds, if tau and gamma had not been chosen by the same folds; mostly it is about `level`.

        Parameters
        ----------
        X : (m, p) array_like
            The columns that were fitted, in their order.
        level : float
            Share of new rows that the intervals aim at.

        Returns
        -------
        (m, 2) array
            Lower and upper ends.

        Raises
        ------
        BadInput
            With `sample_weight`, `model="average"`, folds that do not hold out every row once, or too few rows.
        """
        check_is_fitted(self)
        with_fold_models(self.record_)
        return self._fold_models.interval(dense(self._rows(X)), level)

    @cached_property
    def _fold_models(self) -> FoldModels:
        search = self._search
        return FoldModels.of(self.record_, search.dataset, search.folds)

    @cached_property
    def mse_path_(self) -> FloatArray:
        """(G, T, K) mean squared errors of the folds."""
        return self._search.mse_path()
