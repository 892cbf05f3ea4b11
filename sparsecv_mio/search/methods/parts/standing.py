"""Where a run stands, taken from any thread while the search goes on."""

from __future__ import annotations

from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.standing import Standing


def standing_of(run: Run, mios: int, engine: str) -> Standing:
    """Return copies of all that the record of a run is made of.

    Parameters
    ----------
    run : Run
    mios : int
        Mixed-integer problems solved.
    engine : str
        Who solved the cells, in words.
    """
    cells = run.state.cells.copy()
    return Standing(
        run.context, cells, tuple(run.state.all_rows.best), mios, run.state.counts.nodes, engine,
        run.accelerators.work(cells),
    )  # fmt: skip
