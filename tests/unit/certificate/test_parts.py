"""What `verify` is given may be anything: every refusal is one line that names the field, with exit code 2."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repository import ROOT

from sparsecv_mio.certificate.parts import ChosenFold, ChosenFolds, relative_gap
from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run as call
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.search.api import cross_validate

from .examples import example


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a record of them."""
    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = X[:, 0] + rng.normal(size=12)
    rows = "\n".join(",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist())
    (folder / "data.csv").write_text(f"a,b,c,y\n{rows}\n")
    data = Dataset.from_arrays(X, y, names=["a", "b", "c"])
    record = cross_validate(data, make_folds("3", data), gammas=[0.1, 1.0], taus=[1, 2], threads=1)
    record.write_record(folder / "true.json")
    return folder


def run(place: Path, record: str | Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = call(["verify", str(record), str(place / "data.csv")])
    return code, capsys.readouterr().err


def with_number(place: Path, path: list[Any], literal: str) -> str:
    """The true record with one value replaced by literal JSON."""
    record = json.loads((place / "true.json").read_text())
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "PLACE"
    return json.dumps(record).replace('"PLACE"', literal)


def test_the_record_itself_passes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place, place / "true.json", capsys) == (0, "")


HUGE = ["1" * 400, "1" * 5000, "1e400"]
# places of gammas, counts and numbers, and what none of them can be
OUT_OF_RANGE: list[tuple[list[list[Any]], list[str]]] = [
    (
        [["gamma"], ["refit", "gamma"], ["table", 1, "gamma"], ["request", "gammas", 0]],
        [*HUGE, "-1e400", "-0.1", "NaN", "Infinity", '"x"'],
    ),
    ([["tau"], ["table", 0, "folds"], ["data", "n"]], [*HUGE, "-1", "1.5", "true", "null"]),
    ([[name] for name in ("cv_error", "lower", "upper", "tie_width", "allowance", "intercept")], [*HUGE, "-1e400"]),
]


@pytest.mark.parametrize(
    ("path", "literal"), [(path, one) for places, literals in OUT_OF_RANGE for path in places for one in literals]
)
def test_a_number_out_of_range_is_named(
    place: Path, path: list[Any], literal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    field = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
    (place / "bad.json").write_text(with_number(place, path, literal))
    code, message = run(place, place / "bad.json", capsys)
    assert code == 2 and message.count("\n") == 1
    assert f"field {field} " in message or literal in ("NaN", "Infinity")


@pytest.mark.parametrize("literal", ['"\\ud800"', '"file:\\ud800"'])
def test_text_that_is_not_unicode_is_named(place: Path, literal: str, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (["folds", "spec"], ["support", 0], ["work", "engine"]):
        (place / "bad.json").write_text(with_number(place, path, literal))
        code, message = run(place, place / "bad.json", capsys)
        assert code == 2 and message.count("\n") == 1 and "not a JSON file" in message
        assert f'{path[0] if path[1] == 0 else path[1]}"' in message  # the text before the place


@pytest.mark.parametrize("depth", [200, 900, 990, 5000, 200_000])
def test_deep_nesting_is_refused(place: Path, depth: int, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("[" * depth + "]" * depth, with_number(place, ["gamma"], '{"a":' * depth + "1" + "}" * depth)):
        (place / "bad.json").write_text(text)
        code, message = run(place, place / "bad.json", capsys)
        assert code == 2 and message.count("\n") == 1


def test_names_of_files_that_cannot_be(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for record in ("x" * 300, "nowhere.json", str(place)):
        code, message = run(place, record, capsys)
        assert code == 2 and message.count("\n") == 1
    assert call(["verify", str(place / "true.json"), "x" * 300 + ".csv"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "spec", ["file:/dev/zero", "file:" + "x" * 300, "file:nowhere", "file:/", "file:a\\u0000b", "file:PIPE"]
)
def test_fold_files_that_cannot_be(
    place: Path, spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    pipe = place / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    (place / "bad.json").write_text(with_number(place, ["folds", "spec"], f'"{spec.replace("PIPE", str(pipe))}"'))
    code, message = run(place, place / "bad.json", capsys)
    assert code == 2 and message.count("\n") == 1 and "fold" in message


@pytest.mark.parametrize("field", [["folds", "spec"], ["data", "weights"]])
def test_a_file_outside_of_the_working_directory_is_not_opened(
    place: Path, field: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, work = place / "secret.txt", place / "work"
    secret.write_text("password\n")
    work.mkdir(exist_ok=True)
    monkeypatch.chdir(work)
    (work / "link.txt").unlink(missing_ok=True)
    (work / "link.txt").symlink_to(secret)
    for name in (str(secret), "../secret.txt", "link.txt"):
        (place / "bad.json").write_text(with_number(place, field, f'"file:{name}"'))
        code, message = run(place, place / "bad.json", capsys)
        assert code == 2 and message.count("\n") == 1
        assert (
            f"{'.'.join(field)}: the file '{name}' of the record is outside the working directory and is not opened"
            in message
        )


def test_an_endless_fold_file_is_not_read(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    huge = place / "huge.csv"
    with huge.open("wb") as stream:
        stream.truncate(1 << 40)  # sparse: takes no room
    (place / "bad.json").write_text(with_number(place, ["folds", "spec"], f'"file:{huge}"'))
    code, message = run(place, place / "bad.json", capsys)
    huge.unlink()
    assert code == 2 and message.count("\n") == 1 and "bytes" in message


def test_a_record_must_be_a_regular_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = place / "record-pipe"
    os.mkfifo(pipe)
    for record in ("/dev/zero", "/dev/null", str(pipe)):
        code, message = run(place, record, capsys)
        assert code == 2 and message.count("\n") == 1 and "regular file" in message
    huge = place / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(1 << 40)
    code, message = run(place, huge, capsys)
    huge.unlink()
    assert code == 2 and "bytes" in message


def test_records_of_all_three_schemas_are_read(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(place / "data.csv")
    for command in (["path", data, "--target", "y"], ["fit", data, "--target", "y", "--tau", "2", "--gamma", "0.1"]):
        file = tmp_path / f"{command[0]}.json"
        assert call([*command, "--json", str(file), "--quiet"]) == 0
        capsys.readouterr()
        assert call(["verify", str(file), data]) == 0
        shown = capsys.readouterr().out
        verdict, second = shown.splitlines()[:2]
        assert verdict.startswith(
            "the record agrees with the data: its answer was recomputed and its bounds were verified"
        )
        assert second.startswith("verified ")
    text = (place / "true.json").read_text().replace("sparsecv/2", "sparsecv/9")
    with pytest.raises(CorruptStore, match="schema"):
        Record.from_json(text)
    assert isinstance(read_record(place / "true.json"), Record)
    with pytest.raises(FileNotFoundError, match="none.json: does not exist; check the path$") as caught:
        read_record(place / "none.json")
    assert isinstance(caught.value, CorruptStore)


def test_no_message_is_a_traceback(place: Path) -> None:
    """In a process of its own, where nothing stands between an exception and the screen."""
    (place / "bad.json").write_text(with_number(place, ["request", "gap"], "9" * 5000))
    command = [sys.executable, "-m", "sparsecv_mio.cli", "verify", str(place / "bad.json"), str(place / "data.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "request.gap" in done.stderr


def test_a_failing_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    example().write_record(path)
    bad = ChosenFolds.of([("a b",)] * 3, [1.0, math.nan, 3.0])
    with pytest.raises(ValueError):
        example(chosen_folds=bad).write_record(path)
    assert read_record(path) == example()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_and_a_device_are_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    example().write_record(tmp_path / "link.json")
    assert read_record(tmp_path / "real.json") == example() and (tmp_path / "link.json").is_symlink()
    example().write_record(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_unwritable_place_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot write"):
        example().write_record(tmp_path / "nowhere" / "answer.json")
    with pytest.raises(BadInput, match="cannot write"):
        example().write_record(tmp_path)


def test_relative_gap() -> None:
    assert relative_gap(0.0, math.inf) == math.inf
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1.5, 2.0) == 0.25


def test_a_sequence_of_folds() -> None:
    folds = ChosenFolds.of([("a", "b"), (), ("a", "b")], [1.0, 2.0, 3.0], [True, False, True])
    assert folds.supports == (("a", "b"), ()) and len(folds) == 3 and repr(folds) == "ChosenFolds(3 folds, 2 supports)"
    assert folds[1] == ChosenFold(1, (), 2.0, False) and folds[-1].support == ("a", "b")
    assert folds[:2] == [folds[0], folds[1]] and [fold.error for fold in folds] == [1.0, 2.0, 3.0]
    assert folds == ChosenFolds((("a", "b"), ()), np.array([0, 1, 0]), folds.error, folds.decided)
    assert folds != ChosenFolds.of([("a", "b"), (), ()], folds.error, [True, False, True])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"fold": 1', '"fold": 2', r"chosen_folds\[1\].fold must be 1, not 2"),
        ('"fold": 1', '"fold": -1', r"chosen_folds\[1\].fold must be an integer >= 0"),
        ('"error": 2.0', '"error": "2"', r"chosen_folds\[1\].error must be a number or null, not a text"),
        ('"error": 2.0', '"error": 1e999', "out of range"),
        ('["quote', '[1, "quote', r"chosen_folds\[1\].support\[0\] must be a text, not an integer"),
    ],
)
def test_a_fold_that_is_wrong_is_named(old: str, new: str, message: str) -> None:
    head, _, folds = example().to_json().partition('"chosen_folds"')
    with pytest.raises(CorruptStore, match=message):
        Record.from_json(f'{head}"chosen_folds"{folds.replace(old, new, 1)}')


def test_many_folds_stay_small() -> None:
    k = 20_000
    folds = ChosenFolds((("a b",), ('quote"d',)), np.arange(k) % 2, np.linspace(0.0, 1.0, k), np.arange(k) % 3 > 0)
    text = example(chosen_folds=folds).to_json()
    assert Record.from_json(text).chosen_folds[k - 1] == folds[k - 1]
