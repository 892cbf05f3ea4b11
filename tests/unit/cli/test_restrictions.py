"""`--at-most`, `--hierarchy`, `--nonnegative`, `--nonpositive` on real data, from the command line to `verify`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_lines import changed
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run

PROSTATE, DIABETES = (str(INSTANCES / f"{name}.csv") for name in ("prostate", "diabetes"))
GRID = ["--gamma", "0.1,1", "--tau", "1:4", "--folds", "5", "--threads", "1"]


def solved(place: Path, *options: str, data: str = DIABETES, target: str = "y", code: int = 0) -> Record:
    file = place / "record.json"
    assert run(["solve", data, "--target", target, *GRID, *options, "--json", str(file)]) == code
    assert run(["verify", str(file), data]) == 0
    return Record.from_json(file.read_text())


def test_groups_and_signs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = solved(tmp_path, "--at-most", "1:bmi,s5", "--at-most", "1:s1,s2", "--nonnegative", "s3,s4", "--full")
    told = capsys.readouterr().out
    assert "models compared: at most 1 of bmi, s5; at most 1 of s1, s2; s3, s4 not below 0" in told
    assert record.status == "proved" and record.request.method_used == "algorithm1"
    assert 0 < record.work.mios <= 2 * 4 * 5 and " solved by branch and bound, " in told
    for support in (record.support, *record.chosen_folds.supports):
        assert len({"bmi", "s5"} & set(support)) <= 1
    assert all(record.coefficients.get(name, 0.0) >= 0.0 for name in ("s3", "s4"))
    free = sc.solve(DIABETES, target="y", gammas=[0.1, 1.0], taus="1:4", folds=5)
    assert {"bmi", "s5"} <= set(free.support) and free.cv_error < record.cv_error


def test_bounds_on_coefficients_from_the_command_line_to_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = solved(tmp_path, "--coef-bounds", "bmi=0..1,all=-20..20", "--model", "average", "--full")
    told = capsys.readouterr().out
    assert "models compared: bounds on the coefficients of 10 features" in told and record.status == "proved"
    assert record.coefficients.get("bmi", 0.0) <= 1.0 and max(map(abs, record.coefficients.values())) == 20.0
    assert record.average is not None and max(map(abs, record.average.model.coefficients.values())) <= 20.0
    name = next(name for name, value in record.coefficients.items() if abs(value) == 20.0)
    beyond = replace(record, coefficients=record.coefficients | {name: 20.1 * np.sign(record.coefficients[name])})
    assert f"coefficients.{name}" in {one.field for one in sc.verify(beyond, DIABETES).failures}
    loose = replace(record.request.restrictions, coef_bounds="bmi=0..1")  # type: ignore[type-var]
    other = replace(record, request=replace(record.request, restrictions=loose))
    assert not sc.verify(other, DIABETES).ok


def test_the_former_form_of_bounds_on_coefficients_is_translated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = []
    for given in (["--box", "bmi:0:1", "--box", "s5::20"], ["--coef-bounds", "bmi=0..1,s5=..20"]):
        file = tmp_path / "fit.json"
        assert run(["fit", DIABETES, "-t", "y", "--tau", "3", "--gamma", "0.1", *given, "--json", str(file)]) == 0
        records.append(json.loads(file.read_text()))
        assert ("--box is deprecated" in capsys.readouterr().err) == (given[0] == "--box")
        assert run(["verify", str(file), DIABETES]) == 0
    assert records[0]["coefficients"] == records[1]["coefficients"] and records[0]["side"] == records[1]["side"]


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (["--coef-bounds", "x0=0..0.5", "--scale-within", "folds"], 4),
        (["--coef-bounds", "kind=0..0.5"], 7),
        (["--coef-bounds", "all=-0.5..0.5", "--count", "factors"], 4),
        (["--coef-bounds", "x0=0..0.5", "--adjust", "x1"], 3),
    ],
)
def test_bounds_hold_next_to_factors_and_preprocessing_within_folds(
    options: list[str], kinds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, file = write_words(tmp_path / "words.csv"), tmp_path / "record.json"
    given = ["-t", "y", "--drop", "late", "--encode", "onehot", "--gamma", "0.1", "--folds", "4", "--tau", "1:3"]
    assert run(["solve", data, *given, *options, "--json", str(file)]) == 0
    noun = "features" if kinds == 7 else "terms"  # a factor is one term, and each of its levels is a feature
    assert f"60 rows; {kinds} {noun}" in capsys.readouterr().out
    record = Record.from_json(file.read_text())
    assert record.status == "proved" and run(["verify", str(file), data]) == 0
    assert record.request.restrictions is not None
    for name, (low, high) in record.request.restrictions.bounds.items():
        assert low <= record.coefficients.get(name, 0.0) <= high


@pytest.fixture
def products(tmp_path: Path) -> Path:
    """Four columns of the prostate data and their products, named as statisticians name them."""
    frame = sc.Dataset.from_arrays(*_prostate())
    X = frame.X[:, :4] - frame.X[:, :4].mean(axis=0)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    names = [f"x{j}" for j in range(4)] + [f"x{i}:x{j}" for i, j in pairs]
    table = np.column_stack([X, *(X[:, i] * X[:, j] for i, j in pairs), frame.y])
    place = tmp_path / "products.csv"
    np.savetxt(place, table, delimiter=",", header=",".join([*names, "y"]), comments="")
    return place


def _prostate() -> tuple[np.ndarray, np.ndarray]:
    table = np.genfromtxt(PROSTATE, delimiter=",", skip_header=1)
    table = table[:, np.isfinite(table).all(axis=0)]
    return table[:, :-1], table[:, -1]


@pytest.mark.parametrize("word", ["strong", "weak"])
def test_hierarchy_by_names(products: Path, word: str, tmp_path: Path) -> None:
    record = solved(tmp_path, "--hierarchy", word, data=str(products))
    rules = record.request.restrictions.hierarchy  # type: ignore[union-attr]
    assert len(rules) == 6 and all(one.every == (word == "strong") for one in rules)
    for support in (record.support, *record.chosen_folds.supports):
        for name in (name for name in support if ":" in name):
            count = len(set(name.split(":")) & set(support))
            assert count == 2 if word == "strong" else count >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at-most", "2"], "at-most: '2' is not K:A,B,..."),
        (["--hierarchy", "bmi"], "hierarchy: 'bmi' is not one of strong, weak"),
        (["--coef-bounds", "bmi"], "--coef-bounds: 'bmi' is not NAME=LOW..HIGH"),
        (["--coef-bounds", "bmi=1..0"], "--coef-bounds: the bounds 1 and 0 of 'bmi' are reversed"),
        (["--coef-bounds", "bmi=1e200.."], "--coef-bounds: the bound 1e+200 of 'bmi' is out of range; give 0, or a"),
        (["--coef-bounds", "bmi=..1e-320"], "--coef-bounds: the bound 9.99989e-321 of 'bmi' is out of range"),
        (["--coef-bounds", "bmi=nan..1"], "--coef-bounds: 'nan' is not a finite number"),
        (["--coef-bounds", "bmi=.."], "--coef-bounds: 'bmi' has no bound"),
        (["--coef-bounds", "bmi=0..0"], "--coef-bounds: the bounds of 'bmi' allow only 0; use force_out"),
        (["--coef-bounds", "bmi=1..2", "--nonpositive", "bmi"], "the bounds of 'bmi' allow no coefficient except 0"),
        (["--coef-bounds", "bmi=0..1,bmi=0..2"], "--coef-bounds: feature 'bmi' has bounds twice"),
        (["--coef-bounds", "nose=0..1"], "--coef-bounds: 'nose' is not a feature"),
        (["--coef-bounds", "bmi=0..1", "--adjust", "bmi"], "--adjust, --coef-bounds: column 'bmi' is in both options"),
        (["--at-most", "1:s1,s2", "--loss", "poisson"], "--at-most: requires --loss squared, not poisson"),
        (["--coef-bounds", "bmi=1..0", "--loss", "poisson"], "--coef-bounds: the bounds 1 and 0 of 'bmi' are reversed"),
        (["--coef-bounds", "bmi=0..1", "--refine"], "--coef-bounds: not supported with --refine ("),
        (["--hierarchy", "strong"], "hierarchy: no feature has the name of a product"),
        (["--nonnegative", "nose"], "--nonnegative: 'nose' is not a feature"),
        (["--nonnegative", "all", "--method", "rounds"], "nonnegative: requires --method auto, algorithm1 or grid"),
        (["--at-most", "1:s1,s2", "--refine"], "at-most: not supported with --refine ("),
        (["--hierarchy", "s1=s2", "--method", "descent"], "hierarchy: requires --method"),
        (["--hierarchy", "s1=s2", "--force-in", "s1"], "tau 1: no model of at most 1 features satisfies"),
        (
            ["--nonnegative", "s1", "--backend", "gurobi", "--formulation", "benders", "--quiet"],
            "does not support: sign",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", DIABETES, "--target", "y", *GRID, *options]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and told[0].startswith("sparsecv: error: ") and message in told[0]


def write_words(place: Path, n: int = 60, numbers: int = 3) -> str:
    """Write a table with numbers and one column of four words."""
    rng = np.random.default_rng(5)
    X, words = np.round(rng.normal(size=(n, numbers)), 3), rng.choice(["a", "b", "c", "d"], n)
    y = np.round(X[:, 0] + (words == "a") + 0.3 * rng.normal(size=n), 3)
    header = [*(f"x{j}" for j in range(numbers)), "kind", "y", "late"]
    rows = [[*x, word, value, int(value > 0)] for x, word, value in zip(X.tolist(), words, y, strict=True)]
    place.write_text("\n".join(",".join(map(str, row)) for row in (header, *rows)) + "\n")
    return str(place)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--force-in", "kind,x0", "--tau", "1:3"],
            "tau 1 is below the number of features that are forced in; use 2 to 4",
        ),
        (["--tau", "9"], "give a number from 0 to 4"),
    ],
)
def test_a_tau_that_no_count_allows_is_refused_by_the_count_of_factors(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_words(tmp_path / "t.csv")
    given = ["--target", "y", "--drop", "late", "--encode", "onehot", "--gamma", "1"]
    assert run(["solve", data, *given, *options]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and said in told[0]


@pytest.mark.parametrize(
    ("options", "together", "why"),
    [
        ([], True, "kind: all levels of a column enter a model together"),
        (["--count", "columns"], False, ""),
        (["--folds", "loo"], False, "this makes the proof faster"),
        (["--tau", "5"], False, "give a number from 0 to 4"),
        (["--method", "rounds"], False, "requires method auto, algorithm1 or grid, not rounds"),
    ],
)
def test_levels_enter_together_by_default(
    options: list[str], together: bool, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, record = write_words(tmp_path / "words.csv"), tmp_path / "record.json"
    ask = ["solve", data, "-t", "y", "--drop", "late", "--encode", "onehot", "--gamma", "0.1", "--folds", "5"]
    ask = changed(ask, options)
    assert run([*ask, "--json", str(record)]) == 0
    assert why in capsys.readouterr().err
    asked = json.loads(record.read_text())["request"]
    factors = (asked["restrictions"] or {"count": []})["count"]
    assert bool(factors) is together and asked["time_limit"] == 300.0
    assert run([*ask, "--quiet", "--time-limit", "none", "--json", str(record)]) == 0
    assert capsys.readouterr().err == "" and json.loads(record.read_text())["request"]["time_limit"] is None


def test_levels_enter_by_themselves_with_other_losses_and_many_features(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, wide = write_words(tmp_path / "words.csv"), write_words(tmp_path / "wide.csv", numbers=40)
    same = ["--encode", "onehot", "--gamma", "1", "--tau", "1", "--folds", "3"]
    assert run(["solve", data, "-t", "late", "--drop", "y", "--loss", "logistic", *same]) == 0
    assert "because --count columns is the default with --loss logistic; `solve` and `path`" in capsys.readouterr().err
    assert run(["solve", wide, "-t", "y", "--drop", "late", *same]) == 0
    expected = (
        "because this makes the proof faster with 3 folds and 44 columns; "
        "--count factors counts all levels of a column as one feature"
    )
    assert expected in capsys.readouterr().err
