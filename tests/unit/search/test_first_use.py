"""Kernels are compiled before a clock starts: once, announced in advance, and never counted by a limit."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compilations import watched

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import Interrupted
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.search import first_use
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.first_use import FirstUse, compile_kernels_once, make_first_use, make_tiny_data, start_clock
from sparsecv_mio.search.observers import COMPILING, Progress
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.targets import Loss


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is noted as compiled, beginning with nothing."""
    noted = list[str]()
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(first_use, "_is_stored", lambda purpose: purpose in noted)
    monkeypatch.setattr(first_use, "_store", noted.append)
    return noted


def test_it_is_done_once_and_announced_before(stored: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done, seen = list[str](), list[Progress]()

    def run(stop: threading.Event | None) -> None:
        assert [state.stage for state in seen] == [f"{COMPILING}: about 7 s on an idle core, not part of a time limit"]
        compile_kernels_once(needs, None)  # the tiny run asks too
        time.sleep(0.01)
        done.append("run")

    needs = FirstUse("some", 7.0, run)
    assert compile_kernels_once(needs, None, seen.append) >= 0.01 and stored == ["some"]
    assert compile_kernels_once(needs, None, seen.append) == 0.0
    monkeypatch.setattr(first_use, "_compiled", set())  # another process
    assert compile_kernels_once(needs, None, seen.append) == 0.0
    assert done == ["run"] and len(seen) == 1


def test_without_progress_it_is_a_warning(stored: list[str]) -> None:
    with pytest.warns(UserWarning, match=f"{COMPILING}: about 7 s on an idle core, not part of a time limit"):
        compile_kernels_once(FirstUse("some", 7.0, lambda stop: None), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_kernels_once(FirstUse("other", 7.0, lambda stop: None), None)
    assert stored == ["some", "other"]


def test_the_clock_starts_after_it(stored: list[str]) -> None:
    needs = FirstUse("some", 7.0, lambda stop: time.sleep(0.3))
    deadline = start_clock(SearchOptions(time_limit=10.0), None, time.monotonic() - 1.0, needs, lambda state: None)
    assert 1.0 <= deadline.seconds < 1.25
    needs = FirstUse("other", 7.0, lambda stop: time.sleep(0.3))
    assert start_clock(SearchOptions(time_limit=10.0), None, None, needs, lambda state: None).seconds < 0.25


def test_a_stop_meanwhile_leaves_no_answer(stored: list[str]) -> None:
    stop = threading.Event()
    with pytest.raises(Interrupted, match="stopped while kernels were being compiled"):
        compile_kernels_once(FirstUse("some", 7.0, lambda stop: stop.set()), stop, lambda state: None)
    assert not stored and not first_use._compiled


@pytest.mark.parametrize(
    ("how", "p", "kind"),
    [({}, 5, "few_columns"), ({}, 30, "many_columns"), ({"at_most": "1:x0,x1"}, 5, "restrictions"),
     ({"loss": "logistic"}, 5, "smooth_losses"), ({"loss": "poisson"}, 30, "smooth_losses")],
)  # fmt: skip
def test_the_question_decides_what_is_compiled(how: dict[str, Any], p: int, kind: str) -> None:
    asked = list[tuple[int, dict[str, Any]]]()

    def run(data: Dataset, folds: object, **options: Any) -> None:
        asked.append((data.p, options))

    needs = make_first_use("path", PathOptions.of(**how), make_tiny_data(20, p), run)
    assert needs.purpose == f"path_{kind}" and 0.0 < needs.seconds <= 60.0
    stop = threading.Event()
    needs.run(stop)
    assert len(asked) >= 2 and all(options["stop"] is stop for _, options in asked)
    stop.set()
    needs.run(stop)
    assert len(asked) >= 2


@pytest.mark.parametrize(("loss", "p"), [(Loss.SQUARED, 5), (Loss.SQUARED, 30), (Loss.LOGISTIC, 5), (Loss.POISSON, 30)])
def test_a_search_compiles_nothing_after_it(loss: Loss, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "_compiled", set())
    rng = np.random.default_rng(7)
    drawn = make_tiny_data(50, p, loss, 0.3)
    X = drawn.X + 0.1 * rng.standard_normal(drawn.X.shape)
    data = Dataset.from_arrays(X, drawn.y) if loss is Loss.SQUARED else drawn
    how: dict[str, Any] = {"gammas": (0.1, 1.0), "taus": (1, 2), "loss": loss}
    cross_validate(data, make_folds("5", data), **how)  # with what is to be compiled first
    best_subsets(data, **how)
    compiled = list[int]()
    with watched(lambda: compiled.append(1)):
        for spec in ("5", "loo"):
            cross_validate(data, make_folds(spec, data), **how)
        best_subsets(data, **how)
    assert not compiled
