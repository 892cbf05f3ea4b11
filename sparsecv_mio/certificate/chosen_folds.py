"""The folds of the reported pair in a record, kept by column: there may be millions of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.codec import AT, Count, Encoded, Number, checked


@dataclass(frozen=True, slots=True)
class ChosenFold:
    """One fold of the reported pair: the support fitted without it and the held-out sum of squares of that fit.

    `decided`: the support is optimal; else it is the one with the least training objective known.
    """

    fold: Count
    support: tuple[str, ...]
    error: Number
    decided: bool = True


class ChosenFolds(Sequence[ChosenFold]):
    """Every fold of the reported pair: few distinct supports, and which one each fold uses.

    Parameters
    ----------
    supports : tuple of tuple of str
        The distinct supports.
    which : (k,) integers
        Fold j uses `supports[which[j]]`.
    error : (k,) floats
        Held-out sum of squares of fold j; NaN never occurs.
    decided : (k,) bools
        Whether the support of fold j is optimal.
    """

    # no dataclass: msgspec would take its fields for those of the JSON, instead of asking `from_json_items`
    def __init__(
        self,
        supports: tuple[tuple[str, ...], ...],
        which: IntArray,
        error: FloatArray,
        decided: BoolArray,
    ) -> None:
        self.supports, self.which, self.error, self.decided = supports, which, error, decided

    @classmethod
    def of(
        cls,
        supports: Sequence[Sequence[str]],
        errors: Sequence[float] | FloatArray,
        decided: Sequence[bool] | None = None,
    ) -> ChosenFolds:
        """Build from one support and one error per fold.

        Parameters
        ----------
        supports : sequence of sequence of str
        errors : (k,) floats
        decided : (k,) bools, optional
            Every fold by default.

        Examples
        --------
        >>> folds = ChosenFolds.of([["a"], ["b"], ["a"]], [1.0, 2.0, 0.5])
        >>> folds.supports, folds[2].support
        ((('a',), ('b',)), ('a',))
        """
        index: dict[tuple[str, ...], int] = {}
        which = [index.setdefault(tuple(support), len(index)) for support in supports]
        known = np.ones(len(which), dtype=np.bool_) if decided is None else np.asarray(decided, dtype=np.bool_)
        return cls(tuple(index), np.asarray(which, dtype=np.int64), np.asarray(errors, dtype=np.float64), known)

    def __repr__(self) -> str:
        return f"ChosenFolds({len(self)} folds, {len(self.supports)} supports)"

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, fold: Any) -> Any:
        if isinstance(fold, slice):
            return [self[i] for i in range(*fold.indices(len(self)))]
        position = range(len(self))[fold]
        support = self.supports[self.which[position]]
        return ChosenFold(position, support, float(self.error[position]), bool(self.decided[position]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ChosenFolds)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def json_items(self) -> Iterator[Encoded]:
        """Yield one line of JSON per fold."""
        if not np.isfinite(self.error).all():
            raise ValueError("record field chosen_folds holds an error that is not finite")
        encoded = [json.dumps(list(support), ensure_ascii=False) for support in self.supports]
        words = ("false", "true")
        columns = zip(self.which.tolist(), self.error.tolist(), self.decided.tolist(), strict=True)
        for fold, (which, error, decided) in enumerate(columns):
            line = f'{{"fold": {fold}, "support": {encoded[which]}, "error": {error!r}, "decided": {words[decided]}}}'
            yield Encoded(line)

    @classmethod
    def from_json_items(cls, items: list[Any]) -> ChosenFolds:
        """Build from what `json_items` wrote; folds must come in order 0, 1, ..."""
        folds = checked(items, list[ChosenFold])
        for i, fold in enumerate(folds):
            if fold.fold != i:
                raise ValueError(f"must be {i}, not {fold.fold}{AT}[{i}].fold`")
        return cls.of(
            [fold.support for fold in folds], [fold.error for fold in folds], [fold.decided for fold in folds]
        )
