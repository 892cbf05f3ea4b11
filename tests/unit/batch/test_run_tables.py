"""Collected runs: selection, ratios to a baseline, labels; tables and figures of runs in the formats of papers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from sparsecv_mio.batch.run_figures import (
    add_pooling_note,
    distinguishing_settings,
    lines,
    performance_ratios,
    profiles,
)
from sparsecv_mio.batch.run_tables import (
    TableCells,
    check_columns,
    csv,
    labels,
    latex,
    markdown,
    optimum_kind,
    read_table,
    relative,
    summarise,
    tabulate_problems,
    where,
    with_overall,
    write_table,
)
from sparsecv_mio.errors import BadInput

RUNS = pd.DataFrame(
    {
        "data": ["b_1"] * 5 + ["a"] * 4,
        "by": ["x", "x", "y", "y", "y", "x", "x", "y", "y"],
        "test_error": [1.0, 3.0, 1.0, 1.5, np.nan, 4.0, 4.0, np.nan, np.nan],
        "tau": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    }
)


def cells(*values: str, aggregate: str = "mean-se") -> TableCells:
    return summarise(RUNS, RUNS["data"], RUNS["by"], values, aggregate)


def test_means_errors_and_counts() -> None:
    found = cells("test_error", "tau")
    assert list(found.centre.index) == ["b_1", "a"]  # in the order of the runs
    assert found.centre.loc["b_1", ("x", "test_error")] == 2.0
    assert found.spread.loc["b_1", ("x", "test_error")] == pytest.approx(1.0)
    assert found.count.loc["b_1", ("y", "test_error")] == 2 and np.isnan(found.centre.loc["a", ("y", "test_error")])
    assert cells("tau", aggregate="sum").centre.loc["a", ("y", "tau")] == 17.0
    assert cells("tau", aggregate="median").spread.isna().to_numpy().all()
    assert np.isnan(cells("test_error", aggregate="sum").centre.loc["a", ("y", "test_error")])


def test_markdown() -> None:
    lines = markdown(cells("test_error")).splitlines()
    assert [part.strip() for part in lines[0].split("|")[1:-1]] == ["", "x", "y"]
    assert [part.strip() for part in lines[2].split("|")[1:-1]] == ["b_1", "2.000 ± 1.000", "**1.250** ± 0.250"]
    assert [part.strip() for part in lines[3].split("|")[1:-1]] == ["a", "4.000 ± 0.000", "-"]
    assert len({len(line) for line in lines[:4]}) == 1
    assert " 17 |" in markdown(cells("tau", aggregate="sum"))  # whole numbers have no decimals
    both = markdown(cells("test_error", "tau"))
    assert "x test_error" in both and "**" not in both.splitlines()[3].split("|")[3]


def test_a_cell_of_fewer_runs_says_so() -> None:
    text = markdown(summarise(RUNS[:5], RUNS["data"][:5], RUNS["by"][:5], ("test_error",)))
    assert "fewer" not in text  # two of each are known
    text = markdown(summarise(RUNS[1:5], RUNS["data"][1:5], RUNS["by"][1:5], ("test_error",)))
    assert "3.000*" in text and "fewer runs" in text


def test_what_errors_are_means_of_is_said() -> None:
    runs = pd.DataFrame(
        {
            "data": ["a"] * 4, "estimator": ["sparsecv", "lasso", "iacv", "ridge"], "cv_error": [0.4, 0.5, 0.6, 0.7],
            "loss": ["logistic", "logistic", "logistic", "poisson"], "test_auc": [0.7, 0.8, np.nan, np.nan],
        }
    )  # fmt: skip
    notes = [
        markdown(summarise(part, part["data"], part["estimator"], ("cv_error", "test_auc")))
        for part in (runs, runs[2:3], runs.assign(loss=None))
    ]
    assert "cv_error with loss logistic: mean log loss" in notes[0]
    assert "cv_error with loss poisson: mean half deviance" in notes[0] and "test_error" not in notes[0]
    assert "with loss" not in notes[1] and "with loss" not in notes[2]


def test_a_missing_number_is_accounted_for() -> None:
    runs = pd.DataFrame(
        {
            "data": ["a"] * 4,
            "estimator": ["lasso", "omp", "abess", "mcp"],
            "state": ["done", "done", "limit", "failed"],
            "cv_error": [2.0, np.nan, np.nan, np.nan],
            "tau": [1.0, 2.0, 3.0, np.nan],
        }
    )
    found = summarise(runs, runs["data"], runs["estimator"], ("cv_error", "tau"))
    assert found.notes == ("-: every run of mcp failed", "-: omp, abess report no cv_error")
    assert "-: omp, abess report no cv_error" in markdown(found)
    none = summarise(runs[1:3], runs["data"][1:3], runs["estimator"][1:3], ("cv_error",))
    assert none.notes == ()  # nobody has that number


def test_latex_and_csv() -> None:
    text = latex(cells("test_error", "tau"))
    assert text.count(r"\\") == 4 and r"\multicolumn{2}{c}{x}" in text and r"b\_1" in text and r"\textbf{1.250}" in text
    table = pd.read_csv(io.StringIO(csv(cells("test_error"))), index_col=0)
    assert table.loc["b_1", "y test_error"] == 1.25 and table.loc["b_1", "y test_error runs"] == 2
    assert table.loc["b_1", "y test_error standard error"] == pytest.approx(0.25)


def test_the_row_of_all() -> None:
    found = with_overall(cells("tau"))
    assert found.centre.loc["mean", ("x", "tau")] == pytest.approx((1.5 + 6.5) / 2)
    ratio = with_overall(cells("test_error"), geometric=True)
    assert ratio.centre.loc["geometric mean", ("x", "test_error")] == pytest.approx(np.sqrt(8.0))
    assert np.isnan(ratio.centre.loc["geometric mean", ("y", "test_error")])  # not of the same rows
    assert optimum_kind("seconds") == optimum_kind("cv_error") == "min" and optimum_kind("seconds", "max") == "max"


def test_errors_on_test_rows_vary_with_the_test_rows_alone() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"split": np.repeat([0, 1, 2], 4), "seed": np.tile([0, 1, 2, 3], 3), "data": "a"})
    frame["fingerprint"] = frame["split"].map("sha256:{}".format)
    frame["test_error"] = frame["split"] * 10.0 + rng.normal(size=12)
    frame["cv_error"] = rng.normal(size=12)

    def table(some: pd.DataFrame) -> TableCells:
        label = pd.Series("x", index=some.index)
        return summarise(some, some["data"], label, ("test_error", "cv_error"))

    several, one = table(frame), table(frame[frame["split"] == 1])
    assert several.spread.loc["a", ("x", "test_error")] == pytest.approx(
        frame.groupby("split")["test_error"].mean().std() / np.sqrt(3.0)
    )
    assert several.spread.loc["a", ("x", "cv_error")] == pytest.approx(frame["cv_error"].sem())
    assert np.isnan(one.spread.loc["a", ("x", "test_error")]) and one.count.loc["a", ("x", "test_error")] == 4
    assert "differ in split, seed (errors on test rows: over test sets)" in markdown(several)
    text = markdown(one)
    assert (
        text.splitlines()[2].count("±") == 1
        and "test_error: no standard error (±), because all runs have the same test set" in text
    )
    assert "differ in seed\n" in text and r"% $\pm$: standard error" in latex(one)


TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0, 0.0], "b": [2.0, 1.0, np.nan, 5.0]}, index=list("wxyz"))
RUNS_RESULTS_PLOTS = pd.DataFrame(
    {"snr": [0.05, 0.05, 6.0, 6.0], "lower": [1.0, 3.0, 4.0, 4.0], "upper": [5.0, 6.0, 7.0, 2.0]}, index=[3, 5, 7, 9]
)
BY = pd.Series(["ours", "ours", "ours", "lasso"], index=RUNS_RESULTS_PLOTS.index)


def test_ratios_to_the_best() -> None:
    found = performance_ratios(TABLE)
    assert found["a"].tolist() == [1.0, 2.0, 1.0, np.inf] and found["b"].tolist() == [2.0, 1.0, np.inf, 1.0]


def test_profiles_end_at_the_share_that_was_solved() -> None:
    figure = profiles({"one": TABLE, "two": TABLE[["b"]]}, "seconds")
    steps = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    assert steps["a"][-1] == 0.75 and steps["a"].tolist()[1:3] == [0.25, 0.5]
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one (4 problems)", "two (4 problems)"]


def test_lines_have_the_means() -> None:
    figure = lines({"": RUNS_RESULTS_PLOTS}, ["lower", "upper"], BY, "snr")
    ax = figure.axes[0]
    found = {text: container for container, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(found)
    assert list(found) == ["ours lower", "lasso lower", "ours upper", "lasso upper"]
    assert found["ours lower"].lines[0].get_ydata().tolist() == [2.0, 4.0]
    assert ax.get_xscale() == "log" and len(lines({"": RUNS_RESULTS_PLOTS}, ["lower"], BY, "snr").axes) == 1


PLANNED = pd.DataFrame(
    {
        "data": [data for data in "ab" for _ in range(8)],
        "folds": ["5"] * 16,
        "seed": [0, 0, 0, 0, 1, 1, 1, 1] * 2,
        "estimator": ["sparsecv"] * 16,
        "method": ["joint", "grid"] * 8,
        "gap": [0.0, 0.0, 0.1, 0.1] * 4,
        "state": ["done"] * 16,
        "seconds": np.arange(16.0),
    }
)


@pytest.mark.parametrize("aggregate", ["mean-se", "mean", "median"])
def test_settings_that_a_cell_takes_together_are_named(aggregate: str) -> None:
    found = summarise(PLANNED, PLANNED["data"], PLANNED["estimator"], ("seconds",), aggregate)
    seeds = "" if aggregate == "mean-se" else "seed (2 values), "
    assert (
        f"differ in {seeds}method (2{'' if seeds else ' values'}), gap (2); name these settings in --rows"
        in found.notes[-1]
    )
    apart = PLANNED["method"].str.cat(PLANNED["gap"].astype(str), sep=" ")
    assert not any("method" in note for note in summarise(PLANNED, PLANNED["data"], apart, ("seconds",)).notes)


def test_estimates_and_runs_at_a_limit_are_marked(tmp_path: Path) -> None:
    runs = pd.DataFrame(
        {
            "data": ["a", "a", "b", "a", "b"],
            "estimator": ["sparsecv"] * 3 + ["lasso"] * 2,
            "state": "done",
            "status": ["limit", "proved", "limit", None, None],
            "estimate": [True, False, False, None, None],
            "cv_error": [1.0, 2.0, 3.0, 4.0, 5.0],
            "tau": [1, 2, 3, 4, 5],
        }
    )
    for ending in ("csv", "parquet"):
        write_table(runs, place := tmp_path / f"runs.{ending}")
        frame = read_table(place)
        found = summarise(frame, frame["data"], frame["estimator"], ("cv_error", "tau"), "mean")
        rows = [[part.strip() for part in line.split("|")[1:-1]] for line in markdown(found).splitlines()[2:4]]
        assert rows == [
            ["a", "~**1.500**†", "1.500†", "4.000*", "4.000*"],
            ["b", "**3.000**†", "3.000†", "5.000", "5.000"],
        ]
        assert list(found.notes) == [
            "†: a limit ended runs before their choice was certified: sparsecv 2 of 3",
            "~: 1 CV error estimated, because a limit left folds unsolved",
        ]
        text = latex(with_overall(found))
        assert r"$\sim$\textbf{1.500}$\dagger$" in text and r"% $\dagger$: a limit" in text and "†" not in text
        assert with_overall(found).marks.loc["mean"].tolist() == [2, 1, 0, 0]
    older = runs.drop(columns=["status", "estimate"])
    assert not summarise(older, older["data"], older["estimator"], ("cv_error",)).marks.to_numpy().any()


def test_standard_errors_state_the_number_of_runs() -> None:
    assert cells("test_error").notes[0].startswith("±: standard error of the mean of 2 runs")
    assert cells("tau").notes[0].startswith("±: standard error of the mean of 2 to 3 runs")


def test_lines_have_a_series_for_every_setting_that_differs() -> None:
    assert distinguishing_settings(PLANNED, ["gap"]) == ["estimator", "method", "data"]
    assert distinguishing_settings(PLANNED, ["gap", "data"]) == ["estimator", "method"]
    drawn = PLANNED.assign(design_snr=PLANNED["data"].map({"a": 1.0, "b": 5.0}))
    assert distinguishing_settings(drawn[["design_snr", *PLANNED]], ["design_snr"]) == ["estimator", "method", "gap"]
    figure = add_pooling_note(Figure(), PLANNED, [PLANNED["data"], PLANNED["gap"]], "a point")
    assert figure.get_suptitle() == "a point combines runs that differ in seed (2 values), method (2)"
    assert add_pooling_note(Figure(), PLANNED, [PLANNED[name] for name in PLANNED], "a point").get_suptitle() == ""


def test_names_in_csv_are_no_formulas() -> None:
    runs = pd.DataFrame({"data": ["=1+1", "@a", "-2"], "by": ["+x"] * 3, "tau": [1, 2, 3]})
    table = pd.read_csv(io.StringIO(csv(summarise(runs, runs["data"], runs["by"], ("tau",)))))
    assert table["row"].tolist() == ["'=1+1", "'@a", "-2"] and table.columns[1] == "'+x tau"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_text_like_a_formula_is_read_as_it_was(ending: str, tmp_path: Path) -> None:
    runs = pd.DataFrame(
        {"data": ["=1+1", "'a", "-2 x"], "state": "done", "sources": ["-weighted-trees", "all", "none"]}
    )
    write_table(runs, place := tmp_path / f"runs.{ending}")
    pd.testing.assert_frame_equal(read_table(place), runs, check_dtype=False)


RUNS_OF_METHODS = pd.DataFrame(
    {
        "data": ["a", "a", "b", "b", "b"],
        "folds": ["10", "10", "10", "10", "loo"],
        "method": ["grid", "rounds", "grid", "rounds", "rounds"],
        "gammas": [0.1, 0.10, 0.1, 0.1, None],
        "formulation": [None, "outer", None, "outer", "outer"],
        "mios": pd.array([100, 20, 50, 60, None], dtype="Int64"),
    }
)


def test_rows_by_words_and_by_numbers() -> None:
    assert len(where(RUNS_OF_METHODS, ["folds=10,loo", "gammas=1e-1"])) == 4
    assert list(where(RUNS_OF_METHODS, ["gammas="]).index) == [4]
    assert len(where(RUNS_OF_METHODS, ["method=rounds", "data=b"])) == 2
    for wrong, message in [
        ("data", "not a condition"),
        ("date=a", "did you mean 'data'"),
        ("data=c", "values of data are a, b"),
    ]:
        with pytest.raises(BadInput, match=message):
            where(RUNS_OF_METHODS, [wrong])


def test_labels_leave_out_what_is_missing() -> None:
    found = labels(RUNS_OF_METHODS, ["method", "formulation"], {"rounds outer": "ours"})
    assert list(found) == ["grid", "ours", "grid", "ours", "ours"] and list(found.cat.categories) == ["ours", "grid"]
    numbers = labels(pd.DataFrame({"k": ["10", "2", "loo", "b", None]}), ["k"])
    assert list(numbers.cat.categories) == ["", "2", "10", "b", "loo"]


def test_missing_whole_numbers_have_no_label() -> None:
    assert list(labels(RUNS_OF_METHODS, ["method", "mios"])) == [
        "grid 100",
        "rounds 20",
        "grid 50",
        "rounds 60",
        "rounds",
    ]
    assert list(where(RUNS_OF_METHODS, ["mios="]).index) == [4]


def test_numbers_over_those_of_a_baseline() -> None:
    ratio = relative(RUNS_OF_METHODS, ["mios"], "method=grid")["mios"]
    assert list(ratio[:4]) == [1.0, 0.2, 1.0, 1.2] and np.isnan(ratio[4])
    less = relative(RUNS_OF_METHODS, ["mios"], "method=grid", reduction=True)["mios"]
    assert np.allclose(less[:4], [0.0, 80.0, 0.0, -20.0])
    with pytest.raises(BadInput, match=r"several rows for '10'.*--problem"):
        relative(RUNS_OF_METHODS, ["mios"], "method=grid", ["folds"])
    with pytest.raises(BadInput, match="--relative method=joint: no row"):
        relative(RUNS_OF_METHODS, ["mios"], "method=joint")
    with pytest.raises(BadInput, match="does not contain numbers"):
        check_columns(RUNS_OF_METHODS, ["folds"], "--value", numbers=True)


def test_one_row_for_each_problem() -> None:
    table = tabulate_problems(RUNS_OF_METHODS, "mios", labels(RUNS_OF_METHODS, ["method"]), ["data", "folds"])
    assert list(table.columns) == ["grid", "rounds"]
    assert table.loc["a 10"].tolist() == [100.0, 20.0] and np.isnan(table.loc["b loo", "grid"])


def test_files_that_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("data,state\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "no.parquet").write_text("no table")
    for name, message in [("empty.csv", "no rows"), ("other.csv", "was not written by"),
                          ("no.parquet", "cannot be read"), ("none.csv", "does not exist"),
                          ("a.json", "must end with .parquet or .csv")]:  # fmt: skip
        with pytest.raises(BadInput, match=message):
            read_table(tmp_path / name)
