"""The question that a record answers gives the same answer again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.inference.choices import DrawOptions, question_of_record
from sparsecv_mio.search.api import answer

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 5))
Y = {
    "squared": X[:, 0] + RNG.normal(size=60),
    "logistic": np.where(X[:, 0] + RNG.normal(size=60) > 0.0, "yes", "no"),
    "poisson": RNG.poisson(np.exp(0.5 * X[:, 1])).astype(float),
}


@pytest.mark.parametrize(
    "loss, asked",
    [
        ("squared", {"folds": "5", "one_se": True}),
        ("squared", {"folds": "groups:g:4", "weights": "w", "adjust": "x4"}),
        ("squared", {"folds": "4", "stability": 0.1, "force_in": "x1"}),
        ("logistic", {"folds": "4", "seed": 3, "class_weight": "balanced", "positive": "no"}),
        ("poisson", {"folds": "3", "exposure": "w"}),
    ],
)
def test_the_question_of_a_record_gives_the_same_answer(loss: str, asked: dict[str, Any]) -> None:
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)]).assign(y=Y[loss])
    frame["g"], frame["w"] = np.arange(60) // 3, 1.0 + np.arange(60) % 4
    gammas = [0.1, 1.0] if loss == "squared" else [0.01, 0.1]
    drop = [name for name in "gw" if name not in " ".join(map(str, asked.values()))]
    record = sc.solve(frame, "y", loss=loss, gammas=gammas, taus=[1, 2], drop=drop, threads=1, **asked)
    question = question_of_record(record, frame, "infer", options=DrawOptions(threads=1))
    again = answer(question)
    assert replace(again, work=record.work, warnings=record.warnings, request=record.request) == record


def test_other_data_and_folds_are_refused() -> None:
    data = Dataset.from_arrays(X, Y["squared"])
    record = sc.cross_validate(data, "5", gammas=[0.1], taus=[1])
    with pytest.raises(BadInput, match="infer: these are not the data"):
        question_of_record(record, Dataset.from_arrays(X + 1.0, Y["squared"]), "infer")
    with pytest.raises(BadInput, match="infer: these are not the folds"):
        question_of_record(record, data, "infer", folds="4")
    interval = sc.cross_validate(data, "5", gammas="0.1..1", taus=[1])
    with pytest.raises(BadInput, match="infer: requires a grid"):
        question_of_record(interval, data, "infer")
    with pytest.raises(BadInput, match="infer: PathRecord is not a record of `solve`; .* `read_record` for a"):
        question_of_record(sc.best_subsets(data, gammas=[0.1], taus=[1]), data, "infer")  # type: ignore[arg-type]
