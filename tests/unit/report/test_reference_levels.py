"""Coefficients against a level predict as before, and what is no level is refused in one line."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_lines import changed
from matplotlib.figure import Figure
from rich.console import Console

import sparsecv_mio as sc
from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import reference_levels
from sparsecv_mio.cli import run
from sparsecv_mio.digits import format_number
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.report.coefficients import bound_lines, factor_lines, make_printer, with_reference
from sparsecv_mio.report.fit_tables import print_fit
from sparsecv_mio.report.journal_numbers import format_limits
from sparsecv_mio.report.optional_parts import print_draws
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.report.record_report import report_text

ENCODED = ["--target", "y", "--encode", "onehot", "--na", "mean"]
WHOLE = Restrictions(count="factors")  # type: ignore[arg-type]


def data() -> sc.Dataset:
    rng = np.random.default_rng(4)
    codes = rng.permutation(np.arange(30) % 3)
    X = np.column_stack([np.eye(3)[codes], np.eye(2)[rng.integers(0, 2, 30)], rng.normal(size=30)])
    names = ["city=B", "city=O", "city=T", "ward=a", "ward=b", "x"]
    return sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.3, 2.0, 0.0, 1.0] + rng.normal(size=30), names=names)


def test_deviations_sum_to_zero_by_the_weights_of_the_penalty() -> None:
    given = data()
    for scale in ("length", "none"):
        record = sc.solve(given, gammas=[0.1], taus=[3], count="factors", folds=5, scale=scale)
        length = np.sum((given.X - given.X.mean(axis=0)) ** 2, axis=0) if scale == "length" else np.ones(6)
        for columns in record.request.restrictions.count:
            total = sum(length[given.names.index(name)] * record.coefficients[name] for name in columns)
            assert total == pytest.approx(0.0, abs=1e-9)
            share = given.X.mean(axis=0)
            weights = share * (1.0 - share) if scale == "length" else np.ones(6)
            total = sum(weights[given.names.index(name)] * record.coefficients[name] for name in columns)
            assert total == pytest.approx(0.0, abs=1e-9)
        weights = "weights p (1 - p), with p the share of the rows that have the level"
        name = {"length": weights, "none": "equal weights"}[scale]
        assert f"compare each level with the mean of all levels ({name});" in factor_lines(record)[0]
    weighted = replace(given, row_weights=np.linspace(0.2, 4.0, 30), weights="w")
    record = sc.solve(weighted, gammas=[0.1], taus=[3], count="factors", folds=5)
    share = np.average(given.X, axis=0, weights=np.linspace(0.2, 4.0, 30))
    columns = [name for name in given.names if name.startswith("city")]
    total = sum((share * (1.0 - share))[given.names.index(name)] * record.coefficients[name] for name in columns)
    assert total == pytest.approx(0.0, abs=1e-9)
    assert "with p the weighted share of the rows that have the level" in factor_lines(record)[0]


def test_hazard_ratios_of_levels_state_with_what_they_compare() -> None:
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"x": rng.normal(size=60), "city": rng.choice(["B", "O", "T"], 60)})
    frame = frame.assign(years=rng.exponential(size=60).round(3) + 0.1, dead=(rng.uniform(size=60) < 0.8) * 1)
    how = {"time": "years", "event": "dead", "loss": "cox", "gammas": [0.3], "folds": 4, "encode": "onehot"}
    records = [
        sc.solve(frame, **how, **more)  # type: ignore[arg-type]
        for more in (
            {"taus": [2], "count": "factors"},
            {"taus": [4], "count": "columns"}, {"taus": [1], "count": "columns", "force_in": ["city=B"]},
        )
    ]  # fmt: skip
    columns = {"city=B": ("city=B", "city=O", "city=T")}
    records.append(with_reference(records[0], columns))
    whole, single, part, against_b = map(factor_lines, records)
    mean = "coefficients and hazard ratios of city compare each level with the mean of all levels"
    assert mean in whole[0] and mean in single[0] and "--reference city=B --count factors" in single[0]
    assert "differences from city=B, with the hazard ratio 1;" in against_b[0]
    assert "of city=B compare with the levels of city that are not in the model" in part[0]


def test_coefficients_at_a_bound_are_named() -> None:
    limits = {"x": (0.0, 0.25), "city=B": (-9.0, 9.0)}
    record = sc.solve(data(), gammas=[0.1], taus=[3], folds=5, coef_bounds=limits, force_in=["x"])
    assert bound_lines(record) == ["the coefficient of x is at a bound of --coef-bounds"]
    screen = Console(file=io.StringIO(), width=200)
    make_printer(lambda console, one: None, record)(screen)
    assert "the coefficient of x is at a bound" in screen.file.getvalue()  # type: ignore[attr-defined]
    assert bound_lines(sc.solve(data(), gammas=[0.1], taus=[3], folds=5)) == []


def test_what_is_printed_says_so() -> None:
    given = data()
    record = fit_one(given, tau=2, gamma=0.1, side=SideOptions(count="factors"))
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    asked = with_reference(record, reference_levels(["city=O"], given, WHOLE))
    make_printer(lambda screen, one: print_fit(screen, one), asked)(console)
    assert "coefficients are differences from city=O, whose effect is part of the intercept" in console.export_text()


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        (
            ["city=Z"],
            {"count": "factors"},
            "^reference: 'city=Z' is not a level of a factor that counts as one feature",
        ),
        (["city=O"], {}, "^reference: 'city=O' is not a level of a factor that counts as one feature"),
        (["city=O", "city=B"], {"count": "factors"}, "^reference: 'city=B' is a second level of 'city'"),
        (["x"], {"count": "factors", "force_out": ["x"]}, "^reference: 'x' is not a level of a factor .* the levels"),
        (
            ["city=O"],
            {"count": "factors", "force_out": ["city=B"]},
            "^reference: 'city=B' is forced out, .*; remove .city=O. from --reference .* instead of 'city=B'",
        ),
        (["city=O"], {"count": "factors", "force_out": ["city=O"]}, "^reference: 'city=O' is forced out, .*; remove"),
        (["ward=a"], {"count": [["ward=a", "x"]]}, "^reference: every row needs exactly one level of 'ward'"),
    ],
)
def test_what_is_refused(names: list[str], asked: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        reference_levels(names, data(), Restrictions(**asked))


def test_reports_and_figures_keep_to_the_reference_of_the_search(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    city = np.arange(45) % 3
    x = rng.normal(size=45)
    y = 2.0 * x + np.array([0.0, 3.0, -1.0])[city] + 0.1 * rng.normal(size=45)
    rows = "".join(f"{'abc'[c]},{u},{v}\n" for c, u, v in zip(city, x, y, strict=True))
    (tmp_path / "d.csv").write_text("city,x,y\n" + rows)
    data = [str(tmp_path / "d.csv"), "-t", "y", "--encode", "onehot", "--count", "factors", "--gamma", "0.1"]
    of_search = ["--folds", "5", "--tau", "2", "--quiet"]
    for name, asked in (("deviations", []), ("levels", ["--reference", "city=b"])):
        assert run(["solve", *data, *of_search, *asked, "--json", str(tmp_path / f"{name}.json")]) == 0
    deviations, levels = (read_record(tmp_path / f"{name}.json") for name in ("deviations", "levels"))
    assert isinstance(deviations, Record) and isinstance(levels, Record)
    assert levels.coefficients == deviations.coefficients and levels.request.reference == ("city=b",)
    stated = "Coefficients of city compare each level with the mean of all levels"
    text = report_text(deviations, "md", "RECORD", None, "DATA")
    assert stated in text and "against city=b" not in text
    assert "; `solve` with --reference city=a compares with one level" in text
    text = report_text(levels, "md", "RECORD", None, "DATA")
    assert (
        "Coefficients are differences from city=b, whose effect is part of the intercept" in text and stated not in text
    )
    assert "| city=b | 0 |" in text and f"| (intercept) | {format_number(against_b(deviations))} |" in text
    read = sc.read_dataset(tmp_path / "d.csv", "y", encode="onehot")
    assert ", 2 terms, 5 folds, " in levels.summary()
    for record, has_row in ((levels, False), (deviations, True)):  # a coefficient that is 0 throughout has no row
        ticks = record.plot_coefficients(Figure().subplots(), read).get_yticklabels()
        assert ("city=b" in [tick.get_text() for tick in ticks]) is has_row
    bars = {round(bar.get_width(), 9) for bar in levels.plot_coefficients(Figure().subplots()).patches}
    assert 0.0 in bars and round(levels.coefficients["city=a"] - levels.coefficients["city=b"], 9) in bars
    sc.verify(levels, tmp_path / "d.csv").raise_if_failed()


def test_coefficients_of_draws_are_differences_too() -> None:
    given = data()
    record = sc.solve(given, gammas=[0.1], taus=[2], count="factors", folds=5, threads=1)
    record = sc.bootstrap(record, given, draws=12, level=0.8, threads=1)
    shown = with_reference(record, reference_levels(["city=O"], given, WHOLE))
    assert shown.bootstrap is not None
    draws = [model.coefficients for model in shown.bootstrap.chosen]
    values = [one.get("city=B", 0.0) - one.get("city=O", 0.0) for one in draws]
    low, high = np.quantile(values, [0.1, 0.9])
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    make_printer(lambda screen, one: print_draws(screen, one, brief=False, full=True), shown)(console)
    texts = console.export_text(), report_text(shown, "md", "RECORD", None, "DATA")
    for text in texts:
        rows = {cells[0]: cells for line in text.splitlines() if (cells := line.replace("|", " ").split())}
        assert rows["city=B"][5:7] == [format_number(low), format_number(high)]
        without = np.mean(["city=O" not in model.support for model in shown.bootstrap.chosen])
        assert 0.0 < without < 1.0 and rows["city=O"][5:7] == ["reference", f"{without:.3f}"]
        assert "term or level" in text
    ax = shown.plot_intervals(Figure().subplots())
    marks = {tick.get_text(): mark.get_text() for tick, mark in zip(ax.get_yticklabels(), ax.texts, strict=False)}
    assert marks["city=O"] == "reference level" and marks["city=B"].endswith("% zeros")
    assert ax.get_title("left") == "80% percentiles over bootstrap draws"
    row = [tick.get_text() for tick in ax.get_yticklabels()].index("city=B")
    own = shown.coefficients["city=B"] - shown.coefficients["city=O"]
    (start, _), (end, _) = ax.collections[row].get_segments()[0]
    assert [start, end] == pytest.approx(np.array([low, high]) / max(abs(low), abs(high), abs(own)))
    assert marks["city=B"].startswith(f"{format_number(low, 3)} to {format_number(high, 3)}, ")
    scaled = shown.plot_intervals(Figure().subplots(), given)  # with the data, all rows have the same unit
    (start, _), (end, _) = scaled.collections[row].get_segments()[0]
    spread = np.std(given.X[:, given.names.index("city=B")], ddof=1)
    assert [start, end] == pytest.approx(np.array([low, high]) * spread)
    rows = {row[0]: row for row in make_publication(shown).table.rows}
    assert (
        rows["city=B"][-1] == format_limits(low, high, min(abs(own), high - low)) and rows["city=O"][1] == "reference"
    )


def against_b(record: Record) -> float:
    return record.intercept + record.coefficients["city=b"]


@pytest.mark.parametrize("reference", [("city=O", "city=B"), ("city=Z",), ("x",)])
def test_verify_rejects_an_altered_reference(reference: tuple[str, ...]) -> None:
    given = data()
    search = sc.solve(given, gammas=[0.1], taus=[2], count="factors", folds=5)
    path = sc.best_subsets(given, gammas=[0.1], taus=[2], count="factors")
    fit = fit_one(given, tau=2, gamma=0.1, side=SideOptions(count="factors"))
    for record in (search, path, fit):
        sc.verify(with_reference(record, {"city=O": ()}), given).raise_if_failed()
        altered = with_reference(record, dict.fromkeys(reference, ()))
        place = "side" if record is fit else "request"
        assert [one.field for one in sc.verify(altered, given).failures] == [f"{place}.reference"]


def test_a_model_without_the_factor_is_not_against_its_level() -> None:
    given = data()
    record = fit_one(given, tau=2, gamma=0.1, side=SideOptions(count="factors", force_out=["ward=a", "ward=b"]))
    asked = with_reference(record, {"city=O": ()})
    assert factor_lines(asked) == [
        "coefficients are differences from city=O, whose effect is part of the intercept; the record stores "
        "deviations from the mean of all levels (weights p (1 - p), with p the share of the rows that have the level)"
    ]
    without = fit_one(given, tau=1, gamma=0.1, side=SideOptions(count="factors", force_in=["x"]))
    assert factor_lines(with_reference(without, {"city=O": ()})) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("solve --model average", "requires --model pair, not average"),
        ("solve --gamma 0.1..1", "requires a grid of gammas, not the interval 0.1..1; give values or"),
    ],
)
def test_options_that_rule_out_factors_rule_out_a_reference(
    command: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text("city,x,y\n" + "".join(f"{'abc'[i % 3]},{i * i % 7},{i % 5}\n" for i in range(30)))
    name, *options = command.split()
    table = [str(tmp_path / "d.csv"), "-t", "y", "--encode", "onehot", "--gamma", "0.1", "--reference", "city=b"]
    assert run([name, *changed(table, options)]) == 2
    shown = capsys.readouterr().err
    assert f"--reference: {said}" in shown and "--count" not in shown


@pytest.mark.parametrize("command", ["solve", "path"])
def test_counts_need_the_unit_of_the_reference(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text("city,x,y\n" + "".join(f"{'abc'[i % 3]},{i * i % 7},{i % 5}\n" for i in range(30)))
    table = [str(tmp_path / "d.csv"), "-t", "y", "--loss", "poisson", "--encode", "onehot", "--gamma", "0.1"]
    assert run([command, *table, "--reference", "city=b"]) == 2
    assert "this option requires --count factors" in capsys.readouterr().err
    assert run([command, *table, "--reference", "city=b", "--count", "factors", "--quiet"]) == 0  # the named way works
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--gamma", "0.1..1"], "an interval --gamma LO..HI requires --count columns; a grid --gamma LO:HI:COUNT"),
        (
            ["--gamma", "0.1,1", "--model", "average"],
            "--model average requires --count columns; --model pair allows --count",
        ),
        (["--gamma", "0.1,1", "--folds", "loo"], "this makes the proof faster with 60 folds and 4 columns; --count"),
        (["--gamma", "0.1,1", "--loss", "poisson"], "--count columns is the default with --loss poisson; `solve`"),
        (["--gamma", "0.1,1"], ""),
    ],
)
def test_the_note_states_why_each_level_counts(
    options: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text("city,x,y\n" + "".join(f"{'abc'[i % 3]},{i * i % 7},{i % 5}\n" for i in range(60)))
    table = ["solve", str(tmp_path / "d.csv"), "-t", "y", "--encode", "onehot", "--tau", "1:2"]
    assert run([*table, *options]) == 0
    note = next(line for line in capsys.readouterr().err.splitlines() if "note: " in line and "level" in line)
    alone = f"each level of city counts as one feature in this run, because {reason}"
    assert alone in note if reason else "the column counts as one feature in --tau" in note
    table[-1] = "1"
    run([*table, *options, "--adjust", "city"])
    assert "feature in" not in capsys.readouterr().err


def test_advice_without_a_penalty_works_with_a_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(6)
    rows = zip("abc" * 12, rng.normal(size=36), rng.normal(size=36), strict=True)
    (tmp_path / "d.csv").write_text("city,x,y\n" + "".join(f"{city},{x},{y + x}\n" for city, x, y in rows))
    table = [str(tmp_path / "d.csv"), "-t", "y", "--encode", "onehot", "--gamma", "0", "--tau", "2", "-q"]
    table += ["--count", "factors"]
    for command, options in (("path", ["--at-most", "1:city,x"]), ("solve", ["--at-most", "1:city,x"]), ("fit", [])):
        assert run([command, *table, *options, "--reference", "city=b"]) == 2
        said = capsys.readouterr().err
        assert "give --force-out city=c" in said
        assert "; with --force-out or --count columns, also remove --reference" in said
        if command != "fit":  # one fit without a penalty may end without a certificate
            assert run([command, *table, "--force-out", "city=c"]) == 0
        capsys.readouterr()


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng, file = np.random.default_rng(5), tmp_path / "visits.csv"
    city, sort = rng.choice(["(missing)", "B", "O", "T"], 60), rng.choice(["k", "m", "n"], 60)
    x, z = rng.normal(size=(2, 60))
    y = x + 2.0 * (city == "O") + (sort == "m") + 0.5 * z + 0.3 * rng.normal(size=60)
    words = [["" if one == "(missing)" else one for one in city], sort, x, z, y]
    lines = [",".join(map(str, row)) for row in zip(*words, strict=True)]
    file.write_text("\n".join(["city,sort,x,z,y", *lines, ""]))
    return file


@pytest.mark.parametrize("command", ["path", "solve", "near"])
@pytest.mark.parametrize(
    ("options", "dropped"),
    [
        ([], ["city=B", "sort=k"]), (["--reference", "city=O"], ["city=O", "sort=k"]),
        (["--reference", "sort=n,city=T"], ["city=T", "sort=n"]), (["--force-in", "city"], ["city=B", "sort=k"]),
        (["--force-out", "city=T"], ["city=T", "sort=k"]), (["--at-most", "1:city,x"], []),
    ],
)  # fmt: skip
def test_without_a_penalty_no_model_has_a_reference_level(
    command: str, options: list[str], dropped: list[str], visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "near" and options[:1] in (["--at-most"], ["--reference"]):
        return
    stored, folds = str(visits.with_suffix(".json")), [] if command == "path" else ["--folds", "3"]
    given = [*ENCODED, "--gamma", "0", "--tau", "2", *folds, *options, "--json", stored]
    assert run([command, str(visits), *given]) == (0 if dropped else 2)
    if not dropped:
        said = capsys.readouterr().err
        assert "are linearly dependent; give --force-out city=T" in said and "--reference" not in said
        return
    own = ", ".join(name for name in dropped if "--force-out" not in options or name not in options)
    assert f"note: gamma is 0, so coefficients of factors are differences from {own}\n" in capsys.readouterr().err
    record: Any = read_record(stored)
    assert sorted(record.request.restrictions.force_out) == dropped
    rows = sc.read_dataset(visits, target="y", encode="onehot", na="mean")
    for model in {"path": getattr(record, "path", ()), "solve": [record], "near": ()}[command]:
        columns = rows.X[:, [rows.names.index(name) for name in model.coefficients]]
        fit, *_ = np.linalg.lstsq(np.column_stack([np.ones(60), columns]), rows.y, rcond=None)
        assert [model.intercept, *model.coefficients.values()] == pytest.approx(fit.tolist(), rel=1e-6)
    assert run(["verify", stored, str(visits)]) == 0


def test_advice_never_makes_missing_values_the_reference(visits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["path", str(visits), *ENCODED, "--gamma", "0", "--count", "columns"]) == 2
    assert "give --force-out city=T,sort=n, which removes every dependency" in capsys.readouterr().err
