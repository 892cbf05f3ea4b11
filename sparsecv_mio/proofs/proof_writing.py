"""Functions that write the proof of a record, or raise an error for options that proofs do not support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.own_rows import fold_preprocessing
from sparsecv_mio.certificate.read_back import adapt_to_record_loss, folds_again
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.row_structure import quote_names
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.errors import BadInput, OutOfTime, ProofImpossible
from sparsecv_mio.files import Place, replacing
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.problem.problem import eliminate_forced_columns
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.proofs.logistic_proofs import LogisticSearchProof, ScaledRows
from sparsecv_mio.proofs.proof_lines import PROOF_ADVICE, KeptTrees, PairProof, compress_proof, proof_head
from sparsecv_mio.proofs.search_proofs import SearchProof
from sparsecv_mio.proofs.threshold_trees import ChosenTerms, ProofTree, Units, prove_term_thresholds, rounding
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.context import Snapshot
from sparsecv_mio.targets import Loss
from sparsecv_mio.units import ACCURATE_RTOL, CROSSING_RTOL, KEEP_RTOL


def ends(lower: float, upper: float, rounding: float) -> tuple[float, float]:
    """Return the bounds of an interval, widened so that the checker's floats suffice.

    Parameters
    ----------
    lower, upper : float
        Bounds of the interval.
    rounding : float
        Amount that the checker's floats may lose.
    """
    return lower - ACCURATE_RTOL * abs(lower) - rounding, upper + ACCURATE_RTOL * abs(upper) + rounding


def has_unsupported_restrictions(restrictions: Restrictions | None, loss: Loss) -> bool:
    """Return True if proofs do not support some restrictions.

    With squared-error loss proofs support adjustment columns, excluded features and factors.

    Parameters
    ----------
    restrictions : Restrictions or None
        Restrictions.
    loss : Loss
        Loss.
    """
    covered: dict[str, Any] = dict.fromkeys(loss.target.proof_restrictions or (), ())
    return restrictions is not None and replace(restrictions, **covered) != type(restrictions)()


def refuse_options(
    restrictions: Restrictions | None, weights: str | None, loss: Loss, class_weight: object, other: str | None = None
) -> None:
    """Raise an error, before the work, for options that proofs do not support.

    Parameters
    ----------
    restrictions : Restrictions or None
        Restrictions.
    weights : str or None
        Column of weights.
    loss : Loss
        Loss.
    class_weight : object
        Weighting of the classes, None if there is none.
    other : str, optional
        Name of another option that is not supported.

    Raises
    ------
    BadInput
        If an option is not supported; the message names it.
    """
    covered = loss.target.proof_restrictions
    beside = "other than --adjust, --force-out and --count" if covered else f"with --loss {loss}"
    restricted = f"restrictions {beside}" if has_unsupported_restrictions(restrictions, loss) else None
    of_loss = f"--loss {loss}" if covered is None else None if class_weight is None else "--class-weight"
    obstacle = of_loss or other or ("--weights" if weights is not None else restricted)
    if obstacle is not None:
        raise BadInput(f"--proof: not supported with {obstacle}; leave out one of the two")


def _obstacles(record: Record | PathRecord | FitRecord) -> Iterator[str]:
    """Yield the requests of a record, apart from its loss and restrictions, that proofs do not support."""
    yield from (f"--{option}" for option in ("offset", "trials") if getattr(record.data, option) is not None)
    if isinstance(record, FitRecord):
        if record.side and (record.side.together or record.side.box):
            yield "side constraints"
        if record.assumed_box is not None:
            yield "--assume-box"
    if isinstance(record, Record):
        if not record.loss.is_quadratic and (record.request.na_within or record.request.scale_within):
            yield f"fold-specific preprocessing with --loss {record.loss}"
        if record.continuous:
            yield "an interval of gamma"
        if record.descent:
            yield "--method descent"


def refuse_unsupported_record(record: Record | PathRecord | FitRecord, dataset: Dataset) -> None:
    """Raise an error for a record, and data, that proofs do not support."""
    obstacle, restrictions = next(_obstacles(record), None), restrictions_of(record)
    refuse_options(restrictions, record.data.weights, record.loss, record.data.class_weight, obstacle)
    if isinstance(record, Record) and record.status != "proved":
        raise OutOfTime(
            "--proof: no proof is written, because the search ended before the pair was certified; give a longer time "
            "limit"
        )
    used = standardize(dataset, record.data.scale, record.data.intercept).columns
    others = np.setdiff1d(np.arange(dataset.p), used)
    moving = others[dataset.X[:, others].max(axis=0) > dataset.X[:, others].min(axis=0)]
    if moving.size:
        name = dataset.names[moving[0]]
        raise BadInput(f"--proof: column {name!r} is constant up to rounding; give --drop {quote_names([name])}")


class SquaredTrees:
    """Trees on all rows for squared-error loss, gamma by gamma."""

    def __init__(self, data: StandardData, chosen: ChosenTerms) -> None:
        self.columns, self.chosen = data.only(chosen.choice.others), chosen
        self.units = Units.from_data(self.columns)
        self.exponent = self.units.exponent
        self.whole = eliminate_forced_columns(row_moments(data, slice(0, data.n)).problem(data, 1.0)).problem

    def rounding_error_bound(self, gamma: float) -> float:
        """Return the amount that the checker's floats may lose of an objective, in units of the file."""
        return rounding(self.whole.with_gamma(gamma), self.columns.divisor) * self.units.square

    def prove(self, gamma: float, above: Mapping[int, float]) -> Iterator[ProofTree]:
        """Yield trees that prove a threshold for every size."""
        margin = self.rounding_error_bound(gamma) / self.units.square
        return prove_term_thresholds(self.whole.with_gamma(gamma), self.chosen, above, self.units, margin)


