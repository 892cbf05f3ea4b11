"""Cyclic coordinate descent over (tau, gamma), with tau steps at a fixed gamma and gamma steps at fixed supports.

The tau step solves all folds for every requested tau at one gamma. The subproblems at one gamma are called the *row* of
this gamma. The gamma step fixes the supports of the folds; the CV error h is then a smooth function of gamma (theory
section 7). Let lam = gamma / 2, and let W be the diagonal of penalty weights. An eigendecomposition in each fold,
`W^{-1/2} (X_S'X_S) W^{-1/2} = U diag(d) U'`, gives the prediction of every held-out row as
`r_mean + sum_k B_k / (d_k + lam)`. From these predictions, h and its derivatives are computed for all folds together in
O(n tau) operations.

The current pair (tau, gamma) of the descent is the pair with the smallest CV error in a row. If the gamma step finds a
gamma with a smaller certified upper bound on the CV error, the descent moves to the row of this gamma. If the gamma
step finds no such gamma, the current tau is solved at all gammas of a grid. The descent ends when no tried change of
tau alone, or of gamma alone, lowers the CV error of the current pair.

The algorithm of the paper (docs/papers.md) moves to the result of each step and stops when a pair recurs. In this
module no gamma is visited twice, because no pair of a solved row has a smaller CV error than the current pair. The CV
error decreases with every move, so the descent cannot cycle.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq

from sparsecv_mio import model_space
from sparsecv_mio.arrays import IntArray
from sparsecv_mio.certificate.parts import SourceWork, Work, plain, read_json_value
from sparsecv_mio.certificate.records import DescentStep
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.digits import format_number
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import null_if_infinite
from sparsecv_mio.problem.problem import gamma_to_lam
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.accounts import merge_accounts
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.observers import Progress, Signals, Watched, make_trace_line
from sparsecv_mio.search.state.cells import Archive, add_prefix, check_like, parse_json, select_by_prefix
from sparsecv_mio.search.state.context import Context, SearchState, Snapshot
from sparsecv_mio.units import NARROWEST, TIE_RTOL

LEAST_GAMMA, *_, MOST_GAMMA = model_space.gammas(model_space.DEFAULT_GAMMAS)  # the interval of gamma in the paper
STARTS = 7


def log_uniform(least: float, most: float) -> list[float]:
    """Return the bounds of an interval and the seven points that divide it evenly in log gamma."""
    return [least, *np.geomspace(least, most, STARTS + 2)[1:-1].tolist(), most]


@dataclass(frozen=True)
class GammaPoint:
    """A gamma and the sum of h_j there, in standard units squared, for fixed supports."""

    gamma: float
    total: float


class GammaCurve:
    """The sum of h_j as a function of gamma for fixed supports.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    supports : one int array per fold
        Supports in columns of standard coordinates.

    Notes
    -----
    O(k tau^3 + n tau^2) once, after the moments of the folds; O(n tau) memory.
    """

    def __init__(self, data: StandardData, folds: FoldPlan, supports: Sequence[IntArray]) -> None:
        width = max((len(s) for s in supports), default=0)
        scored = int(folds.starts[-1])
        # the supports may be few columns of many, so all computations use these columns alone
        used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *supports])).astype(np.int64)
        place = np.searchsorted(used, np.arange(data.q))
        data = data.only(used)
        self.target = np.empty(scored)
        self.part = np.zeros((scored, width))
        self.pole = np.ones((scored, width))
        for fold, moments in training_moments(data, folds):
            problem = moments.problem(data, 1.0)
            support = place[np.asarray(supports[fold], dtype=np.int64)]
            rows = slice(int(folds.starts[fold]), int(folds.starts[fold + 1]))
            V, self.target[rows] = problem.centre_rows(data, folds.scored_rows(fold))
            if len(support) == 0:
                continue
            root = np.sqrt(problem.weight[support])
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                gram = problem.Q[np.ix_(support, support)] / np.outer(root, root)
            if not np.isfinite(gram).all():  # extreme units: nothing is proposed
                self.target[rows] = np.nan
                continue
            values, vectors = np.linalg.eigh(gram)
            turned = (V[:, support] / root) @ vectors
            self.part[rows, : len(support)] = turned * (vectors.T @ (problem.c[support] / root))
            self.pole[rows, : len(support)] = np.maximum(values, 0.0)

    def evaluate(self, gamma: float) -> tuple[float, float]:
        """Return the sum of h_j, and its derivative with respect to `log gamma`. O(n tau)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # extreme units: nothing is proposed
            lam = gamma_to_lam(gamma)
            inverse = 1.0 / (self.pole + lam)
            residual = self.target - (self.part * inverse).sum(axis=1)
            slope = 2.0 * float(residual @ (self.part * inverse**2).sum(axis=1))
            return float(residual @ residual), lam * slope

    def minima(self, gamma: float, least: float = LEAST_GAMMA, most: float = MOST_GAMMA) -> list[GammaPoint]:
        """Return the local minima on `[least, most]` that the starts lead to, best first.

        Parameters
        ----------
        gamma : float
            Present gamma; a start in addition to seven log-uniform ones and the two bounds.
        least, most : float
            Bounds of the interval.

        Notes
        -----
        The roots of the slope are those between neighbouring starts where it changes from negative to positive.

        Examples
        --------
        >>> from sparsecv_mio.data.dataset import Dataset
        >>> from sparsecv_mio.data.folds import make_folds
        >>> from sparsecv_mio.data.standard import standardize
        >>> rng = np.random.default_rng(0)
        >>> data = Dataset.from_arrays(rng.normal(size=(20, 3)), rng.normal(size=20))
        >>> curve = GammaCurve(standardize(data), make_folds("4", data), [np.array([0, 2])] * 4)
        >>> best = curve.minima(0.1)[0]
        >>> best.total <= curve.evaluate(0.1)[0]
        True
        """
        low, high = math.log(least), math.log(most)
        starts = np.unique([*np.linspace(low, high, STARTS + 2), min(math.log(max(gamma, least)), high)])
        slopes = [self._slope(t) for t in starts.tolist()]
        rising = [i for i, (down, up) in enumerate(pairwise(slopes)) if down < 0.0 <= up]
        roots = [brentq(self._slope, starts[i], starts[i + 1], xtol=NARROWEST) for i in rising]
        gammas = [
            *[least] * (slopes[0] >= 0.0),
            *np.clip(np.exp(roots), least, most).tolist(),
            *[most] * (slopes[-1] < 0.0),
        ]
        points = [GammaPoint(gamma, self.evaluate(gamma)[0]) for gamma in gammas]
        return sorted(points, key=lambda point: (point.total, point.gamma))

    def _slope(self, log_gamma: float) -> float:
        """Return the derivative of the sum of h_j with respect to `log gamma`; 0 where numbers overflow."""
        return float(np.nan_to_num(self.evaluate(math.exp(log_gamma))[1]))


