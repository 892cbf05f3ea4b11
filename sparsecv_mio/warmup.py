"""Functions that compile all kernels in advance, on tiny data, for `sparsecv warmup` and the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from sparsecv_mio import kernels
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WIDE_COLUMNS, WideRows
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import RowLists
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.cv_bounds import bound_cv_errors
from sparsecv_mio.fits.fit_options import PathOptions, SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.kernels.cox_newton import fill_wide_drops
from sparsecv_mio.kernels.kernel_cache import where_kernels_are as where_kernels_are
from sparsecv_mio.model_space import parse_hierarchy, parse_limits
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.problem.risk_sets import make_risk_sets
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.proofs.threshold_trees import PerspectiveProof, Units, prove_thresholds
from sparsecv_mio.satellites import registered
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.first_use import BOUNDED, KINDS, RESTRICTED, SURVIVAL, answer_tiny_questions, make_tiny_data
from sparsecv_mio.search.problems.fold_local_search import search_all_passes
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import DEFAULT_LOSS
from sparsecv_mio.thresholds import MANY as MANY_COLUMNS
from sparsecv_mio.trees.glm_left_out import LeftOut
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.words import Method

GAMMAS, TAUS = (0.01, 1.0), (1, 2, 3)
METHODS = (Method.ROUNDS, Method.JOINT, Method.ALGORITHM1)


def searches(n: int, p: int) -> None:
    """Run `solve` with every method, on folds of one row and on larger folds."""
    data = make_tiny_data(n, p)
    for spec in ("loo", "3"):
        for method in METHODS:
            cross_validate(data, make_folds(spec, data), gammas=GAMMAS, taus=TAUS, method=method)


def first_runs() -> None:
    """Run every command on each kind of data, to compile what a command needs before its clock starts."""
    for kind in KINDS:
        answer_tiny_questions(kind, cross_validate)
        n, p, folds, _ = kind.shapes[-1]
        data = make_tiny_data(n, p, kind.options.get("loss", DEFAULT_LOSS))
        how: dict[str, Any] = {"gammas": GAMMAS, "taus": TAUS[:2], **kind.options}
        best_subsets(data, **how)
        if kind not in (RESTRICTED, BOUNDED, SURVIVAL):
            bound_cv_errors(data, make_folds(folds, data), gammas=GAMMAS, taus=TAUS[:2], options=PathOptions(
                loss=kind.options.get("loss", DEFAULT_LOSS)))  # fmt: skip
            near_optimal(data, folds, gamma=1.0, taus=2, most=5, **kind.options)
            best_common_subset(data, folds, **how)


def trees() -> None:
    """Run `fit` and `path`."""
    for data in (make_tiny_data(30, 5), make_tiny_data(30, 40)):
        fit_one(data, tau=3, gamma=0.1)
    data = make_tiny_data(30, 3)
    list(prove_thresholds(full_problem(standardize(data), 0.1), {1: 1.0}, Units.from_data(standardize(data)), 0.0))
    walk = standardize(Dataset.from_arrays(np.cumsum(make_tiny_data(60, 30).X, axis=1), make_tiny_data(60, 30).y))
    tied, units = full_problem(walk, 0.1), Units.from_data(walk)
    by_blocks = PerspectiveProof(2, 0.1 * tied.yy, (100, 100), tied, units.point, units.square)
    by_blocks.solve(tied.q)
    twice = Dataset.from_arrays(np.column_stack([data.X, data.X @ [1.0, 2.0, -1.0]]), data.y)
    fit_one(twice, tau=2, gamma=1e-15)  # collinear columns: supports are enumerated
    data = make_tiny_data(30, MANY_COLUMNS + 20)
    alike = Dataset.from_arrays(np.cumsum(data.X, axis=1), data.y)
    fit_one(alike, tau=3, gamma=0.1, limits=Limits(nodes=20))
    fit_one(make_tiny_data(30, 40), tau=2, gamma=0.1, assume_box=5.0)  # solved by clusters of columns


def two_classes() -> None:
    """Fit and branch with logistic loss."""
    data = make_tiny_data(30, 12)
    logistic = GlmProblem(data.X, np.where(data.y > data.y.mean(), 1.0, -1.0), np.ones(30), np.ones(12), 1.0)
    subsets = GlmSubsets(logistic)
    subsets.solve([5])  # 792 supports, enough for the local search to improve the start
    subsets.score_supports([np.array([0, 1])], data.X[:3], np.array([1.0, -1.0, 1.0]))
    mask = subsets.fits.mask([0, 1])
    folds = LeftOut(subsets.fits, RowLists(np.arange(3), np.array([0, 3])), None, np.ones(30))
    folds.values(mask, subsets.fits.refit(mask[None, :]).points[0], bool)


def survival_times() -> None:
    """Bound drops of linear predictors as for very many rows."""
    sets = make_risk_sets(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    fill_wide_drops(sets, np.zeros(3), np.zeros(4), np.zeros(2))


def restricted_trees() -> None:
    """Run `fit` under restrictions."""
    fit_one(
        make_tiny_data(30, 5), tau=2, gamma=0.1, side=SideOptions(at_most=parse_limits("1:x0,x1"), nonnegative=("x2",))
    )
    fit_one(make_tiny_data(30, 5), tau=2, gamma=0.1, side=SideOptions(hierarchy=parse_hierarchy("x0=x3")))
    fit_one(make_tiny_data(30, 5), tau=2, gamma=0.1, side=SideOptions(nonnegative=("x2",)))


def list_near_optimal() -> None:
    """Run `near`, by CV error and by training objective."""
    for spec in ("loo", "3"):
        near_optimal(make_tiny_data(30, 5), spec, gamma=0.1, taus=(2, 3))
    near_optimal(make_tiny_data(30, 40), gamma=1.0, taus=4, by="objective")


def run_bounds() -> None:
    """Run `bounds`, from the Gram matrix and from rows, and the relaxation separately."""
    data = standardize(make_tiny_data(20, 12))
    for spec in ("loo", "4"):
        compute_bounds(data, make_folds(spec, data.dataset), GAMMAS, TAUS)
    wide = standardize(make_tiny_data(9, WIDE_COLUMNS + 10))
    for gamma in GAMMAS:
        compute_bounds(wide, make_folds("3", wide.dataset), (gamma,), TAUS[1:2])
    rows = np.arange(wide.n)
    whole = WideFold(WideRows.from_data(wide, rows, rows[:0], 0.01))
    whole.search([3])
    whole.branch(3, most=3)
    relax_problem(full_problem(data, 1.0), TAUS)


def local_searches() -> None:
    """Run the heuristics with which a search begins."""
    for shape in ((30, 8), (12, 60)):
        data = standardize(make_tiny_data(*shape))
        for _ in search_all_passes(data, make_folds("3", data.dataset), Grid.of(GAMMAS, TAUS, data.q)):
            pass


def compile_satellites() -> None:
    """Compile the kernels that satellites alone use."""
    for compile_kernels in registered("WARM_UP"):
        compile_kernels()


STEPS: dict[str, Callable[[], None]] = {
    "commands": first_runs,
    "best subsets on all rows": trees,
    "two classes": two_classes,
    "survival times": survival_times,
    "trees under restrictions": restricted_trees,
    "local searches": local_searches,
    "searches": partial(searches, 30, 5),
    "searches with more columns than rows": partial(searches, 12, 20),
    "near-optimal models": list_near_optimal,
    "bounds": run_bounds,
    "satellites": compile_satellites,
}


def warm_up(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Compile every kernel, or load it from the cache.

    Parameters
    ----------
    progress : callable, optional
        Function that is called before each step with its name, its number from 1 and the number of steps.
    """
    for number, (name, step) in enumerate(STEPS.items(), start=1):
        if progress is not None:
            progress(name, number, len(STEPS))
        step()


def declared_kernels() -> dict[str, Any]:
    """Return every kernel whose compiled code is cached, by `MODULE.KERNEL`.

    Kernels that numba inlines into their callers have no separate file.
    """
    declared: dict[str, Any] = {}
    for name in (module.name for module in iter_modules(kernels.__path__)):
        for kernel in vars(import_module(f"{kernels.__name__}.{name}")).values():
            options = getattr(kernel, "targetoptions", {})
            own = hasattr(kernel, "py_func") and kernel.py_func.__module__ == f"{kernels.__name__}.{name}"
            if own and hasattr(kernel, "_cache") and options.get("inline") != "always":
                declared[f"{name}.{kernel.py_func.__qualname__}"] = kernel
    return declared
