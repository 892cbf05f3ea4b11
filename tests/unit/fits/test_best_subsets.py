"""What is known of best subsets is a valid record at every moment."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import problems
import pytest
from interval_problem import interval_problem

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.best_subsets import NOT_TOLD_APART, PathSearch, best_subsets, with_surface
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.model_space import GammaInterval
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.problem.refit import RowFit, refit_squares
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.units import TIE_RTOL


def made() -> tuple[StandardData, Grid]:
    data = problems.linear(2, 20, 5, {0: 1.0, 4: -1.0})
    return standardize(data), Grid.of([0.1, 1.0], [0, 2, 3], data.p)


@pytest.mark.parametrize("prepared", [True, False])
def test_nothing_found_yet(prepared: bool) -> None:
    """Forward selection stands in, valued exactly and bounded from below by 0."""
    data, grid = made()
    known = PathSearch(data.dataset, grid, PathOptions(), Deadline(None, None))
    known.standardize()
    if prepared:
        known.prepare(time.monotonic() + 60.0)
        known.clock.abandoned.set()  # the rows made ahead are taken as they are
    record = known.record()
    assert record.status == "limit" and len(record.path) == known.pairs == 6
    X, y = data.dataset.X, data.dataset.y
    for row in record.path:
        support = [data.dataset.names.index(name) for name in row.support]
        assert row.objective == pytest.approx(fit(X, y, support, row.gamma).objective, rel=1e-9)
        least = min(fit(X, y, list(S), row.gamma).objective for S in combinations(range(5), row.tau))
        assert row.lower <= least <= row.upper * (1 + 1e-12) and not row.proved


TAUS = (1, 2, 4, 6)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_are_those_of_enumeration(seed: int) -> None:
    data = interval_problem(seed, "4").data.dataset
    record = best_subsets(data, gammas="0.001..20", taus=TAUS)
    surface = record.surface
    assert surface is not None and record.status == "proved"
    assert [row.gamma for row in record.path[::4]] == [0.001, 20.0]
    for tau in TAUS:
        pieces = [piece for piece in surface.pieces if piece.tau == tau]
        assert (pieces[0].low, pieces[-1].high) == (0.001, 20.0)
        assert all(a.high == b.low for a, b in pairwise(pieces))
        for piece in pieces:
            named = {tuple(surface.supports[place]) for place in piece.supports}
            for gamma in np.geomspace(piece.low, piece.high, 5)[1:-1].tolist():
                f = {s: fit(data.X, data.y, s, gamma).objective for s in combinations(range(6), tau)}
                least = min(f.values())
                best = {tuple(data.names[j] for j in s) for s, value in f.items() if value <= least * (1 + 1e-12)}
                assert best <= named
                worst = max(f[tuple(data.names.index(name) for name in support)] for support in named)
                assert worst <= least * (1.0 + 2.0 * TIE_RTOL)


@pytest.mark.parametrize("seed", [1, 14, 30])
def test_subsets_are_tied_only_where_their_rounding_is_below_the_tie(seed: int) -> None:
    """A perfect fit with weights far apart: from the moments the objectives agree, in fact they differ by 3e-9."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(16, 3))
    data = weighted_rows(Dataset.from_arrays(X, 5.0 * X[:, 0]), 10.0 ** rng.uniform(-5, 6, 16), "w")
    record = best_subsets(data, gammas="0.0003..0.5", taus=[1, 2], scale="none", intercept="global")
    assert record.status == "proved" and verify(record, data).ok


def failures(record: PathRecord, **altered: object) -> set[str]:
    """Return the fields that a verification finds wrong once the surface is altered."""
    assert record.surface is not None
    one = replace(record, surface=replace(record.surface, **altered))  # type: ignore[arg-type]
    return {failure.field for failure in verify(one, interval_problem(1, "4").data.dataset).failures}


def test_a_record_is_read_back_and_what_is_wrong_with_it_is_found() -> None:
    data = interval_problem(1, "4").data.dataset
    record = best_subsets(data, gammas="0.01..5", taus=[2, 3])
    surface = record.surface
    assert surface is not None and PathRecord.from_json(record.to_json()) == record
    report = verify(record, data)
    assert report.ok and any("each with its best subsets, cover every gamma" in line for line in report.verified)
    assert "surface.pieces" in failures(record, pieces=surface.pieces[1:])
    larger = next(i for i, support in enumerate(surface.supports) if len(support) == 3)
    for supports in ((larger,), (len(surface.supports),), ()):
        pieces = (replace(surface.pieces[0], supports=supports), *surface.pieces[1:])
        assert any(name.startswith("surface.pieces[0].") for name in failures(record, pieces=pieces))
    best = surface.supports[surface.pieces[0].supports[0]]
    worse = tuple(name for name in data.names if name not in best)[:2]
    others = tuple(worse if support == best else support for support in surface.supports)
    assert "surface.pieces[0].supports" in failures(record, supports=others)


def test_restrictions_are_refused() -> None:
    with pytest.raises(BadInput, match="not supported with restrictions"):
        best_subsets(interval_problem(1, "4").data.dataset, gammas="0.01..5", taus=[2], force_in="x0")


def nearly_perfect() -> Dataset:
    """Columns of signs, one of which is the target: at small gammas f is mostly the rounding of the moments."""
    rng = np.random.default_rng(2)
    X = rng.choice([-1.0, 1.0], size=(20, 4))
    return Dataset.from_arrays(X, -X[:, 1])


def test_fits_that_moments_cannot_tell_apart_are_told_apart_by_the_rows() -> None:
    data = nearly_perfect()
    record = best_subsets(data, gammas="1.1755e-4..5.6244e-3", taus=[1, 2, 3], scale="variance", intercept="none")
    assert record.surface is not None and record.status == "proved" and len(record.surface.pieces) <= 6
    report = verify(record, data)
    assert report.ok and not report.caveat


