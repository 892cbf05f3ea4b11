"""Problems whose records and proofs are altered thousands of times, and what alterations do not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds

FOLDS = ("3", "loo", "2x3", "forward:3", "blocks:4", "holdout:0.4")
GAMMAS = (0.3, 0.01, 5.0)
SCALES, INTERCEPTS = ("length", "variance", "none"), ("fold", "global", "none")


@dataclass(frozen=True)
class Small:
    """A small problem, all of which follows from these numbers."""

    seed: int
    rows: int
    columns: int
    gammas: int
    most: int
    folds: str
    scale: str
    intercept: str

    @staticmethod
    def drawn(seed: int) -> Small:
        """Draw a problem by its seed."""
        rng = np.random.default_rng([18, seed])
        columns = int(rng.integers(2, 5))
        return Small(
            seed, int(rng.integers(8, 13)), columns, int(rng.integers(1, 3)), int(rng.integers(1, columns + 1)),
            str(rng.choice(FOLDS)), str(rng.choice(SCALES)), str(rng.choice(INTERCEPTS)),
        )  # fmt: skip

    def data(self) -> Dataset:
        """Columns that hang together, some of them of two values, near copies, with offsets or of other units."""
        rng = np.random.default_rng([3, self.seed])
        X = rng.normal(size=(self.rows, self.columns)) + 0.5 * rng.normal(size=(self.rows, 1))
        kind = self.seed % 6
        if kind == 1:
            X[:, -1] = np.arange(self.rows) % 2
        elif kind == 2:
            X[:, -1] = X[:, 0] + 1e-3 * X[:, -1]
        elif kind == 3:
            X = X + 10.0
        y = X @ rng.normal(size=self.columns) + rng.normal(size=self.rows)
        if kind == 4:
            # where columns keep their units gamma has one too, and next to none of it leaves a fit to rounding
            reach = 0 if self.scale == "none" else 30
            X, y = X * 2.0 ** rng.integers(-reach, reach + 1, self.columns), y * 2.0 ** rng.integers(-30, 31)
        return Dataset.from_arrays(X, y)

    def plan(self, data: Dataset) -> FoldPlan:
        """Deal the rows to folds."""
        return make_folds(self.folds, data, self.seed)

    @property
    def grid(self) -> dict[str, list[float] | list[int]]:
        """Gammas and sizes."""
        return {"gammas": sorted(GAMMAS[: self.gammas]), "taus": list(range(1, self.most + 1))}

    @property
    def terms(self) -> dict[str, Any]:
        """What is adjusted for, and which columns are one term; at least one term is left to choose from."""
        rng, names = np.random.default_rng([5, self.seed]), [f"x{j}" for j in range(self.columns)]
        adjust = names[:1] if rng.random() < 0.7 else []
        if len(names) == 4 and adjust and rng.random() < 0.3:
            adjust = names[::2]
        left = [name for name in names if name not in adjust]
        count = (
            [left[:2] if rng.random() < 0.5 else left] if len(left) > 1 and (not adjust or rng.random() < 0.6) else []
        )
        many = len(left) - sum(len(some) - 1 for some in count)
        return {"adjust": adjust, "count": count, "taus": list(range(min(self.most, many) + 1))}

    def with_holes(self) -> tuple[Dataset, dict[str, Any]]:
        """The data with empty cells, and what the training rows of each fold say; sometimes beside `terms`."""
        rng, data = np.random.default_rng([6, self.seed]), self.data()
        na, own = [("mean", False), ("median", False), ("median", True), ("mean", True), (None, True)][self.seed % 5]
        how: dict[str, Any] = {"intercept": "none" if self.intercept == "none" else "fold"}
        how |= self.terms if rng.random() < 0.4 else {}
        if own and self.scale == "none":
            how["scale"] = "length"
        if na is None:
            return data, how | {"scale_within": "folds"}
        X = np.where(rng.random(data.X.shape) < 0.15, np.nan, data.X)
        frame = pd.DataFrame(X, columns=list(data.names)).assign(y=data.y)
        within = {"na_within": "folds"} | ({"scale_within": "folds"} if own else {})
        return Dataset.from_frame(frame, "y", na=na), how | within


Place = tuple[Any, str]  # a module or a class, and the name of a function in it


def once(function: Callable[..., Any], key: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which gives again what it gave, or raises what it raised, for words of the same key."""
    known: dict[Any, tuple[Any, Exception | None]] = {}

    def remembered(*words: Any, **named: Any) -> Any:
        at = key(*words, *named.values())
        if at not in known:
            try:
                known[at] = function(*words, **named), None
            except Exception as error:
                known[at] = None, error
        found, error = known[at]
        if error is not None:
            raise error
        return found

    return remembered


@contextmanager
def remembering(places: Mapping[Place, Callable[..., Any]]) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Compute some functions once, by their keys; what is yielded calls something with them as they are."""
    whole = {place: getattr(*place) for place in places}
    with pytest.MonkeyPatch.context() as patch:
        for place, key in places.items():
            patch.setattr(*place, once(whole[place], key))

        def afresh(question: Callable[[], Any]) -> Any:
            with pytest.MonkeyPatch.context() as plain:
                for place, function in whole.items():
                    plain.setattr(*place, function)
                return question()

        yield afresh