def gamma_proposals(state: SearchState, at: tuple[int, int], interval: tuple[float, float]) -> list[GammaPoint]:
    """Return the gammas that lower h at the supports of a solved pair, best first.

    Parameters
    ----------
    state : SearchState
        State of the search.
    at : tuple of int
        Indices of gamma and tau.
    interval : tuple of float
        Smallest and largest gamma.

    Returns
    -------
    list of GammaPoint
        Gammas with their sums of h_j.
    """
    cells, context = state.cells, state.context
    supports: list[IntArray] = [cells.pool.supports[number] for number in cells.support[at].tolist()]
    curve, gamma = GammaCurve(context.data, context.folds, supports), float(context.grid.gammas[at[0]])
    bar = curve.evaluate(gamma)[0] * (1.0 - TIE_RTOL)
    return [point for point in curve.minima(gamma, *interval) if point.total < bar]


@dataclass
class Journal:
    """The moves of a descent.

    Attributes
    ----------
    steps : list of DescentStep
        Moves so far.
    proposed : list of float
        Gammas still to try from the present position.
    seen : list of float
        Gammas whose rows were solved.
    lined : bool
        True if the line of the grid through the present position was searched.
    over : bool
        True if no move is left.
    certain : bool
        True if every rejected move is certified to be no better.
    nodes, mios : int
        Numbers of nodes and MIOs of the runs that ended.
    sources : list of SourceWork
        Cost and gain of the sources of bounds of these runs.
    here : list of float, optional
        Gammas of the present row, in a checkpoint.
    trial : str, list of float, list of int, bool, optional
        Move that is being tried, and gammas and taus of its run, in a checkpoint.
    """

    steps: list[DescentStep] = field(default_factory=list)
    proposed: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    lined: bool = False
    over: bool = False
    certain: bool = True
    nodes: int = 0
    mios: int = 0
    sources: list[SourceWork] = field(default_factory=list)
    here: list[float] | None = None
    trial: tuple[str, list[float], list[int]] | None = None


NewRun = Callable[[Sequence[float], Sequence[int], Signals], GridSearch]  # returns a search before its first step


@dataclass(eq=False)
class Trial:
    """A move that is being tried, and the search that decides about it."""

    move: str
    row: GridSearch


