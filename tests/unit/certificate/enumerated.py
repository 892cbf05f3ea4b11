"""True records, made by enumeration from the definition."""

from __future__ import annotations

import numpy as np
from every_support import brute_force_cell, brute_force_cv_error

from sparsecv_mio.certificate.parts import ChosenFolds, DataInfo, FoldInfo, SearchRequest, Work, relative_gap, versions
from sparsecv_mio.certificate.records import SCHEMA, Least, OneSe, Record, Refit, TableRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.objective import held_out_error, r_squared, standard_error

Pair = tuple[float, int]


def small(seed: int, n: int = 18, p: int = 4, aux: bool = False) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 3.0
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=n)
    y = X[:, 0] - 2.0 * X[:, 2] + rng.normal(size=n)
    return Dataset.from_arrays(X, y, aux={"g": np.arange(n) % 5} if aux else None)


def worst_fold(data: Dataset, plan: FoldPlan, fold: int, pair: Pair, how: dict[str, str]) -> tuple[list[str], float]:
    train, test = plan.train_rows(fold), plan.scored_rows(fold)
    cell = brute_force_cell(data.X, data.y, pair[1], pair[0], rows=train, **how)
    errors = [held_out_error(model, data.X, data.y, test) for model in cell.fits]
    worst = int(np.argmax(errors))
    return [data.names[j] for j in cell.fits[worst].support], errors[worst]


def of_folds(data: Dataset, plan: FoldPlan, pair: Pair, how: dict[str, str]) -> ChosenFolds:
    """The folds of a pair."""
    folds = [worst_fold(data, plan, j, pair, how) for j in range(plan.k)]
    return ChosenFolds.of([support for support, _ in folds], [error for _, error in folds])


def truth(
    data: Dataset, plan: FoldPlan, gammas: list[float], taus: list[int], one_se: bool = False, **how: str
) -> Record:
    """The record of a complete enumeration."""
    how = {"scale": "length", "intercept": "fold", **how}
    k, X, y = plan.k, data.X, data.y
    h = {(g, t): brute_force_cv_error(X, y, plan.labels, t, g, **how) for g in gammas for t in taus}
    best: Pair = min(h, key=lambda pair: h[pair][1])
    least_folds = folds = of_folds(data, plan, best, how)
    upper, lower = h[best][1], min(low for low, _ in h.values())
    pair, one, least = best, None, None
    widths = h[best][1] - h[best][0], 1e-12 * upper
    answer = Least(*best, upper, lower, upper, relative_gap(lower, upper), *widths)
    if one_se:
        error = standard_error(folds.error, plan.sizes)
        within = [q for q in h if h[q][1] <= upper + error]
        pair = min(within, key=lambda q: (q[1], -q[0]))
        one = OneSe(error)
    if pair != best:
        least, folds, (low, high) = answer, of_folds(data, plan, pair, how), h[pair]
        answer = Least(*pair, high, low, high, relative_gap(low, high), high - low, 1e-12 * high)
    model = brute_force_cell(X, y, pair[1], pair[0], **how).fits[0]
    names = tuple(data.names[j] for j in model.support)
    return Record(
        schema=SCHEMA,
        status="proved",
        **vars(answer),
        r_squared=r_squared(y, plan.all_scored, answer.cv_error),
        support=names,
        coefficients=dict(zip(names, model.beta.tolist(), strict=True)),
        intercept=model.intercept,
        one_se=one,
        refit=Refit(pair[0], pair[1], model.objective, model.objective, model.objective, True),
        table=tuple(TableRow(g, t, high, low, high, k, k) for (g, t), (low, high) in h.items()),
        chosen_folds=folds,
        work=Work(0, 0, 0.0, "brute force"),
        data=DataInfo(data.n, data.p, data.target, data.fingerprint, how["scale"], how["intercept"], data.names),
        folds=FoldInfo(plan.spec, plan.seed, k, plan.digest),
        request=SearchRequest(tuple(gammas), tuple(taus), 0.0, one_se=one_se),
        warnings=(),
        versions=versions(),
        least=least,
        least_folds=None if least is None else least_folds,
    )
