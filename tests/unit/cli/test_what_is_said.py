"""What a newcomer is told: of counts, empty words, names with commas, training rows and options that do not go."""

from __future__ import annotations

import json
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.cli import run
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.table_facts import inspect_file
from sparsecv_mio.errors import BadInput, SparseCVWarning

N = 40
RNG = np.random.default_rng(7)
SIZE = RNG.normal(size=N).round(2)
SEX = [("f", "m", None)[k % 3] for k in range(N)]


@pytest.fixture(autouse=True)
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with words, empty cells, and names and words that hold commas."""
    place = tmp_path_factory.mktemp("said") / "table.csv"
    site = [("North", "South, old", "West")[k % 3] for k in range(N)]
    columns = {"size, mm": SIZE, "age": RNG.normal(size=N).round(2), "sex": SEX, "site": site}
    pd.DataFrame(columns | {"y": (SIZE + RNG.normal(size=N)).round(2)}).to_csv(place, index=False)
    return str(place)


HINT = "; in a list, put a name with a comma in double quotes: '\"size, mm\"'"
LISTS = {
    "force-in": ("size, mm", '"size, mm"', 'models compared: with "size, mm"'),
    "at-most": ("1:age,size, mm", '1:age,"size, mm"', 'at most 1 of "size, mm", age'),
    "hierarchy": ("age=size, mm", 'age="size, mm"', 'age only with "size, mm"'),
    "nonnegative": ("size, mm", '"size, mm"', '"size, mm" not below 0'),
    "adjust": ("age,size, mm", 'age,"size, mm"', 'adjusted for "size, mm", age'),
    "drop": ("size, mm", '"size, mm"', "proved"),
}


@pytest.mark.parametrize("option", LISTS)
def test_a_name_with_a_comma_stands_in_quotes_in_every_list(
    table: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bare, right, said = LISTS[option]
    ask = ["path", table, "-t", "y", "--na", "mean", "--encode", "onehot", "--gamma", "1", "--tau", "1"]
    assert run([*ask, f"--{option}", bare]) == 2
    assert HINT in capsys.readouterr().err
    assert run([*ask, f"--{option}", right]) == 0
    assert said in capsys.readouterr().out


def test_a_child_and_a_level_with_a_comma(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["path", table, "-t", "y", "--na", "mean", "--encode", "onehot", "--gamma", "1", "--tau", "1"]
    assert run([*ask, "--count", "columns", "--hierarchy", '"size, mm"=age|"site=West"']) == 0
    assert '"size, mm" only with age or site=West' in capsys.readouterr().out
    whole = [*ask, "--count", "factors", "--force-in", "site=West", "--reference"]
    assert run([*whole, "site=South, old"]) == 2
    assert "in double quotes: '\"site=South, old\"'" in capsys.readouterr().err
    assert run([*whole, '"site=South, old"']) == 0
    assert 'coefficients are differences from "site=South, old"' in capsys.readouterr().out


def test_a_text_of_python_and_plans_is_read_alike(table: str) -> None:
    data = sc.read_dataset(table, "y", na="mean", encode="onehot")
    texts = [sc.best_subsets(data, gammas=[1.0], taus=[2], force_in=given) for given in ('"size, mm",age', "age")]
    assert [len(record.request.restrictions.force_in) for record in texts if record.request.restrictions] == [2, 1]


def test_empty_words_are_a_level_that_is_said(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    note = "13 missing values of 'sex' are a separate level, sex=(missing)"
    ask = ["fit", table, "-t", "y", "--na", "mean", "--encode", "onehot", "--gamma", "1", "--tau", "1"]
    assert run([*ask, "--adjust", "sex"]) == 0
    told = capsys.readouterr()
    assert f"warning: {note}" in told.err
    assert "models compared: adjusted for sex=m, sex=(missing) (levels against sex=f)" in told.out
    assert run(["inspect", table, "-t", "y"]) == 0
    assert f"f, m; {note}" in capsys.readouterr().out
    assert run(["inspect", table, "-t", "y", "--na", "drop"]) == 0
    assert "(missing)" not in capsys.readouterr().out


def test_near_copies_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, data = np.random.default_rng(0), tmp_path / "t.csv"
    x = rng.normal(size=40)
    frame = pd.DataFrame({"y": x + rng.normal(size=40), "a": x, "b": x + 1e-7 * rng.normal(size=40), "c": 2.0 * x})
    frame.to_csv(data, index=False)
    assert run(["solve", str(data), "-t", "y", "--tau", "1", "--gamma", "1", "--folds", "3"]) == 0
    error = capsys.readouterr().err
    assert (
        "note: nearly collinear with an earlier column: 'b' of 'a'; the data can hardly distinguish the two" in error
        and error.count("'c' duplicates") == 1
    )


COUNTS = {  # by name of the second column: its cells, and whether it may be an exposure
    "days": (RNG.integers(1, 30, N), True),
    "person_years": (RNG.uniform(0.5, 3.0, N), True),
    "year": (RNG.integers(2000, 2020, N), False),
    "hours": (np.where(np.arange(N) == 7, 0, 2.5 + np.arange(N) % 3), True),  # an error in one row
    "rises": (np.arange(N) % 9 + 1.1 + 0.2 * (np.arange(N) % 2), True),
    "depth": (RNG.uniform(1.0, 2.0, N), False),
    "weeks": (RNG.integers(0, 3, N), False),
}


@pytest.mark.parametrize("name", COUNTS)
def test_inspect_proposes_the_loss_of_counts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells, may_be = COUNTS[name]
    place = tmp_path / "counts.csv"
    pd.DataFrame({"u": SIZE, name: cells, "claims": np.arange(N) % 9}).to_csv(place, index=False)
    found = inspect_file(place, "claims", Reading.from_keywords(), None)
    assert found.counts and found.exposures == ((name,) if may_be else ())
    assert run(["inspect", str(place), "-t", "claims"]) == 0
    shown = capsys.readouterr().out
    assert (
        f"add --exposure {name} if {name!r} is the time or the population over which each row was counted" in shown
    ) is may_be
    assert ("correct or remove the rows in which it is 0 first" in shown) is (name == "hours")
    command = next(line for line in shown.splitlines() if line.endswith("--loss poisson"))
    assert run([*shlex.split(command)[1:], "--gamma", "1", "--tau", "1", "-q"]) == 0


def test_rows_that_a_model_was_fitted_on_are_said_to_be(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, others = tmp_path / "record.json", tmp_path / "others.csv"
    ask = ["--na", "mean", "--encode", "onehot", "--gamma", "1", "--tau", "1", "-q", "--json", str(record)]
    assert run(["fit", table, "-t", "y", *ask]) == 0
    pd.read_csv(table).assign(y=lambda frame: frame["y"] + 0.01).to_csv(others, index=False)
    capsys.readouterr()
    for place, said in ((table, True), (str(others), False)):
        assert run(["predict", str(record), place, "--out", str(tmp_path / "out.csv")]) == 0
        words = "the model was fitted to these rows, so the errors are training errors"
        assert (words in capsys.readouterr().out) is said


def test_all_options_that_do_not_go_together_are_named_at_once(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["solve", table, "-t", "y", "--na", "mean", "--na-within", "folds", "--stability", "1", "--model", "average"]
    assert run(ask) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.count(" requires ") == 3
    for words in (
        "; --na-within folds: requires --model pair, not average (", "--stability 1: requires --model pair, not",
        "; --stability 1: requires --na-within all, not folds (",
    ):  # fmt: skip
        assert words in error


def test_inspect_takes_a_loss_and_proposes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "t.csv"
    pd.DataFrame({"u": SIZE, "ill": np.arange(N) % 2, "claims": np.arange(N) % 5}).to_csv(place, index=False)
    said = {}
    for loss, target in (("squared", "ill"), ("poisson", "claims"), ("squared", "claims"), ("logistic", "claims")):
        assert run(["inspect", str(place), "-t", target, "--loss", loss]) == 0
        said[loss, target] = capsys.readouterr().out
    assert "--loss" not in [line for line in said["squared", "ill"].splitlines() if line.startswith("sparsecv ")][0]
    assert (
        "--loss poisson\n" in said["poisson", "claims"] and "if the target is a count" not in said["poisson", "claims"]
    )
    assert "if the target is a count" not in said["squared", "claims"]
    assert "logistic loss needs exactly two classes" in said["logistic", "claims"]


def test_an_option_whose_value_was_forgotten_is_named(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", table, "-t", "y", "--resume", "--json", "x.json"]) == 2
    assert "--resume: the value is missing, because --json follows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("solve data.csv -t y --target z", "--target: the option is given 2 times; give it once, as --target T"),
        ("fit data.csv -t y --gamma 1 --gamma=2 --gamma 3", "--gamma: the option is given 3 times; give it once"),
        ("predict r.json data.csv --out a -o b", "--out: the option is given 2 times; give it once"),
        ("glru loocv data.csv -t y --lam 1 --lam 1", "--lam: the option is given 2 times; give it once"),
        ("report r.json --out a.html --out b.html", "--out: the option is given 2 times; give it once"),
    ],
)
def test_a_repeated_option_with_one_value_is_refused(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"sparsecv: error: {said}") and error.count("\n") == 1


def test_options_with_several_values_and_switches_may_be_repeated(table: str) -> None:
    words = ["--drop", "sex,site", "--at-most", "1:age", "--at-most", '1:"size, mm"', "-q", "-q"]
    assert run(["fit", table, "-t", "y", "--gamma", "1", "--tau", "1", *words]) == 0


def test_predict_says_what_it_filled_and_where_a_bad_cell_is(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"u": SIZE, "v": RNG.normal(size=N).round(2), "y": SIZE})
    train, new, record = (tmp_path / name for name in ("t.csv", "new.csv", "r.json"))
    frame.mask(np.arange(N)[:, None] % 9 + np.arange(3) == 4).to_csv(train, index=False)
    ask = ["solve", str(train), "-t", "y", "--tau", "1", "--gamma", "1", "--folds", "3", "--json", str(record)]
    assert run([*ask, "--na", "median"]) == 0
    new.write_text("u,v\n\n1,\n,3\n")
    capsys.readouterr()
    assert run(["predict", str(record), str(new)]) == 0
    assert "1 missing value imputed by the median of its column over the rows of the fit, in 'u'" in (
        capsys.readouterr().err
    )
    new.write_text("u,v\n\n1,2\nx,3\n")
    assert run(["predict", str(record), str(new)]) == 2
    assert "column 'u' holds text 'x' in row 2 (line 4)" in capsys.readouterr().err


def test_repeated_outer_folds_are_several_seeds(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    advice = "nested: '3x5' is not a whole number; give {0}nested 5 with 3 different values of {0}seed, and average"
    assert run(["solve", table, "-t", "y", "--drop", "site,sex", "--nested", "3x5"]) == 2
    assert "error: --" + advice.format("--") in capsys.readouterr().err
    with pytest.raises(BadInput, match=f"^{advice.format('')} the 3 nested CV errors$"):
        sc.solve(table, "y", drop=["site", "sex"], nested="3x5")  # type: ignore[arg-type]


def test_predict_states_which_rows_count_as_a_missing_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, new, record = (tmp_path / name for name in ("t.csv", "new.csv", "r.json"))
    habit = [None if k == 5 else ["never", "former", "now"][k % 3] for k in range(N)]
    y = SIZE + 2.0 * np.array([word == "now" for word in habit])
    pd.DataFrame({"habit": habit, "u": SIZE, "y": y.round(2)}).to_csv(train, index=False)
    ask = ["solve", str(train), "-t", "y", "--na", "mean", "--encode", "onehot", "--tau", "2", "--gamma", "0.1"]
    assert run([*ask, "--count", "factors", "--folds", "3", "--json", str(record)]) == 0
    new.write_text("habit,u\n,1\nnow,2\n,\n")
    capsys.readouterr()
    assert run(["predict", str(record), str(new)]) == 0
    error = capsys.readouterr().err
    said = "2 missing values of 'habit' are a separate level, habit=(missing), which 1 row of the fit has"
    assert (
        said in error and "1 missing value imputed by the mean of its column over the rows of the fit, in 'u'" in error
    )
    stored = json.loads(record.read_text())
    assert stored["data"]["reading"]["absent"] == {"habit": 1} and run(["verify", str(record), str(train)]) == 0
    stored["data"]["reading"]["absent"] = {"habit": 2}
    record.write_text(json.dumps(stored))
    assert run(["verify", str(record), str(train)]) == 1
    del stored["data"]["reading"]["absent"]  # a record of an older release
    record.write_text(json.dumps(stored))
    assert run(["verify", str(record), str(train)]) == 0
    capsys.readouterr()
    assert run(["predict", str(record), str(new)]) == 0
    assert "2 missing values of 'habit' are a separate level, habit=(missing)\n" in capsys.readouterr().err


def test_rows_with_an_unknown_level_have_no_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other rows keep their numbers and predictions, on the command line and in Python."""
    rng = np.random.default_rng(2)
    site, hours = rng.choice(["Bari", "Lyon", "Rome"], N), rng.uniform(1.0, 9.0, N).round(2)
    mean = np.exp(0.5 * (site == "Lyon") + 0.2 * SIZE) * hours
    frame = pd.DataFrame({"site": site, "u": SIZE, "hours": hours, "y": rng.poisson(mean)})
    new = frame.head(5).drop(columns="y").assign(site=["Lyon", "Oslo", "Bari", "Oslo", "Rome"], key=list("abcde"))
    new = pd.concat([new, new.tail(1)] * 2, ignore_index=True)
    known = new[new["site"] != "Oslo"]
    train, rows, record, out = (tmp_path / name for name in ("t.csv", "new.csv", "r.json", "p.csv"))
    new.to_csv(rows, index=False)
    shared = [
        "-t",
        "y",
        "--encode",
        "onehot",
        "--count",
        "columns",
        "--tau",
        "4",
        "--gamma",
        "0.1",
        "--folds",
        "3",
        "--json",
        str(record),
    ]
    for loss, how in (("poisson", ["--exposure", "hours"]), ("squared", [])):
        frame.to_csv(train, index=False)
        assert run(["solve", str(train), *shared, "--loss", loss, *how, "-q"]) == 0
        capsys.readouterr()
        ask = ["predict", str(record), str(rows), "--id", "key", "--out", str(out)]
        assert run(ask) == 2
        error = capsys.readouterr().err
        assert "'Oslo' in row 2" in error and error.endswith("to predict the other rows, give --invalid-rows na\n")
        ask += ["--interval", "0.5", "--train", str(train)] if loss == "squared" else []
        assert run([*ask, "--invalid-rows", "na"]) == 0
        said = "warning: no prediction for rows 2,4,8,10: column 'site' holds 'Oslo', which is not a level in the data"
        assert said in capsys.readouterr().err
        table, solved = pd.read_csv(out), sc.read_record(record)
        predicted = table["prediction"].to_numpy()
        assert table["row"].tolist() == list(range(1, 13)) and table["key"].tolist() == new["key"].tolist()
        assert predicted[known.index] == pytest.approx(solved.predict(known), rel=1e-12)
        assert np.flatnonzero(np.isnan(predicted)).tolist() == [1, 3, 7, 9]
        for given in (new, rows):
            with pytest.warns(SparseCVWarning, match="no prediction for rows 2,4,8,10: "):
                assert solved.predict(given, invalid_rows="na") == pytest.approx(predicted, rel=1e-12, nan_ok=True)
    with pytest.warns(SparseCVWarning, match="no prediction for rows 2,4,8,10: "):
        ends = solved.predict_interval(new, 0.5, str(train), invalid_rows="na")
    assert ends == pytest.approx(table[["lower", "upper"]].to_numpy(), rel=1e-12, nan_ok=True)
    with pytest.raises(BadInput, match="invalid_rows: 'na' requires a frame or a file"):
        solved.predict(np.zeros((1, 5)), invalid_rows="na")
    with pytest.raises(BadInput, match="^invalid_rows: unknown word 'nan'"):
        solved.predict(new, invalid_rows="nan")


