"""`BestSubsetRidge`: the best subset of a given size, or of every size of a path, at a given ridge weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.certificate.records import PathRecord
from sparsecv_mio.data.weights import least_rows, weighted_rows
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.model_space import Column, Hierarchy, Limits, taus_of
from sparsecv_mio.sklearn.linear import SparseLinearModel, by_column, warn_unproved, watched, with_callbacks


class BestSubsetRidge(SparseLinearModel):
    """Best-subset ridge regression of a given size: the best of all subsets of at most tau features, proved.

    Minimises `||y - Xb||^2 + (gamma / 2) ||b||^2` over all b with at most tau nonzeros, in scaled columns.

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

    coef_: FloatArray
    support_: BoolArray

    def __init__(
        self,
        tau: str | int | Iterable[int] | None = None,
        *,
        gamma: float = 0.1,
        gap: float = 1e-7,
        time_limit: float | None = None,
        scale: str = "length",
        fit_intercept: bool = True,
        force_in: Column | Iterable[Column] | None = None,
        force_out: Column | Iterable[Column] | None = None,
        at_most: Limits | None = None,
        hierarchy: Hierarchy | None = None,
        nonnegative: Column | Iterable[Column] | None = None,
        nonpositive: Column | Iterable[Column] | None = None,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.gamma = gamma
        self.gap = gap
        self.time_limit = time_limit
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.force_in = force_in
        self.force_out = force_out
        self.at_most = at_most
        self.hierarchy = hierarchy
        self.nonnegative = nonnegative
        self.nonpositive = nonpositive
        self.verbose = verbose

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
        within = self._restrictions.within(data.names)
        sizes = taus_of(self.tau, within.left(data.p), least_rows(data), "tau", within)
        with watched(self, data.X, data.y) as watch:
            record = best_subsets(
                data, gammas=[self.gamma], taus=sizes, gap=self.gap, restrictions=within,
                time_limit=self.time_limit, scale=self.scale, intercept=self._intercept, **watch._asdict(),
            )  # fmt: skip
            self._keep(record)
        warn_unproved(self)
        return self

    def _keep(self, record: PathRecord) -> None:
        """Set the fitted attributes."""
        names, last = record.data.names, record.path[-1]
        self.taus_ = np.array([row.tau for row in record.path])
        self.coef_path_ = np.column_stack([by_column(row.coefficients, names) for row in record.path])
        self.intercept_path_ = np.array([row.intercept for row in record.path])
        self.coef_, self.intercept_, self.tau_ = self.coef_path_[:, -1].copy(), last.intercept, last.tau
        self.support_ = np.isin(names, last.support)
        self.objective_, self.lower_, self.upper_ = last.objective, last.lower, last.upper
        self.status_, self.record_ = record.status, record
