"""What is said of the columns of a file, and that the options it names read the file."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.reading_options import STRICT, Reading
from sparsecv_mio.data.standard import stand_in_notes
from sparsecv_mio.data.table_facts import Inspection, collect_answer_warnings, inspect_file
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.report.before_search import print_inspection
from sparsecv_mio.search.api import solve
from sparsecv_mio.targets import Loss

from ..report.printing import printed


def messy(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    age = np.round(rng.normal(40, 9, n), 2)
    frame = pd.DataFrame({
        "id": np.arange(1, n + 1), "age": age, "months": 12.0 * age, "size": rng.choice(["S", "M", "L"], n),
        "ill": rng.choice(["no", "yes"], n), "name": [f"p{k}" for k in range(n)], "same": 3.0, "y": rng.normal(size=n),
        "late": np.where(rng.random(n) < 0.8, np.nan, 1.5),
    })  # fmt: skip
    frame.loc[4, "age"] = np.nan
    frame.loc[5, "size"] = None
    return frame


def notes(found: Inspection) -> dict[str, tuple[str, ...]]:
    return {one.name: one.notes for one in found.columns}


def read_as_told(path: Path, found: Inspection) -> tuple[int, int]:
    words = [word for option in found.options for word in shlex.split(option)]
    given = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    drop = given.pop("drop", None)
    assert given.pop("na-within", "folds") == "folds"  # of the search
    models = Restrictions(count=given.pop("count", ()))  # type: ignore[arg-type]
    data = read_dataset(path, "y", drop=drop.split(",") if drop else None, **given)  # type: ignore[arg-type]
    return data.n, models.resolve_names(data.names).n_selectable_features(data.p)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("gaps", [2, 20])
def test_columns_and_the_options_that_read_them(tmp_path: Path, suffix: str, gaps: int) -> None:
    path, frame = tmp_path / f"data{suffix}", messy()
    frame.loc[10 : 7 + gaps, "age"] = np.nan
    frame.loc[3, "y"] = np.nan
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    found = inspect_file(path, "y", Reading(), None)
    said = notes(found)
    assert said["id"] == ("numbers the rows",) and said["same"] == ("constant",) and said["size"][0] == "L, M, S"
    assert said["name"] == (
        "nearly every row has a different value, so the column identifies the rows and is not a feature",
    )
    assert said["months"] == ("a copy of 'age' in other units",) and "cells are empty" in said["late"][0]
    kinds = {one.name: one.kind for one in found.columns}
    assert kinds["id"] == "whole number" and kinds["age"] == "number" and kinds["size"] == "words (3)"
    assert "--drop id,name,same,late" in found.options and "--encode onehot" in found.options
    assert ("--na drop" if gaps == 2 else "--na mean") in found.options
    assert ("--na-within folds" in found.options) == (gaps != 2)
    assert read_as_told(path, found) == (found.n, found.p)


def test_many_subjects_named_by_words_are_held_out_together(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = [f"P{k // 4},{k % 4},{k * k % 11},{k % 7}\n" for k in range(240)]
    path.write_text("who,visit,a,y\n" + "".join(rows))
    found = inspect_file(path, "y", Reading(), None)
    assert notes(found)["who"] == (
        "each value has several rows (distinguished by 'visit'): --folds groups:who:10 holds the rows of a value out "
        "together",
    )
    assert found.options == ("--folds groups:who:10",)
    assert (found.n, found.p, found.folds, found.refused) == (240, 2, 10, "")
    found = inspect_file(path, "y", Reading(), None, ["who", "visit", "a"])
    assert (found.options, found.refused) == (("--features visit,a", "--folds groups:who:10"), "")
    path.write_text("who,a,y\n" + "".join(f"P{k % 60},{k * k % 11},{k % 7}\n" for k in range(240)))
    found = inspect_file(path, "y", Reading(), None)
    assert notes(found)["who"] == (
        "60 text values in 240 rows, too many for a feature; if each is a subject, give --folds groups:who",
    )
    assert found.options == ("--drop who",)


@pytest.mark.parametrize("form", ["P{}", "{}"])
def test_a_row_without_a_subject_is_skipped_by_the_proposed_command(form: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "visits.csv", np.random.default_rng(1)
    ids = ["" if k in (7, 8, 30) else form.format(k // 4 + 1) for k in range(96)]
    numbers = rng.normal(size=(2, 96))
    lines = [f"{name},{a:.3f},{b:.3f}" for name, a, b in zip(ids, *numbers, strict=True)]
    path.write_text("\n".join(["patient,x,y", *lines]) + "\n")
    found = inspect_file(path, "y", Reading(), None)
    assert found.options == ("--skip-lines '9,10,32'", "--folds groups:patient:10") or found.options == (
        "--skip-lines '9:10,32'", "--folds groups:patient:10",
    )  # fmt: skip
    assert (found.n, found.p, found.folds, found.refused) == (93, 1, 10, "")
    assert notes(found)["patient"][-1].endswith("--skip-lines leaves the rows out; or write the subject there")


@pytest.mark.parametrize("name", ["centre", "study_site", "Center code", "recentre", "arm"])
def test_a_column_of_centres_has_its_two_options(name: str, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(3), tmp_path / "t.csv"
    frame = pd.DataFrame({name: rng.choice(["Bari", "Lyon", "Rome"], 40), "u": rng.normal(size=40)})
    frame.assign(y=frame["u"] + rng.normal(size=40)).to_csv(path, index=False)
    said = "; ".join(notes(inspect_file(path, "y", Reading(), None))[name])
    advised = re.findall(r"(--adjust|--folds) ('[^']+'|[^\s,]+)", said)
    assert len(advised) == (0 if name in ("recentre", "arm") else 2)
    for option, value in advised:
        ask = ["solve", str(path), "-t", "y", "--encode", "onehot", "--gamma", "1", "--tau", "1", "-q"]
        assert run([*ask, option, *shlex.split(value)]) == 0


@pytest.mark.parametrize("name", ["MRN", "case_no"])
def test_numbers_of_subjects_in_random_folds_are_named(name: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(60) // 4, rng.normal(size=60)]).astype(float)
    data = Dataset.from_arrays(X, rng.normal(size=60), [name, "x"])
    (note,) = collect_answer_warnings(data, make_folds("5", data), {}, 0.0)
    assert note.startswith(f"feature {name!r} has 15 values with several rows each") and f"groups:{name}" in note
    assert collect_answer_warnings(data, make_folds("forward:5", data), {}, 0.0) == ()
    other = Dataset.from_arrays(X, data.y, ["dose", "x"])
    assert collect_answer_warnings(other, make_folds("5", other), {}, 0.0) == ()


def test_the_spread_of_a_column_divides_by_one_less_than_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,1\n2,5\n4,2\n9,\n")
    spreads = {one.name: one.spread for one in inspect_file(path, "y", Reading(), None).columns}
    assert spreads["a"] == pytest.approx(pd.Series([1, 2, 4, 9]).std())
    assert spreads["y"] == pytest.approx(pd.Series([1, 5, 2]).std())


def test_features_that_were_named_are_proposed_but_for_names(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    messy().to_csv(path, index=False)
    found = inspect_file(path, "y", Reading(), None, ["id", "age", "size"])
    assert [one.name for one in found.columns] == ["id", "age", "size", "y"] and found.refused == ""
    assert "--features age,size" in found.options and not any("--drop" in option for option in found.options)
    found = inspect_file(path, "y", Reading(), None, ["id"])
    assert found.refused.startswith("no feature is left") and found.options == ()


@pytest.mark.parametrize("loss", [None, "logistic", "poisson"])
def test_id_is_proposed_and_single_levels_are_stated(loss: str | None, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    counts = [k * k % 2 if loss == "logistic" else k * 5 % 7 for k in range(60)]
    path.write_text(
        "who,x,site,y\n" + "".join(f"p{k // 3},{k * k % 13},{'abc'[k % 3]},{y}\n" for k, y in enumerate(counts))
    )
    found = inspect_file(path, "y", Reading(), None, loss=None if loss is None else Loss(loss), roles={"id": "who"})
    assert "--id who" in found.options and not any("--drop" in option for option in found.options)
    assert (found.levels_alone, found.levels_together) == (4, 2)
    assert found.p == (2 if loss is None else 4) and ("--count factors" in found.options) == (loss is None)
    shown = printed(lambda console: print_inspection(console, found, path), 400)
    alone = "each level of a text column counts as a feature: to count each text column as one feature (2 features in"
    assert shown.count(alone) == 1 and "in total; slower), use --count factors" in shown
    assert run(shlex.split(next(line for line in shown.splitlines() if "sparsecv solve" in line))[1:] + ["-q"]) == 0
    assert inspect_file(path, "y", Reading(), None, ["x"], roles={"id": "who"}).options.count("--features x") == 1
    with pytest.raises(BadInput, match="^id: 'wha' is the target, or is not a column"):
        inspect_file(path, "y", Reading(), None, roles={"id": "wha"})


def test_weights_are_proposed_and_no_feature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data.csv"
    rows = "".join(f"{k * k % 13},{k % 7},{k * 5 % 11},{int(k != 3)},{k * 7 % 5}\n" for k in range(30))
    path.write_text("x,z,weight,w,y\n" + rows)
    assert inspect_file(path, "y", Reading(), None).weights == ("weight",)
    found = inspect_file(path, "y", Reading(), None, roles={"weights": "w"})
    assert "--weights w" in found.options and found.weights == () and (found.n, found.p) == (29, 3)
    assert run(["inspect", str(path), "-t", "y", "--weights", "w"]) == 0
    shown = capsys.readouterr().out
    assert run(shlex.split(next(line for line in shown.splitlines() if "sparsecv solve" in line))[1:] + ["-q"]) == 0
    path.write_text("x,w,y\n1,-1,3\n2,1,5\n3,1,2\n5,1,1\n")
    assert inspect_file(path, "y", Reading(), None, roles={"weights": "w"}).refused.startswith("w is -1 in row 1")


def test_clean_files_need_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,3\n2,2.5,1\n4,0,2\n1,2,3\n")
    found = inspect_file(path, "y", Reading(), None)
    assert (found.options, found.n, found.p, found.incomplete, found.duplicates) == ((), 4, 2, 0, 1)
    assert inspect_file(path, None, Reading(), ["b"]).p == 2
    np.savez(tmp_path / "data.npz", X=np.arange(12.0).reshape(4, 3) ** 2, y=np.ones(4))
    assert inspect_file(tmp_path / "data.npz", None, Reading(), None).target == "y"


def test_cells_of_text_among_numbers_and_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('a,b,y\n1,"1,5",3\n2,"2,5",1\n4x,"3,5",2\n')
    found = inspect_file(path, "y", Reading(), None)
    assert found.doubts == {"b": "'1,5' in row 1; give decimal=\",\" (1.5)"}
    found = inspect_file(path, "y", Reading.from_keywords(decimal=","), None)
    assert notes(found)["a"][0].startswith("holds text '4x' in row 3; text in 1 of 3")
    assert found.options == ("--decimal ','", "--drop a") and read_as_told(path, found) == (3, 1)
    path.write_text("year,day,y\n1001,2024-01-05,1\n1002,2024-01-06,2\n1003,2024-02-05,2\n1004,2024-03-05,2\n")
    found = inspect_file(path, "y", Reading(), None)
    assert (
        found.options == ("--dates 'days'", "--loss logistic")
        and "so it may only number the rows" in notes(found)["year"][0]
    )
    path.write_text(path.read_text().replace("year", "id"))
    assert inspect_file(path, "y", Reading(), None).options == ("--dates 'days'", "--drop id", "--loss logistic")
    path.write_text("a,y\n1,2\n1,2,3\n")
    with pytest.raises(BadInput, match="has 3 cells in line 3"):
        inspect_file(path, "y", Reading(), None)


def answer_notes(data: Dataset, folds: str = "5", **coefficients: float) -> tuple[str, ...]:
    """Return the sentences about an answer with intercept 0."""
    return collect_answer_warnings(data, make_folds(folds, data), coefficients, 0.0)


@pytest.mark.parametrize("kind", ["squared", "classes", "counts"])
def test_copies_of_the_target_are_named_and_dropped(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x, noise = rng.normal(size=(2, 40))
    y = {"squared": x + 0.1 * noise, "classes": (x > 0.0) * 1.0, "counts": rng.poisson(np.exp(x)) * 1.0}[kind]
    columns = {"x": x, "in euros": 3.0 - 0.92 * y, "near": y + 0.1 * noise, "y": y}
    frame = pd.DataFrame(columns | ({"y": np.where(y > 0.0, "ill", "healthy")} if kind == "classes" else {}))
    frame.to_csv(tmp_path / "leak.csv", index=False)
    found = inspect_file(tmp_path / "leak.csv", "y", Reading(), None)
    note = "a copy of 'y' in other units, the target"
    assert note in {facts.name: facts.notes for facts in found.columns}["in euros"]
    assert "--drop 'in euros'" in found.options and found.p == 2
    data = Dataset.from_arrays(frame.iloc[:, :3], y)
    data = {"squared": lambda same: same, "classes": as_two_classes, "counts": as_counts}[kind](data)
    (warning,) = [text for text in answer_notes(data, **{"in euros": 1.0, "near": 0.1}) if "copy" in text]
    assert warning == f"feature 'in euros' is {note}; give --drop 'in euros' if it is not known before the target"


def test_separated_classes_are_named() -> None:
    x = np.arange(-10.0, 10.0) + 0.5
    data = as_two_classes(Dataset.from_arrays(x[:, None], np.where(x > 0.0, 1.0, 0.0)))
    (note,) = answer_notes(data, x0=3.0)
    assert note.startswith("the model separates the two classes in all rows: only gamma")
    mixed = as_two_classes(Dataset.from_arrays(x[:, None], np.where(np.abs(x) > 5.0, 1.0, 0.0)))
    assert answer_notes(mixed, x0=3.0) == answer_notes(data) == ()


def test_a_level_of_one_class_or_without_counts_is_named() -> None:
    rng = np.random.default_rng(1)
    level, x = np.repeat([1.0, 0.0], [4, 36]), rng.normal(size=40)
    counts = np.where(level > 0.0, 0.0, 1.0 + np.arange(40) % 3)
    data = as_counts(Dataset.from_arrays(np.column_stack((level, x)), counts, names=["van", "x"]))
    (note,) = answer_notes(data, van=-9.0, x=0.1)
    assert note.startswith("all 4 rows with 'van' = 1 have the count 0: only gamma")
    assert answer_notes(data, x=0.1) == ()
    classes = as_two_classes(
        Dataset.from_arrays(np.column_stack((level, x)), (counts == 1.0) * 1.0, names=["van", "x"])
    )
    (note,) = answer_notes(classes, van=-9.0)
    assert note.startswith("all 4 rows with 'van' = 1 have the class '0': only gamma")


def test_copies_of_rows_are_named_where_folds_are_random() -> None:
    X = np.random.default_rng(2).normal(size=(30, 2))
    twice = Dataset.from_arrays(np.vstack((X, X[:10])), np.concatenate((X[:, 0], X[:10, 0])))
    for folds in ("5", "2x5", "loo", "holdout:0.2"):
        (note,) = answer_notes(twice, folds, x1=1.0)
        assert note.startswith("10 of 40 rows repeat an earlier row, target included. If they are copies of one")
    assert answer_notes(twice, "forward:3", x1=1.0) == ()
    assert answer_notes(Dataset.from_arrays(np.rint(X), np.rint(X[:, 0])), x1=1.0) == ()  # few values: no copies


def test_a_feature_that_may_be_an_exposure_is_named() -> None:
    rng = np.random.default_rng(3)
    table = {"days": rng.uniform(1.0, 9.0, 40), "x": rng.normal(size=40), "n": rng.poisson(2.0, 40)}
    data = as_counts(Dataset.from_frame(pd.DataFrame(table), "n"))
    (note,) = answer_notes(data, x=1.0)
    assert note == "feature 'days' may be the exposure of the counts; to model the rate, give --exposure days"
    table["days"][5] = 0.0  # an error in one row
    data = as_counts(Dataset.from_frame(pd.DataFrame(table), "n"))
    (note,) = answer_notes(data, x=1.0)
    assert note.endswith("correct or remove the rows in which it is 0, and give --exposure days")
    assert answer_notes(Dataset.from_frame(pd.DataFrame(table), "n"), x=1.0) == ()


def test_a_record_warns_of_separated_classes() -> None:
    x = np.arange(24.0)
    frame = pd.DataFrame({"x": x, "u": x % 5, "ill": np.where(x > 11.0, "yes", "no")})
    found = solve(frame, "ill", loss="logistic", folds=4, gammas=1e-6, taus=1)
    assert any("separates the two classes" in warning for warning in found.warnings)


def test_columns_that_differ_by_rounding_or_are_constant_texts_are_dropped(tmp_path: Path) -> None:
    path, rng = tmp_path / "data.csv", np.random.default_rng(2)
    kg = rng.normal(75, 12, 40)
    rows = (f"{k:.1f},{2.20462 * k:.1f},A7,{k / 9 + e:.2f}\n" for k, e in zip(kg, rng.normal(size=40), strict=True))
    path.write_text("kg,lb,device,y\n" + "".join(rows))
    found = inspect_file(path, "y", Reading(), None)
    assert "--drop lb,device" in found.options
    assert found.columns[1].notes == ("a copy of 'kg' in other units, up to rounding",)
    assert found.columns[2].notes == ("constant: A7",)


def test_columns_that_differ_by_more_than_their_last_decimals_are_not_copies(tmp_path: Path) -> None:
    path, rng = tmp_path / "data.csv", np.random.default_rng(3)
    x, noise = rng.normal(size=60), rng.normal(size=60)
    columns = {
        "x": x,
        "noisy": x + 1e-4 * noise,
        "quiet": x + 1e-6 * noise,
        "inches": x / 2.54,
        "short": np.round(x, 4),
    }
    pd.DataFrame({**columns, "y": x + noise}).to_csv(path, index=False)
    found = inspect_file(path, "y", Reading(), None)
    notes = [column.notes[0] for column in found.columns[1:5]]
    near = "correlation above 0.999 with 'x'"
    assert notes == [near, near, "a copy of 'x' in other units", "a copy of 'x', up to rounding"]
    assert [column.name for column in found.columns if column.drop] == ["inches", "short"]


@pytest.mark.parametrize(
    ("values", "code", "noted"),
    [
        ([26.0, 31.5, 22.1, 28.4], 99.9, True),
        ([1.0, 2.0, 3.0, 5.0], 9.0, True),
        ([1.0, 2.0, 3.0, 5.0], -9.0, True),
        ([900.0, 1010.0, 1150.0, 980.0], -1.0, True),
        ([0.0, 1.0, 1.0, 0.0], -1.0, False),
        ([4.0, 6.0, 7.0, 8.0], 9.0, False),
        ([1.0, 1.0, 2.0, 2.0], -1.0, False),
        ([2.0, 3.0, 4.0, 2.0], -1.0, True),
    ],
)
def test_possible_codes_are_named_and_not_proposed(
    values: list[float], code: float, noted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "data.csv"
    cells = [*np.tile(values, 9).tolist(), code, code]
    path.write_text("a,b,y\n" + "".join(f"{k * k % 13},{v},{k * 5 % 17}\n" for k, v in enumerate(cells)))
    found = inspect_file(path, "y", Reading(), None)
    words = f"{code:g} is far from all other values; give --na-values b={code:g} and --na if it is a missing-value code"
    assert (words in found.columns[1].notes) is noted and not any("--na-values" in one for one in found.options)
    data = read_dataset(path, "y")
    notes = stand_in_notes(data.X, data.y, data.names, data.target)
    assert any(f"column 'b' holds {code:g}, far from" in note for note in notes) is noted


@pytest.mark.parametrize(
    ("others", "code", "noted"),
    [
        ([15.0, 22.5, 39.0, 27.0], -9, True), ([77.0, 171.0, 120.0, 95.0], -1, True),
        ([522.0, 13592.0, 800.0, 2000.0], -8, True), ([35.6, 38.2, 37.0, 36.5], 0, True),
        ([0.0, 1.0, 2.0, 3.0], -1, False), ([-3.0, 5.0, 12.0, 14.0], -9, False), ([1.0, 2.0, 3.0, 4.0], 0, False),
        ([15.0, 22.5, 39.0, 27.0], -5, False),
    ],
)  # fmt: skip
def test_the_only_negative_value_may_be_a_code(others: list[float], code: int, noted: bool, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    cells = [*np.tile(others, 9).tolist(), code, code]
    path.write_text("a,b,y\n" + "".join(f"{k * k % 13},{v},{k * 5 % 17}\n" for k, v in enumerate(cells)))
    notes = inspect_file(path, "y", Reading(), None).columns[1].notes
    assert any(f"give --na-values b={code:g} and" in note for note in notes) is noted


def test_few_whole_numbers_may_be_codes_of_categories(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("cyl,n,y\n" + "".join(f"{4 + 2 * (k % 3)},{k * k % 13},{k * 5 % 17}\n" for k in range(40)))
    cyl, n, y = inspect_file(path, "y", Reading(), None).columns
    assert "3 different whole numbers; if they are codes of categories, give --categories cyl" in cyl.notes
    assert not any("--categories" in note for note in (*n.notes, *y.notes))
    again = inspect_file(path, "y", Reading.from_keywords(categories="cyl"), None)
    assert again.columns[0].kind == "words (3)" and "--categories cyl" in " ".join(again.options)


def test_copies_of_rows_are_named_unless_chance_explains_them() -> None:
    """Rounded measurements repeat in no row by chance; few questions of few answers do."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(20, 60, 90), rng.integers(100, 140, 90), rng.integers(0, 2, (90, 6))])
    y = rng.integers(0, 9, 90).astype(float)
    twice = Dataset.from_arrays(np.vstack([X, X[:9]]), np.append(y, y[:9]))
    (note,) = collect_answer_warnings(twice, make_folds("5", twice), {}, 0.0)
    assert note.startswith("9 of 99 rows repeat an earlier row, target included")
    few = rng.integers(0, 2, (200, 5)).astype(float)
    answers = Dataset.from_arrays(few[:, :4], few[:, 4])
    assert collect_answer_warnings(answers, make_folds("5", answers), {}, 0.0) == ()


