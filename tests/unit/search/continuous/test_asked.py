"""What does not go with an interval of gamma is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio import Dataset, cross_validate
from sparsecv_mio.errors import BadInput
from sparsecv_mio.grids import GammaInterval


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"gap": 0.0}, "gap must be positive"),
        ({"one_se": True}, "one-se goes with a grid"),
        ({"method": "descent"}, "method goes with a grid"),
        ({"force_in": "x0"}, "force-in goes with a grid"),
        ({"trace": "t.csv"}, "trace goes with a grid"),
    ],
)
def test_refusals_name_the_option(keywords: dict[str, object], words: str) -> None:
    data = Dataset.from_arrays(np.eye(6)[:, :2], [3.0, 2.0, 1.0, 0.0, 0.0, 0.5])
    with pytest.raises(BadInput, match=words):
        cross_validate(data, "3", gammas=GammaInterval(0.1, 1.0), taus=[1], **keywords)  # type: ignore[arg-type]
