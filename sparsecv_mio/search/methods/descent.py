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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.certificate.codec import plain, read
from sparsecv_mio.certificate.record import DescentStep, Record
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search.accelerators import Accelerators, Ledger
from sparsecv_mio.search.methods.by_rows import WideSearch, by_rows
from sparsecv_mio.search.methods.gamma_step import LEAST, MOST, GammaCurve, GammaPoint, log_uniform
from sparsecv_mio.search.methods.rounds import CrossValidation
from sparsecv_mio.search.methods.saddle import SaddleRun
from sparsecv_mio.search.observers.checkpoint import below, key_of, prefixed
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.observers.trace import known, moment_of
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.state.cells import PairBounds, State
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.stored import check_like, parsed
from sparsecv_mio.words import Oracle, TauStep

PROGRESS = 1e-9  # relative fall of the CV error below which a move is no improvement
SAME_GAMMA = 1e-9  # relative
MOST_MOVES = 100
MANY_COLUMNS = 500  # beyond, folds are seldom solved to optimality in reasonable time
SADDLE_NOTE = "tau steps by the saddle point: supports and CV errors are estimates, only lower bounds are certified"


def settled(tau_step: TauStep, columns: int) -> TauStep:
    """`auto` by the number of columns."""
    if tau_step is not TauStep.AUTO:
        return tau_step
    return TauStep.SADDLE if columns > MANY_COLUMNS else TauStep.MIO


@dataclass(eq=False)
class Trial:
    """A move that is being tried, and the run that decides about it."""

    move: str
    run: CrossValidation
    begun: bool = False