def test_a_limit_leaves_what_is_not_cut_yet_open() -> None:
    data = nearly_perfect()
    before = best_subsets(data, gammas=[1.1755e-4, 5.6244e-3], taus=[1, 2, 3])
    clock = Deadline(0.0, None)
    record = with_surface(before, standardize(data), GammaInterval(1.1755e-4, 5.6244e-3), [1, 2, 3], clock)
    assert record.surface is not None and record.status == "limit" and not record.warnings
    assert not any(piece.proved for piece in record.surface.pieces)
    assert verify(record, data).ok


def test_rounding_that_is_wider_than_the_fits_differ_ends_the_cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    def blurred(*words: Any) -> RowFit:
        made = refit_squares(*words)
        return replace(made, objective_error=1e-3 * made.objective)

    monkeypatch.setattr("sparsecv_mio.fits.best_subsets.refit_squares", blurred)
    data = nearly_perfect()
    record = best_subsets(data, gammas="1.1755e-4..5.6244e-3", taus=[1, 2, 3], scale="variance", intercept="none")
    assert record.surface is not None and (record.status, record.warnings) == ("limit", (NOT_TOLD_APART,))
    assert len(record.surface.pieces) < 40 and any(not piece.proved for piece in record.surface.pieces)
    assert verify(record, data).ok


def made_best_subsets(seed: int, n: int = 20) -> Dataset:
    return problems.linear(seed, n, 5, {0: 1.0, 4: -1.0})


def test_a_stop_before_the_start_leaves_an_answer() -> None:
    stop = threading.Event()
    stop.set()
    record = best_subsets(made_best_subsets(0), gammas=[0.1, 1.0], taus=[1, 2], stop=stop)
    assert record.status in ("interrupted", "proved") and len(record.path) == 4
    assert all(row.lower <= row.objective <= row.upper for row in record.path)


def test_there_is_no_answer_before_the_data() -> None:
    data = made_best_subsets(0)
    search = PathSearch(data, Grid.of([1.0], [1], data.p), PathOptions(), Deadline(None, None))
    search.prepare(0.0)
    with pytest.raises(OutOfTime, match="while the data were being prepared"):
        search.record()


@pytest.mark.parametrize("asked", [{"at_most": "1:x0,x1"}, {"nonnegative": "all"}, {"nonpositive": "x1"}])
@pytest.mark.parametrize("tau", [0, 1, 2])
def test_columns_that_are_collinear_to_rounding_end_under_restrictions(asked: dict[str, str], tau: int) -> None:
    """Nothing can be pruned there: every support is tried once, or the record says that rounding leaves it open."""
    X = 1e8 * np.array([1.0, -1.0]) + np.array([[0, 1], [1, 0], [-1, -2], [2, 2], [0, -1], [-2, 0.0]])
    data = Dataset.from_arrays(X, [1.0, 0.0, 2.0, -1.0, 1.0, -2.0])
    record = best_subsets(data, gammas=[0.01], taus=[tau], intercept="none", **asked)  # type: ignore[arg-type]
    assert record.work.nodes < 100 and verify(record, data).ok
    if "at_most" in asked or tau == 0:
        assert record.status == "proved" and not record.warnings
    else:
        assert (record.status, record.warnings) == ("limit", (NOT_TOLD_APART,)) or record.status == "proved"


def test_fits_after_a_limit_have_their_size_and_their_digits() -> None:
    """Forward selection with fewer rows than columns, and columns of which products have no digits left."""
    rng = np.random.default_rng(5)
    for X in (rng.normal(size=(4, 7)), 1e7 + rng.normal(size=(11, 7))):
        data, clock = Dataset.from_arrays(X, rng.normal(size=len(X))), Deadline(0.0, None)
        grid = Grid.of([3e-4, 9e2], [2, 5, 6, 7], data.p)
        search = PathSearch(data, grid, PathOptions.of(intercept="none", time_limit=0.1), clock)
        search.standardize()
        clock.abandoned.set()
        record = search.record()
        assert [len(row.support) for row in record.path] == [2, 5, 6, 7] * 2 and record.status == "limit"
        assert verify(record, data).ok


def test_counts_of_columns_far_from_0_without_an_intercept_are_proved() -> None:
    """Fits from the point of other columns, where losses overflow, had no upper end: a search had none either."""
    rng = np.random.default_rng(0)
    X = np.array([1e3, 1e6, 1e6]) + rng.normal(size=(20, 3))
    data = Dataset.from_arrays(X, rng.poisson(10.0 ** rng.uniform(0, 2.5, 20)).astype(float))
    how: dict[str, Any] = {"loss": "poisson", "scale": "none", "intercept": "none", "time_limit": 60.0}
    record = best_subsets(data, gammas=[0.01, 0.1], taus=[1, 2], **how)
    found = cross_validate(data, make_folds("3", data), gammas=[0.01, 0.1], taus=[1, 2], gap=0.0, **how)
    assert record.status == found.status == "proved" and verify(record, data).ok and verify(found, data).ok


def test_gamma_0_of_other_losses_is_refused_with_a_value_that_works() -> None:
    X = np.random.default_rng(1).normal(size=(40, 3))
    data = Dataset.from_arrays(X, (X[:, 0] > 0.0).astype(float))
    with pytest.raises(BadInput, match="gamma 0: not supported .*; give positive values, such as ") as error:
        best_subsets(data, gammas=0, taus=1, loss="logistic")
    gamma = float(str(error.value).rpartition(" ")[2])
    assert best_subsets(data, gammas=gamma, taus=1, loss="logistic").path[0].proved
