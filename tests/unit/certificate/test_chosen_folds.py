"""The folds of the reported pair by column: as a sequence, as JSON, and many of them."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.certificate.chosen_folds import ChosenFold, ChosenFolds
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.errors import CorruptStore

from .examples import example


def test_a_sequence_of_folds() -> None:
    folds = ChosenFolds.of([("a", "b"), (), ("a", "b")], [1.0, 2.0, 3.0], [True, False, True])
    assert folds.supports == (("a", "b"), ()) and len(folds) == 3 and repr(folds) == "ChosenFolds(3 folds, 2 supports)"
    assert folds[1] == ChosenFold(1, (), 2.0, False) and folds[-1].support == ("a", "b")
    assert folds[:2] == [folds[0], folds[1]] and [fold.error for fold in folds] == [1.0, 2.0, 3.0]
    assert folds == ChosenFolds((("a", "b"), ()), np.array([0, 1, 0]), folds.error, folds.decided)
    assert folds != ChosenFolds.of([("a", "b"), (), ()], folds.error, [True, False, True])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"fold": 1', '"fold": 2', r"chosen_folds\[1\].fold must be 1, not 2"),
        ('"fold": 1', '"fold": -1', r"chosen_folds\[1\].fold must be an integer >= 0"),
        ('"error": 2.0', '"error": null', r"chosen_folds\[1\].error must be a number, not null"),
        ('"error": 2.0', '"error": 1e999', "out of range"),
        ('["quote', '[1, "quote', r"chosen_folds\[1\].support\[0\] must be a text, not an integer"),
    ],
)
def test_a_fold_that_is_wrong_is_named(old: str, new: str, message: str) -> None:
    head, _, folds = example().to_json().partition('"chosen_folds"')
    with pytest.raises(CorruptStore, match=message):
        Record.from_json(f'{head}"chosen_folds"{folds.replace(old, new, 1)}')


def test_many_folds_stay_small() -> None:
    k = 200_000
    folds = ChosenFolds((("a b",), ('quote"d',)), np.arange(k) % 2, np.linspace(0.0, 1.0, k), np.arange(k) % 3 > 0)
    text = example(chosen_folds=folds).to_json()
    assert Record.from_json(text).chosen_folds[k - 1] == folds[k - 1]
