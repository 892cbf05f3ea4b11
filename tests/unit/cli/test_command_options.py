"""The options of messy files on the command line: solve, verify, predict and the classifiers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.batch.batch_plan import SEARCH
from sparsecv_mio.cli import run
from sparsecv_mio.declared_options import IN_PLANS, MOST_USED, PANELS

TABLE = "id;age;sex;city;y\n" + "".join(
    f"{k};{30 + k * k % 17},5;{'mf'[k % 2]};{('Rome', 'Oslo', 'Bonn')[k % 3]};{k % 5},25\n" for k in range(15)
)
GIVEN = ["--sep", "semicolon", "--decimal", ",", "--encode", "onehot", "--index-col", "id"]


def test_solve_verify_predict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, answer = tmp_path / "data.csv", tmp_path / "answer.json"
    data.write_text(TABLE)
    assert run(["solve", str(data), "-t", "y", "--gamma", "0.1", "-q"]) == 2
    assert "give --sep semicolon" in capfd.readouterr().err
    search = ["solve", str(data), "-t", "y", "--gamma", "0.1", "--folds", "5", "-q", "--json", str(answer), *GIVEN]
    assert run(search) == 0
    record = json.loads(answer.read_text())
    assert record["data"]["names"] == ["age", "sex=m", "city=Bonn", "city=Oslo", "city=Rome"]
    assert run(["verify", str(answer), str(data), "-q"]) == 0
    capfd.readouterr()
    assert run(["predict", str(answer), str(data)]) == 0
    shown = capfd.readouterr()
    assert len(shown.out.splitlines()) == 16 and "15 rows predicted" in shown.err
    other = tmp_path / "other.csv"
    other.write_text("".join(line.replace(",", ".").replace(";", ",") + "\n" for line in TABLE.splitlines()))
    assert run(["predict", str(answer), str(other)]) == 2 and "give --sep comma" in capfd.readouterr().err
    plain = ["--sep", "comma", "--decimal", "."]
    assert run(["predict", str(answer), str(other), *plain]) == 0 and capfd.readouterr().out == shown.out
    assert run(["verify", str(answer), str(other), "-q", *plain]) == 0


def test_every_command_that_reads_data_has_the_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.csv"
    data.write_text(TABLE)
    given = [str(data), "-t", "y", *GIVEN]
    for command in (
        ["path", *given, "--gamma", "0.1", "-q"], ["bounds", *given, "--gamma", "0.1", "-q"],
        ["fit", *given, "--tau", "1", "--gamma", "0.1", "-q"],
        ["export", *given, "--tau", "1", "--gamma", "0.1", "--to", str(tmp_path / "m.mps")],
        ["treecv", *given, "--learner", "ridge", "-q"],
        ["iacv", *given, "--loss", "squared", "--lam", "1", "--iterations", "3", "-q"],
    ):  # fmt: skip
        assert run(command) == 0, (command, capfd.readouterr().err)


def test_two_words_of_a_target(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "labels.csv"
    data.write_text("a,b,y\n" + "".join(f"{k % 7},{k % 3},{'yes' if k % 4 else 'no'}\n" for k in range(30)))
    assert run(["glru", "loocv", str(data), "-t", "y", "--lam", "0.1"]) == 0
    shown = capfd.readouterr()
    assert "'no' is the smaller value, 'yes' the larger" in shown.out + shown.err
    assert run(["iacv", str(data), "-t", "y", "--loss", "logistic", "--lam", "1", "--iterations", "3", "-q"]) == 0
    assert run(["iacv", str(data), "-t", "y", "--loss", "squared", "--lam", "1", "--iterations", "3", "-q"]) == 2
    assert "column 'y' holds text" in capfd.readouterr().err


def thousands_file(folder: Path) -> Path:
    """Age and income, in dollars with commas, of 40 people; the target grows by 15 a year of age."""
    ages, incomes = [20 + 7 * k % 41 for k in range(40)], [576 + 1741 * k % 3400 for k in range(40)]
    rows = [f'{a},"{i:,}",{15 * a + i // 2 + k % 3}' for k, (a, i) in enumerate(zip(ages, incomes, strict=True))]
    path = folder / "us.csv"
    path.write_text("age,income,y\n" + "\n".join(rows) + "\n")
    return path


def test_thousands_from_the_message_to_new_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, answer = thousands_file(tmp_path), tmp_path / "answer.json"
    search = ["solve", str(data), "-t", "y", "--gamma", "0.1", "--tau", "2", "-q", "--json", str(answer)]
    both = "give --thousands , (2317) or --decimal , and --thousands none (2.317)"
    for wrong in ([], ["--decimal", ","], ["--encode", "onehot"]):
        assert run([*search, *wrong]) == 2 and " (2317) or " in capfd.readouterr().err and not answer.exists()
    assert run(["inspect", str(data), "-t", "y"]) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert both in shown and "sparsecv solve" not in shown
    assert run([*search, "--thousands", ","]) == 0
    record = json.loads(answer.read_text())
    assert record["data"]["reading"]["thousands"] == "," and abs(record["coefficients"]["age"] - 15.0) < 0.5
    assert abs(record["coefficients"]["income"] - 0.5) < 0.05
    assert run(["verify", str(answer), str(data), "-q"]) == 0
    assert run(["report", str(answer), "--data", str(data), "--out", str(tmp_path / "r.html")]) == 0
    capfd.readouterr()
    new = tmp_path / "new.csv"
    new.write_text('age,income\n30,"1,078"\n30,576\n')
    assert run(["predict", str(answer), str(new), "-q"]) == 0
    first, second = (float(line.split(",")[1]) for line in capfd.readouterr().out.split()[1:])
    assert first - second == pytest.approx(251.0, abs=25.0)
    new.write_text("age;income\n30;1.078\n30;576\n")
    assert run(["predict", str(answer), str(new), "-q", "--sep", ";", "--decimal", ",", "--thousands", "."]) == 0
    assert capfd.readouterr().out.split() == ["row,prediction", f"1,{first!r}", f"2,{second!r}"]
    assert run(["inspect", str(data), "-t", "y", "--thousands", "comma"]) == 0
    command = next(line for line in capfd.readouterr().out.splitlines() if line.startswith("sparsecv solve"))
    assert "--thousands ," in command


def test_a_record_from_before_says_nothing_of_thousands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, answer = tmp_path / "data.csv", tmp_path / "answer.json"
    rows = "".join(f"{k % 9 + 1}.{(37 * k) % 1000:03d};{576 + k};{k % 5}\n" for k in range(20))
    data.write_text("a;b;y\n" + rows)
    given = ["--sep", ";", "--thousands", "none", "--gamma", "0.1", "-q", "--json", str(answer)]
    assert run(["solve", str(data), "-t", "y", *given]) == 0
    record = json.loads(answer.read_text())
    del record["data"]["reading"]["thousands"]
    answer.write_text(json.dumps(record))
    assert run(["verify", str(answer), str(data), "-q"]) == 0


def test_options_stand_in_panels(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", "--help-all"]) == 0
    said = capsys.readouterr().out
    at = [said.index(f"\n{panel}:\n") for panel in ("Arguments", *PANELS, "Options")]
    assert at == sorted(at)
    first = [said.index(f"--{name.replace('_', '-')}") for name in PANELS[MOST_USED]]
    assert len(first) == 15 and first == sorted(first) and at[1] < first[0] and first[-1] < at[2]
    assert at[3] < said.index("--seed") < at[4] and at[-2] < said.index("--method auto") < at[-1]
    assert sum(len(names) for names in PANELS.values()) == len({name for names in PANELS.values() for name in names})
    assert run(["glru", "loocv", "--help-all"]) == 0
    said = capsys.readouterr().out
    assert said.index("\nOptions:\n") < said.index("--lam X") < said.index("\nData:\n")  # its own options come first


def test_help_shows_the_most_used_options_and_names_the_option_that_shows_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["solve", "--help"]) == 0
    short = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in short for name in PANELS[MOST_USED])
    assert "\nData:\n" not in short and "--sep" not in short and "\n  --help-all  Show all " in short
    assert run(["solve", "--help-all"]) == 0
    full = capsys.readouterr().out
    assert len(full) > 2 * len(short) and "--sep CHAR" in full and "--help-all" not in full
    count = int(short.partition("Show all ")[2].split()[0])
    assert sum(line.startswith(("  -", "   / --")) for line in full.splitlines()) == count
    for words in (["--version"], ["solve", "nowhere.csv", "-t", "y", "--help-al"]):
        run(words)
    assert "did you mean" in capsys.readouterr().err


def test_help_of_a_command_with_few_options_shows_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--help"]) == 0
    short = capsys.readouterr().out
    assert run(["report", "--help-all"]) == 0
    assert capsys.readouterr().out == short and "--help-all" not in short


def test_settings_of_a_plan_stand_in_the_same_panels(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(IN_PLANS) == {*SEARCH, "folds", "seed"} - {"cpu_limit"}
    assert run(["batch", "--help"]) == 0
    said = capsys.readouterr().out
    words = said[said.index("Settings in the table [vary] of a plan") :]
    at = [words.index(f"  {panel}: ") for panel in PANELS if f"  {panel}: " in words]
    assert len(at) >= 6 and at == sorted(at)
    assert all(re.search(rf"[ ,]{name}[,\n]", words) for name in IN_PLANS)
    assert f"{MOST_USED}:\n" not in said and "-q, --quiet" in said[said.index("Output:") :]


@pytest.mark.parametrize("command", ["solve", "near", "path", "fit"])
def test_help_states_which_command_counts_factors_by_default(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help-all"]) == 0
    assert (
        "[default: columns; but factors, with a note, in `solve`, `near` and `path` if the data then have at most 36 "
        "features, and there are at most 50 folds]"
    ) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["fit", "compare", "backends"])
def test_help_describes_an_option_only_by_what_the_command_has(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fit` and `compare` choose no pair, and the list of `backends` is not a record."""
    assert run([command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the choice is certified" not in said and ("the record" not in said or command != "backends")


def test_solve_in_python_counts_levels_by_default_as_its_docstring_states() -> None:
    frame = pd.DataFrame({"place": ["Oslo", "Rome", "Bern"] * 8, "y": [k * k % 11 for k in range(24)]})
    record = sc.solve(frame, "y", encode="onehot", gammas=[0.1], threads=1)
    assert max(row.tau for row in record.table) == 3
    assert "each level of a text column counts as one feature" in " ".join((sc.solve.__doc__ or "").split())
