"""From a proof and its data to what is proved: lines are read in order, and believed only once they are checked."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Array, Floats, Fractions
from .folds import Folds
from .moments import Design
from .pairs import Cells
from .reading import FORMAT, Refused, Unreadable, digest_of, integers, lines, need, number, numbers, support, table
from .tree import Tree, check_tree

MODES: dict[str, Arithmetic] = {"fast": Floats, "exact": Fractions}


@dataclass
class Found:
    """What a proof proves, line by line for the reader."""

    mode: str
    words: list[str] = field(default_factory=list)
    intervals: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)


class Check:
    """The state of a check: the data, the trees that hold, the pairs that are bounded."""

    def __init__(self, head: dict[str, Any], X: Array, y: Array, mode: str) -> None:
        self.kind, self.found = MODES[mode], Found(mode)
        data = head["data"]
        size = integers([data["n"], data["p"]], 0, 1 << 40, "the size of the data")
        need(list(X.shape) == size and len(y) == len(X), "the data have another size")
        need(digest_of(X, y, data["names"], data["target"]) == data["digest"], "the data are other ones: digest")
        p = X.shape[1]
        columns = list(support(head["columns"], p))
        spread = X.max(0) > X.min(0)
        need(np.array_equal(np.flatnonzero(spread), columns), "the columns are not those that vary")
        need(head["scale"] in ("length", "variance", "none"), "the scale is unknown")
        need(head["intercept"] in ("fold", "global", "none"), "the intercept is unknown")
        self.gammas = numbers(head["gammas"], len(head["gammas"]), "gammas")
        need(self.gammas and all(gamma > 0.0 for gamma in self.gammas), "a gamma is not positive")
        self.taus = integers(head["taus"], 0, p + 1, "taus")
        need(self.taus, "no tau")
        self.design = Design(X[:, columns], y, head["scale"], head["intercept"], self.kind)
        self.unit = self.design.y_unit**2
        units = integers(head["units"], -2000, 2000, "units")
        need(len(units) == len(columns), "units are not one for each column")
        self.shift = np.array(units, dtype=np.int64) + self.design.exponent
        left = [integers(rows, 0, len(y), "the rows of a fold") for rows in head.get("left", [[0]])]
        scored = left if head.get("scored") is None else [integers(r, 0, len(y), "a fold") for r in head["scored"]]
        need(all(len(set(rows)) == len(rows) for rows in (*left, *scored)), "a fold names a row twice")
        need(len(scored) == len(left), "folds are malformed")
        need(all(set(s) <= set(r) for s, r in zip(scored, left, strict=True)), "a fold scores a row that it trains on")
        self.folds = Folds(self.design, left, scored)
        self.head, self.trees = head, list[Tree]()
        self.pairs: dict[tuple[int, int], tuple[Any, Any]] = {}
        self.best: set[tuple[int, int]] = set()
        self.claim: dict[str, Any] | None = None
        self.leaves, self.by = 0, Counter[str]()

    def take(self, line: dict[str, Any]) -> None:
        """Check one line."""
        word = line.get("kind")
        need(word in ("tree", "best", "pair", "claim"), f"{word!r} is no line of this format")
        {"tree": self._tree, "best": self._best, "pair": self._pair, "claim": self._claim}[str(word)](line)

    def _at(self, line: dict[str, Any]) -> tuple[int, int, float, int]:
        g = integers([line["gamma"]], 0, len(self.gammas), "a gamma")[0]
        t = integers([line["tau"]], 0, len(self.taus), "a tau")[0]
        return g, t, self.gammas[g], min(self.taus[t], self.design.q)

    def _tree(self, line: dict[str, Any]) -> None:
        rows = integers([line["rows"]], -1, len(self.folds.left), "the rows of a tree")[0]
        g = integers([line["gamma"]], 0, len(self.gammas), "a gamma")[0]
        m, units = self.folds.moments(rows), (self.unit, self.shift)
        tree = check_tree(line, (rows, g), m, self.folds.penalty(self.gammas[g]), self.kind, units)
        self.trees.append(tree)
        self.leaves += tree.leaves

    def _best(self, line: dict[str, Any]) -> None:
        """Check a best subset on all rows: least objective, and a support that reaches it."""
        g, t, gamma, tau = self._at(line)
        cells = Cells(self.folds, self.trees, g, gamma, tau)
        least = cells.least(cells.tree(line["tree"], -1))
        mine = support(line["support"], self.design.q)
        need(len(mine) <= tau, "a support is larger than tau")
        need(line["upper"] is not None, "a best subset has no upper end")
        low, high = least * self.unit, self.folds.objectives(gamma, [mine])[1][0] * self.unit
        self._within(line, low, high, f"tau {self.taus[t]}, gamma {gamma!r}")
        self.best.add((g, t))
        self.found.intervals[g, t] = float(low), float(high)

    def _within(self, line: dict[str, Any], low: Any, high: Any, what: str) -> None:
        """Refuse an interval that is claimed narrower than it is proved."""
        words = f"{what}: {{}} is {{!r}}, proved is {{!r}}"
        need(number(line["lower"], "lower") <= low, words.format("lower", line["lower"], float(low)))
        if line["upper"] is not None:
            need(number(line["upper"], "upper") >= high, words.format("upper", line["upper"], float(high)))

    def _pair(self, line: dict[str, Any]) -> None:
        g, t, gamma, tau = self._at(line)
        need("left" in self.head, "a pair in a proof without folds")
        cells = Cells(self.folds, self.trees, g, gamma, tau)
        for part in line["parts"]:
            cells.add(part)
        low, high = cells.interval()
        self._within(line, low, high, f"tau {self.taus[t]}, gamma {gamma!r}")
        self.pairs[g, t] = low, high
        self.by.update(cells.by)
        self.found.intervals[g, t] = float(low), float(high)

    def _claim(self, line: dict[str, Any]) -> None:
        need(self.claim is None, "a second claim")
        self.claim = line

    def _asked(self) -> list[str]:
        """Say of which problem all is proved: a proof of easier folds or of a smaller grid is a proof as well."""
        gammas, taus = (", ".join(map(repr, values)) for values in (self.gammas, self.taus))
        columns = f"columns by {self.head['scale']}, intercept {self.head['intercept']}"
        words = [f"grid: gamma {gammas}; tau {taus}; {columns}"]
        if "left" in self.head:
            sizes = [len(rows) for rows in self.folds.scored]
            times = Counter(row for rows in self.folds.scored for row in rows)
            counts = {times[row] for row in range(self.head["data"]["n"])}
            each = "every row once" if counts == {1} else f"rows {min(counts)} to {max(counts)} times"
            words.append(f"folds: {len(sizes)} of {min(sizes)} to {max(sizes)} rows, {each}")
        return words

    def finish(self) -> Found:
        """Check that every pair of the grid is spoken of, and the claim of all."""
        grid = [(g, t) for g in range(len(self.gammas)) for t in range(len(self.taus))]
        words, head = self.found.words, self.head["data"]
        size = f"{head['n']} rows, {head['p']} features"
        words.append(f"data: {size}, target {head['target']!r}, {head['digest'][:23]}...")
        words += self._asked()
        words.append(f"trees: {len(self.trees)}, their {self.leaves} leaves cover all supports, every bound holds")
        if "left" not in self.head:
            need(all(pair in self.best for pair in grid), "a pair (gamma, tau) has no proof")
            words.append(f"best subsets on all rows: {len(grid)}, each with lower and upper")
            return self.found
        need(all(pair in self.pairs for pair in grid), "a pair (gamma, tau) has no proof")
        need(self.claim is not None, "the claim is missing")
        claim = self.claim or {}
        g, t, gamma, _ = self._at(claim)
        low, high = min(self.pairs[pair][0] for pair in grid), self.pairs[g, t][1]
        need(claim.get("upper") is not None, "the claim has no upper end")
        self._within(claim, low, high, "the claim")
        cells = len(grid) * len(self.folds.left)
        said = {"list": "the list on all rows and leave-out thresholds", "own": "trees of their own",
                "loss": "the training-loss bound"}  # fmt: skip
        words.append(f"cells: {cells}, of which " + ", ".join(f"{n} by {said[by]}" for by, n in self.by.items()))
        words.append(f"proved: every CV error of the grid is at least {float(low)!r} (claimed {claim['lower']!r})")
        words.append(f"proved: that of tau {self.taus[t]}, gamma {gamma!r} is at most {float(high)!r} "
                     f"(claimed {claim['upper']!r})")  # fmt: skip
        return self.found


def check(proof: str, X: Array, y: Array, mode: str = "fast") -> Found:
    """Check a proof against data.

    Parameters
    ----------
    proof : str
        File.
    X : (n, p) array
    y : (n,) array
    mode : {"fast", "exact"}

    Raises
    ------
    Refused
        Something that is claimed is not proved.
    Unreadable
        It is no proof.
    """
    stream = lines(proof)
    return _check(_head(stream, proof), stream, X, y, mode)


def check_file(proof: str, data: str, mode: str = "fast") -> Found:
    """Check a proof against a file of separated text with a header.

    Parameters
    ----------
    proof, data : str
        Files.
    mode : {"fast", "exact"}
    """
    stream = lines(proof)
    head = _head(stream, proof)
    try:
        names, target = head["data"]["names"], head["data"]["target"]
        need(all(type(name) is str for name in (*names, target)), "the names are malformed")
    except (KeyError, TypeError) as error:
        raise Refused(f"the first line is malformed: {error}") from None
    X, y = table(data, names, target)
    return _check(head, stream, X, y, mode)


def _head(stream: Any, proof: str) -> dict[str, Any]:
    head = dict(next(stream, {}))
    if head.get("format") != FORMAT:
        raise Unreadable(f"{proof}: its format is {head.get('format')!r}, this checker reads {FORMAT!r}")
    return head


def _check(head: dict[str, Any], stream: Any, X: Array, y: Array, mode: str) -> Found:
    count = 1
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            state = Check(head, X, y, mode)
            for line in stream:
                count += 1
                state.take(line)
            return state.finish()
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, AttributeError) as error:
        raise Refused(f"line {count} is malformed: {type(error).__name__} {error}") from None
    except np.linalg.LinAlgError as error:
        raise Refused(f"line {count}: {error}") from None
    except Refused as error:
        raise Refused(f"line {count}: {error}") from None


def run(arguments: Sequence[str]) -> int:
    """Check from a command line, `PROOF DATA [--mode fast|exact]`; 0 proved, 1 not proved, 2 bad input."""
    given, mode = list(arguments), "fast"
    if "--mode" in given:
        at = given.index("--mode")
        mode = given[at + 1] if at + 1 < len(given) else ""
        del given[at : at + 2]
    if len(given) != 2 or mode not in MODES:
        print("usage: python -m sparsecv_mio.check PROOF DATA [--mode fast|exact]", file=sys.stderr)
        return 2
    try:
        found = check_file(given[0], given[1], mode)
    except Unreadable as error:
        print(f"cannot check: {error}", file=sys.stderr)
        return 2
    except Refused as error:
        print(f"NOT PROVED: {error}", file=sys.stderr)
        return 1
    print("\n".join([f"checked ({mode})", *found.words]))
    return 0
