"""Coefficients against a level predict as before, and what is no level is refused in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rich.console import Console

import sparsecv_mio as sc
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.report.backend_tables import print_fit
from sparsecv_mio.report.reference_levels import against, printed, reference_levels

WHOLE = Restrictions(count="factors")  # type: ignore[arg-type]


def data() -> sc.Dataset:
    rng = np.random.default_rng(4)
    codes = rng.permutation(np.arange(30) % 3)
    X = np.column_stack([np.eye(3)[codes], np.eye(2)[rng.integers(0, 2, 30)], rng.normal(size=30)])
    names = ["city=B", "city=O", "city=T", "ward=a", "ward=b", "x"]
    return sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.3, 2.0, 0.0, 1.0] + rng.normal(size=30), names=names)


def predicted(model: Any, given: sc.Dataset) -> np.ndarray:
    place = [given.names.index(name) for name in model.coefficients]
    return given.X[:, place] @ np.array(list(model.coefficients.values())) + model.intercept


def test_predictions_stay_and_the_level_is_at_0() -> None:
    given = data()
    levels = reference_levels(["city=O", "ward=b"], given, WHOLE)
    record = sc.solve(given, gammas=[0.1], taus=[3], count="factors", folds=5)
    path = sc.best_subsets(given, gammas=[0.1], count="factors")
    for before, after in [(record, against(record, levels)), *zip(path.path, against(path, levels).path, strict=True)]:
        assert predicted(after, given) == pytest.approx(predicted(before, given))
        assert all(after.coefficients[name] == 0.0 for name in levels if name in after.coefficients)
        assert after.coefficients.get("x") == before.coefficients.get("x")
    assert against(record, levels).coefficients["city=B"] == pytest.approx(
        record.coefficients["city=B"] - record.coefficients["city=O"]
    )
    assert against(record, {}) is record


def test_deviations_sum_to_zero_by_the_weights_of_the_penalty() -> None:
    given = data()
    for scale in ("length", "none"):
        record = sc.solve(given, gammas=[0.1], taus=[3], count="factors", folds=5, scale=scale)
        length = np.sum((given.X - given.X.mean(axis=0)) ** 2, axis=0) if scale == "length" else np.ones(6)
        for columns in record.request.restrictions.count:
            total = sum(length[given.names.index(name)] * record.coefficients[name] for name in columns)
            assert total == pytest.approx(0.0, abs=1e-9)


def test_what_is_printed_says_so() -> None:
    given = data()
    record = fit_one(given, tau=2, gamma=0.1, side=SideOptions(count="factors"))
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    printed(lambda screen, one: print_fit(screen, one), record, reference_levels(["city=O"], given, WHOLE))(console)
    assert "coefficients against city=O, whose effect the intercept has" in console.export_text()


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        (["city=Z"], {"count": "factors"}, "^reference: 'city=Z' is no level of a factor that is whole"),
        (["city=O"], {}, "^reference: 'city=O' is no level of a factor that is whole"),
        (["city=O", "city=B"], {"count": "factors"}, "^reference: 'city=B' is the second level of 'city'"),
        (["city=O"], {"count": "factors", "force_out": ["city=B"]}, "^reference: rows without a level of 'city'"),
        (["ward=a"], {"count": [["ward=a", "x"]]}, "^reference: rows without a level of 'ward'"),
    ],
)
def test_what_is_refused(names: list[str], asked: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        reference_levels(names, data(), Restrictions(**asked))
