"""The table of subproblems (tau, gamma, fold), with their certified intervals and best known supports.

Only methods that check an interval may store it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray, is_constant
from sparsecv_mio.errors import Contradiction, CorruptStore
from sparsecv_mio.units import CROSSING_RTOL, TINY

ALL_ROWS = -1  # instead of a fold: no row is held out
NO_COLUMN = -1  # fills rows of a table beyond the size of their support


def make_support_table(supports: Sequence[NDArray[np.integer]], width: int) -> IntArray:
    """Return supports as the rows (m, width) of a table, `NO_COLUMN` beyond their size.

    Examples
    --------
    >>> make_support_table([np.array([2, 5]), np.array([], dtype=int)], 3).tolist()
    [[2, 5, -1], [-1, -1, -1]]
    """
    table = np.full((len(supports), width), NO_COLUMN, dtype=np.int64)
    for row, support in zip(table, supports, strict=True):
        row[: len(support)] = support
    return table


def missing_columns(support: IntArray, size: int, others: IntArray) -> IntArray:
    """Return the first columns of `others` that a support lacks, to bring it to `size` columns.

    Parameters
    ----------
    support : int array
        Columns of the support.
    size : int
        Number of columns to reach.
    others : int array
        Distinct columns, in the order of preference.

    Returns
    -------
    int array
        Missing columns; fewer than requested if `others` has no more.
    """
    return others[~np.isin(others, support)][: max(size - len(support), 0)]


def fill_support(support: IntArray, size: int, others: IntArray) -> IntArray:
    """Return a support with its :func:`missing_columns`, in ascending order.

    Parameters
    ----------
    support : int array
        Columns of the support.
    size : int
        Number of columns to reach.
    others : int array
        Distinct columns, in the order of preference.

    Returns
    -------
    int array
        Columns in ascending order.

    Examples
    --------
    >>> fill_support(np.array([1, 4]), 3, np.array([4, 3, 0])).tolist()
    [1, 3, 4]
    """
    return np.sort(np.append(support, missing_columns(support, size, others))).astype(np.int64)


def locate_supports(columns: IntArray, supports: Sequence[IntArray]) -> list[IntArray]:
    """Return the supports that are subsets of some ascending columns, each as positions in these columns.

    Examples
    --------
    >>> [support.tolist() for support in locate_supports(np.array([1, 4, 6]), [np.array([1, 6]), np.array([2, 4])])]
    [[0, 2]]
    """
    return [np.searchsorted(columns, support) for support in supports if np.all(np.isin(support, columns))]


Arrays = Mapping[str, NDArray[Any]]
Archive = dict[str, NDArray[Any]]  # arrays of a checkpoint, by name


def check_like(state: Arrays, like: Arrays, free: Sequence[str] = ()) -> None:
    """Raise `CorruptStore` unless the state has all arrays of `like`, with their types and shapes.

    Arrays in `free` may have any length, with the dimensions of `like`.

    Parameters
    ----------
    state, like : mappings of str to array
        State to check, and arrays to compare it with.
    free : sequence of str
        Names of arrays of any length.
    """
    for name, model in like.items():
        if name not in state:
            raise CorruptStore(f"its array `{name}` is missing")
        stored = state[name]
        if stored.dtype.kind != model.dtype.kind or stored.dtype.itemsize > 8 and stored.dtype.kind != "U":
            raise CorruptStore(f"its array `{name}` has the type {stored.dtype} instead of {model.dtype}")
        if stored.ndim != model.ndim or not (name in free or stored.shape == model.shape):
            raise CorruptStore(f"its array `{name}` has the shape {stored.shape} instead of {model.shape}")


def check_range(state: Arrays, name: str, low: float, high: float) -> None:
    """Raise `CorruptStore` unless every number of an array is in [low, high]; NaN never is.

    Parameters
    ----------
    state : mapping of str to array
        State to check.
    name : str
        Name of the array.
    low, high : float
        Bounds of the interval.
    """
    if not bool(((state[name] >= low) & (state[name] <= high)).all()):
        raise CorruptStore(f"its array `{name}` has numbers outside [{low:g}, {high:g}]")


def parse_json(text: NDArray[Any], name: str) -> Any:
    """Return the JSON value of an array of text; raise `CorruptStore` if it is not JSON."""
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        raise CorruptStore(f"its array `{name}` is not JSON") from None


def add_prefix(name: str, state: Arrays) -> dict[str, NDArray[Any]]:
    """Return a state with a prefix before its names."""
    return {f"{name}.{key}": value for key, value in state.items()}


def select_by_prefix(name: str, state: Arrays) -> dict[str, NDArray[Any]]:
    """Return the arrays below a name, the inverse of `add_prefix`; empty if there are none."""
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(f"{name}.")}


Where = tuple[int, int, int]  # gamma, tau, fold
Index = Any  # numpy index of subproblems of the table
Floats = FloatArray | Sequence[float] | float
Numbers = NDArray[np.int32] | int
MANY_CELLS = STORE_BYTES // 16  # number of subproblems beyond which training objectives of solved ones are not stored
STORED = ("lower", "upper", "nominal", "value", "decided", "final", "branched", "support")


class SupportPool:
    """Distinct supports by number; number 0 is the empty support. Safe to use from several threads.

    A support is looked up with its columns in the given order, and is sorted once for each such order.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.supports: list[IntArray] = [np.zeros(0, dtype=np.int64)]
        self._numbers: dict[bytes, int] = {b"": 0}

    def number(self, support: IntArray) -> int:
        """Return the number of a support; a new support gets the next number."""
        return self.numbers([support])[0]

    def numbers(self, supports: Iterable[IntArray]) -> list[int]:
        """Return the numbers of some supports, as `number` does."""
        find_number, numbers = self._numbers.get, list[int]()
        for support in supports:
            columns = support if support.dtype == np.int64 else support.astype(np.int64)
            number = find_number(columns.tobytes())
            numbers.append(self._add(columns) if number is None else number)
        return numbers

    def _add(self, support: IntArray) -> int:
        """Return the number of a support whose columns did not come in this order before."""
        columns = np.sort(support)
        with self.lock:
            number = self._numbers.setdefault(columns.tobytes(), len(self.supports))
            self._numbers[support.tobytes()] = number
            if number == len(self.supports):
                self.supports.append(columns)
        return number


