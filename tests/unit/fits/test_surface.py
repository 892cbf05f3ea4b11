"""The best subset of every size as a function of gamma: what is claimed on a piece is so at every gamma of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.certificate.record import PathRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.surface import with_surface
from sparsecv_mio.grids import GammaInterval
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.problem.refit import RowFit, refit_rows
from sparsecv_mio.search.continuous.solve import ROUNDED
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.units import TIE_RTOL

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
    assert report.ok and any("pieces of best subsets cover every gamma" in line for line in report.verified)
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
    with pytest.raises(BadInput, match="no restriction"):
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
        made = refit_rows(*words)
        return replace(made, objective_error=1e-3 * made.objective)

    monkeypatch.setattr("sparsecv_mio.fits.surface.refit_rows", blurred)
    data = nearly_perfect()
    record = best_subsets(data, gammas="1.1755e-4..5.6244e-3", taus=[1, 2, 3], scale="variance", intercept="none")
    assert record.surface is not None and (record.status, record.warnings) == ("limit", (ROUNDED,))
    assert len(record.surface.pieces) < 40 and any(not piece.proved for piece in record.surface.pieces)
    assert verify(record, data).ok
