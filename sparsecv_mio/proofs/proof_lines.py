"""The file of a proof, and `FILE.part`, which stores the trees of a proof that is not complete yet.

A run that was killed leaves `FILE.part`. The first line of this file has the digest of the head of the proof (data,
folds, grid); every other line has the digest of a tree and the tree. The statement that a tree proves does not depend
on the proof, so a later proof for the same data, folds and grid may use the tree again. The program does not trust the
lines: reading ends at a line with a wrong digest, and `sparsecv check` checks every tree.

The class `PairProof` writes the parts of a proof that do not depend on the loss: statements about folds, lines of
pairs, and the claim.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.rows_of_folds import OfTrainingRows
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput, ProofImpossible
from sparsecv_mio.files import Place, check_readable
from sparsecv_mio.proofs.threshold_trees import ChosenTerms, ProofTree
from sparsecv_mio.units import CROSSING_RTOL, NO_RIDGE
from sparsecv_mio.words import Within

FORMAT, FORMAT_OF_LOSSES = "sparsecv-proof/1", "sparsecv-proof/2"  # squared-error loss, and logistic loss
FORMAT_OF_TERMS = "sparsecv-proof/3"  # squared-error loss with terms, adjustment columns or fold-specific preprocessing
FORMAT_KEPT_TREES = b"sparsecv-proof-part/1 "
PROOF_ADVICE = "give a larger --gamma, fewer or scaled columns, or use `sparsecv verify`"
EVERY = 1.0  # seconds of work between two writes
SAME_THRESHOLD = 1e-10  # maximum relative difference between the thresholds of two runs of the same search


def proof_head(
    data: StandardData, gammas: Iterable[float], taus: Iterable[int], plan: FoldPlan | None, units: IntArray,
    chosen: ChosenTerms | None = None, within: OfTrainingRows | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the first line of a proof: the data and folds by digest, the coordinates, the grid.

    Parameters
    ----------
    data : StandardData
        Data set in the columns that are chosen from.
    gammas, taus : iterables
        Grid.
    plan : FoldPlan or None
        Folds.
    units : (q,) int array
        Exponents of the units of points.
    chosen : ChosenTerms, optional
        Terms, for squared-error loss.
    within : OfTrainingRows, optional
        Preprocessing that is computed from the training rows of each fold.
    """
    source = data.dataset
    stated = replace(source, X=stated_cells(source, within)) if within else source
    head: dict[str, Any] = {
        **_format(data, chosen, within),
        "data": {
            "n": source.n, "p": source.p, "names": list(source.names), "target": source.target,
            "digest": stated.fingerprint,
        },
        "columns": data.columns.tolist(), "units": units.tolist(),
        "scale": str(data.scale), "intercept": str(data.intercept),
        "gammas": [max(float(gamma), NO_RIDGE) for gamma in gammas], "taus": [int(tau) for tau in taus],
    }  # fmt: skip
    if plan is not None:
        head["left"] = [plan.left_out(j).tolist() for j in range(plan.k)]
        head["scored"] = None if plan.left is None else [plan.scored_rows(j).tolist() for j in range(plan.k)]
        head["folds"] = {"spec": plan.spec, "seed": plan.seed, "digest": plan.digest}
    return head


def _format(data: StandardData, chosen: ChosenTerms | None, within: OfTrainingRows | None) -> dict[str, Any]:
    """Return the format of a proof, and the fields that only this format has."""
    if not data.loss.is_quadratic:
        return {"format": FORMAT_OF_LOSSES, "loss": str(data.loss)}
    if not data.restrictions and not within:
        return {"format": FORMAT}
    source = data.dataset
    own: dict[str, Any] = {
        "format": FORMAT_OF_TERMS,
        "adjust": [source.names.index(name) for name in data.restrictions.adjust],
    }
    if chosen and not chosen.has_single_column_terms:
        own["terms"] = [list(term) for term in chosen.terms]
    if within:
        rule = str(source.reading.how.na) if within.na is Within.FOLDS and source.reading else None
        own["within"] = {"na": rule, "scale": within.scale is Within.FOLDS}
    return own


def stated_cells(dataset: Dataset, within: OfTrainingRows) -> FloatArray:
    """Return the (n, p) values that a proof is about: NaN for missing values that each fold fills."""
    if within.na is not Within.FOLDS or dataset.holes is None:
        return dataset.X
    return np.where(dataset.holes, np.nan, dataset.X)


