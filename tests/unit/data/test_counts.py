"""Targets of counts and their exposures: what is taken, and what is refused in a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, check_training, prepare_for_loss
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import Loss, TargetColumns
from sparsecv_mio.words import Intercept

X = np.arange(8.0)[:, None] ** np.array([1.0, 2.0])


def data(y: list[float] | None = None, days: object = None) -> Dataset:
    counts = [0.0, 1.0, 0.0, 3.0, 2.0, 0.0, 5.0, 1.0] if y is None else y
    return Dataset.from_arrays(X, counts, aux={"days": np.arange(1.0, 9.0) if days is None else days}, target="hits")


def test_exposures_go_with_their_rows() -> None:
    made = as_counts(data(), "days")
    assert made.exposure == "days" and made.row_exposure is not None
    assert made.take(np.array([4, 1])).row_exposure.tolist() == [5.0, 2.0]  # type: ignore[union-attr]
    without = weighted_rows(made, [1.0, 0.0, *([2.0] * 6)], "w")
    assert without.row_exposure.tolist() == [1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]  # type: ignore[union-attr]
    assert made.fingerprint != as_counts(data()).fingerprint == data().fingerprint
    assert as_counts(made).row_exposure is made.row_exposure is as_counts(made, "days").row_exposure and made.counts
    assert TargetColumns("days").names == ("days",) and TargetColumns().names == ()


def test_only_counts_get_exposures() -> None:
    assert prepare_for_loss(data(), Loss.SQUARED).row_exposure is None
    assert prepare_for_loss(data(), Loss.POISSON, columns=TargetColumns("days")).row_exposure is not None


@pytest.mark.parametrize(
    ("given", "exposure", "said"),
    [
        ({"y": [0.0, 1.0, 0.0, -3.0, 2.0, 0.0, 5.0, 1.0]}, None, "'hits' is -3 in row 4; loss=.poisson. needs counts"),
        ({"y": [0.0, 1.5, 0.0, 3.0, 2.0, 0.0, 5.0, 1.0]}, None, "'hits' is 1.5 in row 2; loss=.poisson. needs counts"),
        ({"y": [0.0] * 8}, None, "is 0 in every row; loss=.poisson. needs at least one count above 0"),
        ({"days": [1.0, 0.0, *([2.0] * 6)]}, "days", "column 'days' is 0 in row 2; give numbers from 1e-12"),
        ({"days": [1.0, np.inf, *([2.0] * 6)]}, "days", "column 'days' is inf in row 2; give numbers from 1e-12"),
        ({"days": ["1", "a", *"234567"]}, "days", "column 'days' is 'a' in row 2; give a number above 0, or remove"),
        ({"days": ["1", " ", *"234567"]}, "days", "column 'days' is empty in row 2; give a number above 0, or remove"),
        ({}, "x1", "'x1' is a feature; an exposure cannot be a feature or the target"),
        ({}, "hits", "'hits' is the target; an exposure cannot be a feature or the target"),
        ({}, "hours", "'hours' is not stored with these data"),
    ],
)
def test_what_is_refused(given: dict[str, object], exposure: str | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        as_counts(data(**given), exposure)  # type: ignore[arg-type]


def test_words_are_no_counts(tmp_path: Path) -> None:
    file = tmp_path / "patients.csv"
    file.write_text("age,state\n" + "".join(f"{age},{'ill' if age % 3 else 'well'}\n" for age in range(40, 52)))
    with pytest.raises(BadInput, match="^target 'state' has the text values ill and well, not counts; name another"):
        as_counts(read_dataset(file, "state", encode="onehot"))


def test_other_exposures_than_there_are() -> None:
    with pytest.raises(BadInput, match="'x0' is given, but the data already have the exposures 'days'; leave"):
        as_counts(as_counts(data(), "days"), "x0")


def test_training_rows_of_zeros_alone() -> None:
    rare = data([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    plan = make_folds("loo", rare)
    with pytest.raises(BadInput, match="rows of fold 6 of 8 all have the count 0, .*; a single row has a count above"):
        check_training(rare, plan, Intercept.FOLD, Loss.POISSON)
    early, order = data([0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 1.0, 1.0]), [0, 0, 0, 0, 1, 1, 1, 1]
    with pytest.raises(BadInput, match="rows of fold 2 of 2 all have the count 0, .*; give other folds, such as"):
        check_training(early, make_folds(order, early), Intercept.FOLD, Loss.POISSON)
    check_training(early, make_folds("stratified:5", early), Intercept.FOLD, Loss.POISSON)
    late = data([0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0])
    with pytest.raises(BadInput, match="rows of fold 1 of 3 all have the count 0, .*; give fewer folds$"):
        check_training(late, make_folds("forward:3", late), Intercept.FOLD, Loss.POISSON)
    check_training(late, make_folds("forward:2", late), Intercept.FOLD, Loss.POISSON)
    check_training(rare, plan, Intercept.NONE, Loss.POISSON)
    check_training(data(), plan, Intercept.FOLD, Loss.POISSON)
    with pytest.raises(BadInput, match="intercept global: requires squared loss"):
        check_training(data(), plan, Intercept.GLOBAL, Loss.POISSON)


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_training_rows_of_many_folds_are_not_listed(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoldPlan, "train_rows", None)  # of all folds together they take O(n^2)
    many = prepare_for_loss(data([0.0, 1.0] * 4), Loss(loss))
    for spec in ("loo", "forward:3", "2x4"):
        check_training(many, make_folds(spec, many), Intercept.FOLD, Loss(loss))
