"""The options `--bootstrap`, `--stability-selection` and `--infer` of `sparsecv solve`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.report.optional_parts import summarise_draws
from sparsecv_mio.report.publication import make_publication


@pytest.fixture
def table(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    frame["y"] = 2.0 * frame["a"] + rng.normal(size=30)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return str(tmp_path / "rows.csv")


def test_answer_record_report_and_verification(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, stored = str(tmp_path / "answer.json"), str(tmp_path / "draws.jsonl")
    words = ["solve", table, "-t", "y", "--gamma", "0.1,1", "--tau", "1:2", "--folds", "3", "--json", answer]
    words += ["--bootstrap", "6", "--stability-selection", "3:0.8", "--draw-gap", "0.01", "--draw-file", stored]
    assert run(words) == 0
    said, err = capsys.readouterr()
    assert "hint for the draws, which use the same grid: the best gamma is the smallest of the grid" in err
    assert "6 bootstrap draws of 30 rows (seed 0), each searched again" in said
    assert "choice certified (gap <= 0.01) in 6 of 6 searches (100%)" in said
    assert "selected with a frequency of at least 0.8 over 3 complementary pairs: a" in said
    record = read_record(answer)
    assert record.bootstrap is not None and record.bootstrap.plan.gap == 0.01  # type: ignore[union-attr]
    assert run(["verify", answer, table, "-q"]) == 0
    assert "read but not checked: bootstrap.chosen, stability_selection.chosen" in capsys.readouterr().out
    assert run(["report", answer, "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Bootstrap of the whole procedure" in page and "Stability selection" in page
    assert run(["plot", answer, "--panel", "inclusion", "-o", str(tmp_path / "inclusion.svg")]) == 0
    ax = record.plot_inclusion(Figure().subplots())  # type: ignore[union-attr]
    assert [label.get_text() for label in ax.get_yticklabels()][0] == "a" and "bootstrap" in ax.get_title("left")
    assert run(["plot", answer, "--panel", "intervals", "-o", str(tmp_path / "intervals.svg")]) == 2
    assert capsys.readouterr().err.endswith(
        "panel intervals: the record has 6 bootstrap draws, but percentiles at the level 95% require at least 40; "
        "give 40 draws or more\n"
    )
    assert not (tmp_path / "intervals.svg").exists()
    assert run([*words, "--quiet"]) == 0
    quiet = capsys.readouterr().out
    assert "\n\nbootstrap of the whole procedure: 6 bootstrap draws of 30 rows" in quiet  # no title above no table
    assert "\n\nstability selection: 6 halves" in quiet and "Most frequent models" not in quiet
    assert "hint: the best gamma is the smallest of the grid" in quiet


@pytest.mark.parametrize("draws", [[], ["--bootstrap", "2"], ["--stability-selection", "1"]])
def test_a_seed_has_no_effect_without_draws_alone(
    draws: list[str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    words = ["solve", table, "-t", "y", "--gamma", "0.1", "--tau", "1", "--folds", "loo", "--seed", "5"]
    assert run([*words, *draws]) == 0
    said = capsys.readouterr()
    assert ("--seed 5 has no effect" in said.err) == (not draws) and ("(seed 5)" in said.out) == bool(draws)


def test_inference_by_splits(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("statsmodels")
    answer, stored = str(tmp_path / "answer.json"), str(tmp_path / "draws.jsonl")
    words = ["solve", table, "-t", "y", "--gamma", "0.1,1", "--tau", "1:2", "--folds", "3", "--json", answer]
    words += ["--infer", "splits:6", "--stability-selection", "3", "--draw-file", stored]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert "6 halves of 30 rows (seed 0), each searched again" in said
    assert "terms with a p-value of at most 0.05: a (family-wise error at most 0.05)" in said and "95% interval" in said
    assert "a large p-value does not show that a term has no effect" in said
    record = read_record(answer)
    assert isinstance(record, Record) and record.inference is not None and len(record.inference.splits) == 6
    assert run(["verify", answer, table, "-q"]) == 0
    assert "only read: models chosen on halves of the rows" in capsys.readouterr().out
    assert run(["report", answer, "-o", str(tmp_path / "report.md")]) == 0
    assert "Tests of terms on the halves that did not choose them" in (tmp_path / "report.md").read_text("utf-8")
    assert run([*words, "--quiet"]) == 0  # the stored halves with warm starts are not those of the tests
    assert read_record(answer).inference == record.inference  # type: ignore[union-attr]
    assert len(Path(stored).read_text("utf-8").splitlines()) == 1 + 6 + 6


def test_a_significant_term_outside_the_model_is_marked(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("statsmodels")
    answer = str(tmp_path / "answer.json")
    words = ["solve", table, "-t", "y", "--gamma", "0.1", "--tau", "1", "--folds", "3", "--infer", "splits:4"]
    assert run([*words, "--quiet", "--json", answer]) == 0
    assert "terms with a p-value of at most 0.05: a (family" in capsys.readouterr().out
    record = read_record(answer)
    assert isinstance(record, Record)
    summary = summarise_draws(replace(record, coefficients={"b": 1.0}))[0]
    assert "a (not in the reported model) (family-wise error" in summary.lines[2]


@pytest.mark.parametrize("n_groups", [28, 30])
def test_tests_with_few_units_are_warned_of_before_the_search(
    n_groups: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("statsmodels")
    rng, rows = np.random.default_rng(0), str(tmp_path / "wards.csv")
    frame = pd.DataFrame({"ward": np.repeat(np.arange(n_groups), 2), "a": rng.normal(size=2 * n_groups)})
    frame.assign(y=frame["a"] + rng.normal(size=2 * n_groups)).to_csv(rows, index=False)
    words = [
        "solve",
        rows,
        "-t",
        "y",
        "--gamma",
        "0.1",
        "--tau",
        "1",
        "--folds",
        "groups:ward:3",
        "--infer",
        "splits:1",
    ]
    assert run(words) == 0
    said = "sparsecv: warning: infer: the half that tests the terms has 14 of 28 groups of ward; such tests have"
    assert capsys.readouterr().err.startswith(said) == (n_groups < 30)


def test_the_limit_of_the_command_is_recorded(table: str, tmp_path: Path) -> None:
    answer = str(tmp_path / "answer.json")
    words = ["solve", table, "-t", "y", "--gamma", "0.1", "--tau", "1", "--folds", "3", "--baselines", "ridge"]
    assert run([*words, "--time-limit", "50", "--quiet", "--json", answer]) == 0
    record = read_record(answer)
    assert isinstance(record, Record) and record.request.time_limit == 50.0
    assert "time limit 50 s" in make_publication(record).methods


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--bootstrap 0", "--bootstrap: 0 is out of range"),
        ("--stability-selection 5:0.4", "--stability-selection: threshold 0.4 is out of range"),
        ("--draw-gap 0.1", "--draw-gap: requires draws of the rows; give --bootstrap"),
        ("--bootstrap 5 --draw-gap 3", "--draw-gap: 3 is out of range"),
        ("--bootstrap 5 --gamma 0.1..1", "--bootstrap: requires a grid of gammas"),
        ("--bootstrap 5 --model average", "--bootstrap: not supported with --model average"),
        ("--bootstrap 5 --criterion common", "--bootstrap: not supported with --criterion common"),
        ("--bootstrap 5 --folds forward:5", "would break the order of time"),
        ("--infer naive", "--infer: 'naive' is not offered: the rows that chose the features would also test them"),
        ("--infer splits:0", "--infer: 'splits:0' is not of the form splits:B"),
        ("--infer splits:5 --gamma 0.1..1", "--infer: requires a grid of gammas"),
        ("--infer splits:5 --criterion common", "--infer: not supported with --criterion common"),
        ("--infer splits:5 --folds forward:5", "would break the order of time"),
    ],
)
def test_wrong_options_are_one_line(words: str, message: str, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "--infer splits:5 --" in words:  # the data are read, so the extra must be there
        pytest.importorskip("statsmodels")
    assert run(["solve", table, "-t", "y", *words.split()]) == 2
    said = capsys.readouterr().err
    assert message in said and len(said.splitlines()) == 1


def test_panels_of_draws_require_draws(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = str(tmp_path / "answer.json")
    assert run(["solve", table, "-t", "y", "--gamma", "1", "--tau", "1", "--folds", "3", "--json", answer, "-q"]) == 0
    for panel in ("inclusion", "intervals"):
        assert run(["plot", answer, "--panel", panel, "-o", str(tmp_path / "figure.svg")]) == 2
        said = capsys.readouterr().err
        assert f"panel {panel}: requires a record of `solve --bootstrap`" in said and " or bootstrap" in said


def test_draws_that_all_fail_leave_the_answer(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With gamma 0 and tau 4, folds of 6 training rows have a model; halves of 4 rows have none."""
    frame = pd.read_csv(table).head(8)
    frame.to_csv(tmp_path / "few.csv", index=False)
    answer = str(tmp_path / "answer.json")
    words = ["solve", str(tmp_path / "few.csv"), "-t", "y", "--gamma", "0,1", "--tau", "4", "--folds", "4"]
    assert run([*words, "--stability-selection", "2", "--json", answer]) == 0
    said = capsys.readouterr()
    record = read_record(answer)
    assert isinstance(record, Record) and record.status == "proved" and record.stability_selection is None
    reason = "warning: stability_selection: left out of the answer: no draw gives a model; the first reason: "
    assert said.err.count(reason) == 1 and "tau" in said.out
    assert run(["verify", answer, str(tmp_path / "few.csv"), "-q"]) == 0


