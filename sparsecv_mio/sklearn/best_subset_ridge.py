"""`BestSubsetRidge` for given sizes, and `BestSubsetRidgeCV`, which chooses tau and gamma by cross-validation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.prediction_intervals import FoldModels, with_fold_models
from sparsecv_mio.model_space import Hierarchy, Limits
from sparsecv_mio.sklearn import sparse_model


@sparse_model.settings
class SparseLinearModel(RegressorMixin, sparse_model.SparseEstimator):
    """A linear model with few features; `fit` sets `coef_` and `intercept_`."""

    at_most: Limits | None = None
    hierarchy: Hierarchy | None = None

    @available_if(sparse_model.has_model)
    def predict(self, X: Any) -> FloatArray:
        """Return the predicted targets.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.

        Returns
        -------
        (n,) array
            Predicted targets.
        """
        return self._linear_predictors(X)

    def _check_target(self, y: Any) -> None:
        """Raise an error for a target of text."""
        word = next((value for value in np.ravel(np.asarray(y)).tolist() if isinstance(value, str)), None)
        if word is not None:
            raise BadInput(f"y holds text {word[:30]!r}; give numbers, or use BestSubsetLogisticCV for two classes")


@sparse_model.settings
class BestSubsetRidge(sparse_model.OfOneGamma, SparseLinearModel):
    """Best-subset ridge regression of a given size, proved optimal among all subsets of at most tau features.

    Minimises `||y - Xb||^2 + (gamma / 2) ||b||^2` over all b with at most tau nonzeros, in scaled columns.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several numbers give a path: the model has the largest size, and `coef_path_` has all sizes.
        By default all sizes from 1 to p; if p > 30, the largest size is n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight; 0 means least squares and requires linearly independent columns in every model.
    gap : float
        Relative gap at which a fit counts as proved.
    time_limit : float, optional
        Time limit in seconds; when it is reached, the best answer so far is kept, with valid bounds. Without a limit
        every fit is proved.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns: centred length 1, standard deviation 1, or the units of X.
    fit_intercept : bool
        True if the model has an unpenalised intercept.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `tau`, and features in no model; by name or position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, like the intercept: always included, not penalised, not counted in the
        size.
    count : {"factors", "columns"} or list of lists of columns, optional
        Columns that count as one feature and enter together: `"factors"` for columns with names such as `city=Oslo` and
        `city=Bergen`, or lists of columns. By default every column counts separately.
    at_most : str, pair or list of these, optional
        Limits on the number of features of a group in a model: `"2:a,b,c"` or `(2, ["a", "b", "c"])`.
    hierarchy : str, mapping or list of str, optional
        Features that are in a model only with their parents: `"strong"` or `"weak"`, with parents derived from names of
        products such as `a:b`; `"ab=a,b"` or `{"ab": ["a", "b"]}` for all parents, `"ab=a|b"` for at least one.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is at least, or at most, zero; `"all"` for every feature.
    coef_bounds : str or mapping, optional
        Bounds on coefficients in the units of X: `"a=0..1,b=..5"` or `{"a": (0, 1), "b": (None, 5)}`; `"all"` bounds
        every feature without bounds of its own.
    verbose : int
        Verbosity: with a positive number, progress is printed.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients in the units of X.
    intercept_ : float
        Intercept of the model.
    support_ : (p,) bool array
        Mask of the features of the model.
    tau_ : int
        Maximum number of features of the model.
    objective_ : float
        Smallest objective found.
    lower_, upper_ : float
        Certified bounds on the minimum objective at `tau_`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Status of all sizes of the path together.
    taus_ : (T,) int array
        Sizes of the path.
    coef_path_ : (p, T) array
        Coefficients of all sizes.
    intercept_path_ : (T,) array
        Intercepts of all sizes.
    record_ : PathRecord
        Record of all sizes with their bounds.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

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

    @sparse_model.with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BestSubsetRidge:
        """Fit the best subset of every requested size.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Target.
        sample_weight : (n,) array_like, optional
            Row weights; a row of weight 0 is ignored.

        Returns
        -------
        BestSubsetRidge
            This object.
        """
        self._fit_sizes(self._dataset(X, y), sample_weight)
        return self


