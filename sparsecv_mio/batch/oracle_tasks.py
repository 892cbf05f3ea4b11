"""TreeCV, GLRU and IACV (`sparsecv_mio.oracles`) as tasks of a batch.

Each task uses cross-validation, for example leave-one-out, to estimate the prediction error of one model with given
parameters. The task chooses no parameters and returns no model. The setting `way` selects the oracle or the ordinary
computation with one fit for each fold, so that their running times can be compared. The reported seconds are the time
of the error estimation alone. Before the time is measured, a run on a few rows loads and compiles the code.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.batch.peers import Fitted
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS, SOLVERS
from sparsecv_mio.oracles.answers import binary_labels, design_matrix
from sparsecv_mio.oracles.iacv import DEFAULT_BATCH, METHODS, PENALTIES, make_erm, make_solver, run
from sparsecv_mio.oracles.losses import CERTIFIED, SMOOTH
from sparsecv_mio.words import Intercept, Scale

if TYPE_CHECKING:
    from sparsecv_mio.oracles.iacv import IacvReport


LEAVE_ONE_OUT = ("glru", "iacv")
SETTINGS = (
    "way", "learner", "order", "loss", "penalty", "lam", "tol", "solver", "iterations", "step", "batch", "doubling",
    "per_row", "exact",
)  # fmt: skip
NEEDED: Mapping[str, tuple[str, ...]] = {"treecv": (), "glru": ("lam",), "iacv": ("lam", "iterations")}
KEYWORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "treecv": {"way": ("tree", "standard"), "learner": LEARNERS, "order": ("fixed", "random")},
    "glru": {"way": ("steps", "trainings", "newton", "naive"), "loss": tuple(CERTIFIED), "penalty": ("ridge", "l1")},
    "iacv": {"loss": tuple(SMOOTH), "penalty": tuple(PENALTIES), "solver": SOLVERS},
}
COUNTS = ("iterations", "batch", "doubling")
SWITCHES = ("per_row", "exact")
OF_LEARNER = {"ridge": ("lam",), "pegasos": ("lam",), "lsqsgd": ("step",)}
OWN_INTERCEPT = ("naive-bayes", "bernoulli-nb")
LABELS = {"iacv": "iacv", "ns": "newton", "ij": "jackknife", "baseline": "full"}


def meaningful(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the settings that an oracle uses.

    Parameters
    ----------
    given : mapping
        Settings by name, including `estimator`.

    Examples
    --------
    >>> meaningful({"estimator": "treecv", "learner": "pegasos"})
    ('folds', 'seed', 'estimator', 'way', 'learner', 'order', 'lam', 'scale', 'intercept')
    """
    kind, units = given["estimator"], ("scale", "intercept")
    if kind == "treecv":
        own = OF_LEARNER.get(str(given.get("learner", "ridge")), ())
        return ("folds", "seed", "estimator", "way", "learner", "order", *own, *units)
    if kind == "glru":
        return ("folds", "estimator", "way", "loss", "penalty", "lam", "tol", *units)
    drawn = ("seed", "batch", "doubling") if given.get("solver") == "sgd" else ()
    return ("folds", "estimator", "loss", "penalty", "lam", "solver", "iterations", "step", *drawn, *SWITCHES, *units)


