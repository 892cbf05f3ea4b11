"""A valid proof, altered in one thing: refused, or all that it then says is true by enumeration.

An alteration matters where the altered proof says something false of the data (a claim, or a tree that has overlooked a
support), both by trying all supports, or where its argument lacks a part: a leaf, the line of a pair, the digest. None
of these may be accepted. The others leave the proof true; what is left of it need not prove that, and is refused then.
"""

from __future__ import annotations

import os
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import second_checker
from counts import CAMPAIGN, COUNTS
from forged_proofs import ALTERATIONS, Lines, altered_by, read_lines, write_lines
from small import Small, remembering
from true_claims import Truth

from sparsecv_mio.certificate.own_rows import fold_preprocessing
from sparsecv_mio.check import main as checker
from sparsecv_mio.check.proof_file import Refused, Unreadable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.proofs.proof_lines import stated_cells
from sparsecv_mio.proofs.proof_writing import write_proof
from sparsecv_mio.search.api import cross_validate

EACH = int(os.environ.get("FUZZ_FORGERIES", "40")) if CAMPAIGN else 60  # of every proof
CLASSES, TERMS, OWN_ROWS = " of two classes", " of terms", " of rows of their own"
FIRST = int(os.environ.get("FUZZ_SEED", "0")) * 1000
PROBLEMS = int(os.environ.get("FUZZ_PROOFS", "25")) if CAMPAIGN else 2


def proof_of(what: str, problem: Small, place: Path) -> tuple[Dataset, Lines]:
    """A proof of best subsets on all rows, or of a cross-validation."""
    data, two = problem.data(), what.endswith(CLASSES)
    how: dict[str, Any] = {"scale": problem.scale, "intercept": problem.intercept, "threads": 1, **problem.grid}
    if two:
        data = Dataset.from_arrays(data.X, (data.y > np.median(data.y)).astype(float), target="y")
        how |= {"loss": "logistic", "intercept": "none" if problem.intercept == "none" else "fold"}
    how |= problem.terms if what.endswith(TERMS) else {}
    if what.endswith(OWN_ROWS):
        data, within = problem.with_holes()
        how |= within
    if what.startswith("best subsets"):
        write_proof(best_subsets(data, **how), data, place)
    else:
        plan = problem.plan(data)
        record = cross_validate(data, plan, gap=(0.0, 1e-4)[problem.seed % 2], **how)
        write_proof(record, data, place, plan)
        data = replace(data, X=stated_cells(data, fold_preprocessing(record)))
    return data, read_lines(place)


def _key(*words: Any) -> Any:
    """Numbers by their value, also those of a tuple or a dataclass, anything else by what it is."""
    parts: list[Any] = []
    for word in words:
        if isinstance(word, tuple) or is_dataclass(word) and not isinstance(word, type):
            parts.append(_key(*(word if isinstance(word, tuple) else vars(word).values())))
        elif isinstance(word, np.ndarray):
            parts.append(word.tobytes() if word.dtype != object else tuple(word.reshape(-1).tolist()))
        else:
            parts.append(repr(word) if isinstance(word, dict | list | str | int | float | np.number) else word)
    return tuple(parts)


UNALTERED = {
    (checker, name): _key
    for name in ("ScaledDesign", "AdjustedDesign", "DesignOfFolds", "check_tree", "TwoClasses", "check_logistic_tree")
}


SECOND = "second checker"


def accepts(place: Path, data: Dataset, mode: str) -> bool:
    """Whether a checker accepts a file; it refuses in one line."""
    if mode == SECOND:
        table = place.with_name("data.csv")
        frame = pd.DataFrame(data.X, columns=list(data.names)).assign(**{data.target: data.y})
        frame.map(lambda cell: "" if np.isnan(cell) else repr(cell)).to_csv(table, index=False)
        return second_checker.check(place, table).accepted
    try:
        checker.check(str(place), data.X, data.y, mode)
    except (Refused, Unreadable) as error:
        assert "\n" not in str(error), error
        return False
    return True


def accepted_and_false(what: str, problem: Small, place: Path, mode: str, times: int = EACH) -> str | None:
    """Alter one proof so often; say which alteration is accepted although it matters."""
    try:
        data, lines = proof_of(what, problem, place)
    except BadInput:  # no such folds; a column that is a copy; no proof of an answer that is not proved
        COUNTS[f"forged proofs, {what}: no proof to alter"] += 1
        return None
    truth, rng = Truth(data.X, data.y, lines[0]["data"]), np.random.default_rng([7, problem.seed])
    with remembering(UNALTERED) as afresh:
        mode = mode if accepts(place, data, mode) else "exact"  # floats refuse rows far from those that are trained on
        modes = mode, SECOND
        assert truth.false_statement(lines) is None and all(accepts(place, data, one) for one in modes), problem
        for i in range(times):
            change = ALTERATIONS[int(rng.integers(len(ALTERATIONS)))]
            forged = altered_by(change, lines, rng)
            if forged == lines:
                continue
            wrong = truth.false_statement(forged)
            if wrong is None and rng.random() < 0.75:
                continue
            write_lines(place, forged)
            kind, taken = "matters" if wrong else "leaves it true", accepts(place, data, mode)
            if i % 50 == 0:
                assert afresh(lambda: accepts(place, data, mode)) == taken, (problem, change.__name__, i)
            for one in modes:
                taken = taken if one == mode else accepts(place, data, one)
                how = "ACCEPTED" if taken and wrong else "accepted" if taken else "refused"
                COUNTS[f"forged proofs, {what}, {one}: {kind}, {how}"] += 1
                if taken and wrong:
                    return f"{what}, {one}: {problem}: {change.__name__}, the alteration {i}: {wrong}"
    return None


KINDS = [kind + of for kind in ("best subsets", "cross-validation") for of in ("", CLASSES, TERMS)]


@pytest.mark.parametrize("what", [*KINDS, f"cross-validation{OWN_ROWS}"])
def test_no_false_proof_is_accepted(what: str, tmp_path: Path) -> None:
    times = EACH if CAMPAIGN or not what.endswith(CLASSES) else EACH // 2  # which takes a tenth of a second each
    wrong = []
    for seed in range(FIRST, FIRST + PROBLEMS):
        problem, mode = Small.drawn(seed), "exact" if seed % 20 == 19 else "fast"
        found = accepted_and_false(what, problem, tmp_path / "p", mode, times)
        if found is not None:
            wrong.append(found)
    assert not wrong, "\n".join(wrong)


def test_what_a_weaker_checker_accepts_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker that believes the ends of intervals."""
    monkeypatch.setattr(checker, "_proved_interval", lambda line, low, high, what, noise=0.0: (low, high))
    problem = Small(4, 11, 4, 2, 3, "loo", "length", "fold")
    assert accepted_and_false("best subsets", problem, tmp_path / "p", "fast", times=400) is not None