def test_invalid_rows_of_a_plain_table_and_an_unreadable_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, new, record = (tmp_path / name for name in ("t.csv", "new.csv", "r.json"))
    pd.DataFrame({"u": SIZE, "v": RNG.normal(size=N).round(2), "y": SIZE}).to_csv(train, index=False)
    ask = ["solve", str(train), "-t", "y", "--tau", "2", "--gamma", "1", "--folds", "3", "--json", str(record), "-q"]
    assert run(ask) == 0
    new.write_text("u,v,y\n1,2,1\nx,3,2\n2,,oops\n3,1,2\n")
    capsys.readouterr()
    assert run(["predict", str(record), str(new)]) == 2
    assert capsys.readouterr().err.endswith("; to predict the other rows, give --invalid-rows na\n")
    assert run(["predict", str(record), str(new), "--invalid-rows", "na"]) == 0
    out, error = capsys.readouterr()
    assert [line.split(",")[1] == "NA" for line in out.splitlines()[1:]] == [False, True, True, False]
    assert "no errors are computed: column 'y' holds text 'oops' in row 3" in error and "--invalid-rows" not in error
    assert "no prediction for rows 2:3: column 'u' holds 'x'; column 'v' is empty\n" in error


def test_a_rare_level_that_is_adjusted_for_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "t.csv"
    city = ["rare" if k == 7 else "ab"[k % 2] for k in range(N)]
    pd.DataFrame({"u": SIZE, "city": city, "y": RNG.normal(size=N)}).to_csv(place, index=False)
    ask = ["solve", str(place), "-t", "y", "--encode", "onehot", "--adjust", "city", "--gamma", "1", "--tau", "1"]
    assert run(ask) == 2
    error = capsys.readouterr().err
    assert "column 'city=rare' is constant; leave it out, or merge a rare level with another" in error


