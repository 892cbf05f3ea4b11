"""Functions that check a proof against its data, one line of the proof after the other."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .bounded_fits import AdjustedDesign, DesignOfFolds, ScaledDesign
from .logistic_statements import LogisticFolds, TwoClasses, check_logistic_tree
from .proof_file import (
    FORMAT_OF_LOSSES,
    FORMAT_OF_TERMS,
    FORMATS,
    Arithmetic,
    Array,
    Floats,
    Fractions,
    Refused,
    Unreadable,
    compute_digest,
    integers,
    lines_of_proof,
    need,
    number,
    numbers,
    support,
    table,
)
from .statements import FoldIntervals, Folds, Terms, check_tree

ROUNDING_RTOL = 1e-3  # share of a bound up to which rounding may explain that a claim is not proved in fast mode
NOISE_RTOL = 1e-9  # the same, as a share of the mean squared target: floats lose the digits of small errors
MODES: dict[str, Arithmetic] = {"fast": Floats(), "exact": Fractions()}
SAID = {
    "list": "the list of subsets on all rows",
    "own": "separate trees of the folds",
    "loss": "the training-loss bound",
}


MOST_LINES = 10  # best subsets on all rows whose bounds are printed


class Proved(NamedTuple):
    """Result of a check: statements for the reader, and the interval of every pair (gamma, tau), by index."""

    words: list[str]
    intervals: dict[tuple[int, int], tuple[float, float]]


def _proved_interval(line: dict[str, Any], low: Any, high: Any, what: str, noise: float = 0.0) -> tuple[Any, Any]:
    """Return a proved interval as numbers; refuse a claim that is narrower. `noise` may explain it in fast mode."""

    def describe_gap(name: str, claimed: float, proved: Any) -> str:
        # beyond the other end of the interval, which holds in exact arithmetic too, rounding cannot be the reason
        is_rounding = isinstance(low, float) and low <= claimed <= high
        is_rounding = is_rounding and abs(claimed - proved) <= max(ROUNDING_RTOL * abs(proved), noise)
        advice = ", computed with rounding; use --mode exact" if is_rounding else ""
        return f"{what}: {name} is {line[name]!r}, but the proof gives only {float(proved)!r}{advice}"

    lower = number(line["lower"], "lower")
    need(lower <= low, describe_gap("lower", lower, low))
    if line["upper"] is not None:
        upper = number(line["upper"], "upper")
        need(upper >= high, describe_gap("upper", upper, high))
    return low, high


class Check:
    """State of a check: the data, the proved trees, and the pairs with bounds."""

    def __init__(self, head: dict[str, Any], X: Array, y: Array, mode: str) -> None:
        self.kind, self.head, data = MODES[mode], head, head["data"]
        size = integers([data["n"], data["p"]], 0, 1 << 40, "the size of the data")
        need(
            [*X.shape, len(y)] == [*size, size[0]],
            f"the data have {len(y)} rows and {X.shape[1]} features, but the data of the proof have {size[0]} and "
            f"{size[1]}",
        )
        need(
            compute_digest(X, y, data["names"], data["target"]) == data["digest"],
            "the data are not those of the proof: their digests differ",
        )
        columns, adjust, terms = self._terms(X)
        sound = head["scale"] in ("length", "variance", "none") and head["intercept"] in ("fold", "global", "none")
        need(sound, f"the scale {head['scale']!r} or the intercept {head['intercept']!r} is unknown")
        self.gammas = numbers(head["gammas"], len(head["gammas"]), "gammas")
        self.taus = integers(head["taus"], 0, X.shape[1] + 1, "taus")
        need(
            self.taus and self.gammas and min(self.gammas) > 0.0,
            "the grid needs at least one tau and one gamma, and every gamma must be positive",
        )
        self.grid = [(g, t) for g in range(len(self.gammas)) for t in range(len(self.taus))]
        need(not self.of_loss or head["loss"] == "logistic", f"the loss {head.get('loss')!r} is unknown")
        table = X[:, columns], y, head["scale"], head["intercept"]
        self.design: Any = None
        if self.within is not None:
            self.design = DesignOfFolds(*table, self.kind, X[:, adjust], self.within)
        elif adjust:
            self.design = AdjustedDesign(*table, self.kind, X[:, adjust])
        else:
            self.design = TwoClasses(*table) if self.of_loss else ScaledDesign(*table, self.kind)
        self.kind, folds_of = self.design.kind, LogisticFolds if self.of_loss else Folds
        self.check_tree: Any = check_logistic_tree if self.of_loss else partial(check_tree, terms=terms)
        units = integers(head["units"], -2000, 2000, "units")
        need(len(units) == len(columns), f"the head has {len(units)} units of columns, but {len(columns)} columns")
        self.units = self.design.y_unit**2, np.array(units, dtype=np.int64) + self.design.exponent
        left_out = [integers(rows, 0, len(y), "the rows of a fold") for rows in head.get("left", [[0]])]
        scored = left_out if head.get("scored") is None else [integers(r, 0, len(y), "a fold") for r in head["scored"]]
        for fold, (rows, some) in enumerate(zip(left_out, scored, strict=True), start=1):
            need(len({*rows}) == len(rows) and len({*some}) == len(some), f"fold {fold} names a row twice")
            need({*some} <= {*rows}, f"fold {fold} scores a row on which it trains")
        self.folds = folds_of(self.design, left_out, scored, terms)
        self.noise = NOISE_RTOL * float(np.mean(np.square(y - np.mean(y))))
        self.proved, self.claims = dict[tuple[int, int], tuple[Any, Any]](), list[dict[str, Any]]()

    def _terms(self, X: Array) -> tuple[list[int], list[int], Terms]:
        """Return the columns that are chosen from, the adjustment columns, and the columns of each term."""
        head, names = self.head, self.head["data"]["names"]
        self.of_loss, extended = head["format"] == FORMAT_OF_LOSSES, head["format"] == FORMAT_OF_TERMS
        columns = list(support(head["columns"], X.shape[1]))
        adjust = list(support(head.get("adjust", []), X.shape[1])) if extended else []
        self.within = head.get("within") if extended else None
        fills = self.within is not None and self._uses_fill_rule(self.within["na"], self.within["scale"])
        need(fills or np.isfinite(X).all(), "the data have missing values, but the proof has no rule that fills them")
        varying = np.flatnonzero(np.fmax.reduce(X, axis=0) > np.fmin.reduce(X, axis=0)).tolist()
        need(
            columns == varying or extended and {*columns, *adjust} <= {*varying},
            "the columns of the proof differ from the columns of the data that are not constant",
        )
        need(
            columns and not {*columns} & {*adjust},
            "there is no selectable column, or a column is both selectable and adjusted for",
        )
        self.names = [[names[j] for j in some] for some in (adjust, sorted({*varying} - {*columns, *adjust}))]
        terms = [[j] for j in range(len(columns))]
        if extended and "terms" in head:
            terms = [integers(term, 0, len(columns), "a term") for term in head["terms"]]
            need(
                all(terms) and sorted(sum(terms, [])) == [*range(len(columns))],
                "each column must be in exactly one term",
            )
        return columns, adjust, terms

    def _uses_fill_rule(self, na: Any, own: Any) -> bool:
        """Return True if the training rows of a fold fill missing values by the rule `na`.

        `own` is True if the training rows also give the scales of columns.
        """
        sound = na in (None, "mean", "median") and type(own) is bool and (na or own)
        need(sound, f"the rule of imputation {na!r} or of scaling {own!r} is unknown")
        with_folds = self.head["intercept"] != "global" and "left" in self.head
        need(with_folds, "fold-specific preprocessing requires folds, and the intercept 'fold' or 'none'")
        return na is not None

    def take(self, line: dict[str, Any]) -> None:
        """Check one line."""
        takers = {"tree": self._tree, "best": self._best, "pair": self._pair, "claim": self.claims.append}
        need(line.get("kind") in takers, f"unknown kind of line {line.get('kind')!r}; known: {', '.join(takers)}")
        takers[line["kind"]](line)

    def _read_pair(self, line: dict[str, Any]) -> tuple[tuple[int, int], FoldIntervals, str]:
        """Return the pair of a line, the state of its folds and its name."""
        g = integers([line["gamma"]], 0, len(self.gammas), "a gamma")[0]
        t = integers([line["tau"]], 0, len(self.taus), "a tau")[0]
        cells = FoldIntervals(self.folds, (g, self.gammas[g]), min(self.taus[t], len(self.folds.terms)))
        return (g, t), cells, f"tau {self.taus[t]}, gamma {self.gammas[g]!r}"

    def _tree(self, line: dict[str, Any]) -> None:
        rows = integers([line["rows"]], -1, len(self.folds.left), "the rows of a tree")[0]
        g = integers([line["gamma"]], 0, len(self.gammas), "a gamma")[0]
        m = self.folds.moments(rows)
        penalty = self.folds.penalty(self.gammas[g], rows if self.design.within is not None else -1)
        self.folds.trees.append(self.check_tree(line, m, penalty, self.kind, self.units)._replace(rows=rows, gamma=g))

    def _best(self, line: dict[str, Any]) -> None:
        """Check a best subset on all rows: the minimum objective, and a support that attains it."""
        pair, cells, name = self._read_pair(line)
        least = cells.objective_lower_bound(cells.tree(line["tree"], -1))
        mine = support(line["support"], len(self.folds.terms))
        need(len(mine) <= cells.tau, f"the support has {len(mine)} terms, more than {name} allows")
        need(line["upper"] is not None, f"the best subset of {name} has no upper bound")
        upper = self.folds.objectives(cells.value, [mine])[1][0]
        ends = _proved_interval(line, least * self.units[0], upper * self.units[0], name)
        if "left" not in self.head:
            self.proved[pair] = ends

    def _pair(self, line: dict[str, Any]) -> None:
        need("left" in self.head, "the line is about a (tau, gamma) pair, but the proof has no folds")
        pair, cells, name = self._read_pair(line)
        for statement in line["parts"]:
            cells.add(statement)
        self.proved[pair] = _proved_interval(line, *cells.interval(), name, self.noise)

    def _describe_problem(self) -> list[str]:
        """Return sentences that state the problem; a proof of easier folds or of a smaller grid is valid as well."""
        head, data, scored = self.head, self.head["data"], self.folds.scored
        gammas, taus = (", ".join(map(repr, values)) for values in (self.gammas, self.taus))
        leaves = sum(tree.leaves for tree in self.folds.trees)
        words = [f"data: {data['n']} rows, {data['p']} features, target {data['target']!r}, {data['digest'][:23]}..."]
        words.append(f"grid: gamma {gammas}; tau {taus}; scale: {head['scale']}; intercept: {head['intercept']}")
        adjusted, out = (", ".join(map(repr, names)) for names in self.names)
        words += [f"adjusted for: {adjusted}"] if adjusted else []
        if self.within is not None:
            na, own = self.within["na"], self.within["scale"]
            words += [f"missing values: filled with the {na} of the training rows of each fold"] if na else []
            words += ["scales: computed from the training rows of each fold"] if own else []
        words += [f"excluded columns: {out}"] if out else []
        several = [term for term in self.folds.terms if len(term) > 1]
        shown = "; ".join(", ".join(repr(data["names"][head["columns"][j]]) for j in term) for term in several)
        words += [f"groups of columns that count as one feature: {shown}"] if several else []
        target = f"the target {data['target']!r} is 1 in one class and 0 in the other"
        arithmetic = "its statements are checked in integers, in the exact mode and in the fast mode"
        words += [f"loss: {head['loss']}; {target}; {arithmetic}"] if self.of_loss else []
        if "left" in head:
            sizes, counts = sorted(map(len, scored)), np.bincount(sum(scored, []), minlength=data["n"])
            times = "once" if (counts == 1).all() else f"{counts.min()} to {counts.max()} times"
            extent = " to ".join(map(str, sorted({sizes[0], sizes[-1]})))
            rows = f"with {extent} rows each; each row is scored {times}"
            words.append(f"folds: {len(sizes)}, {rows}{self._describe_partition(scored)}")
        words.append(
            f"trees: {len(self.folds.trees)}, their {leaves} leaves cover all supports, and every bound is valid"
        )
        return words

    def _describe_partition(self, scored: list[list[int]]) -> str:
        """Return the digest of the folds, as in `folds.digest` of a record, if they are a partition of the rows."""
        labels = np.full(self.head["data"]["n"], -1, dtype="<i8")
        for fold, rows in enumerate(scored):
            labels[rows] = fold
        is_partition = labels.min() >= 0 and all(map(set.__eq__, map(set, self.folds.left), map(set, scored)))
        digest = hashlib.sha256(labels.tobytes()).hexdigest()
        return f"; digest sha256:{digest}" if is_partition and sum(map(len, scored)) == len(labels) else ""

    def finish(self) -> Proved:
        """Check that every pair of the grid has a line, and check the claim."""
        for g, t in self.grid:
            need((g, t) in self.proved, f"tau {self.taus[t]}, gamma {self.gammas[g]!r} has no proof")
        need(
            len(self.claims) == ("left" in self.head),
            f"the proof has {len(self.claims)} claims; it needs exactly one with folds, and none without folds",
        )
        words = self._describe_problem()
        intervals = {pair: (float(a), float(b)) for pair, (a, b) in self.proved.items()}
        if not self.claims:
            count = len(self.grid)
            words.append(f"best subsets on all rows: {count}, each with a lower and an upper bound")
            for (g, t), (least, most) in intervals.items() if count <= MOST_LINES else ():
                pair_name = f"tau {self.taus[t]}, gamma {self.gammas[g]!r}"
                words.append(f"proved: the minimum objective of {pair_name} is in [{least!r}, {most!r}]")
            return Proved(words, intervals)
        claim, (pair, _, name) = self.claims[0], self._read_pair(self.claims[0])
        need(claim["upper"] is not None, "the claim has no upper bound")
        low, high = min(low for low, _ in self.proved.values()), self.proved[pair][1]
        _proved_interval(claim, low, high, "the claim")
        cells = ", ".join(f"{SAID[by]} {count}" for by, count in self.folds.by.items())
        words.append(f"subproblems (pair x fold): {len(self.grid) * len(self.folds.left)}")
        words.append(
            f"bounds on subproblems, by kind: {cells} (one subproblem may have bounds of several kinds; the error of a "
            "subproblem without a bound counts as at least 0)"
        )
        quote = "quote this bound; it implies the claim of the proof,"
        words.append(f"proved: every CV error of the grid is at least {float(low)!r} ({quote} {claim['lower']!r})")
        words.append(f"proved: the CV error of {name} is at most {float(high)!r} ({quote} {claim['upper']!r})")
        return Proved(words, intervals)


def check(proof: str, X: Array, y: Array, mode: str = "fast") -> Proved:
    """Check a proof against data; return what it proves.

    Parameters
    ----------
    proof : str
        File of the proof.
    X : (n, p) array
        Features, with NaN for missing values that the training rows of each fold fill.
    y : (n,) array
        Target.
    mode : {"fast", "exact"}
        Arithmetic: floats with error bounds, or fractions.

    Raises
    ------
    Refused
        If a claim is not proved.
    Unreadable
        If the file is not a proof.
    """
    return _check(proof, lambda names, target, holes: (X, y), mode)


def check_file(proof: str, data: str, mode: str = "fast") -> Proved:
    """Check a proof against a file of separated text with a header; return what it proves.

    Parameters
    ----------
    proof, data : str
        Files.
    mode : {"fast", "exact"}
        Arithmetic: floats with error bounds, or fractions.
    """

    def read(names: Any, target: Any, holes: bool) -> tuple[Array, Array]:
        try:
            return table(data, names, target, holes)
        except Unreadable as error:
            numbers = f"{proof}.tsv"
            if Path(data).is_file() and Path(numbers).is_file() and not Path(numbers).samefile(data):
                raise Unreadable(
                    f"{data} is not the table of numbers to which the proof refers; give {numbers} instead"
                ) from error
            raise

    return _check(proof, read, mode)


def _check(proof: str, read: Callable[[Any, Any, bool], tuple[Array, Array]], mode: str) -> Proved:
    count = 1
    try:
        stream = lines_of_proof(proof)
        head = next(stream, {})
        if head.get("format") not in FORMATS:
            raise Unreadable(
                f"{proof}: its format is {head.get('format')!r}, but this checker reads {', '.join(FORMATS[:-1])} and "
                f"{FORMATS[-1]}; check it with the version of sparsecv-mio that wrote it"
            )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            state = Check(head, *read(head["data"]["names"], head["data"]["target"], "within" in head), mode)
            for line in stream:
                count += 1
                state.take(line)
            return state.finish()
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, AttributeError) as error:
        raise Refused(f"line {count} is malformed: {type(error).__name__} {error}") from None
    except Refused as error:
        raise Refused(f"line {count}: {error}") from None


def run_check(arguments: Sequence[str]) -> int:
    """Run a check from a command line `PROOF DATA [--mode fast|exact]`; return the exit code.

    The code is 0 if the claims are proved, 1 if they are not, and 2 for bad input.
    """
    words, mode = [*arguments], "fast"
    if words[-2:-1] == ["--mode"]:
        words, mode = words[:-2], words[-1]
    try:
        if len(words) != 2 or mode not in MODES:
            raise Unreadable("usage: python -m sparsecv_mio.check PROOF DATA [--mode fast|exact]")
        claim = check_file(words[0], words[1], mode)
    except (Unreadable, Refused) as error:
        print(f"{'NOT PROVED' if isinstance(error, Refused) else 'cannot check'}: {error}", file=sys.stderr)
        return 1 if isinstance(error, Refused) else 2
    print("\n".join([f"checked ({mode})", *claim.words]))
    return 0
