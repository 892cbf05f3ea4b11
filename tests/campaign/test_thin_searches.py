"""Columns that hardly move beside their size: every end of every kind of record against exact fractions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from counts import CAMPAIGN, COUNTS
from draws import METHODS, WAYS
from engines import patch_all
from hypothesis import given, note
from hypothesis import strategies as st
from thin_columns import END_RTOL, ThinCase, false_ends, thin_case

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.search.api import cross_validate

SEEDS = st.integers(0, 2**31 - 1)
WIDE = 1e-6  # relative width of an interval that is more than rounding of a regular problem
# the upper end that a tree on the rows has may be valid and far beyond what `verify` allows rounding to do
DRAWN_WAYS = [way for way in WAYS if way != "branch on the rows"]


def made(seed: int, how: Callable[[ThinCase], Any]) -> tuple[ThinCase, Any] | None:
    """A problem and its record; None where the request is refused in one line."""
    try:
        case = thin_case(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # such numbers overflow and underflow
            record = how(case)
    except (BadInput, OutOfTime) as error:
        assert str(error) and "\n" not in str(error)
        COUNTS["thin columns: refused in one line"] += 1
        return None
    report = verify(type(record).from_json(record.to_json()), case.data, case.folds)
    note(f"{seed} {case.words}")
    assert report.ok, report.failures[:3]
    return case, record


def contains(case: ThinCase, lower: float, least: float, upper: float, times: float = 1.0) -> None:
    noise = case.noise * times
    assert lower <= least * (1.0 + END_RTOL) + noise and least <= upper * (1.0 + END_RTOL) + noise, (
        lower,
        least,
        upper,
    )


def how_of(case: ThinCase, *names: str) -> dict[str, Any]:
    return {name: case.words[name] for name in ("scale", "intercept", *names)}


@given(seed=SEEDS)
def test_every_end_of_a_search(seed: int) -> None:
    rng = np.random.default_rng([61, seed])
    words: dict[str, Any] = {"method": str(rng.choice(METHODS))}
    if words["method"] in METHODS[:5]:
        words |= {"one_se": True} if rng.random() < 0.2 else {"stability": 10.0} if rng.random() < 0.2 else {}
        words |= {"model": "average"} if rng.random() < 0.2 else {}
    way = str(rng.choice(DRAWN_WAYS)) if rng.random() < 0.6 else "as they are"

    def solved(case: ThinCase) -> Record:
        with pytest.MonkeyPatch.context() as patch:
            patch_all(patch, WAYS[way])
            return replace(case, words=case.words | words).solved()

    found = made(seed, solved)
    if found is None:
        return
    case, record = found
    assert not false_ends(case, record), (seed, way, words)
    COUNTS["thin columns: records"] += 1
    COUNTS["thin columns: pairs"] += len(record.table)
    COUNTS["thin columns: pairs with wide intervals"] += sum(
        row.upper - row.lower > WIDE * row.upper for row in record.table
    )


@given(seed=SEEDS, by=st.sampled_from(["cv", "objective"]), within=st.sampled_from([0.0, 0.1, 20.0]))
def test_lists_of_near_optimal_supports(seed: int, by: str, within: float) -> None:
    found = made(
        seed,
        lambda case: near_optimal(
            case.data, case.folds, gamma=case.gammas[0], taus=case.taus, by=by, within=within,
            **how_of(case, "restrictions"),
        ),
    )  # fmt: skip
    if found is None:
        return
    case, record = found
    exact, times, names = case.exact(by == "objective"), case.data.n if by == "objective" else 1.0, case.data.names
    for size in record.sizes:
        pairs = {support: exact.of_support(record.gamma, support) for support in exact.supports(size.tau)}
        values = {tuple(names[j] for j in support): float(pair[by == "cv"]) for support, pair in pairs.items()}
        contains(case, size.lower, min(values.values()), size.best, times)
        listed = {model.support: model.value for model in record.models if model.tau == size.tau}
        slack = 4.0 * END_RTOL * abs(size.complete_to) + times * case.noise
        missing = {support for support, value in values.items() if value < size.complete_to - slack} - set(listed)
        assert not missing, (seed, size, missing)
        COUNTS["thin columns: near-optimal lists"] += 1


@given(seed=SEEDS)
def test_common_subsets(seed: int) -> None:
    found = made(
        seed,
        lambda case: best_common_subset(
            case.data, case.folds, gammas=case.gammas, taus=case.taus, **how_of(case, "gap", "restrictions")
        ),
    )
    if found is None:
        return
    case, record = found
    exact, least = case.exact(), np.inf
    for row in record.table:
        own = min(float(exact.of_support(row.gamma, support)[1]) for support in exact.supports(row.tau))
        contains(case, row.lower, own, np.inf)
        least = min(least, own)
    contains(case, record.lower, least, record.upper)
    COUNTS["thin columns: common subsets"] += 1


@given(seed=SEEDS)
def test_paths_on_all_rows(seed: int) -> None:
    found = made(
        seed, lambda case: best_subsets(case.data, gammas=case.gammas, taus=case.taus, **how_of(case, "restrictions"))
    )
    if found is None:
        return
    case, record = found
    exact = case.exact(all_rows=True)
    for row in record.path:
        least = min(float(exact.of_support(row.gamma, support)[0]) for support in exact.supports(row.tau))
        contains(case, row.lower, least, row.upper, case.data.n)
        COUNTS["thin columns: best subsets of all rows"] += 1


@given(seed=SEEDS)
def test_intervals_of_gamma(seed: int) -> None:
    def solved(case: ThinCase) -> Record:
        low = case.gammas[0]
        return cross_validate(
            case.data, case.folds, gammas=f"{low!r}..{100.0 * low!r}", taus=case.taus, gap=1e-3, threads=1,
            time_limit=0.5 if CAMPAIGN else 0.2, **how_of(case, "restrictions"),
        )  # fmt: skip

    found = made(seed, solved)
    if found is None or found[1].continuous is None:
        return
    case, record = found
    exact, rng = case.exact(), np.random.default_rng([62, seed])
    contains(case, 0.0, float(exact.cv_error(record.gamma, record.tau)[0]), record.upper)
    pieces = record.continuous.pieces
    for piece in (pieces[i] for i in rng.choice(len(pieces), min(len(pieces), 8), replace=False).tolist()):
        gamma = float(np.exp(rng.uniform(np.log(piece.low), np.log(piece.high))))
        contains(case, max(piece.lower, record.lower), float(exact.cv_error(gamma, piece.tau)[1]), np.inf)
        COUNTS["thin columns: pieces of intervals of gamma"] += 1
