"""`BestSubsetRidgeCV`: the number of features and the ridge weight by certified cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.metaestimators import available_if

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import SPECS, AnyFolds, Splitter, canonical, fold_columns, folds_of
from sparsecv_mio.data.weights import least_rows, weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Column, Hierarchy, Limits, default_gammas, gammas_of
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.sklearn.linear import SparseLinearModel, by_column, warn_unproved, watched, with_callbacks

KINDS_OF_CV = (
    "a number K, a text such as 'loo', '5x10', 'stratified:5', 'forward:5', 'blocks:3' or 'holdout:0.2', a splitter of "
    "scikit-learn or its splits, or a label per row"
)


def _has_model(estimator: BestSubsetRidgeCV) -> bool:
    if not estimator.refit:
        raise AttributeError("BestSubsetRidgeCV(refit=False) has no model to predict by: fit it with refit=True")
    return True


def _folds(cv: AnyFolds, rows: Dataset) -> FoldPlan:
    """Return the folds that `cv` stands for; messages say `cv`, and what it may be."""
    if isinstance(cv, str) and fold_columns(cv):
        kind = canonical(cv).partition(":")[0]
        how = "a splitter, GroupKFold() for one, and groups= to fit" if kind == "groups" else "the column itself"
        raise BadInput(f"cv: {cv!r} names a column, and only a file has such a one: give {how}")
    try:
        return folds_of(cv, rows, groups=rows.aux.get("groups"))
    except BadInput as error:
        text = str(error).replace(SPECS, KINDS_OF_CV)
        raise BadInput(text if text.startswith("groups") else f"cv: {text}") from None


def _names_rows(cv: AnyFolds) -> bool:
    """Whether folds are given by rows of the data, so that none may be left out before they are made."""
    listed = isinstance(cv, PredefinedSplit) or isinstance(getattr(cv, "cv", None), list)  # the second: of `check_cv`
    return listed or not isinstance(cv, str | Integral | Splitter)


class BestSubsetRidgeCV(SparseLinearModel):
    """Best-subset ridge regression, its size tau and ridge weight gamma chosen by certified cross-validation.

    Every fold of every pair (tau, gamma) is fitted by the best of all subsets of tau features,
    `min ||y - Xb||^2 + (gamma / 2) ||b||^2` in scaled columns; the pair with the least cross-validation error is
    refitted on all rows. With the defaults, `sparsecv solve` gives the same numbers.

    Parameters
    ----------
    taus : int, sequence of int or str, optional
        Numbers of features to try; by default 1 to p, of p > 30 to n_train / 8, but at least 10 and at
        most 50.
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
        Coefficients of the best subset on all rows, in the units of X; this and the next two with `refit` only.
    intercept_ : float
    support_ : (p,) bool array
        The features that were chosen.
    tau_, gamma_ : int, float
        The pair that was chosen.
    cv_error_ : float
        Its mean squared error over held-out rows.
    lower_, upper_ : float
        Certified bounds of the least cross-validation error of all pairs. Where `one_se` or `stability` chose another
        pair they are of its own error, and those of the least one are `record_.least.lower` and `record_.least.upper`.
    status_ : {"proved", "limit", "interrupted"}
    cv_results_ : dict of arrays
        All pairs, as :func:`~sparsecv_mio.sklearn.cross_validated.cv_results` says.
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

    coef_: FloatArray
    support_: BoolArray

    def __init__(
        self,
        *,
        taus: str | int | Iterable[int] | None = None,
        gammas: str | float | Iterable[float] | None = None,
        n_gammas: int | None = None,
        cv: AnyFolds = 10,
        one_se: bool = False,
        stability: float | str | None = None,
        gap: float = 1e-4,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        scale: str = "length",
        fit_intercept: bool = True,
        refit: bool = True,
        force_in: Column | Iterable[Column] | None = None,
        force_out: Column | Iterable[Column] | None = None,
        at_most: Limits | None = None,
        hierarchy: Hierarchy | None = None,
        nonnegative: Column | Iterable[Column] | None = None,
        nonpositive: Column | Iterable[Column] | None = None,
        verbose: int = 0,
    ) -> None:
        self.taus = taus
        self.gammas = gammas
        self.n_gammas = n_gammas
        self.cv = cv
        self.one_se = one_se
        self.stability = stability
        self.gap = gap
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.refit = refit
        self.force_in = force_in
        self.force_out = force_out
        self.at_most = at_most
        self.hierarchy = hierarchy
        self.nonnegative = nonnegative
        self.nonpositive = nonpositive
        self.verbose = verbose

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
        data = self._dataset(X, y, groups)

        def deal(rows: Dataset) -> FoldPlan:
            return _folds(self.cv, rows)

        if sample_weight is None:
            plan = deal(data)
        else:
            data, plan = weighted(data, sample_weight, deal, name="sample_weight", by_row=_names_rows(self.cv))
        shape = self._restrictions.within(data.names).left(data.p), least_rows(data, plan)
        gammas = default_gammas(*shape, self.n_gammas) if self.gammas is None else gammas_of(self.gammas, *shape)
        with watched(self, data.X, data.y) as watch:
            record = cross_validate(
                data, plan, gammas=gammas, taus=self.taus, gap=self.gap, one_se=self.one_se,
                stability=self.stability,
                restrictions=self._restrictions, time_limit=self.time_limit, threads=effective_n_jobs(self.n_jobs),
                scale=self.scale, intercept=self._intercept, **watch._asdict(),
            )  # fmt: skip
            self._keep(record)
        warn_unproved(self)
        return self

    @available_if(_has_model)
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

    def _keep(self, record: Record) -> None:
        """Set the fitted attributes."""
        for name in ("coef_", "intercept_", "support_"):
            self.__dict__.pop(name, None)  # of a fit before
        if self.refit:
            self.coef_ = by_column(record.coefficients, record.data.names)
            self.intercept_ = record.intercept
            self.support_ = np.isin(record.data.names, record.support)
        self.tau_, self.gamma_, self.cv_error_ = record.tau, record.gamma, record.cv_error
        self.lower_, self.upper_, self.status_ = record.lower, record.upper, record.status
        self.cv_results_ = cv_results(record)
        self.record_ = record


def cv_results(record: Record) -> dict[str, Any]:
    """Return a dict of arrays, an entry for every pair (gamma, tau) of the grid, as GridSearchCV has it.

    Scores are negative mean squared errors, NaN where a limit left a pair without any; those of pairs that are not
    decided are estimates, their `lower` and `upper` hold.

    Parameters
    ----------
    record : Record

    Returns
    -------
    dict
        `params`, `param_tau`, `param_gamma`; `mean_test_score`, `rank_test_score`; `cv_error` with its certified bounds
        `lower` and `upper` and its `standard_error` over the folds; `folds_decided`, `decided` (bool) and `status`.
    """
    rows = record.table

    def column(field: str) -> NDArray[Any]:
        return np.array([getattr(row, field) for row in rows])

    tau, gamma, error = column("tau"), column("gamma"), column("cv_error")
    score = np.where(np.isfinite(error), -error, np.nan)
    return {
        "params": [{"tau": row.tau, "gamma": row.gamma} for row in rows],
        "param_tau": tau,
        "param_gamma": gamma,
        "mean_test_score": score,
        "rank_test_score": rankdata(np.where(np.isfinite(error), error, np.inf), method="min").astype(np.int32),
        "cv_error": error,
        "lower": column("lower"),
        "upper": column("upper"),
        "standard_error": column("standard_error").astype(np.float64),
        "folds_decided": column("folds_decided"),
        "decided": column("folds_decided") == column("folds"),
        "status": column("status"),
    }
