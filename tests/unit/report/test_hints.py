"""What is worth trying next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsecv_mio.certificate.record import Advice, Record, Region
from sparsecv_mio.report.hints import hints
from sparsecv_mio.report.region import region_lines


def test_what_would_complete_a_proof_is_told(record: Record) -> None:
    part = replace(limited(record, Region(2, None, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0)), advice=Advice("1:2", None, None))
    assert hints(part) == ["the smaller grid --tau 1:2 is proved already"]
    longer = replace(part, request=replace(part.request, time_limit=5.0), work=replace(part.work, seconds=5.0))
    assert hints(longer)[0].endswith("; a longer --time-limit proves more")
    both = replace(longer, advice=Advice("1:2", "0.1:10:9", 300.0))
    assert hints(both)[0] == (
        "the smaller grid --tau 1:2 or --gamma 0.1:10:9 is proved already; --time-limit 300 may prove the whole grid "
        "(as the costs grew so far)"
    )
    nowhere = replace(longer, region=None, advice=Advice(None, None, None))
    assert hints(nowhere)[0].startswith("--tau 1,2 is a smaller grid to prove, with 0 of these 3 pairs; a longer")
    assert hints(replace(both, advice=None)) == []


def test_the_part_that_is_proved_is_told(record: Record) -> None:
    part = limited(record, Region(2, 1.0, 0.1, 2, 1.0, 1.0, 1.0, 0.0, 0.0))
    assert region_lines(part) == [
        "proved among tau 1:2 at every gamma, every tau at gamma >= 1: the reported pair is the best of them",
        "not excluded: 3 other pairs (tau 3, gamma 0.01235:1); their best estimate is 50% worse",
    ]
    elsewhere = replace(part, region=Region(1, None, 0.1, 1, 1.25, 1.25, 1.25, 0.0, 0.0))
    assert region_lines(elsewhere)[0].endswith("the best of them is tau = 1, gamma = 0.1, CV error 1.25")
    assert region_lines(record) == []
    unknown = replace(part, region=None, table=tuple(replace(row, cv_error=float("inf")) for row in part.table))
    assert region_lines(unknown) == ["not excluded: 3 other pairs (tau 3, gamma 0.01235:1); they have no estimate"]


def limited(record: Record, region: Region) -> Record:
    """A run in which tau 3 was left open, and tau 2 at gamma 0.1 is reported."""
    table = tuple(
        replace(row, status="open" if row.tau == 3 else "decided", cv_error=1.5 if row.tau == 3 else 1.0)
        for row in record.table
    )
    request = replace(record.request, time_limit=None)
    changed = replace(record, status="interrupted", gamma=0.1, tau=2, cv_error=1.0, table=table, request=request)
    return replace(changed, region=region)


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


def test_a_model_that_predicts_worse_than_the_mean_is_told(record: Record) -> None:
    worse = replace(record, r_squared=-0.01)
    most = max(record.request.taus)
    said = [text for text in hints(worse) if "R^2 is below 0" in text]
    assert min(record.request.taus) > 0 and len(said) == 1 and said[0].endswith(f"--tau 0:{most} tries it")
    with_none = replace(worse, request=replace(worse.request, taus=(0, *worse.request.taus)))
    assert not [text for text in [*hints(record), *hints(with_none)] if "R^2" in text]