def test_a_factor_with_a_level_for_every_few_rows_is_named(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "visits.csv"

    def warned(levels: int, rows: int, folds: str, options: dict[str, object]) -> tuple[str, ...]:
        who = [f"p{k % levels}" for k in range(rows)]
        lines = [f"{name},{a:.3f},{b:.3f}" for name, a, b in zip(who, *rng.normal(size=(2, rows)), strict=True)]
        path.write_text("\n".join(["a person,x,y", *lines]))
        data = read_dataset(path, "y", **options)  # type: ignore[arg-type]
        return collect_answer_warnings(data, make_folds(folds, data), {}, 0.0)

    onehot = {"encode": "onehot"}
    for folds in ("5", "loo", "stratified:5", "2x5"):
        (note,) = warned(12, 60, folds, onehot)
        assert note.startswith(
            "column 'a person' has 12 levels of 5 rows each, and the rows of a level are in several folds. If the"
        )
        assert "give --folds 'groups:a person' to" in note and note.endswith(", or --drop 'a person'")
    (note,) = warned(12, 50, "5", onehot)
    assert "12 levels of 4 to 5 rows each" in note
    assert warned(12, 60, "forward:5", onehot) == ()
    assert warned(12, 60, "5", {"drop": ["a person"]}) == ()
    assert warned(5, 60, "5", onehot) == () == warned(12, 400, "5", onehot)  # an ordinary factor
    with pytest.raises(BadInput, match='drop=.*; or folds="groups:a person" if they are subjects'):
        warned(60, 180, "5", onehot)  # too many levels for a factor
    assert warned(40, 60, "5", onehot) == ()  # half of the levels have one row


@pytest.mark.parametrize("label", ["Summe", "Total", ""])
def test_a_last_row_of_sums_is_proposed_to_be_skipped(label: str, tmp_path: Path) -> None:
    """The label is in a column of dates, so that no numeric column holds text."""
    path, rng = tmp_path / "export.csv", np.random.default_rng(0)
    values = rng.normal(10.0, 2.0, (20, 3)).round(2)
    rows = [f"2024-01-{k + 1:02d},{','.join(map(str, row))}" for k, row in enumerate(values)]
    total = ",".join(f"{number:.2f}" for number in values.sum(axis=0))
    path.write_text("\n".join(["day,a,b,y", *rows, f"{label},{total}"]) + "\n")
    found = inspect_file(path, "y", Reading(), None)
    assert found.n == 20 and "--skip-lines '22'" in found.options
    with pytest.raises(BadInput, match=f'row (21, the last one, holds the sums|holds text.*{label}).* skip_lines="22"'):
        read_dataset(path, "y")
    path.write_text("\n".join(["day,a,b,y", *rows]) + "\n")
    assert not any("--skip-lines" in option for option in inspect_file(path, "y", Reading(), None).options)


def test_decimal_commas_below_a_line_of_units_are_found(tmp_path: Path) -> None:
    """The advice of each message leads to the command that reads the file."""
    path, rng = tmp_path / "lab.csv", np.random.default_rng(3)
    rows = [";".join(f"{v:.2f}".replace(".", ",") for v in row) for row in rng.normal(50, 9, (30, 3))]
    path.write_text("\n".join(["Labor 3", "Temp;pH;y", "C;-;%", *rows]) + "\n")
    with pytest.raises(BadInput, match='give skip_lines="1" and sep="semicolon"$'):
        read_dataset(path, "y")
    with pytest.raises(BadInput, match='give sep="semicolon"$'):
        read_dataset(path, "y", skip_lines="1")
    found = inspect_file(path, "y", Reading(skip_lines="1", sep=";"), None)
    assert found.doubts and all('give decimal=","' in said for said in found.doubts.values())
    found = inspect_file(path, "y", Reading(skip_lines="1", sep=";", decimal=","), None)
    assert not found.refused and (found.n, found.p) == (30, 2)
    assert "--decimal ','" in found.options and "--skip-lines '1,3'" in found.options


@pytest.mark.parametrize(
    ("classes", "positive"),
    [("Ja Nein", "Ja"), ("Non oui", ""), ("No Sí", ""), ("event no_event", "event"), ("case control", "case"),
     ("no yes", ""), ("A B", "")],
)  # fmt: skip
def test_the_class_that_means_yes_is_proposed_as_positive(classes: str, positive: str, tmp_path: Path) -> None:
    path, words = tmp_path / "data.csv", classes.split()
    path.write_text("a,y\n" + "".join(f"{k * k % 13},{words[k * k % 7 % 2]}\n" for k in range(24)))
    options = inspect_file(path, "y", STRICT, None).options
    assert [option for option in options if "positive" in option] == ([f"--positive {positive}"] if positive else [])


def test_spellings_of_one_answer_are_one_class(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "".join(f"{k * k % 13},{('Ja', 'nein', 'ja', 'NEIN')[k % 4]}\n" for k in range(24)))
    found = inspect_file(path, "y", STRICT, None)
    assert found.two_classes and not found.refused and "'ja' (12 rows) rather than 'nein'" in found.about_target


@pytest.mark.parametrize("texts", [["-", "-"], ["\u2014"], ["n.a."], ["n.a.", "ND"], ["12 kg", "12 kg"]])
def test_texts_among_numbers_are_named_with_the_option_that_reads_them(texts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = [f"{k * k % 13},{dict(enumerate(texts)).get(k, k)},{k % 7 + k / 9:.2f}\n" for k in range(24)]
    path.write_text("a,b,y\n" + "".join(rows))
    found, codes = inspect_file(path, "y", STRICT, None), ",".join(sorted(set(texts)))
    assert "--drop b" in found.options and found.columns[1].kind == "mixed" and not found.refused
    advice = f'correct them, give na_values="{codes}" and na="drop" or na="mean" if they mark missing values'
    assert advice in found.columns[1].notes[0]
    with pytest.raises(BadInput, match=f"'b' holds text .* in row 1 .line 2.; .*{re.escape(advice)}"):
        read_dataset(path, "y")
    assert read_dataset(path, "y", na_values=codes, na="drop").n == 24 - len(texts)


def test_a_usual_code_that_may_be_a_text_value_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    rows = [f"{('none', 'shed', 'none', 'wood')[k % 4]},{k * k % 11},{k}\n" for k in range(40)]
    path.write_text("shed,a,y\n" + "".join(rows))
    (shed, *_) = inspect_file(path, "y", Reading(), None).columns
    assert any("'none' in 20 cells counted as missing; if such a code is a text value" in note for note in shed.notes)
    found = inspect_file(path, "y", Reading.from_keywords(keep_default_na=False), None)
    assert found.options[:2] == ("--no-keep-default-na", "--encode onehot") and not found.refused
