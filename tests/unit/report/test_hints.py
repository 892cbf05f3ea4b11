"""What is worth trying next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.report.hints import hints


@pytest.mark.parametrize(
    ("gamma", "tau", "gammas", "taus", "told"),
    [
        (1.0, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["largest given: try --gamma 0.01:10:5"]),
        (0.01, 2, (0.01, 0.1, 1.0), (1, 2, 3), ["smallest given: try --gamma 0.001:1:5"]),
        (0.1, 2, (0.01, 0.1, 1.0), (1, 2, 3), []),
        (0.1, 3, (0.01, 0.1, 1.0), (1, 2, 3), ["largest given: try --tau 1:5"]),
        (0.1, 5, (0.01, 0.1, 1.0), (1, 2, 5), []),
        (0.1, 1, (0.01, 0.1, 1.0), (1, 2, 5), ["smallest given: --tau 0:5 has the intercept alone"]),
        (0.1, 0, (0.01, 0.1, 1.0), (0, 2, 5), []),
        (0.1, 2, (0.01, 0.1, 1.0), (2, 3), ["smallest given: try --tau 1:3"]),
        (0.1, 2, (0.1,), (2,), []),
        (1e-7, 2, (1e-7, 0.1), (1, 2, 3), []),
    ],
)
def test_an_edge_of_the_grid_is_told(
    gamma: float, tau: int, gammas: tuple[float, ...], taus: tuple[int, ...], told: list[str], record: Record
) -> None:
    request = replace(record.request, gammas=gammas, taus=taus)
    found = hints(replace(record, gamma=gamma, tau=tau, request=request))
    assert len(found) == len(told) and all(text in hint for text, hint in zip(told, found, strict=True))
