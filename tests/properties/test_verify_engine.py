"""What the search for best subsets writes, `verify` accepts: random small problems. Cross-validations: test_matrix."""

from __future__ import annotations

import pytest
from zoo import random_problem

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.fits.best_subsets import best_subsets


@pytest.mark.parametrize("seed", range(60))
def test_paths_of_the_search_are_verified(seed: int) -> None:
    case = random_problem(seed, rows=50, columns=8)
    path = best_subsets(case.data, gammas=case.gammas, taus=case.taus, threads=1, **case.how)
    assert verify(PathRecord.from_json(path.to_json()), case.data).failures == ()
