"""`cross_validate` as it is called from Python."""

from __future__ import annotations

import inspect
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.problem.objective import brute_force_cv_error
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.options import SearchOptions


@pytest.fixture(scope="module")
def asked() -> tuple[Dataset, FoldPlan]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 4))
    data = Dataset.from_arrays(X, 2.0 * X[:, 1] - X[:, 3] + rng.normal(size=20))
    return data, make_folds("4", data)


def test_there_are_at_most_eight_parameters() -> None:
    assert len(inspect.signature(cross_validate).parameters) <= 8


@pytest.mark.parametrize("method", ["auto", "rounds", "joint", "algorithm1", "grid"])
@pytest.mark.parametrize(("scale", "intercept"), [("length", "fold"), ("none", "none"), ("variance", "global")])
def test_the_answer_is_the_least_of_the_grid(
    asked: tuple[Dataset, FoldPlan], method: str, scale: str, intercept: str
) -> None:
    data, folds = asked
    options = SearchOptions.of(method=method, scale=scale, intercept=intercept, gap=0.0)
    record = cross_validate(data, folds, gammas=[1.0, 0.1], taus=[2, 0, 1], options=options)
    h = {
        (gamma, tau): brute_force_cv_error(
            data.X, data.y, folds.labels, tau, gamma, scale=scale, intercept=intercept
        )[1]
        for gamma in (0.1, 1.0) for tau in range(3)
    }  # fmt: skip
    assert (record.gamma, record.tau) == min(h, key=lambda pair: h[pair]) and record.status == "proved"
    assert record.cv_error == pytest.approx(min(h.values()), rel=1e-9)


def test_objects_and_keywords_ask_for_the_same(asked: tuple[Dataset, FoldPlan]) -> None:
    data, folds = asked
    seen: list[Progress] = []
    options = SearchOptions.of(method="rounds", gap=0.0, threads=1)
    one = cross_validate(
        data, folds, gammas=[0.1], taus=[1, 2], options=options, hooks=Hooks(progress=seen.append)
    )
    two = cross_validate(data, folds, gammas=[0.1], taus=[1, 2], method="ROUNDS", gap=0, threads=1)
    assert one.table == two.table and one.request == two.request and seen
    assert cross_validate(data, folds, gammas=[0.1], taus=[1], options=options, gap=0.5).request.gap == 0.5


def test_the_record_holds_what_was_asked(asked: tuple[Dataset, FoldPlan]) -> None:
    request = cross_validate(*asked, gammas=[0.1, 1.0], taus=[1, 2]).request
    assert (request.method, request.method_used, request.backend) == ("auto", "joint", "native")
    assert (request.engine, request.tau_step, request.refine) == ("auto", "auto", False)
    assert request.formulation is request.mio_budget is request.oracles is None
    one = {"method": "joint", "backend": "highs", "formulation": "OUTER", "mio_budget": 0, "oracles": "none"}
    request = cross_validate(*asked, gammas=[0.1], taus=[1], **one).request  # type: ignore[arg-type]
    assert (request.method, request.method_used, request.backend) == ("joint", "joint", "highs")
    assert (request.formulation, request.mio_budget, request.oracles) == ("outer", 0, ())
    request = cross_validate(*asked, gammas=[0.1], taus=[1], method="descent", tau_step="saddle").request
    assert (request.method, request.method_used, request.tau_step) == ("descent", "descent", "saddle")
    cut = cross_validate(*asked, gammas=[0.1], taus=[1], engine="shared", time_limit=1e-9, refine=True).request
    assert (cut.method, cut.method_used, cut.engine, cut.refine) == ("auto", "rounds", "shared", True)


def test_what_is_refused(asked: tuple[Dataset, FoldPlan]) -> None:
    data, folds = asked
    with pytest.raises(TypeError, match=r"cross_validate\(\) got an unexpected keyword argument 'metod'"):
        cross_validate(data, folds, gammas=[1.0], taus=[1], metod="rounds")  # type: ignore[call-arg]
    with pytest.raises(BadInput, match="^refine: goes with method"):
        cross_validate(data, folds, gammas=[1.0], taus=[1], method="descent", refine=True)
    with pytest.raises(BadInput, match="tau 5 is out of range"):
        cross_validate(data, folds, gammas=[1.0], taus=[5])
    with pytest.raises(BadInput, match="for 20 rows, the data have 3"):
        cross_validate(Dataset.from_arrays(np.eye(3), np.arange(3.0)), folds, gammas=[1.0], taus=[1])


def test_a_stop_ends_the_search_with_an_answer(asked: tuple[Dataset, FoldPlan]) -> None:
    stop = threading.Event()
    stop.set()
    record = cross_validate(*asked, gammas=[0.1, 1.0], taus=[1, 2], hooks=Hooks(stop=stop))
    assert record.status in ("interrupted", "proved") and record.lower <= record.cv_error <= record.upper


def test_a_lost_file_is_a_warning_or_a_call(
    asked: tuple[Dataset, FoldPlan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise BadInput("the disk is full")

    monkeypatch.setattr("sparsecv_mio.search.observers.checkpoint.write_bytes", full)
    path, lost = tmp_path / "run.ck", list[SparseCVError]()
    with pytest.warns(UserWarning, match="the disk is full"):
        cross_validate(*asked, gammas=[0.1], taus=[1], checkpoint=path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = cross_validate(*asked, gammas=[0.1], taus=[1], checkpoint=path, lost=lost.append)
    assert record.status == "proved" and [str(error) for error in lost] == ["the disk is full"]
