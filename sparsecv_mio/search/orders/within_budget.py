"""The limit on the number of mixed-integer problems (MIOs) of a search, for every order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Step


def limit_to_budget(steps: Iterable[Step], state: GridState, plan: Plan, running: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps of an order until the next one would exceed the budget of the plan.

    Parameters
    ----------
    steps : iterable of Step
        Steps of the order.
    state : GridState
        State of the search, with the number of MIOs so far.
    plan : Plan
        Plan of the search, with the budget.
    running : sequence of Step
        Running steps, whose MIOs the state does not count yet.
    """
    n_left = plan.mio_budget - int(state.tried.n_mios) - sum(step.n_mios for step in running)
    for step in steps:
        n_left -= step.n_mios
        if n_left < 0:
            return
        yield step
