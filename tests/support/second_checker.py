"""A second checker of proofs, written from docs/proof-format.md alone, in exact arithmetic.

Every number is an integer or a fraction. Floats only propose solutions of linear systems; what a proposal `b` is worth
follows from `M >= diag(pi)` alone: with `r = c - M b`, the least of `v'M v - 2 c'v` is its value at b less `r'M^{-1}r`,
and `r'M^{-1}r <= sum of r_j^2 / pi_j`. No inverse is believed, and no rounding error needs a bound.

    python tests/support/second_checker.py PROOF DATA
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import math
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np

Support = tuple[int, ...]
EXPONENTS, UNITS, POINTS = 1000, 2000, 2**53  # a dual point and the units of columns are below these in size


class Refused(Exception):
    """The proof does not prove what it says; the message says where."""


@dataclass(frozen=True)
class Verdict:
    accepted: bool
    reason: str
    lower: float | None = None  # of a proof with folds: what was checked, not what is claimed
    upper: float | None = None


@dataclass(frozen=True)
class Interval:
    low: Fraction
    high: Fraction | None  # None: infinity

    def meet(self, other: Interval) -> Interval:
        highs = [end for end in (self.high, other.high) if end is not None]
        return Interval(max(self.low, other.low), min(highs) if highs else None)


# Reading


def need(condition: bool, reason: str) -> None:
    if not condition:
        raise Refused(reason)


def integer(value: Any, low: int, high: int, what: str) -> int:
    need(type(value) is int and low <= value <= high, f"{what}: {value!r} is not an integer from {low} to {high}")
    return int(value)


def number(value: Any, what: str) -> Fraction:
    need(type(value) in (int, float) and math.isfinite(value), f"{what} is not a number")
    return Fraction(value)


def listing(value: Any, what: str, length: int | None = None) -> list[Any]:
    need(type(value) is list and length in (None, len(value)), f"{what} is not a list of its length")
    return list(value)


def integers(value: Any, low: int, high: int, what: str, length: int | None = None) -> list[int]:
    return [integer(entry, low, high, what) for entry in listing(value, what, length)]


def distinct(value: Any, high: int, what: str) -> list[int]:
    entries = integers(value, 0, high, what)
    need(len(set(entries)) == len(entries), f"{what}: one entry stands twice")
    return entries


def ascending(value: Any, high: int, what: str) -> Support:
    entries = distinct(value, high, what)
    need(entries == sorted(entries), f"{what} does not ascend")
    return tuple(entries)


def get(line: dict[str, Any], name: str) -> Any:
    need(name in line, f"field {name} is missing")
    return line[name]


def lines_of(packed: bytes) -> list[dict[str, Any]]:
    """All lines but the last, whose digest is compared."""
    try:
        text = gzip.decompress(packed)
    except (OSError, EOFError, ValueError) as error:
        raise Refused(f"not a gzip file: {error}") from None
    need(text.endswith(b"\n"), "the last line is cut short")
    body, _, last = text[:-1].rpartition(b"\n")
    *lines, end = [parsed(line) for line in [*body.split(b"\n"), last]]
    need(end.get("kind") == "end", "no last line")
    need(end.get("sha256") == hashlib.sha256(body + b"\n").hexdigest(), "SHA-256 of the lines")
    need(bool(lines), "no head")
    return lines


def parsed(line: bytes) -> dict[str, Any]:
    def refuse(text: str) -> None:
        raise Refused(f"{text} in a line")

    try:
        value = json.loads(line.decode("utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refused(f"a line is no JSON: {error}") from None
    need(type(value) is dict, "a line is no object")
    return dict(value)


@dataclass(frozen=True)
class Table:
    """The numbers of the file, as integers: column j times 2^powers[j], the target times 2^target_power."""

    columns: list[list[int]]
    powers: list[int]
    target: list[int]
    target_power: int
    beside: list[list[int]]  # what is adjusted for; in any unit

    @property
    def n(self) -> int:
        return len(self.target)


def whole(values: list[float]) -> tuple[list[int], int]:
    ratios = [value.as_integer_ratio() for value in values]
    power = max(below.bit_length() - 1 for _, below in ratios)
    return [(above << power) // below for above, below in ratios], power


def fractions(values: list[Fraction]) -> tuple[list[int], int]:
    """The same of fractions whose denominators are powers of 2."""
    power = max(value.denominator.bit_length() - 1 for value in values)
    return [int(value * 2**power) for value in values], power


def cells_of(path: Path, holes: bool) -> dict[str, list[float]]:
    """Columns of numbers of a table with a header, NaN for empty cells, by name; the first of several of a name."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    except (EOFError, ValueError) as error:
        raise Refused(f"data: {error}") from None
    lines = text.splitlines(keepends=True)
    head = lines[0] if lines else ""
    mark = "\t" if path.name.removesuffix(".gz").endswith(".tsv") else max(",;\t", key=head.count)
    header, *rows = [row for row in csv.reader(lines, delimiter=mark) if row] or [[]]
    places = {name.strip(): j for j, name in reversed(list(enumerate(header)))}
    cell = {name: [row[j].strip() if j < len(row) else "." for row in rows] for name, j in places.items()}
    return {name: [float(text or "nan") for text in texts] for name, texts in cell.items() if numeric(texts, holes)}


def numeric(texts: list[str], holes: bool) -> bool:
    try:
        return all(math.isfinite(float(text)) for text in texts if text or not holes)
    except (ValueError, IndexError):
        return False


