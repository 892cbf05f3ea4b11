"""The weight of the instability by nested cross-validation: carried out by hand, limits, options that do not go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.stability import OuterModel
from sparsecv_mio.cli import run
from sparsecv_mio.data.nested_folds import inner_folds, outer_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.stability_weight import OUTER, WEIGHTS, tried_weights


def drawn() -> sc.Dataset:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 4))
    return sc.Dataset.from_arrays(X, X[:, 0] - 0.5 * X[:, 2] + rng.normal(size=30))


def solved(data: sc.Dataset, **given: Any) -> Record:
    return sc.solve(data, **{"folds": "5", "gammas": "0.05,1", "threads": 1, **given})


def test_it_is_what_a_search_of_every_weight_gives() -> None:
    data = drawn()
    plan = sc.make_folds("5", data)
    record, outer = solved(data, stability="nested"), outer_folds(OUTER, plan, data)
    assert record.stability is not None and record.stability.chosen is not None
    chosen = record.stability.chosen
    assert tuple(one.weight for one in chosen.tried) == WEIGHTS and chosen.proved
    for tried in chosen.tried:
        errors = []
        for fold in range(OUTER):
            training = data.take(outer.train_rows(fold))
            inner = inner_folds(plan, outer.train_rows(fold), training)
            one = sc.cross_validate(
                training, inner, gammas="0.05,1", taus=None, threads=1, stability=tried.weight
            )
            test = data.take(outer.scored_rows(fold))
            errors += ((test.y - one.predict(test)) ** 2).tolist()
        assert tried.error == pytest.approx(np.mean(errors), rel=1e-9)
    assert chosen.weight == min(chosen.tried, key=lambda one: (one.error, one.weight)).weight
    again = solved(data, stability=chosen.weight)
    assert (again.coefficients, again.support) == (record.coefficients, record.support)
    assert sc.verify(record, data).ok and Record.from_json(record.to_json()) == record


def test_the_estimator_and_nested_cross_validation_take_it() -> None:
    data = drawn()
    record = solved(data, stability=3.0, nested=3)
    model = sc.BestSubsetRidgeCV(gammas="0.05,1", cv=5, stability=3.0).fit(data.X, data.y)
    assert record.stability is not None and record.nested is not None
    pair = record.refit.tau, record.refit.gamma, record.cv_error
    assert (model.tau_, model.gamma_, model.cv_error_) == pair
    assert record.nested.optimism == pytest.approx(100.0 * (record.nested.error / record.cv_error - 1.0))
    assert sc.verify(record, data).ok


def test_weights_are_averaged_over_the_rows_of_their_folds() -> None:
    done = [[OuterModel(fold, 1.0, 1, ("a",), float(fold)) for _ in WEIGHTS] for fold in range(2)]
    assert tried_weights(done, [1.0, 3.0])[0].error == 0.75 and tried_weights([], []) == ()


def test_a_limit_keeps_an_answer() -> None:
    record = solved(drawn(), stability="nested", time_limit=1e-3)
    assert record.request.time_limit == 1e-3 and record.stability is None or record.refit.tau == record.tau


@pytest.mark.parametrize("wrong", [-1.0, "soon", float("nan"), (), 1e300, [1.0, -2.0]])
def test_what_is_no_weight_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput, match="stability"):
        SearchOptions.of(stability=wrong)


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    for other in (["--one-se"], ["--method", "descent"], ["--method", "bounds"]):
        assert run(["solve", "instances/prostate.csv", "--target", "lpsa", "--stability", "1", *other]) == 2
        assert "stability" in capsys.readouterr().err


def test_the_seconds_of_a_limit_are_counted_with_those_of_the_outer_folds() -> None:
    record = solved(drawn(), stability="nested", time_limit=0.3)
    assert record.status == "proved" or record.work.seconds >= 0.95 * 0.3


@pytest.mark.parametrize(
    "given",
    [{"nonnegative": "all", "force_in": "x1"}, {"at_most": "1:x0,x2"}, {"folds": "2x3"}, {"folds": "forward:3"}],
)
def test_restrictions_and_any_folds(given: dict[str, Any]) -> None:
    record = solved(drawn(), stability="nested", **given)
    assert record.stability is not None and record.stability.chosen is not None and record.stability.chosen.proved
    assert sc.verify(record, drawn()).failures == ()
