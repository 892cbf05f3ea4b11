"""Side constraints in the record of a fit: as asked, and checked by `verify`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any

import numpy as np
import pytest
from altered_fields import set_fields
from rich.console import Console

from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.certificate.parts import Side
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import AtMost, CoefficientBounds, Parents, Restrictions
from sparsecv_mio.report.fit_tables import print_fit

NAMES = ("a", "b", "c", "d", "e", "f")
ALL = SideOptions(
    force_in=("b",), force_out=("f",), together=(("c", "d"),), at_most=((1, ("a", "e")),), coef_bounds="b=-0.2..0.1",
    hierarchy="e=b", nonnegative=("a",), nonpositive=("c",),
)  # fmt: skip


def made(seed: int) -> Dataset:
    rng = np.random.default_rng([71, seed])
    X = rng.normal(size=(18, 6)) * [1.0, 5.0, 1.0, 0.1, 1.0, 1.0] + rng.normal(size=6)
    y = X[:, 0] - 0.5 * X[:, 2] + 2.0 * X[:, 5] + rng.normal(size=18)
    return Dataset.from_arrays(X, y, names=NAMES)


@cache
def single(plain: bool = False) -> FitRecord:
    return fit_one(made(0), tau=4, gamma=0.3, side=None if plain else ALL, backend="highs")


def test_the_record_holds_what_was_asked_for() -> None:
    asked = Restrictions(
        ("b",), ("f",), (AtMost(1, ("a", "e")),), (Parents("e", ("b",)),), nonnegative=("a",), nonpositive=("c",),
        coef_bounds="b=-0.2..0.1",
    )  # fmt: skip
    record = single()
    assert record.side == Side(asked, (("c", "d"),))
    assert FitRecord.from_json(record.to_json()) == record
    assert single(plain=True).side == Side()
    with pytest.warns(SparseCVWarning, match="use coef_bounds"):
        asked_before = SideOptions(box={"a": (0.0, np.inf)})
    half = fit_one(made(0), tau=2, gamma=0.3, side=asked_before, backend="highs")
    assert half.side == Side(Restrictions(coef_bounds="a=0..")) and FitRecord.from_json(half.to_json()) == half
    screen = StringIO()
    print_fit(Console(file=screen, width=300), record)
    assert "models compared: with b; without f; at most 1 of a, e" in screen.getvalue()
    assert "b in [-0.2, 0.1]; c, d all or none" in screen.getvalue()


def test_a_record_from_before_the_field_reads_and_passes() -> None:
    material = json.loads(single().to_json())
    del material["side"]
    old = FitRecord.from_json(json.dumps(material))
    assert old.side is None
    report = verify(old, made(0))
    assert report.ok and report.caveat == "optimality not verified (the record does not contain the side constraints)"


def drawn(rng: np.random.Generator) -> SideOptions:
    names = rng.permutation(NAMES).tolist()
    some: dict[str, Any] = {
        "force_in": names[:1], "force_out": names[1:2], "together": [names[2:4]], "at_most": [(1, names[3:])],
        "hierarchy": {names[4]: [names[5]]}, "nonnegative": names[2:5], "nonpositive": [names[5]],
        "coef_bounds": {names[2]: (-0.5, 0.2), names[0]: (-2.0, 0.6)},
    }  # fmt: skip
    return SideOptions(**{name: value for name, value in some.items() if rng.random() < 0.5})


def check(seed: int, backend: str) -> None:
    """A fit under drawn side constraints passes; with objective and bounds raised it does not."""
    data, rng = made(seed), np.random.default_rng([72, seed])
    side, tau = drawn(rng), int(rng.integers(0, 6))
    how: dict[str, Any] = {
        "backend": backend, "scale": ("length", "variance", "none")[seed % 3], "intercept": ("fold", "none")[seed % 2]
    }  # fmt: skip
    try:
        record = fit_one(data, tau=tau, gamma=0.3, side=side, **how)
    except BadInput as error:
        assert "no support" in str(error), seed
        return
    report = verify(FitRecord.from_json(record.to_json()), data)
    assert report.ok, (seed, side, report.failures)
    assert record.status == "proved" and report.caveat == "", seed
    worse = record.objective * 1.01
    changed = replace(record, objective=worse, lower=worse, upper=worse, gap=0.0)
    failed = {failure.field for failure in verify(changed, data).failures}
    assert {"objective", "lower"} <= failed, (seed, failed)


@pytest.mark.parametrize("backend", ["native", "highs"])
def test_fits_under_side_constraints_pass(backend: str) -> None:
    for seed in range(12 if backend == "native" else 6):
        check(seed, backend)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_bounds_that_exclude_the_null_model_keep_the_allowance_of_a_solver(backend: str) -> None:
    side = SideOptions(force_in=("a",), coef_bounds="a=1e4..2e4")
    record = fit_one(made(0), tau=2, gamma=0.3, side=side, backend=backend)
    assert record.coefficients["a"] == pytest.approx(1e4) and verify(record, made(0)).ok
    doubled = verify(replace(record, allowance=2.0 * record.allowance), made(0))
    assert [failure.field for failure in doubled.failures] == ["allowance"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"restrictions.force_in": ("a",)}, "support"),
        ({"restrictions.force_out": ("b",)}, "support"),
        ({"restrictions.at_most": (AtMost(0, ("a", "b")),)}, "support"),
        ({"restrictions.hierarchy": (Parents("b", ("f",)),)}, "support"),
        ({"together": (("b", "f"),)}, "support"),
        ({"box": (CoefficientBounds("e", 50.0, None),)}, "coefficients.e"),
        ({"box": (CoefficientBounds("e", None, -50.0),)}, "coefficients.e"),
        ({"restrictions.nonpositive": (), "restrictions.nonnegative": ("c",)}, "coefficients.c"),
        ({"restrictions.force_in": ("z",)}, "side.restrictions.force_in"),
        ({"restrictions.force_out": ("z",)}, "side.restrictions.force_out"),
        ({"restrictions.at_most": (AtMost(1, ("z",)),)}, "side.restrictions.at_most"),
        ({"restrictions.hierarchy": (Parents("z", ("b",)),)}, "side.restrictions.hierarchy"),
        ({"restrictions.nonpositive": ("z",)}, "side.restrictions.nonpositive"),
        ({"together": (("a", "z"),)}, "side.together"),
        ({"box": (CoefficientBounds("z", 0.0, None),)}, "side.box"),
        ({"restrictions": None, "together": None, "box": None}, "lower"),
    ],
)
def test_an_altered_record_is_rejected(fields: dict[str, Any], named: str) -> None:
    true = single()
    assert set(true.support) == {"b", "c", "d", "e"} and true.coefficients["c"] < -0.01 and verify(true, made(0)).ok
    changed = set_fields(true, {f"side.{path}": value for path, value in fields.items()})
    assert named in [failure.field for failure in verify(changed, made(0)).failures]
