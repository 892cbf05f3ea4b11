"""Certified cross-validation for best-subset ridge, logistic, Poisson and Cox regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparsecv_mio.implementations import register_implementations as _register
from sparsecv_mio.version import __version__ as __version__

if TYPE_CHECKING:
    from sparsecv_mio.certificate.read_back import read_record as read_record
    from sparsecv_mio.certificate.verify import verify as verify
    from sparsecv_mio.data.dataset import Dataset as Dataset
    from sparsecv_mio.data.folds import make_folds as make_folds
    from sparsecv_mio.data.readers import read_dataset as read_dataset
    from sparsecv_mio.errors import SparseCVError as SparseCVError
    from sparsecv_mio.fits.best_subsets import best_subsets as best_subsets
    from sparsecv_mio.inference.baselines import compare_baselines as compare_baselines
    from sparsecv_mio.inference.repetitions import bootstrap as bootstrap
    from sparsecv_mio.inference.repetitions import infer as infer
    from sparsecv_mio.inference.repetitions import stability_selection as stability_selection
    from sparsecv_mio.near.near_optimal import near_optimal as near_optimal
    from sparsecv_mio.search.api import cross_validate as cross_validate
    from sparsecv_mio.search.api import solve as solve
    from sparsecv_mio.sklearn.best_subset_cox import BestSubsetCox as BestSubsetCox
    from sparsecv_mio.sklearn.best_subset_cox import BestSubsetCoxCV as BestSubsetCoxCV
    from sparsecv_mio.sklearn.best_subset_logistic import BestSubsetLogistic as BestSubsetLogistic
    from sparsecv_mio.sklearn.best_subset_logistic import BestSubsetLogisticCV as BestSubsetLogisticCV
    from sparsecv_mio.sklearn.best_subset_poisson import BestSubsetPoisson as BestSubsetPoisson
    from sparsecv_mio.sklearn.best_subset_poisson import BestSubsetPoissonCV as BestSubsetPoissonCV
    from sparsecv_mio.sklearn.best_subset_ridge import BestSubsetRidge as BestSubsetRidge
    from sparsecv_mio.sklearn.best_subset_ridge import BestSubsetRidgeCV as BestSubsetRidgeCV

_HOME = {
    "BestSubsetCox": "sklearn",
    "BestSubsetCoxCV": "sklearn",
    "BestSubsetLogistic": "sklearn",
    "BestSubsetLogisticCV": "sklearn",
    "BestSubsetPoisson": "sklearn",
    "BestSubsetPoissonCV": "sklearn",
    "BestSubsetRidge": "sklearn",
    "BestSubsetRidgeCV": "sklearn",
    "Dataset": "data.dataset",
    "SparseCVError": "errors",
    "best_subsets": "fits.best_subsets",
    "bootstrap": "inference.repetitions",
    "compare_baselines": "inference.baselines",
    "cross_validate": "search.api",
    "infer": "inference.repetitions",
    "make_folds": "data.folds",
    "near_optimal": "near.near_optimal",
    "read_dataset": "data.readers",
    "read_record": "certificate.read_back",
    "solve": "search.api",
    "stability_selection": "inference.repetitions",
    "verify": "certificate.verify",
}

__all__ = sorted(_HOME)


_IMPLEMENTATIONS = {
    **_HOME,
    **dict.fromkeys(
        ("as_pandas", "dataset_from_frame", "join_times", "read_new_frame", "table_columns"), "data.frames"
    ),
    "CoxAnswerFits": "search.answer.cox_answer_fits",
    "answer_notes": "report.coefficients",
    "check_inference": "inference.split_tests",
    **dict.fromkeys(("criteria", "glm_criteria"), "fits.criteria"),
    "data_of": "certificate.read_back",
    "describe_missing_proof": "report.record_words",
    "held_out_predictions": "search.answer.fold_models",
    "predict_interval": "fits.prediction_intervals",
    "read_new_rows": "data.readers",
    "write_report": "report.record_report",
}


def _load_from_module(name: str, module: str) -> Any:
    # on first use, so that importing the package loads neither numba nor a numerical library
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load_from_module(name, _HOME[name])


def _find_implementation(name: str) -> Any:
    module = _IMPLEMENTATIONS.get(name, "report.record_plots")
    if not module.startswith("report."):
        return _load_from_module(name, module)
    from sparsecv_mio.errors import naming_extras

    return naming_extras()(_load_from_module(name, module))


_register(_find_implementation)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