def digest_of(head: dict[str, Any], columns: list[list[float]], target: list[float]) -> str:
    fields = {name: head[name] for name in ("n", "p", "names", "target")}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    by_row = [cell + 0.0 for row in zip(*columns, strict=True) for cell in row] + [cell + 0.0 for cell in target]
    return "sha256:" + hashlib.sha256(text.encode() + struct.pack(f"<{len(by_row)}d", *by_row)).hexdigest()


# Moments


@dataclass(frozen=True)
class Moments:
    """Q, c and yy of some rows, each `times` its value; off `pivot` times a row goes `share` of what is eliminated."""

    Q: list[list[int]]
    c: list[int]
    yy: int
    times: int
    share: list[list[int]]
    pivot: int
    count: int


class Rows:
    """Sums of products over all rows and over the training rows of each fold, the target as the last column.

    A row begins with what is eliminated, the constant of an intercept and the columns that are adjusted for.
    """

    def __init__(self, table: Table, intercept: str, unit: int = 1) -> None:
        n, columns = table.n, [*table.beside, *table.columns, table.target]
        self.unit, self.first = unit, len(table.beside)
        if intercept == "global":
            self.unit, columns = n, [[n * cell - sum(column) for cell in column] for column in columns]
        elif intercept == "fold":
            self.first, columns = self.first + 1, [[1] * n, *columns]
        self.n, self.rows = n, [list(row) for row in zip(*columns, strict=True)]
        self.all_products = self.products(range(n))

    def products(self, rows: Iterable[int]) -> list[list[int]]:
        chosen = [self.rows[i] for i in rows]
        columns = list(zip(*chosen, strict=True)) if chosen else [()] * len(self.rows[0])
        return [[sum(map(int.__mul__, first, second)) for second in columns] for first in columns]

    def without(self, left: list[int]) -> Moments:
        """Eliminate, in integers: what is left is `pivot` times its value, and so is what each column loses."""
        lost, k = self.products(left), self.first
        A = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(self.all_products, lost, strict=True)]
        last = 1
        for j in range(k):
            need(A[j][j] > 0, "what is adjusted for is dependent")
            for i in range(len(A)):
                if i != j:
                    own = A[i][j]
                    A[i] = [(a * A[j][j] - own * b) // last for a, b in zip(A[i], A[j], strict=True)]
            last = A[j][j]
        values, share = [row[k:] for row in A[k:]], [row[k:] for row in A[:k]]
        Q, c = [row[:-1] for row in values[:-1]], [row[-1] for row in values[:-1]]
        return Moments(Q, c, values[-1][-1], last * self.unit**2, share, last, last * self.unit)

    def beside(self, row: list[int]) -> Fraction:
        """Leverage of a row among all rows by what is eliminated alone."""
        k = self.first
        return quadratic([products[:k] for products in self.all_products[:k]], row[:k])


@dataclass(frozen=True)
class Solution:
    """b = numerators / 2^power on `support`; value = b'M b - 2 c'b and excess over the least, over 4^power."""

    support: Support
    numerators: list[int]
    power: int
    value: int
    excess: int

    @property
    def unit(self) -> int:
        return 1 << (2 * self.power)


@dataclass
class Problem:
    """Ridge regression on some rows with one gamma; every moment is an integer, `times` its value."""

    moments: Moments
    penalty: list[Fraction]
    times: int = field(init=False)
    solved: dict[Support, Solution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = math.lcm(self.moments.times, *(pi.denominator for pi in self.penalty))
        more = self.times // self.moments.times
        self.Q = [[more * entry for entry in row] for row in self.moments.Q]
        self.c = [more * entry for entry in self.moments.c]
        self.yy = more * self.moments.yy
        self.pi = [int(pi * self.times) for pi in self.penalty]
        self.M = [
            [entry + (self.pi[i] if i == j else 0) for j, entry in enumerate(row)] for i, row in enumerate(self.Q)
        ]

    def solve(self, support: Support, c: list[int]) -> Solution:
        """An approximate least point of b'M b - 2 c'b on a support, improved until its excess is tiny."""
        M = [[self.M[i][j] for j in support] for i in support]
        c = [c[j] for j in support]
        size = [(M[i][i].bit_length() + 1) // 2 for i in range(len(support))]
        reach = max([entry.bit_length() - size[i] for i, entry in enumerate(c)], default=0)
        near = np.array([[quotient(M[i][j], size[i] + size[j]) for j in range(len(c))] for i in range(len(c))])
        digits = 120 + max((M[i][i].bit_length() - self.pi[j].bit_length() for i, j in enumerate(support)), default=0)
        power = max(max(size, default=0) + digits - reach, 64)
        shift = [power - size[i] + reach for i in range(len(c))]
        b = [0] * len(c)
        best: Solution | None = None
        for _ in range(8 + digits // 30):  # a residual counts over gamma, which may be next to nothing
            R = [(c[i] << power) - sum(map(int.__mul__, M[i], b)) for i in range(len(c))]
            value = -sum(((c[i] << power) + R[i]) * b[i] for i in range(len(c)))
            excess = sum(-(-R[i] * R[i] // self.pi[j]) for i, j in enumerate(support))
            if best is None or excess < best.excess:
                best = Solution(support, list(b), power, value, excess)
            if excess << digits + 20 <= abs(value):
                break
            residual = np.array([quotient(R[i], size[i] + reach + power) for i in range(len(c))])
            try:
                step = np.linalg.solve(near, residual)
            except np.linalg.LinAlgError:
                step = np.linalg.lstsq(near, residual, rcond=None)[0]
            for i in range(len(c)):
                above, below = float(step[i]).as_integer_ratio()
                b[i] += (above << shift[i]) // below if shift[i] >= 0 else above // (below << -shift[i])
        assert best is not None
        return best

    def fit(self, support: Support) -> Solution:
        if support not in self.solved:
            self.solved[support] = self.solve(support, self.c)
        return self.solved[support]

    def objective(self, support: Support) -> Interval:
        fit = self.fit(support)
        high = self.yy * fit.unit + fit.value
        unit = self.times * fit.unit
        return Interval(Fraction(high - fit.excess, unit), Fraction(high, unit))

    def centred(self, row: list[int]) -> list[int]:
        """`count` times the centred row, the target last."""
        m = self.moments
        k, taken = len(m.share), zip(*m.share, strict=True) if m.share else repeat(())
        return [
            m.pivot * cell - sum(map(int.__mul__, row[:k], share)) for cell, share in zip(row[k:], taken, strict=False)
        ]

    def residual(self, row: list[int], fit: Solution) -> Interval:
        """Size of the residual of a row: that at the proposal, off by sqrt(x'M^{-1}x excess) at most."""
        x = self.centred(row)
        predicted = sum(x[j] * b for j, b in zip(fit.support, fit.numerators, strict=True))
        size = Fraction(abs((x[-1] << fit.power) - predicted), self.moments.count << fit.power)
        spread = sum(Fraction(x[j] * x[j], self.pi[j]) for j in fit.support)  # times / count^2 of its value
        off = root_above(spread * Fraction(fit.excess, fit.unit * self.moments.count**2))
        return Interval(max(size - off, Fraction(0)), size + off)

    def squares(self, rows: Iterable[list[int]], fit: Solution) -> Interval:
        sizes = [self.residual(row, fit) for row in rows]
        low = sum((below(size.low**2) for size in sizes), Fraction(0))
        return Interval(low, sum((above(finite(size.high) ** 2) for size in sizes), Fraction(0)))

    def leverage(self, row: list[int]) -> Fraction:
        """Upper bound of x'M^{-1}x, x the centred row."""
        x = self.centred(row)[:-1]
        best = self.solve(tuple(range(len(x))), x)
        return above(Fraction((best.excess - best.value) * self.times, best.unit * self.moments.count**2))


def odd_part(value: int) -> int:
    return value // (value & -value)


def quotient(above: int, power: int) -> float:
    return above / (1 << power) if power >= 0 else float(above << -power)


def finite(value: Fraction | None) -> Fraction:
    assert value is not None
    return value


def below(value: Fraction) -> Fraction:
    """Rounded down to some 200 digits (binary), so that sums of many fractions stay short."""
    shift = 200 - value.numerator.bit_length() + value.denominator.bit_length()
    scale = Fraction(2) ** shift
    return Fraction(math.floor(value * scale)) / scale


def above(value: Fraction) -> Fraction:
    return -below(-value)


def root_above(value: Fraction) -> Fraction:
    shift = max(0, 128 - value.numerator.bit_length() + value.denominator.bit_length()) // 2 + 1
    return Fraction(math.isqrt(math.floor(value * 4**shift)) + 1, 2**shift) if value else value


# The head


class Setting:
    """What is talked about: the data, the grid, the folds."""

    def __init__(self, head: dict[str, Any], data: Path) -> None:
        self.logistic = get(head, "format") == "sparsecv-proof/2"
        extended = get(head, "format") == "sparsecv-proof/3"
        need(self.logistic or extended or get(head, "format") == "sparsecv-proof/1", "format")
        need(not self.logistic or get(head, "loss") == "logistic", "loss")
        self.within = head.get("within") if extended else None
        if self.within is not None:
            need(type(self.within) is dict, "within")
            na, own = get(self.within, "na"), get(self.within, "scale")
            need(na in (None, "mean", "median") and type(own) is bool and (na is not None or own), "within")
            need("left" in head and get(head, "intercept") != "global", "within without folds, or of fixed means")
        holes = self.within is not None and self.within["na"] is not None
        self.table, q, names = self.read(head, cells_of(data, holes))
        self.q, n, p = q, self.table.n, len(names)
        self.terms = [(j,) for j in range(q)]
        if extended and "terms" in head:
            terms = listing(head["terms"], "terms")
            self.terms = [tuple(sorted(integers(term, 0, q - 1, "a term"))) for term in terms]
            need(
                sorted(j for term in self.terms for j in term) == list(range(q)), "terms do not hold every column once"
            )
            need(all(self.terms), "a term of no column")
        self.units = integers(get(head, "units"), -UNITS, UNITS - 1, "units", q)
        self.scale, self.intercept = get(head, "scale"), get(head, "intercept")
        need(self.scale in ("length", "variance", "none"), "scale")
        need(self.intercept in ("fold", "global", "none"), "intercept")
        self.gammas = [number(gamma, "gammas") for gamma in listing(get(head, "gammas"), "gammas")]
        self.taus = integers(get(head, "taus"), 0, p, "taus")
        need(bool(self.gammas) and bool(self.taus) and min(self.gammas) > 0, "empty grid, or gamma not positive")
        self.read_folds(head, n)
        self.rows = Rows(self.table, "none" if self.logistic else self.intercept)
        self.filled: dict[int, Rows] = {}
        ones = {cell / 2**self.table.target_power for cell in self.table.target}
        need(not self.logistic or (ones <= {0, 1} and self.intercept != "global"), "classes, or intercept")
        self.moments: dict[int, Moments] = {}
        self.problems: dict[tuple[int, int], Any] = {}
        self.leverages: dict[tuple[int, int], Fraction] = {}

    def read(self, head: dict[str, Any], cells: dict[str, list[float]]) -> tuple[Table, int, list[str]]:
        said = get(head, "data")
        need(type(said) is dict, "data")
        names, target = listing(get(said, "names"), "names"), get(said, "target")
        need(all(type(name) is str and name in cells for name in [*names, target]), "a column is not in the file")
        n = integer(get(said, "n"), 1, 10**9, "n")
        need(integer(get(said, "p"), 0, 10**9, "p") == len(names) == len(set(names)), "p or names")
        columns, y = [cells[name] for name in names], cells[target]
        need(len(y) == n, "n")
        need(get(said, "digest") == digest_of(said, columns, y), "digest of the data")
        chosen = ascending(get(head, "columns"), len(names) - 1, "columns")
        there = [[cell for cell in column if not math.isnan(cell)] for column in columns]
        need(not any(map(math.isnan, y)), "an empty cell of the target")
        varying = tuple(j for j, column in enumerate(there) if column and min(column) < max(column))
        extended = head["format"] == "sparsecv-proof/3"
        adjust = ascending(head.get("adjust", []), len(names) - 1, "adjust") if extended else ()
        need(chosen == varying or extended, "columns are not those that vary")
        need({*chosen, *adjust} <= {*varying} and not {*chosen} & {*adjust} and bool(chosen), "columns, or adjust")
        self.cells = [columns[j] for j in (*adjust, *chosen)], len(adjust)
        known = [[0.0 if math.isnan(cell) else cell for cell in column] for column in columns]
        scaled = [whole(known[j]) for j in chosen]
        powers = [max(64, k) + 64 for _, k in scaled] if self.within else [k for _, k in scaled]  # room for fills
        scaled = [([c << (k - power) for c in column], k) for (column, power), k in zip(scaled, powers, strict=True)]
        beside = [whole(known[j])[0] for j in adjust]
        return Table([c for c, _ in scaled], powers, *whole(y), beside), len(chosen), names

    def seen(self, rows: int) -> Rows:
        """The rows as those that a fold trains on fill them; of -1 as all rows do."""
        if self.within is None:
            return self.rows
        if rows not in self.filled:
            left = set(self.left[rows] if rows >= 0 else [])
            columns, k = self.cells
            made = [self.full(column, [cell for i, cell in enumerate(column) if i not in left]) for column in columns]
            odd = math.lcm(*(odd_part(cell.denominator) for column in made for cell in column))
            made = [[cell * odd for cell in column] for column in made]
            beside = [fractions(column)[0] for column in made[:k]]
            powers = self.table.powers
            need(all(fractions(column)[1] <= power for column, power in zip(made[k:], powers, strict=True)), "a power")
            others = [[int(cell * 2**power) for cell in col] for col, power in zip(made[k:], powers, strict=True)]
            target = [cell * odd for cell in self.table.target]
            table = Table(others, powers, target, self.table.target_power, beside)
            self.filled[rows] = Rows(table, self.intercept, odd)
        return self.filled[rows]

    def full(self, column: list[float], training: list[float]) -> list[Fraction]:
        """A column with its empty cells filled by the cells that are there in training rows."""
        there = sorted(Fraction(cell) for cell in training if not math.isnan(cell))
        if any(map(math.isnan, column)):
            need(bool(there), "a column is empty in every training row")
            both = (there[(len(there) - 1) // 2] + there[len(there) // 2]) / 2
            fill = both if self.within["na"] == "median" else sum(there, Fraction(0)) / len(there)
        return [fill if math.isnan(cell) else Fraction(cell) for cell in column]

    def scales_of(self, rows: int) -> list[Fraction]:
        """Squared scales, by the training rows of a fold where these measure columns that vary there."""
        if self.within is None or self.scale == "none":
            return self.scales
        every, own = self.spreads(-1), self.spreads(rows if self.within["scale"] else -1)
        return [a if a > 0 else b for a, b in zip(own, every, strict=True)]

    def spreads(self, rows: int) -> list[Fraction]:
        seen, left = self.seen(rows), set(self.left[rows] if rows >= 0 else [])
        kept = [row[seen.first : -1] for i, row in enumerate(seen.rows) if i not in left]
        m, below = len(kept), seen.unit**2 * (1 if self.scale == "length" else len(kept))
        return [Fraction(m * sum(z * z for z in c) - sum(c) ** 2, m * below) for c in zip(*kept, strict=True)]

    def read_folds(self, head: dict[str, Any], n: int) -> None:
        self.left = [distinct(rows, n - 1, "left") for rows in listing(head.get("left", []), "left")]
        self.with_folds = "left" in head
        need(all(len(rows) < n for rows in self.left), "a fold trains on no row")
        scored = head.get("scored")
        self.scored = self.left
        if scored is not None:
            need(self.with_folds, "scored without left")
            self.scored = [distinct(rows, n - 1, "scored") for rows in listing(scored, "scored", len(self.left))]
            need(all(set(s) <= set(left) for s, left in zip(self.scored, self.left, strict=True)), "scored, not left")
        self.count = sum(map(len, self.scored))
        need(not self.with_folds or self.count > 0, "no row is scored")

    @cached_property
    def scales(self) -> list[Fraction]:
        n, powers = self.table.n, self.table.powers
        if self.scale == "none":
            return [Fraction(4**power) for power in powers]
        below = n if self.scale == "length" else n * n
        return [Fraction(n * sum(z * z for z in column) - sum(column) ** 2, below) for column in self.table.columns]

    def problem(self, rows: int, gamma: int) -> Any:
        if self.logistic:
            return self.logistic_problem(rows, gamma)
        if rows not in self.moments:
            self.moments[rows] = self.seen(rows).without(self.left[rows] if rows >= 0 else [])
        if (rows, gamma) not in self.problems:
            lam = self.gammas[gamma] / 2
            self.problems[rows, gamma] = Problem(self.moments[rows], [lam * scale for scale in self.scales_of(rows)])
        return self.problems[rows, gamma]

    def logistic_problem(self, rows: int, gamma: int) -> Any:
        from second_logistic import LogisticProblem

        if (rows, gamma) not in self.problems:
            left = set(self.left[rows] if rows >= 0 else [])
            kept = [row for i, row in enumerate(self.rows.rows) if i not in left]
            lam = self.gammas[gamma] / 2
            penalty = [lam * scale for scale in self.scales]
            self.problems[rows, gamma] = LogisticProblem(kept, penalty, self.intercept == "fold")
        return self.problems[rows, gamma]

    def leverage(self, row: int, gamma: int) -> Fraction:
        """Upper bound of H_ii of the fit of all columns on all rows."""
        if (row, gamma) not in self.leverages:
            cells = self.rows.rows[row]
            self.leverages[row, gamma] = self.rows.beside(cells) + self.problem(-1, gamma).leverage(cells)
        return self.leverages[row, gamma]

    def in_units(self, value: Fraction) -> Fraction:
        """A squared target of the file, in those of the integers."""
        return value * 4**self.table.target_power

    def size(self, tau: int) -> int:
        return min(self.taus[tau], len(self.terms))

    def columns(self, terms: Iterable[int]) -> Support:
        return tuple(sorted(j for term in terms for j in self.terms[term]))


# Trees


@dataclass(frozen=True)
class Tree:
    rows: int
    gamma: int
    first: int
    last: int
    above: list[Fraction]
    listed: frozenset[Support]

    def threshold(self, size: int) -> Fraction:
        return self.above[size - self.first]

    def listed_of(self, size: int) -> list[Support]:
        return [support for support in self.listed if len(support) == size]


@dataclass(frozen=True)
class DualPoint:
    """What is needed of a vector b at every leaf: yy - b'Q b and g_j^2 / pi_j, all `unit` times their values."""

    base: int
    costs: list[int]
    unit: int

    def of_terms(self, terms: list[Support]) -> DualPoint:
        return DualPoint(self.base, [sum(self.costs[j] for j in term) for term in terms], self.unit)

    def bound(self, size: int, included: set[int], free: set[int]) -> Fraction:
        """D of a leaf."""
        forced = self.base - sum(self.costs[j] for j in included)
        costs = sorted((self.costs[j] for j in free), reverse=True)
        return Fraction(forced - sum(costs[: size - len(included)]), self.unit)


@dataclass(frozen=True)
class BlockPoint:
    """The same with blocks of columns: yy - b'(M - W)b, and of every block g_A'W_AA^{-1}g_A by subset."""

    base: int
    values: list[dict[Support, Fraction]]
    unit: int

    def bound(self, size: int, included: set[int], free: set[int]) -> Fraction:
        """D of a leaf: the largest sum over the blocks, count by count."""
        sums: dict[int, Fraction] = {0: Fraction(0)}
        for values in self.values:
            mine = included & {j for subset in values for j in subset}
            best: dict[int, Fraction] = {}
            for subset, value in values.items():
                if mine <= set(subset) <= included | free:
                    best[len(subset)] = max(value, best.get(len(subset), value))
            longer: dict[int, Fraction] = {}
            for (a, one), (b, other) in product(sums.items(), best.items()):
                longer[a + b] = max(one + other, longer.get(a + b, one + other))
            sums = longer
        return (self.base - sums[size]) / self.unit


class Part:
    """W of a tree, `M - W` and W both `times 2^more` their values, proved to be definite."""

    def __init__(self, setting: Setting, problem: Problem, said: Any) -> None:
        need(type(said) is dict, "part")
        self.problem, powers, q = problem, setting.table.powers, setting.q
        exponent = integer(get(said, "exponent"), -4000, 3999, "exponent of a part")
        self.blocks = [distinct(some, q - 1, "a block") for some in listing(get(said, "blocks"), "blocks")]
        need(sorted(j for some in self.blocks for j in some) == list(range(q)), "blocks do not hold every column once")
        entries = listing(get(said, "entries"), "entries", len(self.blocks))
        at = [powers[j] - setting.units[j] for j in range(q)]
        shift = {(i, j): exponent + at[i] + at[j] for some in self.blocks for i in some for j in some}
        self.more = max(0, -min(shift.values()))
        self.W: list[list[list[int]]] = []
        for some, given in zip(self.blocks, entries, strict=True):
            s = len(some)
            need(1 <= s <= 8, "a block has 1 to 8 columns")
            lower = iter(integers(given, -POINTS, POINTS - 1, "entries of a block", s * (s + 1) // 2))
            W = [[0] * s for _ in some]
            for i in range(s):
                for j in range(i + 1):
                    W[i][j] = W[j][i] = problem.times * next(lower) << (self.more + shift[some[i], some[j]])
            need(definite(W), "a block is not positive definite")
            self.W.append(W)
        self.G = [[entry << self.more for entry in row] for row in problem.M]
        for some, W in zip(self.blocks, self.W, strict=True):
            for i, a in enumerate(some):
                for j, b in enumerate(some):
                    self.G[a][b] -= W[i][j]
        need(definite(self.G), "M - W is not positive definite")

    def point(self, columns: Support, numerators: list[int], power: int) -> BlockPoint:
        pairs = list(zip(columns, numerators, strict=True))
        products = [sum(row[j] * b for j, b in pairs) for row in self.G]
        g = [(c << (power + self.more)) - one for c, one in zip(self.problem.c, products, strict=True)]
        base = (self.problem.yy << (2 * power + self.more)) - sum(b * products[j] for j, b in pairs)
        values = []
        for some, W in zip(self.blocks, self.W, strict=True):
            subsets = [[i for i in range(len(some)) if mask >> i & 1] for mask in range(1 << len(some))]
            values.append({
                tuple(some[i] for i in at): quadratic([[W[i][j] for j in at] for i in at], [g[some[i]] for i in at])
                for at in subsets
            })  # fmt: skip
        return BlockPoint(base, values, self.problem.times << (2 * power + self.more))


def definite(A: list[list[int]]) -> bool:
    """Whether a symmetric matrix of integers is positive definite: its leading minors, by exact elimination."""
    A, last = [list(row) for row in A], 1
    for k in range(len(A)):
        if A[k][k] <= 0:
            return False
        for i in range(k + 1, len(A)):
            for j in range(k + 1, len(A)):
                A[i][j] = (A[i][j] * A[k][k] - A[i][k] * A[k][j]) // last
        last = A[k][k]
    return True


def quadratic(W: list[list[Any]], g: list[Any]) -> Fraction:
    """g'W^{-1}g, exactly: W positive definite."""
    rows, total = [[Fraction(entry) for entry in [*row, value]] for row, value in zip(W, g, strict=True)], Fraction(0)
    for k, row in enumerate(rows):
        total += row[-1] * row[-1] / row[k]
        for other in rows[k + 1 :]:
            share = other[k] / row[k]
            other[:] = [a - share * b for a, b in zip(other, row, strict=True)]
    return total


def dual_point(problem: Problem, columns: Support, numerators: list[int], power: int) -> DualPoint:
    pairs = list(zip(columns, numerators, strict=True))
    products = [sum(row[j] * b for j, b in pairs) for row in problem.Q]
    g = [(c << power) - product for c, product in zip(problem.c, products, strict=True)]
    costs = [-(-entry * entry // pi) for entry, pi in zip(g, problem.pi, strict=True)]
    base = (problem.yy << (2 * power)) - sum(b * products[j] for j, b in pairs)
    return DualPoint(base, costs, problem.times << (2 * power))


def stored_point(setting: Setting, problem: Problem, part: Part | None, value: Any) -> DualPoint | BlockPoint:
    exponent, columns, entries = listing(value, "point", 3)
    exponent = integer(exponent, -EXPONENTS, EXPONENTS - 1, "exponent of a point")
    places = distinct(columns, setting.q - 1, "columns of a point")
    entries = integers(entries, -POINTS, POINTS - 1, "integers of a point", len(places))
    table = setting.table
    shifts = [exponent + setting.units[j] - table.powers[j] + table.target_power for j in places]
    power = max(64, -min(shifts, default=0))
    numerators = [b << (power + s) for b, s in zip(entries, shifts, strict=True)]
    if part is not None:
        return part.point(tuple(places), numerators, power)
    return dual_point(problem, tuple(places), numerators, power).of_terms(setting.terms)


def leaves(nodes: list[int], q: int) -> Iterator[tuple[set[int], set[int], int]]:
    """Included columns, free columns and number of each leaf."""
    stack: list[tuple[set[int], set[int]]] = [(set(), set(range(q)))]
    for node in nodes:
        need(bool(stack), "nodes after the last leaf")
        included, free = stack.pop()
        if node < 0:
            yield included, free, node
        else:
            need(node in free, "a node splits on a column that is not free")
            stack.append((included, free - {node}))
            stack.append((included | {node}, free - {node}))
    need(not stack, "a leaf is missing")


class LeafChecker:
    """Closes the leaves of one tree."""

    def __init__(self, setting: Setting, tree: Tree, points: list[Any], said: dict[str, Any]) -> None:
        self.setting, self.tree, self.problem = setting, tree, setting.problem(tree.rows, tree.gamma)
        self.thresholds = [setting.in_units(value) for value in tree.above]
        self.logistic = setting.logistic
        need(not (self.logistic and "part" in said), "part")
        if self.logistic:
            self.points = [self.problem.point(setting, point) for point in points]
            return
        need("part" not in said or len(setting.terms) == setting.q, "part")
        part = Part(setting, self.problem, said["part"]) if "part" in said else None
        self.points = [stored_point(setting, self.problem, part, point) for point in points]

    def close(self, included: set[int], free: set[int], node: int) -> None:
        every = tuple(sorted(included | free))
        low, high = max(self.tree.first, len(included)), min(self.tree.last, len(every))
        need(node == -1 or -2 - node < len(self.points), "a leaf refers to a point that is not there")
        sizes = [size for size in range(low, high + 1) if not self.is_listed(size, included, every)]
        if not sizes:
            return
        need(node != -1 or not self.logistic, "a leaf without a point lists no support")
        if node == -1:
            columns = self.setting.columns(every)
            fit, terms = self.problem.fit(columns), self.setting.terms
            point: DualPoint | BlockPoint = dual_point(self.problem, columns, fit.numerators, fit.power).of_terms(terms)
        else:
            point = self.points[-2 - node]
        for size in sizes:
            bound = point.bound(size, included, free)
            threshold = self.thresholds[size - self.tree.first]
            closed = bound >= threshold or (node == -1 and self.dropping(size, free, every) >= threshold)
            need(closed, f"the leaf with {sorted(included)} of {list(every)} is not closed for size {size}")

    def is_listed(self, size: int, included: set[int], every: Support) -> bool:
        own = tuple(sorted(included))
        return any(len(s) == size and s in self.tree.listed for s in (own, every))

    def dropping(self, size: int, free: set[int], every: Support) -> Fraction:
        """`f(A)` plus the cost of dropping j is the f of A without j: the m-th smallest of these."""
        missing = len(every) - size
        if missing == 0:
            return self.problem.objective(self.setting.columns(every)).low
        without = [self.setting.columns(k for k in every if k != j) for j in free]
        return sorted(self.problem.objective(support).low for support in without)[missing - 1]


def checked_tree(setting: Setting, line: dict[str, Any]) -> Tree:
    rows = integer(get(line, "rows"), -1, len(setting.left) - 1, "rows")
    gamma = integer(get(line, "gamma"), 0, len(setting.gammas) - 1, "gamma")
    count = len(setting.terms)
    first, last = integers(get(line, "taus"), 0, count, "taus of a tree", 2)
    need(first <= last, "taus of a tree")
    bounds = [number(value, "above") for value in listing(get(line, "above"), "above", last - first + 1)]
    listed = [ascending(value, count - 1, "listed") for value in listing(get(line, "listed"), "listed")]
    need(all(first <= len(support) <= last for support in listed), "a listed support has another size")
    need(len(set(listed)) == len(listed), "a listed support stands twice")
    tree = Tree(rows, gamma, first, last, bounds, frozenset(listed))
    leaf_checker = LeafChecker(setting, tree, listing(line.get("points", []), "points"), line)
    for included, free, node in leaves(integers(get(line, "nodes"), -(10**9), count - 1, "nodes"), count):
        leaf_checker.close(included, free, node)
    return tree


# Statements


class Reader:
    """Checks the lines in their order and remembers what they proved."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.trees = setting, list[Tree]()
        self.proved: dict[tuple[int, int], Interval] = {}
        self.claims = list[tuple[int, int, Fraction, Fraction]]()

    def read(self, line: dict[str, Any]) -> None:
        kind = get(line, "kind")
        folds = self.setting.with_folds
        if kind == "tree":
            self.trees.append(checked_tree(self.setting, line))
        elif kind == "best":
            self.best(line)
        elif kind == "pair" and folds:
            self.pair(line)
        elif kind == "claim" and folds:
            place = self.place(line)
            self.claims.append((*place, number(get(line, "lower"), "lower"), number(get(line, "upper"), "upper")))
        else:
            raise Refused(f"a line of kind {kind!r}")

    def place(self, line: dict[str, Any]) -> tuple[int, int]:
        gamma = integer(get(line, "gamma"), 0, len(self.setting.gammas) - 1, "gamma")
        return gamma, integer(get(line, "tau"), 0, len(self.setting.taus) - 1, "tau")

    def tree(self, value: Any, rows: int, gamma: int, size: int) -> Tree:
        tree = self.trees[integer(value, 0, len(self.trees) - 1, "tree")]
        need(tree.rows == rows and tree.gamma == gamma, "a tree of other rows or another gamma")
        need(tree.first <= size <= tree.last, "a tree of other sizes")
        return tree

    def least(self, tree: Tree, size: int) -> Fraction:
        """Lower bound of the least f on the rows of a tree, in units of the integers."""
        problem = self.setting.problem(tree.rows, tree.gamma)
        fits = [problem.objective(self.setting.columns(support)).low for support in tree.listed_of(size)]
        return min([self.setting.in_units(tree.threshold(size)), *fits])

    def best(self, line: dict[str, Any]) -> None:
        setting, (gamma, tau) = self.setting, self.place(line)
        size = setting.size(tau)
        tree = self.tree(get(line, "tree"), -1, gamma, size)
        support = ascending(get(line, "support"), len(setting.terms) - 1, "support")
        lower, upper = (setting.in_units(number(get(line, end), end)) for end in ("lower", "upper"))
        need(len(support) <= size, "support of best: too large")
        need(lower <= self.least(tree, size), "lower of best")
        need(finite(setting.problem(-1, gamma).objective(setting.columns(support)).high) <= upper, "upper of best")
        if not setting.with_folds:
            self.proved[gamma, tau] = Interval(lower, upper)

    def pair(self, line: dict[str, Any]) -> None:
        setting, (gamma, tau) = self.setting, self.place(line)
        folds = [Interval(Fraction(0), None) for _ in setting.left]
        for part in listing(get(line, "parts"), "parts"):
            need(type(part) is dict, "part")
            for fold, interval in self.part(part, gamma, setting.size(tau)):
                folds[fold] = folds[fold].meet(interval)
        units = setting.in_units(Fraction(setting.count))
        highs = [fold.high for fold in folds]
        high = sum(map(finite, highs), Fraction(0)) / units if None not in highs else None
        checked = Interval(sum((fold.low for fold in folds), Fraction(0)) / units, high)
        need(number(get(line, "lower"), "lower") <= checked.low, "lower of a pair")
        upper = get(line, "upper")
        need(upper is None or (high is not None and high <= number(upper, "upper")), "upper of a pair")
        self.proved[gamma, tau] = checked

    def part(self, part: dict[str, Any], gamma: int, size: int) -> Iterator[tuple[int, Interval]]:
        setting, by = self.setting, get(part, "by")
        folds = distinct(part.get("folds", list(range(len(setting.left)))), len(setting.left) - 1, "folds")
        if by == "own":
            for fold, value in zip(folds, listing(get(part, "trees"), "trees", len(folds)), strict=True):
                tree = self.tree(value, fold, gamma, size)
                yield fold, self.optimal(fold, tree, size, setting.in_units(tree.threshold(size)))
            return
        need(by in ("list", "loss") and setting.within is None, f"a part by {by!r}")
        tree = self.tree(get(part, "tree"), -1, gamma, size)
        need(by == "loss" or not setting.logistic, "a part by list")
        if by == "list":
            for fold in folds:
                yield fold, self.optimal(fold, tree, size, self.leave_out_threshold(fold, tree, size))
            return
        count = len(setting.terms)
        supports = [ascending(value, count - 1, "supports") for value in listing(get(part, "supports"), "supports")]
        need(all(len(support) <= size for support in supports), "supports: too large")
        which = integers(part.get("which", [0] * len(folds)), 0, len(supports) - 1, "which", len(folds))
        threshold = setting.in_units(tree.threshold(size))
        listed = [setting.columns(support) for support in tree.listed_of(size)]
        for fold, k in zip(folds, which, strict=True):
            if set(setting.scored[fold]) == set(setting.left[fold]):
                problem = setting.problem(fold, gamma)
                own = finite(problem.objective(setting.columns(supports[k])).high)
                rows = [setting.rows.rows[i] for i in setting.scored[fold]]
                possible = [s for s in listed if problem.objective(s).low <= own]
                errors = [problem.squares(rows, problem.fit(s)).low for s in possible]
                yield fold, Interval(min([below(threshold - own), *errors]), None)

    def optimal(self, fold: int, tree: Tree, size: int, threshold: Fraction) -> Interval:
        """Held-out error of the listed supports that may be optimal without a fold."""
        problem = self.setting.problem(fold, tree.gamma)
        listed = [self.setting.columns(support) for support in tree.listed_of(size)]
        objectives = {columns: problem.objective(columns) for columns in listed}
        need(bool(objectives), "no support of the size is listed")
        best = min(finite(objective.high) for objective in objectives.values())
        need(best < threshold, f"fold {fold}: a support that is not listed may be optimal")
        rows = [self.setting.seen(fold).rows[i] for i in self.setting.scored[fold]]
        errors = [problem.squares(rows, problem.fit(s)) for s, own in objectives.items() if own.low <= best]
        return Interval(min(e.low for e in errors), max(finite(e.high) for e in errors))

    def leave_out_threshold(self, fold: int, tree: Tree, size: int) -> Fraction:
        setting, left = self.setting, self.setting.left[fold]
        problem = setting.problem(-1, tree.gamma)
        every = tuple(range(setting.q))
        full = problem.objective(every)
        eta = sum((setting.leverage(row, tree.gamma) for row in left), Fraction(0))
        squared = finite(problem.squares((setting.rows.rows[row] for row in left), problem.fit(every)).high)
        T = setting.in_units(tree.threshold(size))
        need(2 * eta < 1 and finite(full.high) < T, f"fold {fold}: no leave-out threshold")
        need((T - finite(full.high)) * (1 - 2 * eta) ** 2 >= eta * squared, f"fold {fold}: no leave-out threshold")
        reach = root_above(squared) + root_above(eta * (T - full.low))
        return T - above(reach**2 / (1 - eta))

    def finish(self) -> Verdict:
        setting = self.setting
        grid = {(gamma, tau) for gamma in range(len(setting.gammas)) for tau in range(len(setting.taus))}
        need(set(self.proved) == grid, "a pair of the grid has no line")
        if not setting.with_folds:
            return Verdict(True, "every best subset is proved")
        need(len(self.claims) == 1, "not one claim")
        ((gamma, tau, lower, upper),) = self.claims
        least, high = min(interval.low for interval in self.proved.values()), self.proved[gamma, tau].high
        need(lower <= least, "lower of the claim")
        need(high is not None and high <= upper, "upper of the claim")
        return Verdict(True, "the claim is proved", float(least), float(finite(high)))


def check(proof: bytes | Path, data: Path) -> Verdict:
    """Whether a proof proves what it says about the numbers of a file."""
    try:
        head, *lines = lines_of(proof if isinstance(proof, bytes) else proof.read_bytes())
        reader = Reader(Setting(head, data))
        for line in lines:
            reader.read(line)
        return reader.finish()
    except Refused as refusal:
        return Verdict(False, str(refusal))


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python tests/support/second_checker.py PROOF DATA", file=sys.stderr)
        return 2
    try:
        verdict = check(Path(arguments[0]), Path(arguments[1]))
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    print(("accepted: " if verdict.accepted else "refused: ") + verdict.reason)
    if verdict.lower is not None:
        print(f"every CV error of the grid is at least {verdict.lower!r}, the claimed one at most {verdict.upper!r}")
    return 0 if verdict.accepted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
