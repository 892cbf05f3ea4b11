"""h as a function of gamma at fixed supports: values, slopes and minima."""

from __future__ import annotations

import numpy as np
import pytest
from runs import drawn, drawn_run, to_end

from sparsecv_mio.certificate.parts import plain, read_json_value
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.every_gamma.descent import GammaCurve, Journal, gamma_proposals, log_uniform


def test_proposals_lower_h() -> None:
    state = to_end(drawn_run()).state
    pair = state.bounds().best
    for point in gamma_proposals(state, pair, (1e-3, 10.0)):
        assert point.total < float(state.cells.nominal[pair].sum())
    assert len(log_uniform(0.1, 10.0)) == 9


@pytest.mark.filterwarnings("error")
def test_slopes_that_overflow_say_nothing() -> None:
    data, folds, _ = drawn()
    curve = GammaCurve(data, folds, [np.array([0, 3])] * folds.k)
    curve.part, curve.pole = curve.part * 1e100, np.zeros_like(curve.pole)
    for gamma in (1e-300, 1e-60, 1.0):
        assert curve.minima(gamma, 1e-300, 10.0) is not None


def test_products_that_overflow_propose_nothing() -> None:
    """A descent on columns of 1e154 ended in a traceback of a routine for eigenvalues."""
    rng = np.random.default_rng(0)
    dataset = Dataset.from_arrays(1e154 * rng.normal(size=(20, 3)) + 1e155, rng.normal(size=20))
    data = standardize(dataset, "none", "none")
    curve = GammaCurve(data, make_folds("4", dataset), [np.array([0, 2])] * 4)
    assert np.isnan(curve.evaluate(0.1)[0])
    assert not [point for point in curve.minima(0.1) if point.total < np.inf]


def test_what_is_no_journal_raises() -> None:
    found = plain(Journal(), Journal, "journal")
    for name, wrong in (("proposed", ["x"]), ("nodes", [1]), ("seen", 3), ("trial", ["line", [0.5]])):
        with pytest.raises(CorruptStore, match=f"field journal.{name}"):
            read_json_value({**found, name: wrong}, Journal, "journal")