@dataclass(eq=False)
class CellTable:
    """Intervals of held-out losses by (gamma, tau, fold), in standard units; the search fills them in place.

    The methods are the only writers. They hold `lock` while they write, and raise if a new bound contradicts a known
    bound. They keep two promises. A solved subproblem has an optimal support, with `lower <= nominal <= upper`. Any
    other subproblem has, of the supports it was offered, the support with the smallest training objective in its fold.

    Attributes
    ----------
    lower, upper : (G, T, K) arrays
        Bounds `lower <= h_j <= upper` for every optimum of the subproblem.
    nominal, value : (G, T, K) arrays
        Held-out loss and training objective of the support in `support`; inf without a support. The
        held-out error of an unsolved subproblem is an estimate: it may lie outside of the interval. With more than
        `MANY_CELLS` subproblems, `value` takes no memory until an unsolved subproblem is offered a support, and solved
        subproblems may have no `value`.
    ties : dict of (gamma, tau, fold) to float
        Width of a solved subproblem that is due to ties; subproblems without ties are omitted.
    others : dict of (gamma, tau, fold) to tuple of int
        Numbers in the pool of the supports that are tied with the one in `support`; subproblems without are omitted.
    decided, final, branched : (G, T, K) bool arrays
        True where the optimal supports are completely known; no further work can change the subproblem; a tree was
        needed.
    support : (G, T, K) int32 array
        Number in `pool` of the support that `nominal` belongs to.
    floor : (G, T, K) array
        Lower bounds on the training objective of every optimum; 0 where nothing is known. With more than `MANY_CELLS`
        subproblems it is 0 everywhere and takes no memory. A checkpoint stores it with the state of a search.
    pool : SupportPool
        Distinct supports, since folds share few.
    n_writes : (G, T) int array
        Number of writes to the subproblems of each pair; `sums` adds up a pair again after a write.
    lock : RLock
        Lock of every writer; hold it to read several arrays that must be consistent, or use `copy`.
    """

    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    value: FloatArray
    ties: dict[Where, float]
    decided: BoolArray
    final: BoolArray
    branched: BoolArray
    support: NDArray[np.int32]
    floor: FloatArray
    pool: SupportPool
    n_writes: IntArray
    others: dict[Where, tuple[int, ...]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _summed: tuple[IntArray, FloatArray] | None = None  # number of writes before each sum, and sums

    @classmethod
    def empty(cls, gammas: int, taus: int, folds: int, values: bool = False) -> CellTable:
        """Return a table without any information.

        Parameters
        ----------
        gammas, taus, folds : int
            Numbers of gammas, taus and folds.
        values : bool
            True if training objectives of all subproblems are needed, however many there are.
        """
        shape, is_small = (gammas, taus, folds), gammas * taus * folds <= MANY_CELLS
        return cls(
            lower=np.zeros(shape),
            upper=np.full(shape, np.inf),
            nominal=np.full(shape, np.inf),
            value=np.full(shape, np.inf) if values or is_small else np.broadcast_to(np.inf, shape),
            ties={},
            decided=np.zeros(shape, dtype=bool),
            final=np.zeros(shape, dtype=bool),
            branched=np.zeros(shape, dtype=bool),
            support=np.zeros(shape, dtype=np.int32),
            floor=np.zeros(shape) if is_small else np.broadcast_to(0.0, shape),
            pool=SupportPool(),
            n_writes=np.zeros(shape[:2], dtype=np.int64),
        )

    def copy(self) -> CellTable:
        """Return a copy of the present state, for any thread; the pool, which only grows, is shared."""
        with self.lock:
            arrays = {name: getattr(self, name) for name in (*STORED, "floor", "n_writes")}
            arrays = {name: array if is_constant(array) else array.copy() for name, array in arrays.items()}
            return CellTable(**arrays, ties=dict(self.ties), pool=self.pool, others=dict(self.others))

    def withdraw(self, fold: int) -> None:
        """Remove the intervals of a fold that independent arithmetic has refuted; no other method widens intervals."""
        with self.lock:
            self.lower[:, :, fold], self.upper[:, :, fold], self.decided[:, :, fold] = 0.0, np.inf, False
            self.n_writes += 1
            for notes in (self.ties, self.others):
                for where in [where for where in notes if where[2] == fold]:
                    del notes[where]

    # -- writers ----------------------------------------------------------------------------------------------------

    def decide(
        self,
        where: Where,
        support: int | Sequence[int],
        nominal: float,
        lower: float,
        upper: float,
        tie: float,
        value: float = np.inf,
        branched: bool = False,
    ) -> None:
        """Store a subproblem as solved, whose optimal supports are completely known.

        Parameters
        ----------
        where : gamma, tau, fold
            Indices of the subproblem.
        support : int or sequence of int
            Numbers in the pool of the optimal supports, or of the only one.
        nominal, value : float
            Held-out loss and training objective of the first support.
        lower, upper : float
            Bounds on the held-out sums of all of these supports, rounding included.
        tie : float
            Width that is due to ties.
        branched : bool
            True if a tree was needed.
        """
        (g, t, fold), (held_out, low, high, objective) = where, np.array([[nominal], [lower], [upper], [value]])
        first, *others = [support] if isinstance(support, int) else support
        part, sure = (g, t, slice(fold, fold + 1)), np.array([True])
        with self.lock:
            if self.decide_part(part, sure, first, held_out, (low, high), objective, branched, tie):
                self.ties |= {where: tie} if tie > 0.0 else {}
                self.others |= {where: tuple(others)} if others else {}

    def decide_part(
        self,
        part: Index,
        sure: BoolArray,
        support: Numbers,
        nominal: FloatArray,
        interval: tuple[FloatArray, FloatArray],
        value: FloatArray,
        branched: BoolArray | bool,
        tie: float = 0.0,
    ) -> int:
        """Store the subproblems of a part of the table that are `sure` and not solved yet as solved.

        Arrays have the shape of the part. Returns the number of newly solved subproblems.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        sure : bool array
            Subproblems whose optimal supports are completely known.
        support : int array or int
            Numbers in the pool.
        nominal, value : arrays
            Held-out sums and training objectives.
        interval : two arrays
            Lower and upper bounds on the held-out sums.
        branched : bool array or bool
            True where a tree was needed.
        tie : float
            Part of the width of the bounds that is due to ties.

        Raises
        ------
        Contradiction
            If a known bound excludes the new values by more than rounding, or a new interval does not contain them.
        """
        with self.lock:
            sure = sure & ~self.decided[part]
            errors, low, high = nominal[sure], np.maximum(interval[0], 0.0)[sure], interval[1][sure]
            below, above, slip = self.lower[part][sure], self.upper[part][sure], np.maximum(high - low - tie, 0.0)
            self._agree(part, low, errors, sure)
            self._agree(part, errors, high, sure)
            self._agree(part, below, errors + slip, sure)
            self._agree(part, errors - slip, above, sure)
            self.n_writes[part[:2]] += 1
            self._write(self.lower, part, sure, np.minimum(np.maximum(below, low), errors))
            self._write(self.upper, part, sure, np.maximum(np.minimum(above, high), errors))
            self._write(self.nominal, part, sure, errors)
            if self._has_stored_values:
                self._write(self.value, part, sure, value[sure])
            self._write(self.support, part, sure, np.broadcast_to(support, sure.shape)[sure])
            self._write(self.decided, part, sure, True)
            self._write(self.final, part, sure, True)
            self.branched[part] = self.branched[part] | (sure & branched)
            return int(np.count_nonzero(sure))

    @property
    def _has_stored_values(self) -> bool:
        """True if `value` is a separate array, and not one inf for all subproblems."""
        return not is_constant(self.value)

    def _own_values(self) -> FloatArray:
        """Return `value` as an array that can be written to."""
        if not self._has_stored_values:
            self.value = np.full(self.value.shape, np.inf)
        return self.value

    @staticmethod
    def _write(array: NDArray[Any], part: Index, where: BoolArray, new: Any) -> None:
        whole = array[part]  # a view of a slice, a copy of anything else
        whole[where] = new
        array[part] = whole

    def offer(self, part: Index, support: Numbers, nominal: Floats, value: Floats) -> None:
        """Show a support in the unsolved subproblems of a part where its training objective is the smallest so far.

        A value or held-out sum that is not a number is ignored.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        support : int array or int
            Numbers in the pool.
        nominal, value : arrays or floats
            Held-out losses and training objectives.
        """
        with self.lock:
            self.n_writes[part[:2]] += 1
            better = ~self.decided[part] & np.isfinite(nominal)
            better &= np.less(value, self.value[part])
            if not np.any(better):
                return
            self.support[part] = np.where(better, support, self.support[part])
            self.nominal[part] = np.where(better, nominal, self.nominal[part])
            self._own_values()[part] = np.where(better, value, self.value[part])

    def rescore(self, part: Index, nominal: Floats, value: Floats | None = None) -> None:
        """Replace the values of supports shown in unsolved subproblems by more accurate ones, where these are numbers.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        nominal, value : arrays or floats
            Held-out losses and training objectives; None leaves the training objectives unchanged.
        """
        with self.lock:
            self.n_writes[part[:2]] += 1
            value = np.array(self.value[part]) if value is None else value
            fine = ~self.decided[part] & np.isfinite(np.add(nominal, value))
            self.nominal[part] = np.where(fine, nominal, self.nominal[part])
            self._own_values()[part] = np.where(fine, value, self.value[part])

    def narrow(self, part: Index, lower: Floats, upper: Floats) -> None:
        """Tighten intervals; bounds only tighten, and the interval of a solved subproblem still contains its `nominal`.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        lower, upper : arrays or floats
            Bounds on the held-out sums of all optima.

        Raises
        ------
        Contradiction
            If a new interval is disjoint from the old one by more than rounding.
        """
        with self.lock:
            low, high = np.maximum(self.lower[part], lower), np.minimum(self.upper[part], upper)
            self._agree(part, low, high)
            self.n_writes[part[:2]] += 1
            low = np.minimum(low, high)
            decided, nominal = self.decided[part], self.nominal[part]
            self.lower[part] = np.where(decided, np.minimum(low, nominal), low)
            self.upper[part] = np.where(decided, np.maximum(high, nominal), high)

    def raise_floor(self, part: Index, lower: Floats) -> None:
        """Store certified lower bounds on training objectives.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        lower : arrays or floats
            Lower bounds, rounding included.
        """
        with self.lock:
            if not is_constant(self.floor):
                self.floor[part] = np.maximum(self.floor[part], lower)

    def mark(self, part: Index, branched: BoolArray | bool = False, final: BoolArray | bool = True) -> None:
        """Mark subproblems that are not solved as branched on, and as final: no more work can change them.

        Parameters
        ----------
        part : index
            Numpy index of the part.
        branched, final : bool arrays or bool
            Marks to add.
        """
        with self.lock:
            self.branched[part] = self.branched[part] | branched
            self.final[part] = self.final[part] | final

    def _agree(self, part: Index, low: FloatArray, high: FloatArray, which: BoolArray | None = None) -> None:
        """Raise `Contradiction` if a lower bound exceeds an upper bound by more than rounding, or is nan."""
        fine = np.less_equal(low, high * (1.0 + CROSSING_RTOL) + TINY)
        if np.all(fine):
            return
        first = int(np.argmin(np.ravel(fine)))
        places = np.arange(self.lower.size).reshape(self.lower.shape)[part]
        place = int(np.ravel(places if which is None else places[which])[first])
        at = np.unravel_index(place, self.lower.shape)
        self._contradict(at, float(np.ravel(low)[first]), float(np.ravel(high)[first]))

    @staticmethod
    def _contradict(where: Any, low: float, high: float) -> NoReturn:
        g, t, fold = where
        raise Contradiction(
            f"subproblem of gamma number {g + 1}, tau number {t + 1}, fold {fold + 1}: lower bound {low!r} exceeds "
            f"upper bound {high!r}; please report this"
        )

    # -- readers ----------------------------------------------------------------------------------------------------

    def scored_pairs(self) -> BoolArray:
        """(G, T): True for pairs that show a held-out loss in every fold."""
        return np.asarray(np.isfinite(self.nominal).all(axis=2))

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the (G, T) sums of `lower`, `upper` and `nominal` over folds, to be read; O(K) for a changed pair."""
        with self.lock:
            if self._summed is None:
                self._summed = np.full(self.n_writes.shape, -1), np.empty((3, *self.n_writes.shape))
            seen, sums = self._summed
            is_changed = self.n_writes != seen
            if is_changed.any():
                sums = sums.copy()
                for total, array in zip(sums, (self.lower, self.upper, self.nominal), strict=True):
                    total[is_changed] = array[is_changed].sum(axis=1)
                sums.flags.writeable = False
                self._summed = self.n_writes.copy(), sums
            lower, upper, nominal = sums
            return lower, upper, nominal

    def neighbouring_supports(self, where: Where) -> list[IntArray]:
        """Return the distinct supports that a subproblem and its neighbours in tau and gamma show."""
        (g, t, fold), (n_gammas, n_taus, _) = where, self.support.shape
        near = (g, t), (g, t + 1), (g, t - 1), (g + 1, t), (g - 1, t)
        numbers = (self.support.item(h, s, fold) for h, s in near if 0 <= h < n_gammas and 0 <= s < n_taus)
        return [self.pool.supports[number] for number in dict.fromkeys(numbers)]

    def allowances(self, g: int, t: int) -> tuple[float, float]:
        """Return tie width and rounding (both sides) of the solved subproblems of a pair: at least their widths.

        The sums are in the order of the folds, so that they do not depend on the order of solution. O(K).
        """
        width = np.where(self.decided[g, t], self.upper[g, t] - self.lower[g, t], 0.0)
        mine = sorted((where[2], tie) for where, tie in self.ties.items() if where[:2] == (g, t))
        tie = float(np.array([tie for _, tie in mine]).sum())
        return tie, max(float(width.sum()) - tie, 0.0)

    def archive(self) -> Archive:
        """Return the content of the table as arrays."""
        with self.lock:
            where = sorted(self.ties)
            others = [(*place, number) for place in sorted(self.others) for number in self.others[place]]
            return {name: np.array(getattr(self, name)) for name in STORED} | {
                "ties": np.array(where, dtype=np.int64).reshape(-1, 3),
                "other_ties": np.array(others, dtype=np.int64).reshape(-1, 4),
                "tie_width": np.array([self.ties[place] for place in where]),
                "pool_sizes": np.array([len(support) for support in self.pool.supports], dtype=np.int64),
                "pool_columns": np.concatenate(self.pool.supports).astype(np.int64),
            }

    def fill(self, state: Archive) -> None:
        """Fill an empty table of the same shape with the result of `archive`."""
        with self.lock:
            self.n_writes += 1
            for name in STORED:
                array = self._own_values() if name == "value" else getattr(self, name)
                array[...] = state[name]
            for (g, t, fold), width in zip(state["ties"].tolist(), state["tie_width"].tolist(), strict=True):
                self.ties[g, t, fold] = width
            for g, t, fold, number in state["other_ties"].tolist():
                self.others[g, t, fold] = (*self.others.get((g, t, fold), ()), number)
            ends = np.cumsum(state["pool_sizes"])
            for support in np.split(state["pool_columns"], ends[:-1]):
                self.pool.number(support)
            if len(self.pool.supports) != len(ends):
                raise CorruptStore("its array `pool_columns` repeats a support")

    def check(self, state: Archive, p: int) -> None:
        """Raise `CorruptStore` unless `state` is an archive of a table of this shape, with supports of p columns."""
        check_like(state, self.archive(), ("ties", "tie_width", "other_ties", "pool_sizes", "pool_columns"))
        sizes, columns, ties = state["pool_sizes"], state["pool_columns"], state["ties"]
        check_range(state, "pool_sizes", 0, p)
        check_range(state, "pool_columns", 0, p - 1)
        check_range(state, "support", 0, len(sizes) - 1)
        check_range(state, "lower", 0.0, np.finfo(float).max)
        check_range(state, "tie_width", 0.0, np.finfo(float).max)
        if len(sizes) == 0 or sizes[0] != 0 or int(sizes.sum()) != len(columns):
            raise CorruptStore("its arrays `pool_sizes` and `pool_columns` disagree")
        if ties.shape != (len(state["tie_width"]), 3) or not is_within_shape(ties, self.lower.shape):
            raise CorruptStore("its array `ties` names subproblems that do not exist")
        others = state["other_ties"]
        if others.shape[1] != 4 or not is_within_shape(others, (*self.lower.shape, len(sizes))):
            raise CorruptStore("its array `other_ties` names subproblems or supports that do not exist")
        if not (state["lower"] <= state["upper"]).all():
            raise CorruptStore("some entries of its array `lower` exceed those of `upper`")
        if np.isnan(state["nominal"]).any() or np.isnan(state["value"]).any():
            raise CorruptStore("its arrays `nominal` and `value` contain NaN")
        inside = (state["lower"] <= state["nominal"]) & (state["nominal"] <= state["upper"])
        if not inside[np.asarray(state["decided"])].all():
            raise CorruptStore("its array `nominal` is not between `lower` and `upper` for a solved subproblem")


def is_within_shape(places: IntArray, shape: tuple[int, ...]) -> bool:
    """Return True if (m, d) positions are in an array of that shape."""
    return bool(((places >= 0) & (places < shape)).all())
