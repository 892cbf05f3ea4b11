"""Classes that count the cost and the gain of every source of bounds in a search.

A *source of bounds* is a method that narrows the intervals of subproblems (tau, gamma, fold), such as a relaxation or a
branch-and-bound tree. Each source has an account for its costs and gains, under the name of the source. The
mixed-integer problems (MIOs) of a backend have another account. The cost and gain of a source are the changes in the
totals of the search while the source works (`Accounts.turn_to`). All other work has the account `OTHER_WORK`, so that
the seconds of all accounts add up to the seconds of the run.

Work is counted in nodes of branch-and-bound trees and in *problems*. The two counts are reproducible if the search runs
on one thread without a time limit. A problem is a ridge problem on the training rows of a fold, or on the full data, at
one gamma. The cost of one problem, node or fit depends on the source:

======================================  ===============================================================================
source                                  cost, with n rows, q columns, T taus, largest size s, K folds
======================================  ===============================================================================
initial supports, fold supports         O(q s^2) per walk over the sizes, several walks per problem; no bounds
fold searches, fold samples             as fold supports, in all folds or in a sample of them
full-data relaxations                   O(q^3) per problem, O(q s) per step of a Newton iteration
first full-data trees, full-data trees  O(q^2) per node, and O(T (s^3 + rows s)) per fold for the loss bound
left-out trees                          O(n q^2) once, O(n q) per gamma and support, O(q^2) per node
held-out lists                          O(n s^2) per support (all folds), O(n s) per step of a fold, O(q^2) per node
support fits, supports in folds         O(s^3 + rows s) per support and fold
subproblem trees                        O(q^3) per problem, O(q^2) per node
fold roots, enclosures                  O(q^3) per problem
fold relaxations                        O(q^3) per problem, O(q) per step of a Newton iteration and tau
weighted relaxations, weighted trees    O(q^3) per problem, O(q^2) per node
MIOs of a backend                       unknown, depends on the backend
======================================  ===============================================================================

The relative gap of the grid is `(ceiling - floor) / ceiling`, where `floor` is the smallest lower bound of a pair (tau,
gamma) and `ceiling` the smallest upper bound. The gap is 1 before any bound is known. A pair is excluded as soon as its
lower bound is at least `ceiling * (1 - gap)`, with the requested gap. `ruled_out` counts the open subproblems of
excluded pairs. These subproblems may still be solved later.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.certificate.parts import GapStep, SourceWork, read_json_value
from sparsecv_mio.search.deadline import REPORT_SHARE
from sparsecv_mio.search.state.cells import Archive, parse_json
from sparsecv_mio.search.state.context import SearchState

OTHER_WORK = "other work"  # the account of work that no source requested


COURSE_STEPS = 200  # number of steps of the course of the gap that are stored


@dataclass
class Account:
    """Cost and gain of a source so far, with the fields of :class:`~sparsecv_mio.certificate.parts.SourceWork`."""

    slices: int = 0
    problems: int = 0
    nodes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    decided: int = 0
    ruled_out: int = 0
    gap_closed: float = 0.0

    @property
    def is_idle(self) -> bool:
        """True if the source did nothing and had no gain."""
        return not (self.problems or self.nodes or self.decided or self.ruled_out or self.gap_closed)


class _Clocks(NamedTuple):
    """Wall-clock seconds, processor seconds, nodes and problems at a moment."""

    seconds: float
    cpu_seconds: float
    nodes: int
    problems: int


@dataclass(frozen=True, eq=False)
class _Standing:
    """State of the subproblems at a moment: number of solved folds, gap, and pairs (G, T) excluded by bound."""

    decided: IntArray
    gap: float
    is_excluded: BoolArray


class Accounts:
    """The accounts of all sources of a run. One thread books, any thread reads.

    Clocks and counts are read at every booking. The subproblems, O(G T K), are read when another source begins, and
    from time to time while one source goes on. If subproblems narrow outside of any source, the gain is booked to the
    source that ran last.

    Parameters
    ----------
    state : SearchState
        State of the search whose work is booked.
    """

    def __init__(self, state: SearchState) -> None:
        self.state = state
        self._other, self._accounts = Account(), dict[str, Account]()
        self._course: list[GapStep] = []
        self._last: str = OTHER_WORK  # the source whose gain is not booked yet
        self._look_due = 0.0  # moment of the next look at the subproblems while the same source goes on
        self._lock = threading.Lock()
        self._clocks, self._known = self._clocks_now(), self._standing(np.zeros(state.context.shape[:2], dtype=bool))

    def turn_to(self, source: str) -> None:
        """Book further work and gains to a source.

        The gain so far is booked first, unless the same source goes on and looks would take more than their share.
        """
        with self._lock:
            self._book_cost()
            if source != self._last or time.monotonic() >= self._look_due:
                self._book_gain()
            self._last = source

    def book(self, n_steps: int, cpu_seconds: float) -> None:
        """Book some steps to the source of the last `turn_to`.

        Parameters
        ----------
        n_steps : int
            Number of steps.
        cpu_seconds : float
            Processor seconds of the steps and of storing their findings. Wall-clock seconds are booked in proportion.
        """
        with self._lock:
            account, other = self._find_account(self._last), self._other
            self._book_cost()
            account.slices += n_steps
            share = min(cpu_seconds / other.cpu_seconds, 1.0) if other.cpu_seconds > 0.0 else 0.0
            for clock in ("seconds", "cpu_seconds"):
                moved = share * getattr(other, clock)
                setattr(other, clock, getattr(other, clock) - moved)
                setattr(account, clock, getattr(account, clock) + moved)

    def table(self) -> tuple[SourceWork, ...]:
        """Return the cost and gain of each source so far, in the order of their first work.

        The cost of a source that had no work and no gain is booked to other work.
        """
        with self._lock:
            self._book_cost()
            self._book_gain()
            idle = [account for account in self._accounts.values() if account.is_idle]
            busy = {name: account for name, account in self._accounts.items() if not account.is_idle}
            other = replace(self._other)
            other.seconds += sum(account.seconds for account in idle)
            other.cpu_seconds += sum(account.cpu_seconds for account in idle)
            return tuple(SourceWork(name, **asdict(account)) for name, account in (busy | {OTHER_WORK: other}).items())

    def course(self) -> tuple[GapStep, ...]:
        """Return the course of the gap: for each step, the source, the moment of its end, and the gap then."""
        with self._lock:
            return tuple(self._course)

    def _clocks_now(self) -> _Clocks:
        counts = self.state.counts
        there = self.state.context.hands.cpu_seconds
        return _Clocks(time.monotonic(), time.process_time() + there, counts.nodes, counts.problems)

    def _book_cost(self) -> None:
        """Book nodes and problems since the last booking to the last source, and the time to other work."""
        before, now, counting = self._clocks, self._clocks_now(), self._find_account(self._last)
        self._other.seconds += now.seconds - before.seconds
        self._other.cpu_seconds += now.cpu_seconds - before.cpu_seconds
        counting.nodes += now.nodes - before.nodes
        counting.problems += now.problems - before.problems
        self._clocks = now

    def _book_gain(self) -> None:
        """Book the progress of the subproblems since the last look to the last source. O(G T K)."""
        began, before, now = time.monotonic(), self._known, self._standing(self._known.is_excluded)
        account = self._find_account(self._last)
        account.decided += int((now.decided - before.decided).sum())
        newly_excluded = now.is_excluded & ~before.is_excluded
        account.ruled_out += int((newly_excluded * (self.state.context.folds.k - now.decided)).sum())
        account.gap_closed += before.gap - now.gap
        self._known, seen = now, time.monotonic()
        self._look_due = seen + REPORT_SHARE * (seen - began)
        self._note(self._last, now.gap)

    def _find_account(self, source: str) -> Account:
        return self._other if source == OTHER_WORK else self._accounts.setdefault(source, Account())

    def _standing(self, excluded_before: BoolArray) -> _Standing:
        """Return the state of the subproblems, with some pairs already excluded by bound."""
        now, gap = self.state.bounds(), 1.0
        if np.isfinite(now.ceiling):
            gap = max(1.0 - now.floor / now.ceiling, 0.0) if now.ceiling > 0.0 else 0.0
        return _Standing(now.n_solved_folds, gap, excluded_before | now.excluded(self.state.context.gap))

    def _note(self, source: str, gap: float) -> None:
        """Extend the last step of the course or append one; of too many steps remove that with the smallest fall."""
        seconds, course = self.state.context.deadline.seconds, self._course
        if course:
            before = course[-2] if len(course) > 1 else GapStep(source, 0.0, 1.0)
            fall = before.gap - course[-1].gap
            if course[-1].source == source and fall < 1.0 / COURSE_STEPS:
                course.pop()
        course.append(GapStep(source, seconds, gap))
        if len(course) > COURSE_STEPS:
            falls = [earlier.gap - later.gap for earlier, later in zip(course, course[1:-1], strict=False)]
            del course[1 + int(np.argmin(falls))]

    # -- a checkpoint ------------------------------------------------------------------------------------------------

    def archive(self) -> Archive:
        """Return the accounts as the content of a checkpoint."""
        return {"accounts": np.array(json.dumps([asdict(work) for work in self.table()]))}

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless `stored` holds accounts."""
        _read_accounts(stored)

    def restore(self, stored: Archive) -> None:
        """Add the accounts of a stored run; the stored progress of subproblems is not booked as gain."""
        with self._lock:
            self._clocks, self._known = self._clocks_now(), self._standing(self._known.is_excluded)
            for before in _read_accounts(stored):
                account = self._find_account(before.source)
                for field in fields(Account):
                    setattr(account, field.name, getattr(account, field.name) + getattr(before, field.name))


def _read_accounts(stored: Archive) -> list[SourceWork]:
    """Return the accounts of a checkpoint."""
    return read_json_value(parse_json(stored["accounts"], "accounts"), list[SourceWork], "accounts")


def merge_accounts(table: Sequence[SourceWork], other: Sequence[SourceWork]) -> list[SourceWork]:
    """Return the sum of two tables of sources: the cost and gain of each source in both.

    Examples
    --------
    >>> [(work.source, work.nodes) for work in merge_accounts([SourceWork("a", nodes=1)], [SourceWork("a", nodes=2)])]
    [('a', 3)]
    """
    by_source = {work.source: work for work in table}
    for work in other:
        before = by_source.get(work.source, SourceWork(work.source))
        sums = {field.name: getattr(before, field.name) + getattr(work, field.name) for field in fields(Account)}
        by_source[work.source] = SourceWork(work.source, **sums)
    return list(by_source.values())
