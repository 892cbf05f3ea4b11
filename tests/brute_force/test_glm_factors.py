"""Whole factors with logistic and Poisson loss against an enumeration over terms in long double."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from glm_claims import Truth, of_model, of_search
from glm_referee import Referee, Support
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes, with_offsets
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import TargetColumns

Terms = list[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class TermReferee(Referee):
    """A referee whose supports are sets of whole terms."""

    terms: tuple[Support, ...] = ()

    def supports(self, tau: int) -> list[Support]:
        made = []
        for some in combinations(self.terms, min(tau, len(self.terms))):
            columns = {j for term in some for j in term}
            if columns | set(self.free) >= set(self.force_in):
                made.append(tuple(sorted(columns | set(self.free))))
        return made


@dataclass(frozen=True, eq=False)
class TermTruth(Truth):
    """The truth about models of whole terms; a support that is stated has no adjusted columns."""

    def count(self, support: Support) -> int:
        return sum(not set(support).isdisjoint(term) for term in self.referee.terms)  # type: ignore[attr-defined]

    def support(self, names: Any) -> Support:
        return tuple(sorted({*super().support(names), *self.referee.free}))


@dataclass(frozen=True)
class Case:
    """Data in the form of their loss, folds, and options."""

    loss: str
    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    how: dict[str, Any]
    terms: Terms

    @property
    def truth(self) -> TermTruth:
        names, how = self.data.names, self.how
        free = tuple(names.index(name) for name in how.get("adjust", ()))
        made = Truth.from_data(self.data, self.folds, self.loss, {"scale": how["scale"], "intercept": how["intercept"]})
        varying = made.referee.varying
        terms = [tuple(j for j in term if j in varying and j not in free) for term in self.terms]
        forced = [j for term in terms if {names[j] for j in term} & {*how.get("force_in", ())} for j in term]
        r = made.referee
        referee = TermReferee(
            r.loss, r.X, r.y, r.w, r.e, r.scale, r.intercept, tuple(forced), (), free,
            terms=tuple(term for term in terms if term),
        )  # fmt: skip
        return TermTruth(referee, made.data, made.plan, made.rows)


def drawn(seed: int) -> Case:
    """Draw one to three factors of two to four levels, and up to three single columns."""
    rng = np.random.default_rng([65, seed])
    n, sizes = int(rng.integers(24, 50)), rng.integers(2, 5, size=rng.integers(1, 4)).tolist()
    blocks = [np.eye(k)[rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))] for k in sizes]
    kind = seed % 5
    if kind == 1 and len(blocks) > 1:
        blocks[1] = blocks[0][:, rng.permutation(sizes[0])].copy()  # a factor and its copy
    if kind == 2:
        blocks[0] = rng.normal(size=(n, sizes[0]))
    if kind == 3:
        blocks[0][:] = np.eye(sizes[0])[0]
        blocks[0][0] = np.eye(sizes[0])[-1]  # a level of one row, which is constant in the fold without it
    singles = [rng.normal(size=(n, 1)) for _ in range(rng.integers(1, 4))]
    if kind == 4:
        singles.append(singles[0] + 1e-6 * rng.normal(size=(n, 1)))
    names = [f"f{i}={'abcd'[level]}" for i, block in enumerate(blocks) for level in range(block.shape[1])]
    names += [f"x{i}" for i in range(len(singles))]
    X = np.hstack([*blocks, *singles])
    predictors = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.6))
    ends = np.cumsum([0, *(block.shape[1] for block in (*blocks, *singles))]).tolist()
    terms = [tuple(range(low, high)) for low, high in zip(ends, ends[1:], strict=False)]
    how: dict[str, Any] = {
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": str(rng.choice(["fold", "fold", "none"])),
        "count": "factors"
        if kind != 2
        else [names[: sizes[0]], *([names[i] for i in t] for t in terms[1 : len(sizes)])],
    }
    if seed % 4 == 1:
        how["force_in"] = ("x0",) if kind == 3 else (names[0],)
    if seed % 4 == 3:
        how["adjust"] = (names[-1],)
    loss = "logistic" if seed % 2 else "poisson"
    target = (
        rng.random(n) < 1.0 / (1.0 + np.exp(-predictors))
        if seed % 2
        else rng.poisson(np.exp(np.minimum(predictors, 3)))
    )
    aux = {"o": rng.normal(size=n)} if seed % 3 == 0 else {}
    plain = Dataset.from_arrays(X, target.astype(float), names=names, aux=aux)
    data = as_two_classes(plain) if seed % 2 else as_counts(plain)
    data = with_offsets(data, TargetColumns(offset="o")) if aux else data
    data = weighted_rows(data, rng.choice([0.5, 1.0, 2.0], size=n), "w") if seed % 5 == 0 else data
    folds = make_folds(str(rng.choice(["3", "4", "2x3"])), data, seed)
    gammas = sorted((10.0 ** rng.uniform(-3.0, 2.0, size=2)).tolist())
    least = 1 if "force_in" in how else 0
    most = len(terms) - ("adjust" in how)
    taus = sorted({max(least, int(tau)) for tau in rng.integers(0, most + 1, size=2)})
    return Case(loss, data, folds, gammas, taus, how, terms)


def solved(case: Case, **more: Any) -> Any:
    of_target = {"offset": case.data.offset}
    given = {"threads": 1, "loss": case.loss, "gap": 0.0} | of_target | case.how | more
    return cross_validate(case.data, case.folds, gammas=case.gammas, taus=case.taus, **given)


@pytest.mark.parametrize("seed", [*range(5), *slow(range(5, 130))])
def test_searches_of_whole_factors_tell_the_truth(seed: int) -> None:
    case = drawn(seed)
    record = solved(case)
    assert record.status == "proved" and list(of_search(case.truth, record)) == []
    assert seed % 3 or verify(record, case.data, folds=case.folds).ok


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_paths_of_whole_factors_tell_the_truth(seed: int) -> None:
    case = drawn(seed)
    how = {name: value for name, value in case.how.items() if name not in ("force_in",)}
    case = replace(case, how=how)
    made = best_subsets(case.data, gammas=case.gammas, taus=case.taus, loss=case.loss, offset=case.data.offset, **how)
    for row in made.path:
        assert list(of_model(case.truth, f"tau {row.tau}", row, row.gamma, row.proved)) == [] and row.proved
    assert verify(made, case.data).ok


@pytest.mark.parametrize("seed", [2, 5, 11])
def test_single_fits_of_whole_factors_tell_the_truth(seed: int) -> None:
    case, gamma = drawn(seed), 0.3
    tau, how = case.taus[-1], {name: case.how[name] for name in ("scale", "intercept")}
    side = SideOptions(**{name: case.how[name] for name in case.how.keys() - how.keys()})
    made = fit_one(case.data, tau=tau, gamma=gamma, loss=case.loss, offset=case.data.offset, side=side, **how)
    assert list(of_model(case.truth, "fit", made, gamma, made.status == "proved")) == [] and made.status == "proved"
    report = verify(made, case.data)
    assert report.ok and "not verified" not in str(report)


def test_a_record_of_half_a_factor_is_refuted() -> None:
    case = drawn(7)
    record = solved(case)
    factor = next(name for fold in record.chosen_folds for name in fold.support if name.startswith("f"))
    for part in ("chosen_folds", "refit"):
        stated = json.loads(record.to_json())
        models = stated["chosen_folds"] if part == "chosen_folds" else [stated]
        assert any(factor in model["support"] for model in models)
        for model in models:
            model["support"] = [name for name in model["support"] if name != factor]
            model.get("coefficients", {}).pop(factor, None)
        assert not verify(Record.from_json(json.dumps(stated)), case.data, folds=case.folds).ok


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"at_most": "1:x0"}, "at_most: requires loss squared, not logistic .*count"),
        ({"model": "average"}, "requires model pair"),
    ],
)
def test_other_restrictions_stay_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        solved(drawn(7), **more)


def test_estimators_choose_whole_factors() -> None:
    case = drawn(11)
    X, y = pd.DataFrame(case.data.X, columns=case.data.names), case.data.y
    how: dict[str, Any] = {"taus": [1, 2], "gammas": [0.1, 1.0], "count": "factors"}
    model = sc.BestSubsetLogisticCV(cv="4", **how).fit(X, y)
    same = sc.solve(X.assign(y=y), "y", loss="logistic", folds="4", **how)
    assert model.record_.support == same.support and model.cv_error_ == same.cv_error
    path = best_subsets(case.data, gammas=[0.1], taus=[2], loss="logistic", count="factors").path[0]
    one = sc.BestSubsetLogistic(2, gamma=0.1, count="factors").fit(X, y)
    assert set(np.array(case.data.names)[one.coef_[0] != 0.0]) == set(path.support)
