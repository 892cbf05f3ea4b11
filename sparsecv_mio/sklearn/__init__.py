"""Estimators of scikit-learn: best-subset ridge regression, its size and weight chosen by certified cross-validation.

Both take arrays or frames and can stand wherever scikit-learn takes a regressor; what they promise comes from
:func:`sparsecv_mio.search.api.cross_validate` and :func:`sparsecv_mio.fits.best_subsets.best_subsets`.
"""

from sparsecv_mio.errors import need_extra

need_extra("sklearn", "BestSubsetRidge")

from sparsecv_mio.sklearn.best_subset_ridge import BestSubsetRidge, BestSubsetRidgeCV  # noqa: E402

__all__ = ["BestSubsetRidge", "BestSubsetRidgeCV"]
