"""Cyclic coordinate descent over (gamma, tau): a tau step at a fixed gamma, a gamma step at fixed supports, in turn.

A *row* is one gamma with every tau asked for, all folds solved anew. The descent stands at the best tau of a row; it
moves to the row of a gamma that the gamma step proposes if its CV error is less there (the certified upper bound, or
the estimate of the saddle point). Where no proposal helps, one line of the grid, all its gammas at the present tau, is
searched too. The end is a pair that no single move of tau or gamma improves.

The paper goes wherever the two steps lead and stops when a point comes for the second time. Here a gamma whose row has
been seen is not entered again (its row is known, and no better), and the CV error falls with every move: a cycle cannot
close.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sparsecv_mio.certificate.codec import plain, read
from sparsecv_mio.certificate.record import DescentStep
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search.methods.gamma_step import LEAST, MOST, PROGRESS, GammaPoint, log_uniform, proposals
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof
from sparsecv_mio.search.methods.parts.grid_search import GridSearch, NewRun
from sparsecv_mio.search.methods.parts.run import run_to_end
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import known, trace_line_of
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import PairBounds
from sparsecv_mio.search.state.state import Snapshot
from sparsecv_mio.search.state.stored import below, check_like, parsed, prefixed

SAME_GAMMA = 1e-9  # relative
MOST_MOVES = 100
SADDLE_NOTE = "tau steps by the saddle point: supports and CV errors are estimates, only lower bounds are certified"


@dataclass
class Journal:
    """The moves of a descent.

    Attributes
    ----------
    steps : list of DescentStep
    proposed : list of float
        Gammas left to try from where the descent stands.
    seen : list of float
        Gammas whose row was solved.
    lined : bool
        The line of the grid through here was searched.
    over : bool
        No move is left.
    certain : bool
        Every move that was turned down is certified to be no better.
    nodes, mios : int
        Of the runs that ended.
    here : list of float, optional
        In a checkpoint: the gammas of the row where the descent stands.
    trial : str, list of float, list of int, bool, optional
        In a checkpoint: the move that is being tried, gammas and taus of its run, and whether that has begun.
    """

    steps: list[DescentStep] = field(default_factory=list)
    proposed: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    lined: bool = False
    over: bool = False
    certain: bool = True
    nodes: int = 0
    mios: int = 0
    here: list[float] | None = None
    trial: tuple[str, list[float], list[int], bool] | None = None


@dataclass(eq=False)
class Trial:
    """A move that is being tried, and the run that decides about it."""

    move: str
    row: GridSearch
    begun: bool = False


class Descent:
    """A descent as explicit state: `begin`, then `step` (one move) until `finished`.

    Parameters
    ----------
    context : Context
        With several gammas the descent starts at the middle one and stays between the least and the largest; with one
        it starts there and stays in [1e-3, 10], widened to hold it.
    new_run : callable
        Makes the runs that certify a row, or estimate it.
    saddle : bool
        Whether they estimate it.
    signals : Signals

    Attributes
    ----------
    here : GridSearch, optional
        The row where the descent stands.
    trial : Trial, optional
        The move that is being tried.
    journal : Journal
        What was done, and what is left to try.
    """

    def __init__(self, context: Context, new_run: NewRun, saddle: bool, signals: Signals) -> None:
        self.context, self.new_run, self.saddle, self.signals = context, new_run, saddle, signals
        self.taus = context.grid.taus.tolist()
        gammas = context.grid.gammas
        self.first = float(gammas[len(gammas) // 2])
        wide = (min(LEAST, self.first), max(MOST, self.first))
        self.interval = (float(gammas[0]), float(gammas[-1])) if len(gammas) > 1 else wide
        self.line = gammas.tolist() if len(gammas) > 1 else log_uniform(*self.interval)
        self.here: GridSearch | None = None
        self.trial: Trial | None = None
        self.journal = Journal()

    @property
    def name(self) -> str:
        """The word by which checkpoints know the method."""
        return f"descent by {'saddle' if self.saddle else 'mio'}"

    # -- the course --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make ready for the first row."""
        self.trial = Trial("start", self._row([self.first], self.taus))

    def _row(self, gammas: Sequence[float], taus: Sequence[int]) -> GridSearch:
        return self.new_run(gammas, taus, self.signals)

    @property
    def finished(self) -> bool:
        """Whether no move is left, or the time is."""
        return self.journal.over or (self.here is not None and self.context.deadline.expired())

    def step(self) -> None:
        """Try the next move."""
        self.trial = self.trial or self._next()
        if self.trial is None:
            self.journal.over = True
            return
        if not self.trial.begun:
            self.trial.row.begin()
            self.trial.begun = True
        run_to_end(self.trial.row)
        self._judge(self.trial)
        self.trial = None
        self.signals.safe_point()

    def finish(self) -> None:
        """Do nothing: rows are finished one by one."""

    def _next(self) -> Trial | None:
        """Proposals of the gamma step that were not seen, best first; then the line; then nothing."""
        assert self.here is not None
        journal = self.journal
        if sum(step.accepted for step in journal.steps) > MOST_MOVES:
            journal.certain = False
            return None
        while journal.proposed:
            gamma = journal.proposed.pop(0)
            if not any(abs(gamma - old) <= SAME_GAMMA * old for old in journal.seen):
                return Trial("gamma", self._row([gamma], self.taus))
        if journal.lined:
            return None
        journal.lined = True
        gamma, tau = best_pair(self.here)
        return Trial("line", self._row([*self.line, gamma], [tau]))

    def _judge(self, trial: Trial) -> None:
        """Go there if it is better; a better point of the line is proposed, its row is solved next."""
        row, journal, now = trial.row, self.journal, trial.row.run.state.bounds()
        journal.nodes += row.run.state.counts.nodes
        journal.mios += row.method.mios()
        better = self.here is None or self._value(now) < self._value(self.here.run.state.bounds()) * (1.0 - PROGRESS)
        goes = better and trial.move != "line"
        gamma, tau = best_pair(row)
        if trial.move != "line":
            journal.seen.append(gamma)
        if not better and not now.proved(self.context.gap):
            journal.certain = False
        unit = self.context.per_row
        journal.steps.append(
            DescentStep(trial.move, gamma, tau, now.ceiling * unit, float(now.shown[now.best]) * unit, goes)
        )
        if goes:
            self.here, journal.lined, journal.certain = row, False, True
            expired = self.context.deadline.expired()
            journal.proposed = [] if expired else [point.gamma for point in self._proposals(row)]
        elif better:
            journal.proposed = [gamma]

    def _value(self, now: PairBounds) -> float:
        """Return what a move has to lower: the certified upper bound, or the estimate."""
        return float(now.nominal[now.best]) if self.saddle else now.ceiling

    def _proposals(self, row: GridSearch) -> list[GammaPoint]:
        """Gammas that lower h at the supports of the best pair of a row, best first."""
        return proposals(row.run.state, row.run.state.bounds().best, self.interval)

    # -- where it stands ---------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> GridSearch:
        """The row that is being solved, or the one we stand on."""
        trial = self.trial
        row = trial.row if trial is not None and trial.begun and trial.move != "line" else self.here
        if row is None and trial is not None:
            row = trial.row
        assert row is not None
        return row

    def progress(self) -> Progress:
        """Return how far the row that is being tried is, and what it is."""
        trial, journal = self.trial, self.journal
        row = trial.row if trial is not None else self._shown
        state, gammas = row.progress(), row.context.grid.gammas
        where = f"gamma {gammas[0]:.4g}" if len(gammas) == 1 else f"tau {state.best[1] if state.best else '?'}"
        move = trial.move if trial is not None else "done"
        stage = f"step {len(journal.steps) + 1}, {move}: {where}"
        if self.here is not None:
            gamma, tau = best_pair(self.here)
            now = self.here.run.state.bounds()
            best = float(now.nominal[now.best]) * self.context.per_row
            stage += f"; best so far {best:.6g} at gamma {gamma:.4g}, tau {tau}"
        nodes, mios = journal.nodes + state.nodes, journal.mios + state.mios
        return replace(state, nodes=nodes, mios=mios, stage=stage, proved=None)

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""
        row, journal, unit = self._shown, self.journal, self.context.per_row
        trial = self.trial.row if self.trial is not None and self.trial.begun else None
        rows = [one.run.state.bounds() for one in (self.here, row) if one is not None]
        best = min(rows, key=self._value)
        return trace_line_of(row.run.state, row.method.mios()) | {
            "nodes": journal.nodes + (trial.run.state.counts.nodes if trial is not None else 0),
            "mios": journal.mios + (trial.method.mios() if trial is not None else 0),
            "proved": None,  # of a row it would say nothing of the descent
            "gamma": float(row.context.grid.gammas[0]),
            "steps": len(journal.steps),
            "upper": known([best.ceiling * unit])[0],
            "estimate": known([float(best.nominal[best.best]) * unit])[0],
            "estimates": known((row.run.state.bounds().nominal[0] * unit).tolist()),
        }

    def archive(self) -> Archive:
        """Return all that a checkpoint holds: the journal, the row we stand on, the run in progress."""
        journal, state = replace(self.journal), Archive()
        if self.here is not None:
            state |= prefixed("here", self.here.archive())
            journal.here = self.here.context.grid.gammas.tolist()
        if self.trial is not None:
            grid, begun = self.trial.row.context.grid, self.trial.begun
            journal.trial = (self.trial.move, grid.gammas.tolist(), grid.taus.tolist(), begun)
            state |= prefixed("trial", self.trial.row.archive()) if begun else {}
        return state | {"journal": np.array(json.dumps(plain(journal, Journal, "journal")))}

    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        check_like(stored, {"journal": np.array("")})
        try:
            journal = read(parsed(stored["journal"]), Journal, "journal")
            if journal.here is not None:
                self.here = self._row(journal.here, self.taus)
            if journal.trial is not None:
                move, gammas, taus, begun = journal.trial
                self.trial = Trial(move, self._row(gammas, taus), begun)
            if self.here is None and (self.trial is None or self.trial.move != "start"):
                raise CorruptStore("every other move goes from a row")
        except (CorruptStore, BadInput):
            raise CorruptStore("its journal of the descent cannot be read") from None
        self.journal = replace(journal, here=None, trial=None)
        if self.here is not None:
            self.here.resume(below("here", stored))
        if self.trial is not None and self.trial.begun:
            self.trial.row.resume(below("trial", stored))

    # -- what is reported --------------------------------------------------------------------------------------------

    @property
    def reported(self) -> GridSearch | None:
        """The row where the descent stands."""
        return self.here

    def score_reported_pair(self) -> None:
        """See to it that the pair of the row is scored, and sure where the one-standard-error rule asks for it."""
        if self.here is None:
            return
        self.here.score_reported_pair()
        if self.context.one_se:
            decide_beyond_proof(self.here.method, True)
            self.here.score_reported_pair()

    def snapshot(self, over: bool = False) -> Snapshot | None:
        """Return what is known now of the row where the descent stands, at first of the row that is tried.

        Parameters
        ----------
        over : bool
            Nothing will be written to the cells any more.
        """
        row = self.here if self.here is not None or self.trial is None else self.trial.row
        if row is None:
            return None
        journal, saddle, snapshot = self.journal, self.saddle, row.snapshot(over)
        return replace(
            snapshot,
            mios=journal.mios,
            nodes=journal.nodes,
            engine=f"descent, {snapshot.engine if saddle else 'certified rows'}",
            complete=journal.over and journal.certain and not saddle,
            steps=tuple(journal.steps),
            notes=(SADDLE_NOTE,) if saddle else (),
        )


def best_pair(row: GridSearch) -> tuple[float, int]:
    """Return the best (gamma, tau) of a run."""
    g, t = row.run.state.bounds().best
    return float(row.context.grid.gammas[g]), int(row.context.grid.taus[t])
