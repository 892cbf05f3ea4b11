"""`BestSubsetPoisson` for given sizes, and `BestSubsetPoissonCV`, which chooses tau and gamma by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.metaestimators import available_if

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import sparse_model
from sparsecv_mio.targets import Loss


@sparse_model.settings
class SparseCountModel(RegressorMixin, sparse_model.SparseEstimator):
    """A linear model of the log rate of counts; `fit` sets `coef_` and `intercept_`."""

    @available_if(sparse_model.has_model)
    def predict(self, X: Any, exposure: Any = None, offset: Any = None) -> FloatArray:
        """Return the expected counts of rows, or rates if neither exposures nor offsets are given.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        exposure, offset : (n,) array_like, optional
            Exposures, 1 by default, and offsets, 0 by default.

        Returns
        -------
        (n,) array
            Expected counts, or rates.
        """
        predictors = self._linear_predictors(X)
        offsets = sparse_model.sum_offsets(len(predictors), exposure=exposure, offset=offset)
        return np.asarray(np.exp(predictors + offsets))

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, offset: Any = None) -> float:
        """Return D^2, the share of the deviance of the mean rate that the model explains.

        Parameters
        ----------
        X : (n, p) array_like
            Rows with the columns of the fit, in the same order.
        y : (n,) array_like
            Counts.
        sample_weight, exposure : (n,) array_like, optional
            Row weights and exposures; 1 by default. A model that was fitted with exposures needs exposures.
        offset : (n,) array_like, optional
            Offsets; 0 by default. A model that was fitted with offsets needs offsets.

        Returns
        -------
        float
            D^2, at most 1; equal to `PoissonRegressor.score` of scikit-learn with targets `y / exposure` and weights
            `sample_weight * exposure`. An offset multiplies the exposure by its exponential.
        """
        self._require_offsets(exposure=exposure, offset=offset)
        rates = np.maximum(self.predict(X), np.finfo(float).tiny)
        counts, weights = np.asarray(y, dtype=np.float64), sample_weight
        if exposure is not None or offset is not None:
            exposures = np.exp(sparse_model.sum_offsets(len(rates), exposure=exposure, offset=offset))
            counts = counts / exposures
            weights = exposures if sample_weight is None else np.asarray(sample_weight) * exposures
        return float(d2_tweedie_score(counts, rates, sample_weight=weights, power=1))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: targets are nonnegative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """Return the same for scikit-learn before 1.6."""
        return {"requires_positive_y": True}

    def _encode_target(self, y: Any) -> Any:
        """Return checked counts; they need not be integers."""
        wrong = np.flatnonzero(~(y >= 0.0))
        if wrong.size:
            raise BadInput(f"y is {y[wrong[0]]:.12g} in row {wrong[0] + 1}; give counts, numbers of at least 0")
        if not np.any(y):
            raise BadInput("y is 0 in every row; give at least one row with a count above 0")
        return y

    def _make_count_dataset(self, X: Any, y: Any, exposure: Any, offset: Any, groups: Any = None) -> Dataset:
        """Return checked copies of X, y, exposures and offsets."""
        data = replace(self._dataset(X, y, groups), counts=True)
        data = data if exposure is None else as_counts(data)
        return sparse_model.attach_offsets(data, exposure=exposure, offset=offset)


@sparse_model.settings
class BestSubsetPoisson(sparse_model.OfOneGamma, SparseCountModel):
    """Best-subset Poisson regression of a given size, proved optimal among all subsets of at most tau features.

    Minimises `sum_i w_i e_i l_i(a + x_i'b) + (gamma / 2) ||b||^2` over all a and b with at most tau nonzeros, in scaled
    columns. Here e_i is the exposure, and l_i is half the deviance of the rate `y_i / e_i`. The parameter gamma equals
    alpha of scikit-learn's `PoissonRegressor` times `sum_i w_i e_i`.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several numbers give a path: the model has the largest size, and `coef_path_` has all sizes.
        By default all sizes from 1 to p; if p > 30, the largest size is n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight, positive.
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
        Coefficients of log rates, in the units of X.
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
    status_ : {"proved", "limit", "interrupted"}
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
    BestSubsetPoissonCV : Chooses tau and gamma by cross-validation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, days = rng.normal(size=(80, 5)), rng.uniform(1.0, 9.0, size=80)
    >>> y = rng.poisson(days * np.exp(X[:, 1] - 0.5 * X[:, 3]))
    >>> model = BestSubsetPoisson(2, gamma=0.1).fit(X, y, exposure=days)
    >>> model.support_.nonzero()[0].tolist(), model.status_
    ([1, 3], 'proved')
    >>> bool(np.allclose(model.predict(X, days), days * model.predict(X)))
    True
    """

    @sparse_model.with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, offset: Any = None
    ) -> BestSubsetPoisson:
        """Fit the best subset of every requested size.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Nonnegative counts; they need not be integers.
        sample_weight : (n,) array_like, optional
            Row weights; a row of weight 0 is ignored.
        exposure : (n,) array_like, optional
            Positive exposures (the time or population behind each count); 1 by default. `PoissonRegressor` makes
            the same fit from rates: `fit(X, y / exposure, sample_weight=sample_weight * exposure)`.
        offset : (n,) array_like, optional
            Numbers that are added to the linear predictor; an offset of `log(e)` equals an exposure of e.

        Returns
        -------
        BestSubsetPoisson
            This object.
        """
        self._fit_sizes(self._make_count_dataset(X, y, exposure, offset), sample_weight, loss=Loss.POISSON)
        return self


@sparse_model.settings
class BestSubsetPoissonCV(sparse_model.ChosenByLoss, SparseCountModel):
    """Best-subset Poisson regression whose size tau and ridge weight gamma are chosen by certified cross-validation.

    For every pair (tau, gamma), every fold is fitted with its best subset of tau features, as by
    :class:`BestSubsetPoisson`. The pair with the minimum half deviance per held-out row is refitted on all rows. With
    the defaults, `sparsecv solve --loss poisson` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try. By default all sizes from 1 to p. If p > 30, the largest size is n_train / 8, but at
        least 10 and at most 50. In addition, p is a size if it is at most 300 and below n_train.
    gammas : float, sequence of float or str, optional
        Ridge weights to try. The default is a logarithmic range from 3 to 3,000, divided by the number of rows of the
        smallest training set.
    n_gammas : int, optional
        Number of ridge weights if `gammas` is None; the default is 7.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan, or None
        Folds: a number K of shuffled folds with a fixed seed, None for 5; a text as for `sparsecv solve --folds`; any
        scikit-learn splitter or its splits, which may overlap; a label for each row, or one column of labels for each
        repeat.
    one_se : bool
        True to fit the smallest model within one standard error of the best.
    stability : float or "nested", optional
        Weight of the instability. The chosen pair minimises `half deviance + stability * instability`; the instability
        is the largest change that holding out one fold makes to the half deviances of all rows. With `"nested"`, nested
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
        Coefficients of log rates of the model that predicts, in the units of X; this and the next two attributes
        require `refit`.
    intercept_ : float
        Intercept of the model.
    support_ : (p,) bool array
        Mask of the features of that model.
    tau_, gamma_ : int, float
        Chosen pair; with `model="average"` the model that predicts does not belong to a pair.
    cv_error_ : float
        Mean half deviance of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds on the minimum CV error over all pairs. If `one_se` or `stability` chose another pair, they are
        the bounds on the CV error of that pair; the bounds on the minimum are then `record_.least.lower` and
        `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
        Status of the certificate.
    best_score_ : float
        Score `-cv_error_`: half of scikit-learn's `neg_mean_poisson_deviance` if all exposures are 1.
    scores_ : (G, T) array
        Score `-half deviance` of every pair; NaN if a limit left none. Scores of pairs that are not solved are
        estimates.
    taus_, gammas_ : (T,) int array, (G,) array
        Grid of sizes and ridge weights, ascending.
    cv_results_ : dict of arrays
        Results of all pairs, described in :func:`~sparsecv_mio.sklearn.sparse_model.cv_results`.
    loss_path_ : (G, T, K) array
        Mean half deviance of every fold at every pair; an estimate or NaN if the best subset of the fold is not known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, from the best subsets that the search knows for all rows; only the model of
        `tau_` is proved (`BestSubsetPoisson(taus, gamma=gamma_)` proves all).
    held_out_predictions_ : (m,) array
        Expected count of each row of the fit with a weight above 0, in the order of X. Each expected count comes from
        the model of the chosen pair that was fitted without the fold of the row.
    record_ : Record
        Answer and certificate; `record_.write_record(file)` saves it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns of X.

    See Also
    --------
    BestSubsetPoisson : The same model with given tau and gamma.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = rng.poisson(np.exp(X[:, 1] - 0.5 * X[:, 3]))
    >>> model = BestSubsetPoissonCV(gammas=[0.1, 1.0], cv=5).fit(X, y)
    >>> model.status_, model.support_.nonzero()[0].tolist()
    ('proved', [1, 3])
    >>> bool(model.lower_ <= model.cv_error_ <= model.upper_)
    True
    """

    @sparse_model.with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, groups: Any = None, offset: Any = None
    ) -> BestSubsetPoissonCV:
        """Choose tau and gamma by cross-validation, and fit the best subset to all rows.

        Ctrl-C ends the search as a time limit does: the attributes are set, and `fit` raises `KeyboardInterrupt`.

        Parameters
        ----------
        X : (n, p) array_like
            Features.
        y : (n,) array_like
            Nonnegative counts; they need not be integers.
        sample_weight : (n,) array_like, optional
            Row weights, used in every fit and in the error of held-out rows. Rows of weight 0 are dropped, before a
            splitter assigns the others to folds; splits or labels that are given as lists count all rows.
        exposure : (n,) array_like, optional
            Positive exposures (the time or population behind each count); 1 by default.
        groups : (n,) array_like, optional
            Groups of the rows, for a splitter that needs them.
        offset : (n,) array_like, optional
            Numbers that are added to the linear predictor; an offset of `log(e)` equals an exposure of e.

        Returns
        -------
        BestSubsetPoissonCV
            This object.
        """
        data, plan = self._assign_folds(self._make_count_dataset(X, y, exposure, offset, groups), sample_weight)
        self._search_grid(data, plan, loss=Loss.POISSON)
        return self
