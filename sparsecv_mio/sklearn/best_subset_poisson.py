"""`BestSubsetPoisson` for given sizes, and `BestSubsetPoissonCV`, which chooses by certified cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.metaestimators import available_if

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.counts import as_counts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn.sparse_model import (
    ChosenByLoss,
    OfOneGamma,
    SparseEstimator,
    dense,
    has_model,
    settings,
    warn_of_edges,
    warn_unproved,
    with_callbacks,
)
from sparsecv_mio.words import Loss


@settings
class SparseCountModel(RegressorMixin, SparseEstimator):
    """A linear model of the log rate of counts, once `fit` has set `coef_` and `intercept_`."""

    @available_if(has_model)
    def predict(self, X: Any, exposure: Any = None) -> FloatArray:
        """Predict the expected counts of rows; rates, without exposures.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.
        exposure : (n,) array_like, optional
            1 by default.

        Returns
        -------
        (n,) array
        """
        rates = np.exp(dense(self._rows(X)) @ self.coef_ + self.intercept_)
        return np.asarray(rates if exposure is None else rates * _exposures(exposure, len(rates)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """Return D^2, the share of the deviance of the mean rate that the model explains.

        Parameters
        ----------
        X : (n, p) array_like
            The columns that were fitted, in their order.
        y : (n,) array_like
            Counts.
        sample_weight, exposure : (n,) array_like, optional
            1 by default.

        Returns
        -------
        float
            At most 1; as `PoissonRegressor.score` of scikit-learn, with the rates `y / exposure` as its targets and
            `sample_weight * exposure` as its weights.
        """
        rates = np.maximum(self.predict(X), np.finfo(float).tiny)
        counts, weights = np.asarray(y, dtype=np.float64), sample_weight
        if exposure is not None:
            exposures = _exposures(exposure, len(rates))
            counts = counts / exposures
            weights = exposures if sample_weight is None else np.asarray(sample_weight) * exposures
        return float(d2_tweedie_score(counts, rates, sample_weight=weights, power=1))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn asks of an estimator: targets are not below 0."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """Say the same to scikit-learn before 1.6."""
        return {"requires_positive_y": True}

    def _numbers_of(self, y: Any) -> Any:
        """Refuse what is no count; those of a rate need not be whole."""
        wrong = np.flatnonzero(~(y >= 0.0))
        if wrong.size:
            raise BadInput(f"y is {y[wrong[0]]:.12g} in row {wrong[0] + 1}: give counts, numbers from 0 on")
        if not np.any(y):
            raise BadInput("y is 0 in every row: give rows with a count above 0 too")
        return y

    def _counted(self, X: Any, y: Any, exposure: Any, groups: Any = None) -> Dataset:
        """Check X, y and exposures, and copy them."""
        data = replace(self._dataset(X, y, groups), counts=True)
        if exposure is None:
            return data
        name = "exposure"
        while name in (*data.names, data.target):
            name += "_"
        return as_counts(replace(data, aux={**data.aux, name: _exposures(exposure, data.n)}), name)

    def _set_model(self, coefficients: FloatArray, intercept: float) -> None:
        """Set what predicts."""
        self.coef_, self.intercept_ = coefficients, intercept


def _exposures(given: Any, n: int) -> FloatArray:
    """(n,) exposures, which are positive."""
    exposures = np.asarray(given, dtype=np.float64)
    if exposures.ndim > 1 or exposures.size not in (1, n):
        raise BadInput(f"exposure has the shape {exposures.shape}: give a number above 0 for each of {n} rows")
    exposures = np.broadcast_to(exposures, (n,)).copy()
    wrong = np.flatnonzero(~((exposures > 0.0) & np.isfinite(exposures)))
    if wrong.size:
        raise BadInput(f"exposure is {exposures[wrong[0]]:g} in row {wrong[0] + 1}: give numbers above 0")
    return exposures


@settings
class BestSubsetPoisson(OfOneGamma, SparseCountModel):
    """Best-subset Poisson regression of a given size: the best of all subsets of at most tau features, proved.

    Minimises `sum_i w_i e_i l_i(a + x_i'b) + (gamma / 2) ||b||^2` over all a and b with at most tau nonzeros, in scaled
    columns: l is half the deviance of the rate `y_i / e_i`, e the exposures. gamma is alpha of scikit-learn's
    `PoissonRegressor` times `sum_i w_i e_i`.

    Parameters
    ----------
    tau : int, sequence of int or str, optional
        Number of features. Several are a path: the model is the largest, `coef_path_` has them all. By default 1 to
        p, of p > 30 to n / 8, but at least 10 and at most 50.
    gamma : float
        Ridge weight, positive.
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
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients of log rates, in the units of X.
    intercept_ : float
    support_ : (p,) bool array
        The features of the model.
    tau_ : int
        Most features that it may have.
    objective_ : float
        The least that was found.
    lower_, upper_ : float
        Certified bounds of the least objective at `tau_`.
    status_ : {"proved", "limit", "interrupted"}
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

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> BestSubsetPoisson:
        """Find the best subset of every size that is asked for.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
            Counts, from 0 on; they need not be whole.
        sample_weight : (n,) array_like, optional
            How much each row counts; 0 is as if it were not there.
        exposure : (n,) array_like, optional
            How long, or of how many, each row was counted, above 0; 1 by default. The same fit has
            `PoissonRegressor` of rates, `fit(X, y / exposure, sample_weight=sample_weight * exposure)`.

        Returns
        -------
        BestSubsetPoisson
            This object.
        """
        data = self._counted(X, y, exposure)
        if sample_weight is not None:
            data = weighted_rows(data, sample_weight, "sample_weight")
        self._fit_sizes(data, loss=Loss.POISSON)
        warn_unproved(self)
        return self


