"""Best subsets, single fits and backends on the screen: one line a size, criteria beside them, no number cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.cli import run
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.backends import BACKENDS
from sparsecv_mio.report.fit_tables import describe_backends, print_backends, print_fit, print_path

from .printing import WIDTHS, check, data, numbers, printed

PROSTATE = str(INSTANCES / "prostate.csv")


def test_no_number_is_cut(path: PathRecord) -> None:
    for full in (False, True):
        check(lambda console, full=full: print_path(console, path, full=full))
        wide = set(numbers(printed(lambda console, full=full: print_path(console, path, data(), full=full), 300)))
        for width in WIDTHS:  # a row by itself has the heads again, R^2 for one
            text = printed(lambda console, full=full: print_path(console, path, data(), full=full), width)
            assert set(numbers(text)) == wide and max(map(len, text.splitlines())) <= width


def test_a_size_is_a_line_and_a_gamma_has_models() -> None:
    rows = sc.read_dataset(PROSTATE, "lpsa")
    record = sc.best_subsets(rows, gammas=[0.01, 0.1, 1.0], taus=range(1, 5))
    lines = printed(lambda console: print_path(console, record, rows), 200).splitlines()
    assert "best subsets on all rows, gamma = 0.01 (ridge weight, the smallest of 3)" in lines
    sizes = [line.split() for line in lines if line.strip()[:1].isdigit() and "best subsets;" not in line]
    by_tau = {int(cells[0]): cells for cells in sizes}
    assert list(by_tau) == [1, 2, 3, 4] and all(line[6] == "3/3" for line in by_tau.values())
    assert by_tau[2][5] == "0.1" and by_tau[3][5] == "1" and by_tau[2][7:] == ["lcavol,", "lweight"]
    assert any(line.startswith("best tau by adjusted R^2: 4, by Cp: 4, by BIC: 3 (") for line in lines)
    assert "tau = 4 is the largest compared; larger models may be better" in lines
    full = printed(lambda console: print_path(console, record, rows, full=True), 200)
    assert full.count("best subsets on all rows, gamma = ") == 3 and "+0.6" in full and "up to gamma" not in full


def test_no_ridge_weight_is_called_zero(capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["path", PROSTATE, "-t", "lpsa", "--tau", "1:2", "--gamma"]
    assert run([*ask, "0"]) == 0
    said = capsys.readouterr().out
    assert "gamma = 0 (ridge weight)" in said and "R^2" in said and "1e-300" not in said
    assert run(["path", str(INSTANCES / "servo.csv"), "-t", "class", "--gamma", "0", "-q"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sparsecv: error: --gamma 0: on all rows, columns ") and error.count("\n") == 1


def test_no_size_is_chosen_by_a_residual_that_is_rounding_error() -> None:
    rows = sc.Dataset.from_arrays(X := [[a % 7, a % 5, a % 3] for a in range(30)], [0.1 * x[0] - 0.3 * x[2] for x in X])
    lines = printed(lambda console: print_path(console, sc.best_subsets(rows, gammas=[0.0]), rows), 200).splitlines()
    sizes = [line.split() for line in lines if line.strip()[:1].isdigit() and "best subsets;" not in line]
    assert [cells[3] for cells in sizes] == ["?"] * 3
    assert any(line.startswith("best tau by adjusted R^2: 2 (") for line in lines)
    assert any(line.startswith("?: undefined, because the residual consists of rounding errors") for line in lines)


def test_a_whole_factor_has_a_degree_of_freedom_less_than_levels() -> None:
    levels, a = np.arange(24) % 3, np.random.default_rng(0).normal(size=24)
    X = np.column_stack([a, np.eye(3)[levels]])
    rows = sc.Dataset.from_arrays(X, a + levels + np.sin(np.arange(24)), names=["a", "f=u", "f=v", "f=w"])
    for intercept in ("fold", "none"):
        record = sc.best_subsets(rows, gammas=[0.1], taus=[1, 2], count="factors", intercept=intercept)
        text = printed(lambda console, record=record: print_path(console, record, rows), 200)
        assert "(degrees of freedom: rank of the model matrix; exact only for gamma = 0)" in text


@pytest.fixture(scope="module")
def fit() -> FitRecord:
    return fit_one(data(), tau=2, gamma=0.1)


def test_every_backend_has_its_row() -> None:
    rows = describe_backends()
    assert [row["name"] for row in rows] == list(BACKENDS)
    broken = {**rows[0], "usable": False, "why": "numba is not installed", "hint": "pip install numba"}
    text = printed(lambda console: print_backends(console, [broken]), 200)
    assert "numba is not installed. pip install numba" in text and "no" in text.split()


def test_a_fit_says_what_is_proved_and_cuts_no_number(fit: FitRecord) -> None:
    check(lambda console: print_fit(console, fit))
    text = printed(lambda console: print_fit(console, fit), 200)
    assert text.startswith("certified best subset: tau = 2 features")
    assert "minimum objective: in [" in text and "(certified, relative gap " in text and "work: native" in text
    brief = printed(lambda console: print_fit(console, fit, brief=True), 200)
    assert "work:" not in brief and "(intercept)" in brief


def test_an_allowance_is_explained(fit: FitRecord) -> None:
    for allowance, said in ((0.0, False), (0.5, True)):
        other = replace(fit, allowance=allowance)
        text = printed(lambda console: print_fit(console, other), 200)  # noqa: B023
        assert ("below that of the trees, to cover the rounding errors" in text) is said
        text = printed(lambda console: print_fit(console, replace(other, backend="scip")), 200)  # noqa: B023
        assert ("below that of the solver, to cover the tolerances of the solver" in text) is said


def test_the_gap_that_a_solver_leaves_is_explained() -> None:
    record = fit_one(data(), tau=2, gamma=0.1)
    size = record.upper
    wide = replace(record, backend="highs", gap=2e-4, requested_gap=1e-6, allowance=3.4e-4 * size)
    lines = printed(lambda console: print_fit(console, wide), 200).splitlines()
    assert lines[0].startswith("certified best subset") and lines[3].startswith(
        "the gap exceeds --gap 1e-06 because of the tolerances of highs, by at most 0.034% of the objective; "
    )
    assert "the gap exceeds" not in printed(lambda console: print_fit(console, record), 200)
    unused = "OPTIMAL; its lower bound is not used, because columns are too collinear for this gamma"
    left = replace(wide, status="limit", stop="gap", raw_status=unused)
    text = printed(lambda console: print_fit(console, left), 200)
    assert "(tolerances of the solver or ties leave a gap; not certified)" in text and "limit reached" not in text
    assert "below that of the solver" not in text and "\n--backend native may close the gap\n" in text
    text = printed(lambda console: print_fit(console, replace(left, backend="native")), 200)
    assert "\na larger --gamma may close the gap\n" in text and "(rounding errors or ties leave a gap" in text
    text = printed(lambda console: print_fit(console, replace(wide, backend="native")), 200)
    assert "because of rounding errors, by at most " in text and "tolerances" not in text
