"""Each loss of rows by its code: what kernels get is what the loss says in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.row_losses import Response, curvatures, fill, margin_sign, new_state, roundings
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, RowLoss


@pytest.mark.parametrize("loss", [LOG_LOSS, PoissonLoss()], ids=lambda loss: str(loss.name))
def test_a_code_names_the_same_loss(loss: RowLoss) -> None:
    rng = np.random.default_rng(1)
    m, y, v, n = rng.normal(size=300), rng.poisson(1.0, 300).astype(float), rng.uniform(0.5, 2.0, 300), 300
    response, state, out = Response(v, y, loss.code), new_state(n), np.empty(n)
    state.margins[:] = m
    fill(response, m, state)
    assert state.losses == pytest.approx(loss.losses(m, y), rel=1e-12, abs=1e-14)
    assert state.falls == pytest.approx(loss.falls(m, y), rel=1e-12, abs=1e-14)
    curvatures(response, state, out)
    assert out == pytest.approx(loss.curvatures(m, y, v), rel=1e-12)
    total = roundings(response, state, np.full(n, 1e-10), out)
    assert [margin_sign(response, i) for i in range(n)] == loss.signs(y).tolist()
    assert 0.0 < total <= 2.0 * float(v @ loss.roundings(m, y, 1e-10, 1e-15)) and np.all(out < 1e-6)


def test_an_unknown_code_is_refused() -> None:
    response, state, out = Response(np.ones(3), np.ones(3), 7), new_state(3), np.empty(3)
    for ask in (
        lambda: fill(response, np.zeros(3), state),
        lambda: curvatures(response, state, out),
        lambda: roundings(response, state, np.zeros(3), out),
    ):
        with pytest.raises(ValueError, match="no loss of this code"):
            ask()