@settings
class BestSubsetPoissonCV(ChosenByLoss, SparseCountModel):
    """Best-subset Poisson regression, its size tau and ridge weight gamma chosen by certified cross-validation.

    Every fold of every pair (tau, gamma) is fitted by the best of all subsets of tau features, as
    :class:`BestSubsetPoisson` fits it; the pair with the least half deviance per held-out row is refitted on all rows.
    With the defaults, `sparsecv solve --loss poisson` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try; by default 1 to p, of p > 30 to n_train / 8, but at least 10 and at
        most 50, and p (up to 300, below n_train).
    gammas : float, sequence of float or str, optional
        Ridge weights to try; by default from 3 to 3,000 over the rows of the smallest training set, logarithmic.
    n_gammas : int, optional
        How many, where `gammas` is None; by default 7.
    cv : int, str, splitter, labels, iterable of splits or FoldPlan
        A number K: shuffled by a fixed seed; a text as for `sparsecv solve --folds`; any splitter of scikit-learn or
        its splits, which may overlap; a label per row, or a column of labels per repeat.
    one_se : bool
        Fit the smallest model within one standard error of the best.
    stability : float or "nested", optional
        Fit the pair with the least `half deviance + stability * instability`, where the instability is the largest
        change that leaving out a fold makes to the half deviances of all rows; `"nested"`: with a weight that nested
        cross-validation chooses, which takes about six times as long. Not together with `one_se`.
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
    verbose : int
        Print how far the search is.

    Attributes
    ----------
    coef_ : (p,) array
        Coefficients of log rates of the model that predicts, in the units of X; this and the next two with `refit`
        only.
    intercept_ : float
    support_ : (p,) bool array
        The features of that model.
    tau_, gamma_ : int, float
        The pair that was chosen; with `model="average"` the model that predicts is of no pair.
    cv_error_ : float
        The mean of half the deviance of that pair over held-out rows.
    lower_, upper_ : float
        Certified bounds of the least cross-validation error of all pairs. Where `one_se` or `stability` chose another
        pair they are of its own error, and those of the least one are `record_.least.lower` and `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted", "doubtful"}
    best_score_ : float
        `-cv_error_`: half of scikit-learn's `neg_mean_poisson_deviance` where exposures are 1.
    scores_ : (G, T) array
        `-half deviance` of every pair, NaN where a limit left none; those of pairs that are not decided are estimates.
    taus_, gammas_ : (T,) int array, (G,) array
        The grid, ascending.
    cv_results_ : dict of arrays
        All pairs, as :func:`~sparsecv_mio.sklearn.sparse_model.cv_results` says.
    loss_path_ : (G, T, K) array
        Mean half deviance of every fold at every pair; an estimate, or NaN, where the best subset of the fold is not
        known.
    coef_path_, intercept_path_ : (p, T) array, (T,) array
        Models of all sizes at `gamma_`, by the best subsets that the search knows on all rows; only that of `tau_` is
        proved (`BestSubsetPoisson(taus, gamma=gamma_)` proves all).
    record_ : Record
        Answer and certificate; `record_.write_record(file)` keeps it for `sparsecv verify`.
    n_features_in_, feature_names_in_ : int, array
        The columns of X.

    See Also
    --------
    BestSubsetPoisson : The same model where tau and gamma are given.

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

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, groups: Any = None
    ) -> BestSubsetPoissonCV:
        """Choose tau and gamma, and fit the best subset on all rows.

        Ctrl-C keeps the best answer so far, as a limit does; a second one quits.

        Parameters
        ----------
        X : (n, p) array_like
        y : (n,) array_like
            Counts, from 0 on; they need not be whole.
        sample_weight : (n,) array_like, optional
            How much each row counts, in every fit and in the loss of held-out rows; 0 is as if it were not there.
        exposure : (n,) array_like, optional
            How long, or of how many, each row was counted, above 0; 1 by default.
        groups : (n,) array_like, optional
            For a splitter that needs them.

        Returns
        -------
        BestSubsetPoissonCV
            This object.
        """
        data, plan = self._dealt(self._counted(X, y, exposure, groups), sample_weight)
        self._search_over(data, plan, loss=Loss.POISSON)
        warn_unproved(self)
        warn_of_edges(self)
        return self
