"""What a campaign tries: problems made to break a search, and every option together, drawn by hypothesis."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from zoo import KINDS, numbers

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.weights import weighted

METHODS = ("auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent")
FOLDS = (  # one row at a time twice as often: more cells
    "loo", "loo", "3", "4", "blocks:3", "2x3", "3x2", "forward:3", "stratified:3", "holdout:0.3", "groups:g",
)  # fmt: skip
RESTRICTED = ("auto", "algorithm1", "grid")
CAMPAIGN = "FUZZ_EXAMPLES" in os.environ  # a run by hand, with larger problems among the others
COUNTS: Counter[str] = Counter()  # what was tried, by name
QUICK = ("as drawn", "float32", "extreme units")


@dataclass(frozen=True)
class Case:
    """One run: the numbers of the data follow from `seed` and `kind`, everything else is drawn by itself."""

    seed: int
    kind: str
    folds: str
    method: str
    scale: str
    intercept: str
    gap: float
    gammas: tuple[float, ...]
    fewest: int
    one_se: bool
    weights: str
    rows: int = 26
    restrictions: dict[str, Any] = field(default_factory=dict)

    def problem(self) -> tuple[Dataset, FoldPlan, dict[str, Any]]:
        """Data, folds and keywords of `cross_validate`."""
        X, y = numbers(self.seed, self.kind, self.rows)
        rng = np.random.default_rng([5, self.seed])
        n, p = X.shape
        data = Dataset.from_arrays(X, y, names=names_of(p), aux={"g": rng.integers(0, 4, n)})
        data, plan = self.dealt(data, rng)
        asked = {name: value for name, value in self.asked(p).items() if value is not None}
        taus = range(max(len(asked.get("force_in", ())), min(self.fewest, p)), p - len(asked.get("force_out", ())) + 1)
        words: dict[str, Any] = {
            "method": self.method, "scale": self.scale, "intercept": self.intercept, "gap": self.gap,
            "one_se": self.one_se and plan.k > 1 and self.method != "bounds", "threads": 1,
        }  # fmt: skip
        return data, plan, words | asked | {"gammas": list(self.gammas), "taus": list(taus)}

    def dealt(self, data: Dataset, rng: np.random.Generator) -> tuple[Dataset, FoldPlan]:
        """Data and folds, by the weights of the rows where there are any."""

        def deal(rows: Dataset) -> FoldPlan:
            return make_folds(self.folds, rows, self.seed)

        if self.weights == "none":
            return data, deal(data)
        drawn = 10.0 ** rng.uniform(-3, 3, data.n)
        if self.weights == "whole":
            drawn = rng.integers(0, 4, data.n).astype(float)
        return weighted(data, drawn, deal, name="w")

    def asked(self, p: int) -> dict[str, Any]:
        """Restrictions, by names that these data have."""
        names, wanted = names_of(p), self.restrictions
        signs = wanted.get("nonnegative")
        return {
            "force_in": [names[wanted["force_in"] % p]] if "force_in" in wanted else None,
            "force_out": [names[wanted["force_out"] % p]] if "force_out" in wanted else None,
            "at_most": [f"1:{names[0]},{names[-1]}"] if "at_most" in wanted and p > 1 else None,
            "hierarchy": "strong" if "hierarchy" in wanted and p > 3 else None,
            "nonnegative": None if signs is None else "all" if signs == "all" else [names[0]],
        }


def names_of(p: int) -> list[str]:
    """Names of p columns, one of which is an interaction of the first two."""
    return ["a", "b", "c", "a:b", "d", "e", "f", "h"][:p]


def restrictions() -> st.SearchStrategy[dict[str, Any]]:
    """None, mostly; else forced columns, group limits, hierarchy and signs."""
    optional = {
        "force_in": st.integers(0, 7), "force_out": st.integers(0, 7), "at_most": st.just(1),
        "hierarchy": st.just(1), "nonnegative": st.sampled_from(["all", "first"]),
    }  # fmt: skip
    return st.one_of(st.just({}), st.just({}), st.fixed_dictionaries({}, optional=optional))


@st.composite
def cases(draw: st.DrawFn, plain: bool = False, many: bool = False) -> Case:
    """A case; `plain` ones have no weights and no restrictions, and their folds can be permuted with the rows.

    `many` ones have many cells, of kinds and gammas that enumeration is quick for, and no restrictions.
    """
    asked = {} if plain or many else draw(restrictions())
    beyond_forcing = {"at_most", "hierarchy", "nonnegative"} & set(asked)
    folds = ("loo", "3", "4", "blocks:3") if plain else FOLDS
    sizes = {"min_size": 7, "max_size": 10} if many else {"min_size": 1, "max_size": 4}
    exponents = draw(st.lists(st.integers(-3 if many else -8, 6), unique=True, **sizes))
    mantissa = draw(st.sampled_from([1.0, 2.5, 7.0]))
    return Case(
        seed=draw(st.integers(0, 2**31 - 1)),
        kind=draw(st.sampled_from(QUICK if many else KINDS)),
        folds=draw(st.sampled_from((*folds, *["loo"] * len(folds) * 3) if many else folds)),
        method=draw(st.sampled_from(RESTRICTED if beyond_forcing else METHODS[:3] if many else METHODS)),
        scale=draw(st.sampled_from(["length", "variance", "none"])),
        intercept=draw(st.sampled_from(["fold", "global", "none"])),
        gap=draw(st.sampled_from([0.0, 1e-4, 0.05])),
        gammas=tuple(sorted(mantissa * 10.0**one for one in exponents)),
        fewest=draw(st.integers(0, 2)),
        one_se=draw(st.booleans()),
        weights="none" if plain else draw(st.sampled_from(["none", "none", "any", "whole"])),
        rows=600 if many and CAMPAIGN else 26,
        restrictions=asked,
    )