class Descent(Watched):
    """A descent as an explicit state: one turn is one move.

    Parameters
    ----------
    context : Context
        Context of the search. With several gammas the descent starts at the middle one and stays between the smallest
        and the largest. With one gamma it starts there and stays in [1e-3, 10], widened to contain it.
    new_run : callable
        Function that builds the searches that certify a row.
    signals : Signals
        Signals to the observers.

    Attributes
    ----------
    here : GridSearch, optional
        Row of the present position.
    trial : Trial, optional
        Move that is being tried.
    journal : Journal
        Moves so far and moves still to try.
    stored : mapping of arrays, optional
        Content of a checkpoint once the time is over, with the interrupted move, which is judged after it was tried.
    """

    name = "descent"

    def __init__(self, context: Context, new_run: NewRun, signals: Signals) -> None:
        self.context, self.new_run, self.signals = context, new_run, signals
        self.taus = context.grid.taus.tolist()
        gammas = context.grid.gammas
        self.first = float(gammas[len(gammas) // 2])
        wide = (min(LEAST_GAMMA, self.first), max(MOST_GAMMA, self.first))
        self.interval = (float(gammas[0]), float(gammas[-1])) if len(gammas) > 1 else wide
        self.line = gammas.tolist() if len(gammas) > 1 else log_uniform(*self.interval)
        self.here: GridSearch | None = None
        self.trial: Trial | None = Trial("start", self._row([self.first], self.taus))
        self.journal = Journal()
        self.stored: Archive | None = None

    # -- the course --------------------------------------------------------------------------------------------------

    def _row(self, gammas: Sequence[float], taus: Sequence[int]) -> GridSearch:
        return self.new_run(gammas, taus, self.signals)

    @property
    def is_finished(self) -> bool:
        """True if no move or no time is left."""
        return self.journal.over or (self.here is not None and self.context.deadline.has_expired())

    def take_turn(self) -> None:
        """Try the next move."""
        self.trial = self.trial or self._next_trial()
        if self.trial is None:
            self.journal.over = True
            return
        self.trial.row.run_to_end()
        if self.context.deadline.has_expired():  # a resumed run continues with this move
            self.stored = self.checkpoint()
        self._judge(self.trial)
        self.trial = None
        self.signals.end_turn()

    def _next_trial(self) -> Trial | None:
        """Return the next new proposal of the gamma step, best first; then the line; then None."""
        assert self.here is not None
        journal = self.journal
        while journal.proposed:
            gamma = journal.proposed.pop(0)
            if not any(math.isclose(gamma, old) for old in journal.seen):
                return Trial("gamma", self._row([gamma], self.taus))
        if journal.lined:
            return None
        journal.lined = True
        gamma, tau = best_pair(self.here)
        return Trial("line", self._row([*self.line, gamma], [tau]))

    def _judge(self, trial: Trial) -> None:
        """Move to a row with a better pair; if a search along a line found one, its gamma is solved next."""
        row, journal, now = trial.row, self.journal, trial.row.state.bounds()
        journal.nodes += row.state.counts.nodes
        journal.mios += row.n_trees
        journal.sources = merge_accounts(journal.sources, row.accounts.table())
        better = self.here is None or now.ceiling < self.here.state.bounds().ceiling * (1.0 - TIE_RTOL)
        goes = better and trial.move != "line"
        gamma, tau = best_pair(row)
        if trial.move != "line":
            journal.seen.append(gamma)
        if not better and not now.is_certified(self.context.gap):
            journal.certain = False
        unit = self.context.cv_error_factor
        journal.steps.append(
            DescentStep(trial.move, gamma, tau, now.ceiling * unit, float(now.clipped_estimates[now.best]) * unit, goes)
        )
        if goes:
            self.here, journal.lined, journal.certain = row, False, True
            is_expired = self.context.deadline.has_expired()
            journal.proposed = [] if is_expired else [point.gamma for point in self._proposals(row)]
        elif better:
            journal.proposed = [gamma]

    def _proposals(self, row: GridSearch) -> list[GammaPoint]:
        """Return the gammas that lower h at the supports of the best pair of a row, best first."""
        return gamma_proposals(row.state, row.state.bounds().best, self.interval)

    # -- where it stands ---------------------------------------------------------------------------------------------

    @property
    def _current_row(self) -> GridSearch:
        """The row that is being solved, or the present row."""
        trial = self.trial
        row = trial.row if trial is not None and trial.move != "line" else self.here
        assert row is not None
        return row

    def progress(self) -> Progress:
        """Return the progress of the row that is being tried, with a description of the move."""
        trial, journal = self.trial, self.journal
        row = trial.row if trial is not None else self._current_row
        state, gammas = row.progress(), row.context.grid.gammas
        where = f"gamma {gammas[0]:.4g}" if len(gammas) == 1 else f"tau {state.best[1] if state.best else '?'}"
        move = trial.move if trial is not None else "done"
        stage = f"step {len(journal.steps) + 1}, {move}: {where}"
        if self.here is not None:
            gamma, tau = best_pair(self.here)
            now = self.here.state.bounds()
            best = float(now.nominal[now.best]) * self.context.cv_error_factor
            stage += f"; best so far {format_number(best)} at gamma {gamma:.4g}, tau {tau}"
        nodes, mios = journal.nodes, journal.mios  # which include those of a trial that was judged
        if trial is not None:
            nodes, mios = nodes + state.nodes, mios + state.mios
        return replace(state, nodes=nodes, mios=mios, stage=stage, proved=None)

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""
        row, journal, unit = self._current_row, self.journal, self.context.cv_error_factor
        trial = self.trial.row if self.trial is not None else None
        rows = [method.state.bounds() for method in (self.here, row) if method is not None]
        best = min(rows, key=lambda bounds: bounds.ceiling)
        return make_trace_line(row.state, row.n_trees) | {
            "nodes": journal.nodes + (trial.state.counts.nodes if trial is not None else 0),
            "mios": journal.mios + (trial.n_trees if trial is not None else 0),
            "proved": None,  # the proof of a row does not prove the descent
            "gamma": float(row.context.grid.gammas[0]),
            "steps": len(journal.steps),
            "upper": null_if_infinite([best.ceiling * unit])[0],
            "estimate": null_if_infinite([float(best.nominal[best.best]) * unit])[0],
            "estimates": null_if_infinite((row.state.bounds().nominal[0] * unit).tolist()),
        }

    def checkpoint(self) -> Archive:
        """Return the content of a checkpoint: the journal, the present row, the search in progress."""
        if self.stored is not None:
            return self.stored
        journal, state = replace(self.journal), Archive()
        if self.here is not None:
            state |= add_prefix("here", self.here.checkpoint())
            journal.here = self.here.context.grid.gammas.tolist()
        if self.trial is not None:
            grid = self.trial.row.context.grid
            journal.trial = self.trial.move, grid.gammas.tolist(), grid.taus.tolist()
            state |= add_prefix("trial", self.trial.row.checkpoint())
        return state | {"journal": np.array(json.dumps(plain(journal, Journal, "journal")))}

    def resume(self, stored: Archive) -> None:
        """Restore the state from a checkpoint."""
        check_like(stored, {"journal": np.array("")})
        try:
            journal = read_json_value(parse_json(stored["journal"], "journal"), Journal, "journal")
            if journal.here is not None:
                self.here = self._row(journal.here, self.taus)
            self.trial = None
            if journal.trial is not None:
                move, gammas, taus = journal.trial
                self.trial = Trial(move, self._row(gammas, taus))
            if self.here is None and (self.trial is None or self.trial.move != "start"):
                raise CorruptStore("its descent has a move, but its initial gamma is not solved")
        except (CorruptStore, BadInput):
            raise CorruptStore("its record of the descent is damaged") from None
        self.journal = replace(journal, here=None, trial=None)
        if self.here is not None:
            self.here.resume(select_by_prefix("here", stored))
        if self.trial is not None:
            self.trial.row.resume(select_by_prefix("trial", stored))

    # -- what is reported --------------------------------------------------------------------------------------------

    def score_reported_pair(self) -> None:
        """Score the pair to report in the present row, and solve what the one-standard-error rule needs."""
        if self.here is None:
            return
        self.here.score_reported_pair()
        if self.context.needs_all_pairs:
            self.here.pursue_goals(self.context)
            self.here.score_reported_pair()

    def snapshot(self, over: bool = False) -> Snapshot | None:
        """Return copies of the state of the present row; before the first move, of the row that is tried.

        Parameters
        ----------
        over : bool
            True if nothing will be written to the subproblems any more.
        """
        row = self.here if self.here is not None or self.trial is None else self.trial.row
        if row is None:
            return None
        journal, snapshot = self.journal, row.snapshot(over)
        of_rows = Work(journal.mios, journal.nodes, 0.0, "descent, certified rows", snapshot.work.oracles)
        return replace(
            snapshot,
            context=replace(snapshot.context, request=self.context.request),
            work=replace(of_rows, sources=tuple(journal.sources), plan=snapshot.work.plan),
            complete=journal.over and journal.certain,
            steps=tuple(journal.steps),
        )


def best_pair(row: GridSearch) -> tuple[float, int]:
    """Return the best (tau, gamma) pair of a search, as gamma and tau."""
    g, t = row.state.bounds().best
    return float(row.context.grid.gammas[g]), int(row.context.grid.taus[t])
