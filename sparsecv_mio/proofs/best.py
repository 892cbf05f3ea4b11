"""Proofs of best subsets on all rows: records of `path` and `fit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sparsecv_mio.certificate.record import FitRecord, PathRecord, PathRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import Place
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.proofs.claims import ends
from sparsecv_mio.proofs.kept_trees import KeptTrees
from sparsecv_mio.proofs.lines import head_of
from sparsecv_mio.proofs.trees import Units, prove_thresholds, rounding

ABOVE = 1e-8  # above a best objective, relatively: supports below are listed
KNOWN = 1e-7  # a lower end this near its objective is that of a list


class BestProof:
    """The proof of the lower and upper ends of best subsets on all rows."""

    def __init__(self, record: PathRecord | FitRecord, dataset: Dataset, place: Place) -> None:
        self.data = standardize(dataset, record.data.scale, record.data.intercept)
        self.rows: Sequence[PathRow | FitRecord] = record.path if isinstance(record, PathRecord) else [record]
        self.gammas = sorted({row.gamma for row in self.rows})
        self.taus = sorted({row.tau for row in self.rows})
        self.head = head_of(self.data, self.gammas, self.taus, None)
        self.kept = KeptTrees(place, self.head)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the proof."""
        data, taus = self.data, self.taus
        yield self.head
        units, place = Units.of(data), {name: j for j, name in enumerate(data.names)}
        whole, count = row_moments(data, slice(0, data.n)).problem(data, 1.0), 0
        for g, gamma in enumerate(self.gammas):
            here = whole.with_gamma(gamma)
            lost = rounding(here, data.divisor)
            mine = {row.tau: row for row in self.rows if row.gamma == gamma}
            above: dict[int, float] = {}
            for tau, row in mine.items():
                if row.lower <= 0.0 < row.objective * (1.0 - KNOWN):
                    raise BadInput(f"--proof: nothing is known of tau {tau} at gamma {gamma:g}: give the run more time")
                known = row.lower >= row.objective * (1.0 - KNOWN)
                threshold = row.objective * (1.0 + ABOVE) + 2.0 * lost * units.square if known else row.lower
                above[min(tau, data.q)] = threshold
            number = {}
            for tree in prove_thresholds(here, above, units, lost, kept=self.kept.at(-1, g)):
                yield tree.line(-1, g)
                number.update(dict.fromkeys(tree.above, count))
                count += 1
            for tau, row in mine.items():
                low, high = ends(row.lower, row.upper, lost * units.square)
                support = sorted(place[name] for name in row.support)
                yield {"kind": "best", "gamma": g, "tau": taus.index(tau), "tree": number[min(tau, data.q)],
                       "support": support, "lower": low, "upper": high}  # fmt: skip
