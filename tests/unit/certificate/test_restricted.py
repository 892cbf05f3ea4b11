"""`verify` under restrictions: what is altered is found, of signs, groups and parents alike."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.chosen_folds import ChosenFolds
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.restricted import AllowedSupports
from sparsecv_mio.families import AtMost, Parents
from sparsecv_mio.restrictions import Restrictions

ASKED = Restrictions(
    at_most=(AtMost(1, ("a", "b")),), hierarchy=(Parents("ab", ("a", "b"), False),), nonnegative=("c", "d"),
)  # fmt: skip


@cache
def example() -> tuple[sc.Dataset, Record]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 4))
    X = np.column_stack([X, X[:, 0] * X[:, 1]])
    y = X @ [1.0, 0.8, -0.7, 0.5, 1.5] + rng.normal(size=40)
    data = sc.Dataset.from_arrays(X, y, names=["a", "b", "c", "d", "ab"])
    return data, sc.cross_validate(data, "4", gammas=[0.05, 0.5], taus=[1, 2, 4], gap=0.0, restrictions=ASKED)


def test_the_record_verifies() -> None:
    data, record = example()
    assert record.status == "proved" and "c" not in record.support and {"a", "b"} - set(record.support)
    report = sc.verify(record, data)
    assert report.ok and not report.caveat
    assert Record.from_json(record.to_json()) == record


@pytest.mark.parametrize(
    "asked",
    [replace(ASKED, at_most=()), replace(ASKED, nonnegative=()), replace(ASKED, nonpositive=("a",)),
     replace(ASKED, hierarchy=(Parents("ab", ("a", "b"), True),)), replace(ASKED, nonnegative=("d", "c"))],
)  # fmt: skip
def test_other_restrictions_are_not_those_of_the_search(asked: Restrictions) -> None:
    data, record = example()
    assert not sc.verify(replace(record, request=replace(record.request, restrictions=asked)), data).ok


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a", "b"), "does not keep to the restrictions"),
        (("ab", "d"), "does not keep to the restrictions"),
        (("a", "c"), "wrong sign"),
    ],
)
def test_supports_outside_of_the_family(names: tuple[str, ...], words: str) -> None:
    data, record = example()
    folds = record.chosen_folds
    forged = ChosenFolds((names, *folds.supports[1:]), folds.which, folds.error, folds.decided)
    altered = replace(record, chosen_folds=forged)
    found = [failure.message for failure in sc.verify(altered, data).failures]
    assert any(words in message for message in found), found


def test_a_lower_bound_above_the_truth_is_found() -> None:
    data, record = example()
    worst = max(range(len(record.table)), key=lambda i: record.table[i].lower)
    row = record.table[worst]
    table = list(record.table)
    table[worst] = replace(row, lower=row.lower * 1.01, upper=row.upper * 1.02, cv_error=row.cv_error * 1.01)
    assert not sc.verify(replace(record, table=tuple(table)), data).ok


def test_which_sets_count() -> None:
    allowed = AllowedSupports(("a", "b", "c", "d", "ab"), ASKED)
    assert allowed.sign.tolist() == [0, 0, 1, 1, 0]
    assert allowed.allows([0, 4]) and not allowed.allows([0, 1]) and not allowed.allows([4])
    assert allowed.holds((0, 4), 2) and not allowed.holds((4,), 3)
    by_size = allowed.up_to(2)
    assert by_size[0].tolist() == [[]] and len(by_size[1]) == 4
    assert all(allowed.holds(tuple(row), 2) for rows in by_size.values() for row in rows.tolist())
    assert allowed.signed_right([0, 2], np.array([-1.0, 1.0])) and not allowed.signed_right([2], np.array([-1.0]))


def test_paths_verify_too() -> None:
    data, _ = example()
    path = sc.best_subsets(data, gammas=[0.05], taus=[1, 2, 3, 5], restrictions=ASKED)
    assert path.status == "proved" and sc.verify(path, data).ok
    unrestricted = replace(path, request=replace(path.request, restrictions=None))
    assert not sc.verify(unrestricted, data).ok


@pytest.mark.parametrize("restrictions", [ASKED, Restrictions(force_in=("a", "b"))])
def test_sizes_that_no_model_can_have_are_named(restrictions: Restrictions) -> None:
    """Altered by the campaign of forgeries: all supports of such a size are none, which ended in a traceback."""
    data, _ = example()
    least = len(restrictions.force_in)
    record = sc.cross_validate(data, "4", gammas=[0.05], taus=[least, least + 1], restrictions=restrictions)
    below = least - 1 if least else 9
    table = (replace(record.table[0], tau=below), *record.table[1:])
    altered = [replace(record, table=table), replace(record, refit=replace(record.refit, tau=below))]
    path = sc.best_subsets(data, gammas=[0.05], taus=[least, least + 1], restrictions=restrictions)
    altered += [replace(path, path=(replace(path.path[0], tau=below), path.path[1]))]
    for one in altered:
        report = sc.verify(one, data)
        assert "request.restrictions" in [failure.field for failure in report.failures]
