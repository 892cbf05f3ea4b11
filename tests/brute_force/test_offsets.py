"""Searches with offsets against an enumeration with a separate Newton method in long double."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from glm_cases import GlmCase, count_case, two_class_case
from glm_claims import of_search
from slow import slow

from sparsecv_mio.data.loss_targets import with_offsets
from sparsecv_mio.targets import TargetColumns


def with_drawn_offsets(case: GlmCase, seed: int) -> GlmCase:
    """Return the case with offsets of several sizes; its target is unchanged."""
    rng = np.random.default_rng(10_000 + seed)
    size = float(rng.choice([0.3, 1.0, 3.0, 8.0]))
    offsets = np.clip(size * rng.normal(size=case.data.n), -27.0, 27.0)
    if seed % 3 == 0:
        offsets[rng.random(case.data.n) < 0.5] = 0.0  # some rows have none
    if seed % 5 == 0:
        offsets += 10.0  # the intercept absorbs a constant
    data = replace(case.data, aux={**case.data.aux, "o": np.clip(offsets, -27.0, 27.0)})
    return replace(case, data=with_offsets(data, TargetColumns(offset="o")))


@pytest.mark.parametrize("seed", [0, 1, 2, 10, *slow([*range(3, 10), 11])])
def test_searches_of_classes_with_offsets_tell_the_truth(seed: int) -> None:
    case = with_drawn_offsets(two_class_case(seed), seed)
    assert list(of_search(case.truth, case.solved())) == []


@pytest.mark.parametrize("seed", [0, 3, 6, *slow([9, 12, 15])])
def test_searches_of_counts_with_offsets_tell_the_truth(seed: int) -> None:
    case = count_case(seed)
    if case.data.row_exposure is None:
        case = with_drawn_offsets(case, seed)
    assert list(of_search(case.truth, case.solved())) == []
