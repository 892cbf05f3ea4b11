"""`cross_validate`: options and words, and a record that holds what was asked."""

from __future__ import annotations

import pytest
from drawn_search import drawn

from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.options import SearchOptions


def test_words_go_before_options() -> None:
    data, folds, _ = drawn()
    options = SearchOptions(gap=0.1, threads=1)
    record = cross_validate(data.dataset, folds, gammas=[0.1, 1.0], taus=[1, 2], options=options, gap=0.0)
    assert record.request.gap == 0.0 and record.request.threads == 1 and record.status == "proved"


def test_what_is_no_option_is_a_type_error() -> None:
    data, folds, _ = drawn()
    with pytest.raises(TypeError, match="colour"):
        cross_validate(data.dataset, folds, gammas=[1.0], taus=[1], colour="red")  # type: ignore[call-arg]
    with pytest.raises(BadInput, match="tau 9"):
        cross_validate(data.dataset, folds, gammas=[1.0], taus=[9])