class Descent:
    """A descent as explicit state: `begin`, then `step` (one move) until `finished`.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    asked : Grid
        With several gammas the descent starts at the middle one and stays between the least and the largest; with one
        it starts there and stays in [1e-3, 10], widened to hold it.
    gap, clock, threads, progress
        As for `CrossValidation`.
    tau_step : TauStep
        `mio` certifies every row, `saddle` estimates it (:mod:`sparsecv_mio.search.methods.saddle`); `auto` takes the
        latter beyond 500 columns.

    Examples
    --------
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> from sparsecv_mio.data.standard import standardize
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + rng.normal(size=40))
    >>> asked = Grid.of([1.0], range(1, 6), data.p)
    >>> run = Descent(standardize(data), make_folds("5", data), asked, 1e-4, Deadline(None, None), 1, None)
    >>> run.begin()
    >>> run.to_end()
    >>> record = run.record(one_se=False, time_limit=None, threads=1)
    >>> record.status, record.tau, record.descent[0].move
    ('proved', 2, 'start')
    """

    def __init__(
        self,
        data: StandardData,
        folds: FoldPlan,
        asked: Grid,
        gap: float,
        clock: Deadline,
        threads: int,
        progress: Callable[[Progress], None] | None,
        tau_step: TauStep = TauStep.MIO,
    ) -> None:
        self.data, self.folds, self.asked, self.gap = data, folds, asked, gap
        self.clock, self.threads, self.progress = clock, threads, progress
        self.tau_step = settled(tau_step, data.q)
        self.taus = asked.taus.tolist()
        gammas = asked.gammas
        self.first = float(gammas[len(gammas) // 2])
        wide = (min(LEAST, self.first), max(MOST, self.first))
        self.interval = (float(gammas[0]), float(gammas[-1])) if len(gammas) > 1 else wide
        self.line = gammas.tolist() if len(gammas) > 1 else log_uniform(*self.interval)
        self.steps: list[DescentStep] = []
        self.oracles: tuple[Oracle, ...] | None = None
        self.ledger = Ledger()
        self.here: CrossValidation | None = None
        self.trial: Trial | None = None
        self.proposed: list[float] = []  # gammas left to try from here
        self.seen: list[float] = []  # gammas whose row was solved
        self.lined = False  # the line through here was searched
        self.over = False
        self.certain = True  # every move that was turned down is certified to be no better
        self.spent = [0, 0]  # nodes and MIOs of the runs that ended
        self.at_safe_point: Callable[[], None] | None = None
        self.watch: Callable[[], None] | None = None

    # -- the course -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Make ready for the first row."""
        self.trial = Trial("start", self.run_of([self.first], self.taus))

    def to_end(self) -> None:
        """Move until nothing improves."""
        while not self.finished:
            self.step()

    @property
    def finished(self) -> bool:
        """Whether no move is left, or the time is."""
        return self.over or (self.here is not None and self.clock.expired())

    def step(self) -> None:
        """Try the next move."""
        self.trial = self.trial or self._next()
        if self.trial is None:
            self.over = True
            return
        self._carry(self.trial)
        self._judge(self.trial)
        self.trial = None
        if self.at_safe_point is not None and not self.clock.expired():
            self.at_safe_point()

    def _next(self) -> Trial | None:
        """Proposals of the gamma step that were not seen, best first; then the line; then nothing."""
        assert self.here is not None
        if sum(step.accepted for step in self.steps) > MOST_MOVES:
            self.certain = False
            return None
        while self.proposed:
            gamma = self.proposed.pop(0)
            if not any(abs(gamma - old) <= SAME_GAMMA * old for old in self.seen):
                return Trial("gamma", self.run_of([gamma], self.taus))
        if self.lined:
            return None
        self.lined = True
        gamma, tau = self.pair(self.here)
        return Trial("line", self.run_of([*self.line, gamma], [tau]))

    def _carry(self, trial: Trial) -> None:
        run = trial.run
        run.watch = self.watch
        if not trial.begun:
            run.begin()
            trial.begun = True
        if self.at_safe_point is not None:
            run.at_safe_point = self.at_safe_point
        run.to_end()

    def _judge(self, trial: Trial) -> None:
        """Go there if it is better; a better point of the line is proposed, its row is solved next."""
        run, now = trial.run, trial.run.bounds()
        self.spent = [self.spent[0] + run.nodes, self.spent[1] + run.solved_by_branching()]
        better = self.here is None or self.value(now) < self.value(self.here.bounds()) * (1.0 - PROGRESS)
        goes = better and trial.move != "line"
        gamma, tau = self.pair(run)
        if trial.move != "line":
            self.seen.append(gamma)
        if not better and not now.proved(self.gap):
            self.certain = False
        unit = run.per_row
        self.steps.append(
            DescentStep(trial.move, gamma, tau, now.ceiling * unit, float(now.shown[now.best]) * unit, goes)
        )
        if goes:
            self.here, self.lined, self.certain = run, False, True
            run.at_safe_point = run.watch = None
            self.proposed = [] if self.clock.expired() else [point.gamma for point in self.proposals(run)]
        elif better:
            self.proposed = [gamma]

    # -- its parts --------------------------------------------------------------------------------------------------

    def run_of(self, gammas: Sequence[float], taus: Sequence[int]) -> CrossValidation:
        """A run over some pairs, not begun."""
        rows: type[CrossValidation] = WideSearch if by_rows(self.data, self.folds.k) else CrossValidation
        kind = SaddleRun if self.tau_step is TauStep.SADDLE else rows
        grid = Grid.of(gammas, taus, self.data.dataset.p)
        report = self._report if self.progress is not None else None
        made = kind(self.data, self.folds, grid, self.gap, self.clock, self.threads, report)
        made.oracles = Accelerators(made, self.oracles, self.ledger)
        return made

    def value(self, now: PairBounds) -> float:
        """What a move has to lower: the certified upper bound, or the estimate."""
        return float(now.nominal[now.best]) if self.tau_step is TauStep.SADDLE else now.ceiling

    @staticmethod
    def pair(run: CrossValidation) -> tuple[float, int]:
        """The best (gamma, tau) of a run."""
        g, t = run.bounds().best
        return float(run.grid.gammas[g]), int(run.grid.taus[t])

    def proposals(self, row: CrossValidation) -> list[GammaPoint]:
        """Gammas that lower h at the supports of the best pair of a row, best first."""
        return proposals(row, row.bounds().best, self.interval)

    def _report(self, state: Progress) -> None:
        assert self.progress is not None and self.trial is not None
        gammas = self.trial.run.grid.gammas
        where = f"gamma {gammas[0]:.4g}" if len(gammas) == 1 else f"tau {state.best[1] if state.best else '?'}"
        stage = f"step {len(self.steps) + 1}, {self.trial.move}: {where}"
        if self.here is not None:
            gamma, tau = self.pair(self.here)
            here = self.here.bounds()
            best = float(here.nominal[here.best]) * self.here.per_row
            stage += f"; best so far {best:.6g} at gamma {gamma:.4g}, tau {tau}"
        nodes, mios = self.spent
        self.progress(replace(state, nodes=nodes + state.nodes, mios=mios + state.mios, stage=stage))

    # -- storing and tracing ----------------------------------------------------------------------------------------

    def key(self) -> dict[str, Any]:
        """What must be the same for the descent to be carried on."""
        return key_of(self.data, self.folds, self.asked, f"descent by {self.tau_step}")

    def archive(self) -> State:
        """All that a checkpoint holds: the journal, the row we stand on, the run in progress."""
        journal = {
            "steps": [plain(step, DescentStep, "steps") for step in self.steps],
            "proposed": self.proposed, "seen": self.seen, "lined": self.lined, "over": self.over,
            "certain": self.certain, "spent": self.spent, "trial": None,
        }  # fmt: skip
        state: State = {}
        if self.here is not None:
            state |= prefixed("here", self.here.archive())
            journal["here"] = self.here.grid.gammas.tolist()
        if self.trial is not None:
            grid = self.trial.run.grid
            begun = self.trial.begun
            journal["trial"] = [self.trial.move, grid.gammas.tolist(), grid.taus.tolist(), begun]
            state |= prefixed("trial", self.trial.run.archive()) if begun else {}
        return state | {"journal": np.array(json.dumps(journal))}

    def carry_on(self, state: State) -> None:
        """Go to where `state` was archived."""
        check_like(state, {"journal": np.array("")})
        try:
            self._read(parsed(state["journal"]))
        except (KeyError, TypeError, ValueError, BadInput):
            raise CorruptStore("its journal of the descent cannot be read") from None
        if self.here is not None:
            self.here.carry_on(below("here", state))
        if self.trial is not None and self.trial.begun:
            self.trial.run.carry_on(below("trial", state))

    def _read(self, journal: dict[str, Any]) -> None:
        """Everything of the journal, checked by building it; the rows of the cells come after."""
        self.steps = [read(step, DescentStep, "steps") for step in journal["steps"]]
        self.proposed, self.seen = ([float(gamma) for gamma in journal[name]] for name in ("proposed", "seen"))
        nodes, mios = journal["spent"]
        self.spent = [int(nodes), int(mios)]
        self.lined, self.over, self.certain = (bool(journal[name]) for name in ("lined", "over", "certain"))
        if "here" in journal:
            self.here = self.run_of(journal["here"], self.taus)
        if journal["trial"] is not None:
            move, gammas, taus, begun = journal["trial"]
            self.trial = Trial(move, self.run_of(gammas, taus), bool(begun))

    def head(self) -> dict[str, Any]:
        """The first line of a trace."""
        run = self.run_of([self.first], self.taus)
        return run.head() | {"method": "descent", "gammas": None}

    def moment(self) -> dict[str, Any]:
        """A line of a trace: the row that is being solved, or the one we stand on."""
        trial = self.trial.run if self.trial is not None and self.trial.begun else None
        row = trial if trial is not None and self.trial is not None and self.trial.move != "line" else self.here
        assert row is not None
        line = moment_of(row)
        open_run = trial.nodes if trial is not None else 0
        standing = [run for run in (self.here, row) if run is not None]
        best = min((run.bounds() for run in standing), key=self.value)
        return line | {
            "nodes": self.spent[0] + open_run,
            "mios": self.spent[1] + (trial.solved_by_branching() if trial is not None else 0),
            "gamma": float(row.grid.gammas[0]),
            "steps": len(self.steps),
            "upper": known([best.ceiling * row.per_row])[0],
            "estimate": known([float(best.nominal[best.best]) * row.per_row])[0],
            "estimates": known((row.bounds().nominal[0] * row.per_row).tolist()),
        }

    # -- the answer -------------------------------------------------------------------------------------------------

    def record(self, *, one_se: bool, time_limit: float | None, threads: int | None) -> Record:
        """The record of the row where the descent stands, with all its moves."""
        from sparsecv_mio.search.heuristics.estimates import sharpen
        from sparsecv_mio.search.heuristics.last_pair import score_one_pair
        from sparsecv_mio.search.result import build_record

        assert self.here is not None
        if isinstance(self.here, SaddleRun):
            self.here.score_last()
        else:
            score_one_pair(self.here)
        if one_se:
            self.here.one_se, self.here.progress = True, None
            self.here.decide_rest()
        if not isinstance(self.here, SaddleRun):
            sharpen(self.here)
        return self.told(build_record(self.here, one_se=one_se, time_limit=time_limit, threads=threads), self.here)

    def standing(self) -> CrossValidation | None:
        """The row where the descent stands, or the first one before it stands anywhere."""
        return self.here if self.here is not None or self.trial is None else self.trial.run

    def told(self, record: Record, row: CrossValidation) -> Record:
        """The record of a row, with the moves that led there."""
        mode = row.engines() if self.tau_step is TauStep.SADDLE else "certified rows"
        nodes, mios = self.spent
        work = replace(record.work, mios=mios, nodes=nodes, seconds=self.clock.seconds, engine=f"descent, {mode}")
        done = self.over and self.certain and self.tau_step is TauStep.MIO and record.status == "proved"
        status = "proved" if done else "interrupted" if self.clock.stop.is_set() else "limit"
        notes = (*record.warnings, SADDLE_NOTE) if self.tau_step is TauStep.SADDLE else record.warnings
        return replace(record, work=work, status=status, descent=tuple(self.steps), warnings=notes)


def proposals(run: CrossValidation, at: tuple[int, int], interval: tuple[float, float]) -> list[GammaPoint]:
    """Gammas that lower h at the supports of a solved pair, best first."""
    supports: list[NDArray[np.int64]] = [run.cells.pool.supports[number] for number in run.cells.support[at].tolist()]
    curve, gamma = GammaCurve(run.data, run.folds, supports), float(run.grid.gammas[at[0]])
    bar = curve.at(gamma)[0] * (1.0 - PROGRESS)
    return [point for point in curve.minima(gamma, *interval) if point.total < bar]
