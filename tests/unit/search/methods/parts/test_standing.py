"""Where a run stands: copies that later work does not change."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.run import run_to_end


def test_copies_stay_as_they_were() -> None:
    run = drawn_run()
    run.begin()
    standing = run.standing()
    decided = standing.cells.decided.copy()
    run_to_end(run)
    assert np.array_equal(standing.cells.decided, decided) and not decided.all()
    assert run.standing().cells.decided.all() and run.standing().scored
    assert len(standing.best) == 2 and standing.best[0] is run.run.state.all_rows.best[0]