@sparse_model.settings
class BestSubsetRidgeCV(sparse_model.ChosenByCV, SparseLinearModel):
    """Best-subset ridge regression whose size tau and ridge weight gamma are chosen by certified cross-validation.

    For every pair (tau, gamma), every fold is fitted with its best subset of tau features,
    `min ||y - Xb||^2 + (gamma / 2) ||b||^2` in scaled columns. The pair with the minimum CV error is refitted on all
    rows. With the defaults, `sparsecv solve` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try. By default all sizes from 1 to p. If p > 30, the largest size is n_train / 8, but at
        least 10 and at most 50. In addition, p is a size if it is at most 300 and below n_train.
    gammas : float, sequence of float or str, optional
        Ridge weights to try. The default is a logarithmic range from 0.001 to 10, or from 0.05 to 10 if p >= n_train.
        It suits `scale="length"`; with `scale="variance"`, give gammas that are n times larger.
    n_gammas : int, optional
        Number of ridge weights if `gammas` is None; the default is 15, or 9 if p >= n_train.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan, or None
        Folds: a number K of shuffled folds with a fixed seed, None for 5; a text as for `sparsecv solve --folds`, such
        as `"5x10"` or `"loo"`; any scikit-learn splitter or its splits, which may overlap; a label for each row, or one
        column of labels for each repeat.
    one_se : bool
        True to fit the smallest model within one standard error of the best.
    stability : float or "nested", optional
        Weight of the instability. The chosen pair minimises `CV error + stability * instability`; the instability is
        the largest change that holding out one fold makes to the squared errors of all rows. With `"nested"`, nested
        cross-validation chooses the weight, which takes about six times as long. Cannot be combined with `one_se`.
    model : {"pair", "average"}
        Model that predicts: the best subset at the chosen pair, or a model with few features and nearly the same
        predictions as the average over near-optimal pairs. The certificate is about the pair in both cases. `"average"`
        cannot be combined with `one_se` or `stability`.
    na : {"error", "mean", "median"}
        Treatment of empty values (NaN) in X: an error, or a fill by the mean or the median of the column. New rows are
        filled by the values of the fit.
    scale_within, na_within : {"all", "folds"}
        Rows that determine the scales of columns and the values that fill empty cells: all rows, or in each fold its
        training rows. With `"folds"`, neither depends on the held-out rows, as with `cross_val_predict`.
    gap : float
        Certified relative gap at which the choice counts as proved; with 0 every pair is solved.
    time_limit : float, optional
        Time limit of the search in seconds; when it is reached, the best answer so far is kept, with valid bounds.
        Without a limit the choice is proved.
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1, -1 all cores. The answer does not depend on it.
    scale : {"length", "variance", "none"}
        Units in which the penalty measures columns: centred length 1, standard deviation 1, or the units of X.
    fit_intercept : bool
        True if every fit has an unpenalised intercept.
    refit : bool
        True to keep the best subset on all rows as the model. With False only the choice of tau and gamma and
        `cv_results_` are available, and there is no `predict`.
    force_in, force_out : str, int or list of these, optional
        Features in every model, which count in `taus`, and features in no model; by name or position.
    adjust : str, int or list of these, optional
        Columns that every model adjusts for, like the intercept: always included, not penalised, not counted in the
        size.
    count : {"factors", "columns"} or list of lists of columns, optional
        Columns that count as one feature and enter together: `"factors"` for columns with names such as `city=Oslo` and
        `city=Bergen`, or lists of columns. By default every column counts separately.
    at_most : str, pair or list of these, optional
        Limits on the number of features of a group in a model: `"2:a,b,c"` or `(2, ["a", "b", "c"])`.
    hierarchy : str, mapping or list of str, optional
        Features that are in a model only with their parents: `"strong"` or `"weak"`, with parents derived from names of
        products such as `a:b`; `"ab=a,b"` or `{"ab": ["a", "b"]}` for all parents, `"ab=a|b"` for at least one.
    nonnegative, nonpositive : str, int or list of these, optional
        Features whose coefficient is at least, or at most, zero; `"all"` for every feature.
    coef_bounds : str or mapping, optional
        Bounds on coefficients in the units of X: `"a=0..1,b=..5"` or `{"a": (0, 1), "b": (None, 5)}`; `"all"` bounds
        every feature without bounds of its own.
    verbose : int
        Verbosity: with a positive number, progress is printed.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients of the model that predicts, in the units of X; this and the next two attributes require `refit`.
    intercept_ : float
        Intercept of the model.
    support_ : (p,) bool array
        Mask of the features of that model.
    tau_, gamma_ : int, float
        Chosen pair; with `model="average"` the model that predicts does not belong to a pair.
    cv_error_ : float
        Mean squared error of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds on the minimum CV error over all pairs. If `one_se` or `stability` chose another pair, they are
        the bounds on the CV error of that pair; the bounds on the minimum are then `record_.least.lower` and
        `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Status of the certificate.
    best_score_ : float
        Score `-cv_error_` in the convention of scikit-learn: larger is better.
    taus_, gammas_ : (T,) int array, (G,) array
        Grid of sizes and ridge weights, ascending.
    cv_results_ : dict of arrays
        Results of all pairs, described in :func:`~sparsecv_mio.sklearn.sparse_model.cv_results`.
    mse_path_ : (G, T, K) array
        Mean squared error of every fold at every pair. If the best subset of a fold is not known because its pair was
        excluded by bounds, the value is an estimate, from the best subset found, or NaN. `cv_results_["decided"]` marks
        the pairs of which all values are known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, from the best subsets that the search knows for all rows; only the model of
        `tau_` is proved (`BestSubsetRidge(taus, gamma=gamma_)` proves all).
    held_out_predictions_ : (m,) array
        Prediction of each row of the fit with a weight above 0, in the order of X. Each prediction comes from the model
        of the chosen pair that was fitted without the fold of the row; it is NaN for a row in no fold.
    record_ : Record
        Answer and certificate; `record_.write_record(file)` saves it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

    See Also
    --------
    BestSubsetRidge : The same model with given tau and gamma.

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

    @sparse_model.with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BestSubsetRidgeCV:
        """Choose tau and gamma by cross-validation, and fit the best subset to all rows.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Target.
        sample_weight : (n,) array_like, optional
            Row weights, used in every fit and in the error of held-out rows. Rows of weight 0 are dropped, before a
            splitter assigns the others to folds; splits or labels that are given as lists count all rows.
        groups : (n,) array_like, optional
            Groups of the rows, for a splitter that needs them.

        Returns
        -------
        BestSubsetRidgeCV
            This object.
        """
        data, plan = self._assign_folds(self._dataset(X, y, groups), sample_weight)
        self._search_grid(data, plan)
        return self

    @available_if(sparse_model.has_model)
    def predict_interval(self, X: Any, level: float = 0.9) -> FloatArray:
        """Return CV+ prediction intervals from the models of the folds, which are refitted on the first call.

        If new rows are exchangeable with those of the fit, and tau and gamma were not chosen by the same folds, the
        coverage is at least `2 level - 1`, minus `sqrt(2 / n)` for K folds. In practice it is usually close to `level`.

        Parameters
        ----------
        X : (m, p) array_like
            Rows with the columns of the fit, in the same order.
        level : float
            Target coverage of new rows.

        Returns
        -------
        (m, 2) array
            Lower and upper bounds.

        Raises
        ------
        BadInput
            If `sample_weight` or `model="average"` was used, the folds do not hold out every row once, or there are too
            few rows.
        """
        check_is_fitted(self)
        with_fold_models(self.record_)
        holes = np.isnan(sparse_model.dense(self._validate(X, reset=False)))
        return self._fold_models.interval(sparse_model.dense(self._rows(X)), level, holes)

    @cached_property
    def _fold_models(self) -> FoldModels:
        search = self._search
        return FoldModels.from_record(self.record_, search.dataset, search.folds)

    @cached_property
    def mse_path_(self) -> FloatArray:
        """(G, T, K) mean squared errors of the folds."""
        return self._search.mse_path()