def used_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a task that its oracle uses, with leave-one-out if it has no folds.

    Parameters
    ----------
    given : mapping
        Settings by name, which may include those of other estimators.
    """
    settings = {**given, "folds": "loo"} if given["estimator"] in LEAVE_ONE_OUT else given
    return {name: settings[name] for name in meaningful(given) if settings.get(name) is not None}


def check_oracle(given: Mapping[str, Any]) -> None:
    """Raise an error for settings of an oracle that are invalid for all data.

    Parameters
    ----------
    given : mapping
        Settings of a task by name; switches are already checked to be true or false.

    Raises
    ------
    BadInput
        If a setting is invalid; the message names it.

    Examples
    --------
    >>> check_oracle({"estimator": "glru", "lam": 0.0})
    Traceback (most recent call last):
    ...
    sparsecv_mio.errors.BadInput: lam: 0.0 is not a number above 0; give such a number without quotes
    """
    kind = str(given["estimator"])
    for name in NEEDED[kind]:
        if name not in given:
            raise BadInput(f"{name} is missing: estimator {kind} needs this setting; add it under [vary]")
    for name, words in {**KEYWORDS[kind], "scale": tuple(Scale), "intercept": tuple(Intercept)}.items():
        if name in given:
            match_keyword(given[name], words, name)
    for name, value in given.items():
        if name in ("lam", "step", "tol"):
            _check_number(name, value, zero=name == "lam" and kind != "glru")
        elif name in COUNTS and (type(value) is not int or value < 1):
            raise BadInput(f"{name}: {value!r} is not a whole number of at least 1; give such a number without quotes")
    if kind == "iacv" and given.get("penalty") == "l1" and given.get("solver") != "proxgd":
        raise BadInput(
            "penalty l1: requires solver proxgd, because the penalty has no gradient; exclude the other solvers by "
            "[[exclude]]"
        )
    if given.get("intercept") == Intercept.FOLD and given.get("learner") in OWN_INTERCEPT:
        raise BadInput(
            f"intercept fold: not supported with learner {given['learner']}, which uses class shares; remove intercept"
        )


def check_rows(given: Mapping[str, Any], data: Dataset, plan: FoldPlan) -> None:
    """Raise an error for data that an oracle does not support.

    Parameters
    ----------
    given : mapping
        Settings of the task, by name.

    Raises
    ------
    BadInput
        If the target does not have two values, a row is held out twice, or a step has more rows than the data.
    """
    if given["estimator"] == "treecv":
        plan.check_partition("treecv")
        labels = given.get("learner") in CLASSIFIERS
    else:
        labels = given["estimator"] == "glru" or given.get("loss", "logistic") == "logistic"
    if labels:
        binary_labels(data)
    if given.get("batch", 1) > data.n:
        raise BadInput(f"batch: {given['batch']} exceeds the {data.n} rows of the data; give a smaller number")


def _check_number(name: str, value: Any, zero: bool) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or value < 0.0 or (value == 0.0 and not zero):
        limit = "of at least 0" if zero else "above 0"
        raise BadInput(f"{name}: {value!r} is not a number {limit}; give such a number without quotes")


def score_setting(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    """Return the score of one setting, by an oracle or in full.

    Parameters
    ----------
    plan : FoldPlan
        Folds of `treecv`; `glru` and `iacv` hold out single rows.
    settings : mapping
        Settings of the task, by name.

    Returns
    -------
    Fitted
        Result without a model: the CV error, counts and times.
    """
    words = {name: value for name, value in settings.items() if isinstance(value, str)}
    _warm_oracle(json.dumps({**words, "folds": "loo", "lam": 1.0, "iterations": 2}))
    return _SCORES[str(settings["estimator"])](data, plan, settings)


@cache
def _warm_oracle(settings: str) -> None:
    """Score a few rows, once in a process, so that times include neither compilation nor loading."""
    X = np.random.default_rng(0).standard_normal((12, 2))
    data, few = Dataset.from_arrays(X, np.arange(12) % 2), json.loads(settings)
    _SCORES[few["estimator"]](data, make_folds("loo", data), used_settings(few))


def _treecv(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    from sparsecv_mio.oracles.treecv import make_task, standard_cv, tree_cv

    task = make_task(
        data,
        settings.get("learner", "ridge"),
        lam=settings.get("lam"),
        step=settings.get("step"),
        **_scaling_settings(settings),
    )
    run = standard_cv if settings.get("way") == "standard" else tree_cv
    seed = int(settings.get("seed", 0)) if settings.get("order") == "random" else None
    spent = time.process_time()
    answer = run(task.learner, task.X, task.y, plan, shuffle_seed=seed)
    numbers = {
        "cpu_seconds": time.process_time() - spent, "cv_error": answer.estimate, "cv_error_pooled": answer.pooled,
        "rows_learned": answer.updates, "k": plan.k,
    }  # fmt: skip
    return Fitted(None, answer.seconds, numbers)


def _glru(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    from sparsecv_mio.oracles.glru import loocv, make_loss, make_problem, make_regularizer

    way, columns = settings.get("way", "steps"), _scaling_settings(settings)
    fold = columns["intercept"] == "fold"
    regularizer = make_regularizer(settings.get("penalty", "ridge"), settings["lam"], intercept=fold)
    X, y = design_matrix(data, **columns), binary_labels(data)[0]
    problem = make_problem(X, y, make_loss(settings.get("loss", "logistic")), regularizer)
    spent = time.process_time()
    answer = loocv(
        problem, tol=settings.get("tol", 1e-6), bounds=way != "naive", steps=way == "steps", approximate=way == "newton"
    )
    cpu, (low, high), stages = time.process_time() - spent, answer.bracket, answer.seconds
    numbers = {
        "cpu_seconds": cpu, "cv_error": answer.errors / data.n, "errors": answer.errors, "errors_lower": low,
        "errors_upper": high, "open": int(answer.open.sum()), "open_share": float(answer.open.mean()),
        "trainings": answer.trainings, "certain": int(answer.certain.sum()), "seconds_fit": stages["prepare"],
        "seconds_bounds": stages["bounds"], "seconds_train": stages["train"],
    }  # fmt: skip
    return Fitted(None, stages["total"], numbers)


def _iacv(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any]) -> Fitted:
    kind, per_row = settings.get("solver", "gd"), settings.get("per_row", False)
    lam, step, batch = settings["lam"], settings.get("step"), settings.get("batch")
    erm = make_erm(
        data, settings.get("loss", "logistic"), settings.get("penalty", "ridge"), lam * data.n if per_row else lam,
        **_scaling_settings(settings),
    )  # fmt: skip
    if kind == "sgd" and batch is None:
        batch = min(DEFAULT_BATCH, data.n)
    if step is not None and per_row:
        step /= batch or data.n
    iterations = settings["iterations"]
    solver = make_solver(
        erm, kind, iterations=iterations, step=step, batch=batch, doubling=settings.get("doubling"),
        seed=int(settings.get("seed", 0)),
    )  # fmt: skip
    methods = (*METHODS, "exact") if settings.get("exact", False) else ("iacv",)
    report = run(erm, solver, iterations, record=[iterations], methods=methods)
    numbers = {"cv_error": float(report.traces["iacv"].cv[-1]), **_errors_of_approximations(report)}
    return Fitted(None, float(report.seconds[-1]), numbers)


def _errors_of_approximations(report: IacvReport) -> dict[str, float]:
    """Return the distance of each approximation from the exact fits without single rows, if available."""
    if report.cv_exact is None or report.seconds_exact is None:
        return {}
    errors = {"cv_error_exact": float(report.cv_exact[-1]), "seconds_exact": float(report.seconds_exact[-1])}
    for name, trace in report.traces.items():
        word = LABELS[name]
        errors[f"cv_error_{word}"] = float(trace.cv[-1])
        for number, values in (("distance", trace.err_approx), ("relative_error", trace.rel_err_cv)):
            if values is not None:
                errors[f"{number}_{word}"] = float(values[-1])
    return errors


def _scaling_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: settings.get(name, "none") for name in ("scale", "intercept")}


_SCORES: Mapping[str, Callable[[Dataset, FoldPlan, Mapping[str, Any]], Fitted]] = {
    "treecv": _treecv, "glru": _glru, "iacv": _iacv,
}  # fmt: skip
ORACLES = tuple(_SCORES)
