"""Functions that read proofs and data from files, and the two arithmetics of the checker: floats and fractions.

Every rounding error of floats is bounded; fractions have no rounding error. The two arithmetics use the same formulas,
with arrays of floats or of `Fraction`. Every bound on a rounding error is a multiple of `u`, which is 2^-53 for floats
and 0 for fractions. Floats are assumed to follow IEEE 754 with rounding to nearest; sums and dot products may be
computed in any order. Then `|fl(x'y) - x'y| <= 1.01 k u |x|'|y|` for vectors of length k < 2^40, with fl the computed
value.
"""

import csv
import gzip
import hashlib
import json
import math
import zlib
from array import array
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EXACT_DIGITS = 120  # binary digits of numbers that are rounded outwards in exact mode


class Floats:
    """Floating-point arithmetic; `u` bounds the relative rounding error of an operation."""

    u: Any = 2.0**-53

    def from_floats(self, values: Any) -> Array:
        """Return an array of this arithmetic's numbers from floats."""
        return np.asarray(values, dtype=np.float64)

    def product(self, a: Array, b: Array) -> Array:
        """Return `a @ b`."""
        return np.asarray(a @ b)

    def inner(self, a: Array, b: Array) -> Array:
        """Return the sums of products over the last axis."""
        return np.asarray(np.einsum("...i,...i->...", a, b))

    def round_upwards(self, values: Array) -> Array:
        """Return the numbers; raise `ValueError` if one is NaN, because comparisons with it would prove nothing."""
        if not np.isfinite(values).all():
            raise ValueError("a number exceeds the range of floating-point numbers")
        return values

    def root_upper_bounds(self, x: Array) -> Array:
        """Return upper bounds on the square roots of `x >= 0`."""
        return np.asarray(np.sqrt(x) * (1.0 + 2.0**-50))

    def gram(self, W: Array) -> Array:
        """Return `W'W` for |W| <= 1, with an error of at most `4 u |w_i| |w_j|` (norms of columns) in the entry (i, j).

        W is cut into slices of few bits. Every sum of products of two slices is then an integer multiple of one unit,
        below 2^53, and therefore exact in any order. Only the sum of the products of slices is rounded.
        """
        bits = (52 - max(len(W) - 1, 1).bit_length()) // 2
        count = -(-80 // bits)
        remainder, slices = W, list[Array]()
        for k in range(1, count + 1):
            slice_ = np.ldexp(np.rint(np.ldexp(remainder, k * bits)), -k * bits)
            remainder, slices = remainder - slice_, [*slices, slice_]
        total = np.zeros((W.shape[1], W.shape[1]))
        for i, j in sorted(np.ndindex(count, count), key=sum, reverse=True):  # the smallest first
            total += slices[i].T @ slices[j] if i + j < count else 0.0
        return total


class Fractions:
    """Exact arithmetic; only bounds are rounded, outwards to `EXACT_DIGITS`, because long numbers are slow."""

    u: Any = Fraction(0)

    def from_floats(self, values: Any) -> Array:
        """Return an array of this arithmetic's numbers from floats."""
        return _elementwise(Fraction, np.asarray(values, dtype=np.float64))

    def product(self, a: Array, b: Array) -> Array:
        """Return `a @ b`, computed in integers over one denominator for each factor, which saves most of the work."""
        (top, under), (factor, beneath) = _integers(a), _integers(b)
        whole = under * beneath
        return _elementwise(lambda value: Fraction(value, whole), np.asarray(top @ factor, dtype=object))

    def inner(self, a: Array, b: Array) -> Array:
        """Return the sums of products over the last axis."""
        return self.product(a[..., None, :], b[..., :, None])[..., 0, 0]

    def round_upwards(self, values: Array) -> Array:
        """Return numbers with few digits that are at least the given ones."""
        return _elementwise(_round_upwards, values)

    def root_upper_bounds(self, x: Array) -> Array:
        """Return upper bounds on the square roots of `x >= 0`."""
        return _elementwise(_root_upper_bound, x)

    def gram(self, W: Array) -> Array:
        """Return `W'W`."""
        return self.product(W.T, W)


Arithmetic = Floats | Fractions


def _elementwise(function: Any, values: Array) -> Array:
    out = np.empty(np.shape(values), dtype=object)
    out.reshape(-1)[:] = [function(value) for value in np.asarray(values, dtype=object).reshape(-1).tolist()]
    return out


def _digits(value: Fraction) -> int:
    return max(0, EXACT_DIGITS + value.denominator.bit_length() - value.numerator.bit_length())


def _round_upwards(value: Fraction) -> Fraction:
    digits = _digits(value)
    return Fraction(-((-value.numerator << digits) // value.denominator), 1 << digits)


def _root_upper_bound(value: Fraction) -> Fraction:
    digits = _digits(value) // 2
    whole = math.isqrt((value.numerator << 2 * digits) // value.denominator) + 1
    return Fraction(whole, 1 << digits) if value else value


def _integers(values: Array) -> tuple[Array, int]:
    under = math.lcm(*{value.denominator for value in values.reshape(-1).tolist()})
    return _elementwise(lambda value: value.numerator * (under // value.denominator), values), under


FORMAT, FORMAT_OF_LOSSES, FORMAT_OF_TERMS = FORMATS = ("sparsecv-proof/1", "sparsecv-proof/2", "sparsecv-proof/3")
LONGEST_LINE = 1 << 28
PROOF_BYTES = 1 << 33
DATA_NUMBERS = 1 << 30  # maximum number of values in the data


class Unreadable(Exception):
    """A file cannot be read, is not a proof of a known version, or is not a table with the columns of the proof."""


class Refused(Exception):
    """The proof does not prove its claims, or refers to other data."""


def need(condition: Any, message: str) -> None:
    """Raise `Refused` unless the condition holds."""
    if not condition:
        raise Refused(message)


def integers(values: Any, low: int, high: int, what: str) -> list[int]:
    """Return a list of integers in `[low, high)`, or refuse.

    Parameters
    ----------
    values : object
        Value in the proof.
    low, high : int
        Range.
    what : str
        Name of the value in messages.
    """
    need(isinstance(values, list) and set(map(type, values)) <= {int}, f"{what} is malformed")
    need(not values or (low <= min(values) and max(values) < high), f"{what} is malformed")
    return list(values)


def number(value: Any, what: str) -> float:
    """Return a finite number, or refuse."""
    need(type(value) in (int, float) and abs(value) <= 1.7e308, f"{what} is not a finite number")
    return float(value)


def numbers(values: Any, count: int, what: str) -> list[float]:
    """Return a list of `count` finite numbers, or refuse.

    Parameters
    ----------
    values : object
        Value in the proof.
    count : int
        Required length.
    what : str
        Name of the value in messages.
    """
    need(isinstance(values, list) and len(values) == count, f"{what} is malformed")
    return [number(value, what) for value in values]


def support(values: Any, q: int) -> tuple[int, ...]:
    """Return ascending columns, or refuse."""
    columns = integers(values, 0, q, "a support")
    need(all(a < b for a, b in pairwise(columns)), f"the columns {values} of a support are not in ascending order")
    return tuple(columns)


def lines_of_proof(path: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a proof, each an object; the last one must contain the digest of the lines before it."""
    digest, size, ended = hashlib.sha256(), 0, False
    try:
        with gzip.open(path, "rb") as stream:
            while line := stream.readline(LONGEST_LINE):
                size += len(line)
                if size > PROOF_BYTES or not line.endswith(b"\n"):
                    raise Unreadable(
                        f"{path}: the proof is cut off, or exceeds the size limit of the checker; write it again"
                    )
                statement = json.loads(line, parse_constant=lambda word: need(False, f"{word} is not a number"))
                need(isinstance(statement, dict) and not ended, "a line is not a JSON object, or follows the end line")
                ended = statement.get("kind") == "end"
                if not ended:
                    digest.update(line)
                    yield statement
                else:
                    need(
                        statement.get("sha256") == digest.hexdigest(),
                        "the digest in the end line differs from that of the lines before it",
                    )
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise Unreadable(f"{path}: not a complete proof (a gzipped file of JSON lines): {error}") from None
    need(ended, "the end line is missing")


def table(path: str, names: list[str], target: str, holes: bool = False) -> tuple[Array, Array]:
    """Return X and y with the columns of the proof, from a file of separated text with a header, possibly gzipped.

    Parameters
    ----------
    path : str
        File.
    names : list of str
        Names of the features.
    target : str
        Name of the target.
    holes : bool
        True if cells of features may be empty; they become NaN.
    """
    opener = gzip.open if path.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            head = stream.readline(LONGEST_LINE)
            mark = "\t" if Path(path.removesuffix(".gz")).suffix == ".tsv" else max(",;\t", key=head.count)
            header = [name.strip() for name in next(csv.reader([head], delimiter=mark))]
            for name in (*names, target):
                if name not in header:
                    advice = (
                        "; if the data have text columns or were read with options, give PROOF.tsv, the table of "
                        "numbers next to the proof"
                    )
                    raise Unreadable(f"{path}: there is no column {name!r}, which the proof needs{advice}")
            places = [header.index(name) for name in (*names, target)]
            flat = array("d")
            for row in csv.reader(iter(lambda: stream.readline(LONGEST_LINE), ""), delimiter=mark):
                flat.extend(float(row[j] if row[j].strip() or not holes else "nan") for j in places if row)
                if len(flat) > DATA_NUMBERS:
                    raise Unreadable(
                        f"{path}: the file has more than {DATA_NUMBERS:,} numbers, the limit of the checker"
                    )
    except (OSError, EOFError, zlib.error, csv.Error, StopIteration, ValueError, IndexError) as error:
        raise Unreadable(
            f"{path}: {error}; the file must be a table of numbers with the column names of the proof"
        ) from None
    rows = np.array(flat, dtype=np.float64).reshape(-1, len(places))
    sound = np.isfinite(rows) | (holes & np.isnan(rows))
    if not rows.size or not (sound[:, :-1].all() and np.isfinite(rows[:, -1]).all()):
        raise Unreadable(f"{path}: the table is empty, or contains a number that is not finite")
    return np.ascontiguousarray(rows[:, :-1]), rows[:, -1].copy()


def compute_digest(X: Array, y: Array, names: list[str], target: str) -> str:
    """Return the digest of names and numbers, see docs/proof-format.md.

    Parameters
    ----------
    X, y : (n, p), (n,) arrays
        Features and target.
    names : list of str
        Names of the features.
    target : str
        Name of the target.
    """
    head = {"n": len(y), "p": X.shape[1], "names": names, "target": target}
    digest = hashlib.sha256(
        json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    )
    for values in (X, y):
        cells = np.where(np.isnan(values), np.nan, values + 0.0)
        digest.update(np.ascontiguousarray(cells, dtype="<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"