def test_bounds_say_which_pair_has_the_least_lower_end(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["bounds", table, "-t", "y", "--drop", "site,sex", "--gamma", "0.001,1", "--tau", "1:2", "--folds", "3"]
    assert run([*ask, "--full"]) == 0
    text = capsys.readouterr().out
    least = float(text.split("over the grid: in [")[1].split(",")[0])
    place = text.split("smallest lower bound at tau = ")[1].splitlines()[0]
    tau, gamma = int(place.split()[0]), place.split("gamma = ")[1].split()[0]
    rows = text.split(f"gamma = {gamma} (ridge weight)\n")[-1].splitlines()
    row = next(line for line in rows if line.split()[:1] == [str(tau)])
    assert float(row.split()[1]) == pytest.approx(least, rel=1e-5)


def test_predictions_of_training_rows_are_said_to_be_that_with_left_out_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows with an empty cell in a column that the model does not need are predicted too."""
    data, answer = tmp_path / "d.csv", str(tmp_path / "r.json")
    cells = (f"{k},{k * k % 11 if k % 9 else ''},{2 * k + k % 3}" for k in range(1, 31))
    data.write_text("\n".join(["a,b,y", *cells]) + "\n")
    how = ["--na", "drop", "--gamma", "0.1", "--tau", "1", "--folds", "3", "--quiet", "--json", answer]
    assert run(["solve", str(data), "-t", "y", *how]) == 0
    assert "27 rows (3 more dropped because of missing values); 2 features; 3 random folds" in capsys.readouterr().out
    assert run(["predict", answer, str(data), "--out", str(tmp_path / "p.csv")]) == 0
    assert "the model was fitted to 27 of these rows, so the errors are tr" in capsys.readouterr().out


@pytest.fixture(scope="module")
def rate_record(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of a model of rates with exposures, a text column and a column of dates."""
    folder, rng = tmp_path_factory.mktemp("rates"), np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "day": [f"2024-01-{1 + i % 28:02d}" for i in range(40)]})
    frame = frame.assign(site=["x", "y"] * 20, hours=2.0, y=rng.poisson(3.0, 40))
    frame.to_csv(folder / "t.csv", index=False)
    ask = ["fit", str(folder / "t.csv"), "-t", "y", "--loss", "poisson", "--exposure", "hours", "--encode", "onehot"]
    fit = [*ask, "--dates", "days", "--na", "drop", "--tau", "3", "--gamma", "1", "-q", "--json", str(folder / "r")]
    assert run(fit) == 0
    return str(folder / "r")


