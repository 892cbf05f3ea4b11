"""Ranks of methods: the example of Demsar (2006, JMLR 7, table 6), ties, missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.batch.ranks import ranks
from sparsecv_mio.errors import BadInput

# one tie of the printed digits was none before rounding, as the published ranks show
AREAS = """.763 .768 .771 .798  .599 .591 .590 .569  .954 .971 .968 .967  .628 .661 .654 .657  .882 .888 .886 .898
.936 .931 .916 .931  .661 .668 .609 .685  .583 .583 .563 .625  .775 .838 .866 .875  1 1 1 1  .940 .962 .965 .962
.619 .666 .614 .669  .972 .981 .97501 .975  .957 .978 .946 .970"""
TABLE = pd.DataFrame(np.array(AREAS.split(), dtype=float).reshape(14, 4), columns=["C4.5", "m", "cf", "m+cf"])


def test_the_published_example() -> None:
    found = ranks(TABLE, larger=True)
    assert [round(found.mean[name], 3) for name in TABLE] == [3.143, 2.000, 2.893, 1.964]
    assert found.difference == pytest.approx(1.25, abs=0.005)
    assert found.p_value < 0.05 and found.problems == 14 and found.left_out == 0
    assert found.groups() == [("m+cf", "m", "cf", "C4.5")]  # the best and the worst are 1.18 apart


def test_groups_join_what_is_not_apart() -> None:
    rng = np.random.default_rng(0)
    clear = pd.DataFrame({"a": np.zeros(30), "b": np.ones(30), "c": 5.0 + rng.random(30), "d": 5.0 + rng.random(30)})
    found = ranks(clear)
    assert found.mean["a"] == 1.0 and found.mean["b"] == 2.0
    assert ("c", "d") in [tuple(sorted(group)) for group in found.groups()]
    assert not any({"a", "c"} <= set(group) for group in found.groups())
    assert ranks(clear, larger=True).mean["a"] == 4.0


def test_problems_without_all_values_are_left_out() -> None:
    some = TABLE.copy()
    some.iloc[0, 0] = np.nan
    assert (ranks(some).problems, ranks(some).left_out) == (13, 1)
    tied = pd.DataFrame(np.ones((5, 3)), columns=list("abc"))
    assert ranks(tied).p_value == 1.0 and len(ranks(tied).groups()) == 1
    with pytest.raises(BadInput, match="three methods"):
        ranks(TABLE[["m", "cf"]])


@pytest.mark.parametrize("methods", [3, 5, 11])
def test_fewer_problems_than_are_needed_show_nothing(methods: int) -> None:
    needed = ranks(pd.DataFrame([range(methods)] * 2)).needed
    for problems in (2, needed - 1, needed, 20):
        found = ranks(pd.DataFrame([range(methods)] * problems))  # as far apart as they can be
        assert found.needed == needed
        assert (found.groups()[:1] == [tuple(map(str, range(methods)))]) == (problems < needed)
