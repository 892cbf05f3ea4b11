"""scikit-learn estimators for best-subset ridge, logistic, Poisson and Cox regression, with certified cross-validation.

All estimators accept arrays and data frames and work wherever scikit-learn accepts a regressor or a classifier. The
guarantees of the estimators are stated in :func:`sparsecv_mio.search.api.cross_validate` and
:func:`sparsecv_mio.fits.best_subsets.best_subsets`.
"""

from sparsecv_mio.errors import need_extra

need_extra("sklearn", "BestSubsetRidge")

from sparsecv_mio.sklearn.best_subset_cox import BestSubsetCox, BestSubsetCoxCV  # noqa: E402
from sparsecv_mio.sklearn.best_subset_logistic import BestSubsetLogistic, BestSubsetLogisticCV  # noqa: E402
from sparsecv_mio.sklearn.best_subset_poisson import BestSubsetPoisson, BestSubsetPoissonCV  # noqa: E402
from sparsecv_mio.sklearn.best_subset_ridge import BestSubsetRidge, BestSubsetRidgeCV  # noqa: E402

__all__ = [
    "BestSubsetCox", "BestSubsetCoxCV", "BestSubsetLogistic", "BestSubsetLogisticCV", "BestSubsetPoisson",
    "BestSubsetPoissonCV", "BestSubsetRidge", "BestSubsetRidgeCV",
]  # fmt: skip