def test_a_failed_part_leaves_the_others(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> Record:
        raise MemoryError("no space")

    monkeypatch.setattr("sparsecv_mio.inference.repetitions.summarise_stability_selection", fail)
    monkeypatch.setattr("sparsecv_mio.inference.baselines.add_baselines", fail)
    answer = str(tmp_path / "answer.json")
    words = ["solve", table, "-t", "y", "--gamma", "0.1", "--tau", "1", "--folds", "3", "--json", answer, "-q"]
    assert run([*words, "--bootstrap", "3", "--stability-selection", "2", "--baselines", "lasso"]) == 0
    record = read_record(answer)
    assert isinstance(record, Record) and record.bootstrap is not None and record.baselines is None
    said = capsys.readouterr().err
    for what in ("stability_selection", "baselines"):
        assert said.count(f"warning: {what}: left out of the answer: MemoryError: no space") == 1


def test_a_wrong_file_of_draws_is_found_before_the_search(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tmp_path / "draws.jsonl"
    words = ["solve", table, "-t", "y", "--gamma", "0.1", "--folds", "3", "-q", "--draw-file", str(stored)]
    words += ["--bootstrap", "3"]
    assert run(words) == 0 and run(words) == 0
    monkeypatch.setattr("sparsecv_mio.search.api.cross_validate", None)
    capsys.readouterr()
    assert run([*words, "--tau", "1"]) == 2
    assert capsys.readouterr().err == (
        f"sparsecv: error: --bootstrap: file {stored} has draws of other data, options or version; give another file\n"
    )
    lines = stored.read_text(encoding="utf-8").splitlines()
    stored.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]) + "\n", encoding="utf-8")
    assert run(words) == 2
    assert capsys.readouterr().err == (
        f"sparsecv: error: --bootstrap: file {stored} is damaged (line 2 is not a draw); delete the line, or give "
        "another file\n"
    )