class BestProof:
    """The proof of the lower and upper bounds of best subsets on all rows."""

    def __init__(self, record: PathRecord | FitRecord, dataset: Dataset, place: Place) -> None:
        data = record.data
        whole = standardize(dataset, data.scale, data.intercept, restrictions_of(record), record.loss)
        self.chosen = ChosenTerms.from_data(whole)
        self.data = whole.only(self.chosen.choice.others)
        self.trees: SquaredTrees | ScaledRows = ScaledRows.from_data(whole)
        if record.loss.is_quadratic:
            self.trees = SquaredTrees(whole, self.chosen)
        self.rows: Sequence[PathRow | FitRecord] = record.path if isinstance(record, PathRecord) else [record]
        self.gammas = sorted({row.gamma for row in self.rows})
        self.taus = sorted({row.tau for row in self.rows})
        self.head = proof_head(self.data, self.gammas, self.taus, None, self.trees.exponent, self.chosen)
        self.kept = KeptTrees(place, self.head)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the proof."""
        chosen, taus, count = self.chosen, self.taus, 0
        yield self.head
        place = {name: j for j, name in enumerate(self.data.names)}
        for g, gamma in enumerate(self.gammas):
            lost = self.trees.rounding_error_bound(gamma)
            mine = {row.tau: row for row in self.rows if row.gamma == gamma}
            above: dict[int, float] = {}
            for tau, row in mine.items():
                if row.lower <= 0.0 < row.objective * (1.0 - CROSSING_RTOL):
                    raise OutOfTime(
                        f"--proof: no proof is written, because tau = {tau} at gamma = {gamma:g} has no bound yet; "
                        "give a longer time limit"
                    )
                proved = row.lower >= row.objective * (1.0 - CROSSING_RTOL)
                above[min(tau, chosen.q)] = row.objective * (1.0 + KEEP_RTOL) + 2.0 * lost if proved else row.lower
            number = {}
            for tree in self.kept.prove(-1, g, above, partial(self.trees.prove, gamma)):
                yield tree.line(-1, g)
                number.update(dict.fromkeys(tree.above, count))
                count += 1
            for tau, row in mine.items():
                low, high = ends(row.lower, row.upper, lost)
                support = list(chosen.column_terms(place[name] for name in row.support))
                yield {"kind": "best", "gamma": g, "tau": taus.index(tau), "tree": number[min(tau, chosen.q)],
                       "support": support, "lower": low, "upper": high}  # fmt: skip


def write_proof(
    record: Record | PathRecord | FitRecord, dataset: Dataset, path: Place, plan: FoldPlan | None = None,
    found: Snapshot | None = None, check: Callable[[str], None] | None = None,
    progress: Callable[[int], None] = lambda n_statements: None,
) -> None:  # fmt: skip
    """Write a proof of the bounds of a record, for `sparsecv check`.

    Parameters
    ----------
    record : Record, PathRecord or FitRecord
        Record.
    dataset : Dataset
        Data set of the record.
    path : path
        File to write.
    plan : FoldPlan, optional
        Folds of a cross-validation; by default rebuilt from the record's spec and seed.
    found : Snapshot, optional
        Final state of its search (`Hooks.found`); without it the search is run again.
    check : callable, optional
        Function called with the file before it replaces an existing one; an error that it raises leaves the existing
        file unchanged.
    progress : callable, optional
        Function called with the number of statements that are proved so far.

    Raises
    ------
    BadInput
        If proofs do not support the record, or the file cannot be written.

    Notes
    -----
    Until the proof is complete, its trees are stored in `FILE.part`, which the next proof of the same data, folds and
    grid reuses.
    """
    dataset = adapt_to_record_loss(record, dataset)
    refuse_unsupported_record(record, dataset)
    if isinstance(record, Record):
        folds = folds_again(record.folds, dataset, plan)
        proof: PairProof | BestProof
        if not record.loss.is_quadratic:
            proof = LogisticSearchProof(record, folds, dataset, path)
        else:
            same = found is not None and (found.context.folds is folds or fold_preprocessing(record))
            snapshot = found if found is not None and same else _repeat_search(record, dataset, folds)
            proof = SearchProof(record, folds, snapshot, path, dataset)
    else:
        proof = BestProof(record, dataset, path)
    try:
        lines = _count_lines(proof.lines(), progress)
        whole = list(compress_proof(lines))  # the file is not written until the proof is complete
        with replacing(path, "proof") as place:
            with open(place, "xb") as stream:
                stream.writelines(whole)
            if check is not None:
                check(str(place))
    except np.linalg.LinAlgError:
        proof.kept.remove()
        least = record.gamma if isinstance(record, FitRecord) else min(record.request.gammas)
        raise ProofImpossible(
            f"--proof: no proof is written, because at gamma = {least:g} columns are too close to linear dependence; "
            f"{PROOF_ADVICE}"
        ) from None
    except BadInput:
        proof.kept.remove()
        raise
    except KeyboardInterrupt:
        proof.kept.write()
        raise
    proof.kept.remove()


def _count_lines(lines: Iterator[dict[str, Any]], progress: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines):
        progress(number)
        yield line


def _repeat_search(record: Record, dataset: Dataset, plan: FoldPlan) -> Snapshot:
    """Search the grid of a record again; return the final state of the search."""
    snapshots: list[Snapshot] = []
    request, data = record.request, record.data
    cross_validate(
        dataset, plan, gammas=request.gammas, taus=request.taus, scale=data.scale, intercept=data.intercept,
        gap=request.gap, restrictions=request.restrictions or NONE, found=snapshots.append,
        na_within=request.na_within or "all", scale_within=request.scale_within or "all",
    )  # fmt: skip
    return snapshots[-1]
