"""Proofs with logistic loss: every bound encloses what finer arithmetic says, proofs hold, false ones are refused."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_proofs import Lines, read_lines, write_lines
from logistic_truth import fitted

from sparsecv_mio.check.logistic_statements import (
    LOST_UNITS,
    ONE,
    TwoClasses,
    enclosed_fit,
    entropies,
    exp_minus,
    fixed_point_log,
)
from sparsecv_mio.check.main import check
from sparsecv_mio.check.proof_file import Refused
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.proofs.proof_writing import write_proof
from sparsecv_mio.search.api import cross_validate

FINE = Context(prec=120, rounding=ROUND_HALF_EVEN)
SCALES = ("length", "variance", "none")


def whole(values: list[int]) -> Any:
    return np.array(values, dtype=object)


def drawn(rng: np.random.Generator, most: int) -> int:
    """An integer below `most`, small ones as often as large ones."""
    bits = int(rng.integers(1, most.bit_length()))
    return int.from_bytes(rng.bytes(32), "little") % (1 << bits)


def off(found: int, truth: Decimal) -> Decimal:
    return abs(FINE.subtract(Decimal(found), FINE.multiply(truth, Decimal(ONE))))


def test_exponentials_and_logarithms_are_as_near_as_they_claim() -> None:
    rng = np.random.default_rng(1)
    values = [0, 1, ONE, ONE // 256, 300 << 160, *(drawn(rng, 1 << 168) for _ in range(300))]
    for t, found in zip(values, exp_minus(whole(values)), strict=True):
        assert off(found, FINE.exp(FINE.divide(Decimal(-t), Decimal(ONE)))) < LOST_UNITS >> 4
    values = [ONE, 2 * ONE, ONE + 1, *(ONE + drawn(rng, ONE) for _ in range(300))]
    for f, found in zip(values, fixed_point_log(whole(values)), strict=True):
        assert off(found, FINE.ln(FINE.divide(Decimal(f), Decimal(ONE)))) < LOST_UNITS >> 4
    values = [0, 1, ONE - 1, ONE, ONE // 2, *(drawn(rng, ONE) for _ in range(300))]
    for u, found in zip(values, entropies(whole(values)), strict=True):
        shares = [FINE.divide(Decimal(v), Decimal(ONE)) for v in (u, ONE - u) if v]
        with localcontext(FINE):
            assert off(found, sum((-s * s.ln() for s in shares), Decimal(0))) < LOST_UNITS >> 4


def classes(seed: int, rows: int = 14, columns: int = 4) -> Dataset:
    """Two classes; columns of two values, offsets, other units, near copies; separable ones."""
    rng = np.random.default_rng([41, seed])
    X = rng.normal(size=(rows, columns)) + 0.5 * rng.normal(size=(rows, 1))
    X[:, 1] = np.arange(rows) % 2
    X *= 10.0 ** rng.integers(-3, 4, columns) if seed % 3 == 0 else 1.0
    X += 1e4 if seed % 4 == 1 else 0.0
    if seed % 5 == 2:
        X[:, 2] = X[:, 0] + 1e-6 * X[:, 2]
    y = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + rng.normal(size=rows) * (seed % 3) > 0.0
    y[:2] = True, False
    return Dataset.from_arrays(X, y.astype(float))


@pytest.mark.parametrize("seed", range(8))
def test_fits_and_what_rows_lose_by_them_are_enclosed(seed: int) -> None:
    data, scale, intercept = classes(seed), SCALES[seed % 3], ("fold", "none")[seed // 2 % 2]
    gamma = 10.0 ** (seed % 4 - 2)
    design, left = TwoClasses(data.X, data.y, scale, intercept), [3, 7, 8]
    support, kept = (0, 2, 3)[: seed % 4], np.setdiff1d(np.arange(data.n), left)
    found = enclosed_fit(design.exclude_rows(left), design.penalty(gamma), support)
    model = fitted(data.X, data.y, support, gamma, scale=scale, intercept=intercept, rows=kept)
    lower, upper = found.lower / ONE, found.upper / ONE
    assert found.upper >= found.lower and upper - lower <= 1e-20 * upper
    assert lower == pytest.approx(model.objective, rel=1e-11)
    low, high = design.losses(left, support, found)
    assert high is not None and 0 <= high - low <= 1e-8 * high
    held = float(model.losses(data.X[left], data.y[left]).sum())
    assert held == pytest.approx(low / ONE, rel=1e-6)


def made(what: str, seed: int, place: Path) -> tuple[Dataset, Lines]:
    """Write a proof of a small problem, and return its lines."""
    data = classes(seed)
    how: dict[str, Any] = {"scale": SCALES[seed % 3], "intercept": ("fold", "none")[seed // 3 % 2], "loss": "logistic"}
    how |= {"gammas": [0.03, 0.3, 3.0][: 1 + seed % 3], "taus": range(seed % 2, 5), "threads": 1}
    if what == "path":
        write_proof(best_subsets(data, **how), data, place)
        return data, read_lines(place)
    plan = make_folds(("loo", "3", "2x3", "holdout:0.4")[seed % 4], data, seed)
    record = cross_validate(data, plan, gap=(0.0, 1e-4)[seed % 2], **how)
    write_proof(record, data, place, plan)
    lines = read_lines(place)
    claim, known = lines[-1], record.certificate
    assert known.lower * (1.0 - 1e-6) <= claim["lower"] and claim["upper"] <= known.upper * (1.0 + 1e-6)
    return data, lines


def refusal(lines: Lines, data: Dataset, place: Path) -> str:
    write_lines(place, lines)
    with pytest.raises(Refused) as found:
        check(str(place), data.X, data.y)
    return str(found.value)


def test_what_logistic_loss_does_not_have_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, _ = made("solve", 4, place)
    for change, reason in (
        (lambda some: some[0].update(loss="poisson"), "the loss 'poisson' is unknown"),
        (lambda some: some[0].pop("loss"), "malformed: KeyError 'loss'"),
        (lambda some: some[0].update(intercept="global"), "logistic loss requires 'fold' or 'none'"),
        (
            lambda some: of(some, "tree").update(part={"blocks": [], "exponent": 0, "entries": []}),
            "the field `part` of a tree is not supported",
        ),
        (lambda some: of(some, "pair")["parts"].append({"by": "list", "tree": 0}), "requires squared-error loss"),
        (lambda some: of(some, "tree").update(nodes=[-1], points=[]), "has no dual point"),
        (lambda some: some[0]["left"][0].extend(np.flatnonzero(data.y > 0).tolist()), ""),
    ):
        forged = read_lines(place)
        change(forged)
        assert reason in refusal(forged, data, tmp_path / "q")


def of(lines: Lines, kind: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("kind") == kind)


def test_training_rows_of_one_class_have_no_fit() -> None:
    data = classes(4)
    design = TwoClasses(data.X, data.y, "length", "fold")
    with pytest.raises(Refused, match="one class"):
        design.exclude_rows(np.flatnonzero(data.y > 0).tolist())
    with pytest.raises(Refused, match="0 and 1"):
        TwoClasses(data.X, data.y + 1.0, "length", "fold")


@pytest.mark.parametrize("point", [[999, [0], [2**53 - 1]], [900, [0, 1], [-(2**53), 1]], [-1000, [], []]])
def test_points_out_of_all_range_prove_nothing(point: list[Any], tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, lines = made("path", 4, place)
    tree = next(line for line in lines if line.get("points"))
    tree["points"] = [point] * len(tree["points"])
    tree["listed"] = []
    refusal(lines, data, place)
