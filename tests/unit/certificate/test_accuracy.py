"""Accuracy and AUC of predicted probabilities, with ties that rounding separates."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.certificate.accuracy import class_quality, predict_positive, rank_probabilities


def exact_auc(y: np.ndarray, log_odds: np.ndarray) -> float:
    """Return the share of pairs of a row of each class that are ordered right; ties count half."""
    above = log_odds[y > 0.0][:, None] - log_odds[y <= 0.0][None, :]
    return float(np.mean((above > 0.0) + 0.5 * (above == 0.0)))


@pytest.mark.parametrize("seed", range(20))
def test_ties_that_rounding_separates_count_half(seed: int) -> None:
    rng = np.random.default_rng(seed)
    log_odds = rng.integers(-3, 4, 40) * rng.choice([0.3, 2.0, 12.0])  # many exact ties, some near 0 and 1
    y = rng.integers(0, 2, 40).astype(float)
    rounded = log_odds * (1.0 + 1e-15 * rng.normal(size=40)) + 1e-16 * rng.normal(size=40)
    found = class_quality(y, 1.0 / (1.0 + np.exp(-rounded)))
    assert found.auc == pytest.approx(exact_auc(y, log_odds), abs=1e-12)
    assert found.accuracy == np.mean((log_odds > 0.0) == (y > 0.0))


def test_small_and_different_probabilities_are_no_ties() -> None:
    chance = np.array([1e-300, 1e-20, 2e-20, 1e-9, 0.5 - 1e-9, 0.5, 0.5 + 1e-9, 1.0 - 1e-9, 1.0 - 1e-12, 1.0])
    assert rank_probabilities(chance[::-1]).tolist() == list(range(len(chance)))[::-1]
    assert predict_positive(chance).tolist() == [False] * 6 + [True] * 4
    assert rank_probabilities(np.zeros(0)).tolist() == []