NEW_ROWS = "a,day,site,hours,y\n"
VALID = "1,2024-01-05,x,1,2\n"


@pytest.mark.parametrize(
    ("rows", "is_predicted", "said"),
    [
        (["1,2024-01-05,q,1,2\n", VALID, "1,2024-01-05,x,-1,2\n", VALID], [0, 1, 0, 1],
         "no prediction for rows 1,3: column 'site' holds 'q', which is not a level in the data of the model; "
         "exposure: column 'hours' is -1\n"),
        ([VALID, "1,2024-01-05,x,,2\n", "1,2024-01-05,x,1e13,2\n", VALID], [1, 0, 0, 1],
         "rows 2:3: exposure: column 'hours' is empty; exposure: column 'hours' is 1e+13\n"),
        ([VALID, "1,soon,x,1,2\n"], [1, 0], "no prediction for row 2: column 'day' holds 'soon'\n"),
        (["oops,2024-01-05,x,1,2\n"], [0], "no prediction for row 1: column 'a' holds 'oops'\n"),
        (["1,2024-01-05,x,bad,2\n"], [0], "no prediction for row 1: exposure: column 'hours' is 'bad'\n"),
        ([",2024-01-05,x,1,2\n", "1,2024-01-05,q,1,2\n"], [0, 0], "no prediction for row 2: column 'site' holds 'q'"),
        ([",2024-01-05,x,1,2\n", ",2024-01-05,x,1,2\n"], [0, 0], "2 rows with a missing value in a column"),
        (["1,2024-01-05,q,1,2\n", VALID, "1,2024-01-05,x,1,-2\n", VALID], [0, 1, 1, 1],
         "no errors are computed: target 'y' is -2 in row 3; "),
    ],
)  # fmt: skip
def test_invalid_rows_of_each_kind_have_no_prediction(
    rows: list[str], is_predicted: list[int], said: str, rate_record: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    new = tmp_path / "new.csv"
    new.write_text(NEW_ROWS + "".join(rows))
    capsys.readouterr()
    assert run(["predict", rate_record, str(new), "--invalid-rows", "na"]) == 0
    out, error = capsys.readouterr()
    assert [int(line.split(",")[1] != "NA") for line in out.splitlines()[1:]] == is_predicted and said in error
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for given in (new, pd.read_csv(new)):
            predicted = sc.read_record(rate_record).predict(given, invalid_rows="na")
            assert np.isfinite(predicted).tolist() == list(map(bool, is_predicted))


def test_an_invalid_target_or_number_of_trials_stops_no_predictions(
    rate_record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, data, record = (tmp_path / name for name in ("new.csv", "t.csv", "r.json"))
    new.write_text(f"{NEW_ROWS}{VALID}1,2024-01-05,x,1,\n1,2024-01-05,x,1,-2\n")
    assert run(["predict", rate_record, str(new)]) == 0
    assert "no errors are computed: target 'y' is -2 in row 3; " in capsys.readouterr().err
    data.write_text("a,k,n\n" + "".join(f"{i},{i % 3},3\n" for i in range(20)))
    ask = ["fit", str(data), "-t", "k", "--loss", "logistic", "--trials", "n", "--tau", "1", "--gamma", "1"]
    assert run([*ask, "-q", "--json", str(record)]) == 0
    for cells, said in (("1,bad", "column 'n' is 'bad'"), ("1,", "column 'n' is empty"), ("4,3", "target 'k' is 4")):
        new.write_text(f"a,k,n\n1,0,3\n2,1,3\n3,{cells}\n")
        capsys.readouterr()
        assert run(["predict", str(record), str(new)]) == 0
        out, error = capsys.readouterr()
        assert ",NA" not in out and f"no errors are computed: trials: {said} in row 3" in error


def test_a_message_on_new_rows_lists_unknown_levels_too(
    rate_record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A decimal comma is advised only if no cell of the column has a point."""
    new = tmp_path / "new.csv"
    for cell, is_advised in (("1", True), ("1.5", False)):
        rows = f'"12,5",2024-01-05,x,1,2\n1,2024-01-05,q,1,2\n{VALID}{VALID}{cell},2024-01-05,x,1,2\n'
        new.write_text(NEW_ROWS + rows)
        assert run(["predict", rate_record, str(new)]) == 2
        error = capsys.readouterr().err
        assert "column 'a' holds text '12,5' in row 1" in error and "column 'site' holds 'q' in row 2" in error
        assert error.endswith("; to predict the other rows, give --invalid-rows na\n")
        assert ("--decimal ," in error) == is_advised


def test_predictions_of_a_file_with_exposures_have_one_entry_for_each_row(rate_record: str, tmp_path: Path) -> None:
    new, model = tmp_path / "new.csv", sc.read_record(rate_record)
    new.write_text(f"{NEW_ROWS},2024-01-05,x,1,2\n{VALID}2,2024-01-06,y,3,2\n")
    with pytest.warns(SparseCVWarning, match="^1 row with a missing value in a column of the model: the prediction is"):
        of_file, of_frame = model.predict(new), model.predict(pd.read_csv(new))
    assert np.isnan(of_file[0]) and of_file == pytest.approx(of_frame, rel=1e-12, nan_ok=True)


def test_intervals_of_rows_that_are_all_invalid_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, new, record = (tmp_path / name for name in ("t.csv", "new.csv", "r.json"))
    pd.DataFrame({"u": SIZE, "v": SIZE**2, "y": SIZE + 0.1 * SIZE**2}).to_csv(train, index=False)
    ask = ["solve", str(train), "-t", "y", "--tau", "1", "--gamma", "1", "--folds", "3", "--json", str(record), "-q"]
    assert run(ask) == 0
    new.write_text("u,v,y\nx,3,2\n")
    capsys.readouterr()
    ask = ["predict", str(record), str(new), "--invalid-rows", "na", "--interval", "0.5", "--train", str(train)]
    assert run(ask) == 0
    out, error = capsys.readouterr()
    assert out.splitlines()[1:] == ["1,NA,NA,NA"] and "intervals of level" not in error


@pytest.mark.parametrize("loss", ["logistic", "poisson", "trials"])
def test_errors_of_new_rows_are_next_to_the_null_model_of_these_rows(
    loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cross-validated errors are those of the training rows, and their accuracy is at the threshold 0.5."""
    rng = np.random.default_rng(5)
    a, train, new, answer = rng.normal(size=60), *(str(tmp_path / name) for name in ("t.csv", "n.csv", "r.json"))
    n = np.full(60, 4 if loss == "trials" else 1)
    y = rng.poisson(np.exp(a)) if loss == "poisson" else rng.binomial(n, 1.0 / (1.0 + np.exp(-a)))
    frame = pd.DataFrame({"a": a, "b": rng.normal(size=60), "n": n, "y": y})
    frame.to_csv(train, index=False)
    rows = frame.sample(20, random_state=1)
    rows.to_csv(new, index=False)
    how = ["--trials", "n"] if loss == "trials" else ["--drop", "n"]
    ask = [
        "solve",
        train,
        "-t",
        "y",
        "--loss",
        loss.replace("trials", "logistic"),
        *how,
        "--tau",
        "1:2",
        "--folds",
        "3",
    ]
    assert run([*ask, "--gamma", "0.1", "-q", "--json", answer]) == 0
    capsys.readouterr()
    threshold = ["--threshold", "0.2"] if loss == "logistic" else []
    assert run(["predict", answer, new, "--out", str(tmp_path / "p.csv"), *threshold]) == 0
    errors, trained = [
        line for line in capsys.readouterr().out.splitlines() if "log loss" in line or "half dev" in line
    ]
    y, rate = rows["y"].to_numpy(), rows["y"].sum() / rows["n"].sum()
    null = -(rate * np.log(rate) + (1.0 - rate) * np.log(1.0 - rate)) if loss != "poisson" else 0.0
    if loss == "poisson":
        mean = y.mean()
        null = float(np.mean(mean - y + y * np.log(np.where(y > 0, y, 1.0) / mean)))
    name = "half deviance of the mean rate" if loss == "poisson" else "log loss of the class frequencies"
    assert errors.startswith("errors: ") and float(errors.split(f", {name} of these rows ")[1]) == pytest.approx(
        null, rel=1e-5
    )
    assert trained.startswith("in cross-validation of the training rows: ")
    assert trained.endswith("; this accuracy is at threshold 0.5") == bool(threshold)


def test_coverage_is_stated_for_the_rows_with_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, new, answer = (str(tmp_path / name) for name in ("t.csv", "n.csv", "r.json"))
    frame = pd.DataFrame({"a": SIZE, "y": 2.0 * SIZE + np.arange(N) % 3})
    frame.loc[9, "a"] = np.nan
    frame.to_csv(train, index=False)
    assert (
        run(["solve", train, "-t", "y", "--na", "drop", "--gamma", "0.1", "--folds", "4", "-q", "--json", answer]) == 0
    )
    rows = frame.head(6).astype({"y": object})
    rows.loc[2, "y"] = None
    rows.to_csv(new, index=False)
    capsys.readouterr()
    assert run(["predict", answer, new, "--interval", "0.9", "--train", train, "--out", str(tmp_path / "p.csv")]) == 0
    assert "% of the 5 known targets lie in their intervals" in capsys.readouterr().out
