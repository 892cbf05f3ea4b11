"""`verify` finds what is wrong with the partition of an interval of gamma."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from altered_fields import set_fields
from interval_problem import interval_problem

import sparsecv_mio as sc
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.optimality import Optimality, TruePair, check_by_enumeration
from sparsecv_mio.certificate.records import Continuous, Record
from sparsecv_mio.certificate.refits import make_design
from sparsecv_mio.certificate.ridge_design import RidgeDesign
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.search.api import cross_validate

PROBLEM = interval_problem(10, "4")


@pytest.fixture(scope="module")
def record() -> Record:
    found = cross_validate(PROBLEM.data.dataset, PROBLEM.folds, gammas="0.01..2", taus=[1, 2, 3], gap=1e-3)
    assert verify(found, PROBLEM.data.dataset, PROBLEM.folds).ok
    return found


def fields(record: Record, continuous: Continuous, **others: float) -> set[str]:
    altered = replace(record, continuous=continuous, **others)  # type: ignore[arg-type]
    return {failure.field for failure in verify(altered, PROBLEM.data.dataset, PROBLEM.folds).failures}


def test_a_missing_piece_is_found(record: Record) -> None:
    found = record.continuous
    assert found is not None
    assert "continuous.pieces" in fields(record, replace(found, pieces=found.pieces[1:]))
    assert "continuous.pieces" in fields(record, replace(found, pieces=found.pieces[:2] + found.pieces[3:]))


def test_bounds_that_are_too_good_are_found(record: Record) -> None:
    found = record.continuous
    assert found is not None
    for i, piece in enumerate(found.pieces):
        if piece.supports is None:
            continue
        better = replace(piece, lower=1.01 * max(piece.at_low, piece.at_high), at_low=9e9, at_high=9e9)
        pieces = (*found.pieces[:i], better, *found.pieces[i + 1 :])
        assert f"continuous.pieces[{i}].lower" in fields(record, replace(found, pieces=pieces))
        lower = replace(piece, lower=0.5 * piece.lower, at_low=0.6 * piece.lower, at_high=0.6 * piece.lower)
        pieces = (*found.pieces[:i], lower, *found.pieces[i + 1 :])
        assert f"continuous.pieces[{i}].at_low" in fields(record, replace(found, pieces=pieces))
        break


@pytest.mark.parametrize("size", [1, 2])
def test_a_missing_support_is_found(record: Record, size: int) -> None:
    found = record.continuous
    assert found is not None
    i, piece = next((i, one) for i, one in enumerate(found.pieces) if one.supports is not None and one.tau == 2)
    wrong = next(names for names in combinations(record.data.names, size) if {*names} not in map(set, found.supports))
    altered = {f"pieces.{i}.supports": (len(found.supports),), "supports": (*found.supports, wrong)}
    assert f"continuous.pieces[{i}].supports" in fields(record, set_fields(found, altered))


def test_a_lower_bound_above_its_pieces_is_found(record: Record) -> None:
    assert record.continuous is not None
    assert "lower" in fields(record, record.continuous, lower=record.lower * (1.0 + 1e-6))


def test_a_curve_over_gamma_may_follow_either_of_two_tied_subsets() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, 3))
    data = sc.Dataset.from_arrays(X, X[:, 0] + rng.normal(size=18))
    record, plan = sc.solve(data, folds="3", gammas="0.1..1", taus=[1]), sc.make_folds("3", data)
    assert record.continuous is not None and sc.verify(record, data).ok
    design = make_design(record, data, plan)
    assert isinstance(design, RidgeDesign)
    true_pair = Optimality(Checks(), record, design, []).truth
    ends = {end for piece in record.continuous.pieces for end in (piece.low, piece.high)}
    for is_tied in (True, False):

        def truth(gamma: float, tau: int, is_tied: bool = is_tied) -> TruePair:
            true = true_pair(gamma, tau)
            if gamma in ends or gamma not in record.continuous.curve_gammas:
                return true
            more = 1.0 + 3e-7
            return TruePair(true.low * more, true.high * more, true.low * (1.0 if is_tied else more), true.high * more,
                            true.optima)  # fmt: skip

        checks = Checks()
        check_by_enumeration(checks, record, design, truth)
        assert (checks.failures == []) == is_tied