def compress_proof(lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the compressed file of a proof, line by line, with its last line.

    Raises
    ------
    BadInput
        If a number cannot be written as JSON.
    """
    digest, buffer = hashlib.sha256(), io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as stream:
        for line in lines:
            try:
                text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
            except ValueError:
                raise BadInput(
                    "--proof: numbers of the proof exceed the range of floating-point numbers; change the units of "
                    "the data"
                ) from None
            digest.update(text)
            stream.write(text)
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
        end = {"kind": "end", "sha256": digest.hexdigest()}
        stream.write(json.dumps(end, separators=(",", ":")).encode() + b"\n")
    yield buffer.getvalue()


def unfinished_file(path: Place) -> Path:
    """Return the file that stores the trees of an unfinished proof."""
    return Path(f"{path}.part")


class KeptTrees:
    """The stored trees of one proof, in its `.part` file.

    Parameters
    ----------
    path : path
        File of the proof.
    head : dict
        First line of the proof.

    Raises
    ------
    BadInput
        If the `.part` file cannot be read, or something else has its name.
    """

    def __init__(self, path: Place, head: Mapping[str, Any]) -> None:
        self.place = unfinished_file(path)
        digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()
        self.first = FORMAT_KEPT_TREES + digest.encode() + b"\n"
        self.trees: dict[tuple[int, int], list[ProofTree]] = {}
        self.waiting: list[Mapping[str, Any]] = []
        self.written, self.moment = 0, time.monotonic()  # bytes of the part that are valid and complete
        self._read()

    def prove(
        self, rows: int, gamma: int, above: Mapping[int, float],
        prove: Callable[[Mapping[int, float]], Iterable[ProofTree]],
    ) -> list[ProofTree]:  # fmt: skip
        """Return trees that prove a threshold for every size: stored ones, and new ones, which are stored.

        Parameters
        ----------
        rows : int
            Fold, -1 for all rows.
        gamma : int
            Index of gamma.
        above : mapping of size to threshold
            Thresholds in units of the file.
        prove : callable
            Function that yields trees for some thresholds.
        """
        trees, missing = list[ProofTree](), dict(above)
        for tree in self.trees.get((rows, gamma), []):
            sizes = [size for size in missing if size in tree.above]
            if sizes and all(abs(tree.above[s] - above[s]) <= SAME_THRESHOLD * abs(above[s]) for s in sizes):
                trees.append(tree)
                missing = {size: threshold for size, threshold in missing.items() if size not in sizes}
        whole = [missing] if missing and not trees else [{size: value} for size, value in missing.items()]
        for tree in chain.from_iterable(map(prove, whole)):
            self.keep(tree.line(rows, gamma))
            trees.append(tree)
        return trees

    def _read(self) -> None:
        if not self.place.exists():
            return
        check_readable(self.place, "the part of a proof")
        with open(self.place, "rb") as stream:
            first = stream.readline(len(self.first))
            if not first.startswith(FORMAT_KEPT_TREES):
                raise BadInput(
                    f"--proof: {self.place} exists, but is not an unfinished proof; remove this file, or name another"
                )
            if first != self.first:
                return  # the part belongs to other data or another grid
            self.written = len(first)
            for line in stream:
                digest, _, text = line[:-1].partition(b" ")
                if not line.endswith(b"\n") or digest != _digest(text):
                    break
                with suppress(ValueError, KeyError, TypeError):
                    stored_tree = json.loads(text)
                    self.trees.setdefault((stored_tree["rows"], stored_tree["gamma"]), []).append(
                        ProofTree.from_line(stored_tree)
                    )
                self.written += len(line)

    def keep(self, line: Mapping[str, Any]) -> None:
        """Add a tree; it is written together with the next ones, one second after the last write.

        Parameters
        ----------
        line : mapping
            Line of the tree in the proof.
        """
        self.waiting.append(line)
        if time.monotonic() > self.moment + EVERY:
            self.write()

    def write(self) -> None:
        """Write the trees that are not written yet."""
        if not self.waiting:
            return
        texts = [json.dumps(line, separators=(",", ":")).encode() for line in self.waiting]
        lines = [_digest(text) + b" " + text + b"\n" for text in texts]
        self.waiting, self.moment = [], time.monotonic()
        try:
            with open(self.place, "r+b" if self.written else "wb") as stream:
                if not self.written:
                    lines.insert(0, self.first)
                stream.truncate(self.written)
                stream.seek(self.written)
                stream.writelines(lines)
        except OSError:  # for instance a full disk; the proof may still be written later or elsewhere
            self.moment = np.inf
            return
        self.written += sum(map(len, lines))

    def remove(self) -> None:
        """Remove the part, after the proof is complete."""
        self.waiting = []
        if self.written:
            self.place.unlink(missing_ok=True)


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


@dataclass(eq=False)
class PairStatements:
    """Statements about the folds of one pair in a proof, in the problem's units.

    Attributes
    ----------
    g, t, size : int
        Indices of gamma and tau, and size of the supports.
    low, high : (K,) arrays
        Bounds on h_N from the statements so far.
    parts : list of dict
        Statements.
    """

    g: int
    t: int
    size: int
    low: FloatArray
    high: FloatArray
    parts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def has_upper_bound(self) -> bool:
        """True if every fold has an upper bound."""
        return bool(np.isfinite(self.high).all())

    def tighten(self, folds: IntArray | int, low: FloatArray | float, high: FloatArray | float) -> None:
        """Intersect the bounds with those of a statement."""
        self.low[folds] = np.maximum(self.low[folds], low)
        self.high[folds] = np.minimum(self.high[folds], high)

    def state_loss(self, tree: int, folds: Sequence[int] | None, supports: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Add and return a statement by training losses: a tree on all rows, and a support of each of some folds.

        Parameters
        ----------
        tree : int
            Number of the tree.
        folds : sequence of int or None
            Folds; None for all.
        supports : sequence of sequences of int
            Distinct supports.
        """
        some = {} if folds is None else {"folds": list(folds)}
        self.parts.append({"by": "loss", "tree": tree, "supports": list(map(list, supports)), **some})
        return self.parts[-1]

    def state_own(self, folds: list[int], trees: list[int]) -> None:
        """Add a statement by trees on the training rows of folds."""
        self.parts.append({"by": "own", "folds": folds, "trees": trees})


EXACT_SHARE = 1e-9  # unexplained share of the target, up to which moments do not tell larger supports apart


class PairProof(ABC):
    """The lines of the proof of one record of a cross-validation.

    Parameters
    ----------
    record : Record
        Record.
    plan : FoldPlan
        Folds.
    head : dict
        First line.
    place : path
        File of the proof.
    unit : float
        Unit of objectives and losses of the problems.
    """

    excluded_rtol: ClassVar[float] = 0.0  # reduction of the lower bound of an excluded pair, for the fast check

    def __init__(self, record: Record, plan: FoldPlan, head: dict[str, Any], place: Place, unit: float = 1.0) -> None:
        self.best, self.plan, self.head, self.unit = record.certificate, plan, head, unit
        self.fits_exactly = record.r_squared is not None and 1.0 - record.r_squared <= EXACT_SHARE
        self.gammas, self.taus = list(record.request.gammas), list(record.request.taus)
        self.goal = self.best.lower * (1.0 - CROSSING_RTOL) * plan.scored / unit  # for each pair
        self.trees, self.least, self.upper = 0, np.inf, np.inf
        self.kept = KeptTrees(place, head)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the proof."""
        yield self.head
        for g in range(len(self.gammas)):
            yield from self._gamma(g)
        if self.least < self.goal * (1.0 - 10.0 * CROSSING_RTOL) or not np.isfinite(self.upper):
            advice = PROOF_ADVICE
            if self.fits_exactly:  # larger supports differ from the best one by rounding errors only
                advice = "give smaller sizes (--tau) or a much larger --gamma, or use `sparsecv verify`"
            raise ProofImpossible(
                "--proof: rounding errors or ties make the bounds of the proof weaker than those of the record, so no "
                f"proof is written; {advice}"
            )
        g, t = self.gammas.index(self.best.gamma), self.taus.index(self.best.tau)
        lower, upper = self._mean_interval(self.least, self.upper)
        yield {"kind": "claim", "gamma": g, "tau": t, "lower": lower, "upper": upper}

    @abstractmethod
    def _gamma(self, g: int) -> Iterator[dict[str, Any]]:
        """Yield the lines of one gamma."""

    def _mean_interval(self, low: float, high: float) -> tuple[float, float]:
        per_row = self.unit / self.plan.scored
        return low * per_row * (1.0 - CROSSING_RTOL), high * per_row * (1.0 + CROSSING_RTOL)

    def _is_reported(self, pair: PairStatements) -> bool:
        return bool(self.gammas[pair.g] == self.best.gamma and self.taus[pair.t] == self.best.tau)

    def _tree(self, tree: ProofTree, rows: int, g: int) -> dict[str, Any]:
        """Return the line of a tree, whose number is that of the trees before it."""
        self.trees += 1
        return tree.line(rows, g)

    def _line(self, pair: PairStatements) -> dict[str, Any]:
        low, high = float(pair.low.sum()), float(pair.high.sum())
        if low * (1.0 - self.excluded_rtol) >= self.goal:  # a clear exclusion need not be stated to the last digit
            low *= 1.0 - self.excluded_rtol
        self.least = min(self.least, low)
        if self._is_reported(pair) and pair.has_upper_bound:
            self.upper = high
        low, high = self._mean_interval(low, high)
        return {"kind": "pair", "gamma": pair.g, "tau": pair.t, "parts": pair.parts, "lower": low,
                "upper": high if pair.has_upper_bound else None}  # fmt: skip
