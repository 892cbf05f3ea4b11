"""The loop of a search over a grid of pairs (tau, gamma): one function for all losses, goals and orders.

    goal -> order -> steps -> executor -> findings -> writer -> state

A *source* is a bounding method, and a *step* is a unit of the work of a source. A *search order* (short: order) is a
function that chooses the next steps from the state of the search. The executor runs the steps in the thread of the
loop or in other threads; a problem may send parts of a step to the workers of a cluster. A step returns its findings
and does not change the state. Only the method `Writer.take` changes the state: it stores the findings, and calls the
source of the step to count the attempts of this source. Because steps do not change the state, runs are reproducible.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Protocol

from sparsecv_mio.search.goals import SearchGoal
from sparsecv_mio.search.observers import BegunStep, Signals
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import Problems
from sparsecv_mio.search.sources.registry import find_source
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step
from sparsecv_mio.search.writer import Writer


class Order(Protocol):
    """The rule that chooses the next steps from the present state alone; an order has no memory.

    Most orders consist of phases in the order of their priority. Each turn takes steps of the first phase that is due
    and has steps (`first_phase`).
    """

    __name__: str

    def __call__(
        self, goal: SearchGoal, state: GridState, plan: Plan, running: Sequence[Step], share: float
    ) -> Iterator[Step]:
        """Yield the next steps.

        Parameters
        ----------
        goal : SearchGoal
            Goal of the search. `together`, `by_size`, `given_pairs`, `estimates` and `grid` solve its pairs; the other
            orders do not read it and serve the certified choice.
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        running : sequence of Step
            Steps that are running.
        share : float
            Share of the time limit that has passed; 0 without a limit.
        """


class Executor:
    """An executor that runs steps and returns their findings in the order in which the steps end.

    On one thread a step runs when its findings are requested, so that a search has the same steps in the same order
    each time. On several threads a step is submitted only if a thread is idle, since a queue would have been chosen
    from an old state. If the executor waits for the steps of all threads, a search is reproducible on several threads
    too.

    Parameters
    ----------
    problems : Problems
        Problems that the steps work on.
    n_threads : int
        Number of threads.
    is_expired : callable
        Function that returns True once running steps have to end.
    waits_for_all : bool
        True if findings are returned once all threads have ended their steps.
    steps_of_turn : int
        Maximum number of steps of a turn on one thread.
    """

    def __init__(
        self, problems: Problems, n_threads: int, is_expired: Callable[[], bool], waits_for_all: bool = False,
        steps_of_turn: int = 1,
    ) -> None:  # fmt: skip
        self.problems, self.n_threads, self._is_expired = problems, n_threads, is_expired
        self.waits_for_all, self.steps_of_turn = waits_for_all, steps_of_turn
        self._running: list[tuple[Future[Findings] | None, Step]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._stopped = threading.Event()

    @property
    def running(self) -> list[Step]:
        """Steps whose findings were not returned yet."""
        return [step for _, step in self._running]

    @property
    def n_idle(self) -> int:
        """Number of steps to submit: one for each idle thread, or `steps_of_turn` on one thread."""
        if self.n_threads == 1:
            return 0 if self._running else self.steps_of_turn
        n_busy = sum(
            step.n_threads for future, step in self._running
            if future is None or self.waits_for_all or not future.done()
        )  # fmt: skip
        return max(self.n_threads - n_busy, 0)

    def submit(self, step: Step) -> None:
        """Submit a step."""
        if self.n_threads > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        self._running.append((self._pool.submit(self._run_and_time, step) if self._pool else None, step))

    def collect_findings(self) -> list[Findings]:
        """Return the findings of ended steps; if none has ended, wait for one, or for all if `waits_for_all`."""
        if self._pool is None:
            steps, self._running = self.running, []
            return [self._run_and_time(step) for step in steps]
        until = ALL_COMPLETED if self.waits_for_all else FIRST_COMPLETED
        wait([future for future, _ in self._running if future is not None], return_when=until)
        ended = [future for future, _ in self._running if future is not None and future.done()]
        self._running = [(future, step) for future, step in self._running if future not in ended]
        return [future.result() for future in ended]

    def stop(self) -> list[Findings]:
        """Stop the running steps, wait for all of them, and return their findings."""
        findings: list[Findings] = []
        self._stopped.set()
        while self._running:
            findings += self.collect_findings()
        self._stopped.clear()
        self.close()
        return findings

    def close(self) -> None:
        """Shut the threads down; steps that still run end soon, and their findings are lost."""
        if self._running:
            self._stopped.set()
            self._running.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def is_expired(self) -> bool:
        """Return True if running steps have to end."""
        return self._stopped.is_set() or self._is_expired()

    def _run(self, step: Step) -> Findings:
        return find_source(step).run_step(step, self.problems, self.is_expired)

    def _run_and_time(self, step: Step) -> Findings:
        began = time.thread_time()
        findings = self._run(step)
        return replace(findings, cpu_seconds=time.thread_time() - began)


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


def search_grid(
    goal: SearchGoal, order: Order, state: GridState, plan: Plan, executor: Executor, writer: Writer, signals: Signals
) -> Iterator[None]:  # fmt: skip
    """Search until the goal is settled, the deadline has expired, or no step is left; yield after each turn.

    A turn chooses steps from one state: one for every idle thread, or up to `plan.steps_of_turn` on one thread. It then
    takes the findings of the finished steps.

    Parameters
    ----------
    goal : SearchGoal
        Goal that settles the search.
    order : callable
        Order that yields the next steps.
    state : GridState
        State of the search; only the writer changes it.
    plan : Plan
        Plan with every number that decides what runs.
    executor : Executor
        Executor of the steps.
    writer : Writer
        Writer of the state.
    signals : Signals
        Signals to the observers: progress, trace, checkpoint.
    """
    deadline = state.context.deadline
    with closing(executor):
        while not deadline.has_expired() and not goal.is_settled(state):
            while executor.n_idle:
                running = executor.running
                proposed = limit_to_budget(order(goal, state, plan, running, deadline.share), state, plan, running)
                steps = list(islice(proposed, executor.n_idle))
                for step in steps:
                    first, last = state.context.grid.gammas[list(step.gamma_range)].tolist()
                    signals.begin_step(BegunStep(order.__name__, step.description, (first, last), step.node_limit))
                    executor.submit(step)
                if not steps:
                    break
            if not executor.running:
                break
            writer.take(executor.collect_findings())
            signals.end_turn()
            yield
        writer.take(executor.stop())  # a stopped step states what it has proved
