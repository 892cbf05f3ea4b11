"""A record of any kind from its file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.certificate.fit_records import FIT_SCHEMA, PATH_SCHEMA, FitRecord, PathRecord
from sparsecv_mio.certificate.parts import applied_reading, reading_info, versions
from sparsecv_mio.certificate.read_back import AnyRecord, read_again, read_drawable_record, read_record
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.api import solve

from .examples import DATA, REQUEST, WORK, example

ROW = PathRow(0.1, 1, ("a b",), {"a b": 1.0}, 0.5, 3.0, 2.9, 3.0, False)
PATH = PathRecord(PATH_SCHEMA, "limit", (ROW,), WORK, DATA, REQUEST, (), versions())
FIT = FitRecord(
    schema=FIT_SCHEMA, backend="native", formulation="path", status="proved", tau=1, gamma=0.1, support=("a b",),
    coefficients={"a b": 1.0}, intercept=0.5, objective=3.0, lower=2.9, upper=float("inf"), gap=float("inf"),
    requested_gap=1e-4, allowance=0.0, nodes=3, cuts=0, seconds=0.25, setup_seconds=0.0, stop="optimal", raw_status="2",
    data=DATA, warnings=(), versions=versions(),
)  # fmt: skip


@pytest.mark.parametrize("record", [example(), PATH, FIT], ids=["record", "path", "fit"])
def test_every_kind_comes_back_as_itself(record: AnyRecord, tmp_path: Path) -> None:
    record.write_record(tmp_path / "record.json")
    again = read_record(tmp_path / "record.json")
    assert again == record and type(again) is type(record) and again.to_json() == record.to_json()


def test_each_kind_is_short_on_a_screen() -> None:
    assert repr(PATH) == "PathRecord(limit: tau 1 to 2, 2 gammas)" and PATH.to_frame().support.tolist() == [("a b",)]
    assert repr(FIT) == "FitRecord(proved: tau=1, gamma=0.1, objective 3 in [2.9, ?])"


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(CorruptStore, match="schema must be 'sparsecv/2', not 'sparsecv-path/1'"):
        Record.from_json(PATH.to_json())
    with pytest.raises(CorruptStore, match=r"path\[0\].upper must be a number, not a text"):
        PathRecord.from_json(PATH.to_json().replace('"upper": 3.0', '"upper": "3"'))


def test_an_unreadable_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptStore, match="nowhere"):
        read_record(tmp_path / "nowhere.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CorruptStore, match="not a text file"):
        read_record(tmp_path / "binary.json")


def test_an_empty_table_has_no_figure(tmp_path: Path) -> None:
    empty = tmp_path / "record.json"
    replace(PATH, path=()).write_record(empty)
    with pytest.raises(CorruptStore, match=r"record.json: its table is empty; run the command of the record again$"):
        read_drawable_record(empty)


WRONG = [
    (["data", "names"], ["a b"], "data.names has 1 names, but data.p is 2"),
    (["data", "names"], ["a b", "a b"], "data.names has 'a b' twice"),
    (["data", "n"], 0, "data.n is 0"),
    (["request", "gammas"], [], "request.gammas is empty"),
    (["request", "taus"], [], "request.taus is empty"),
    (["support"], ["c"], "support names 'c', which is not in data.names"),
    (["coefficients"], {"c": 1.0}, "coefficients names 'c', which is not in data.names"),
    (["coefficients"], {}, "coefficients must have one value for each feature of support"),
    (["chosen_folds", 1, "support"], ["c"], "chosen_folds.supports names 'c'"),
    (["chosen_folds", 1, "error"], -1.0, "chosen_folds.error has a negative number"),
    (["table", 1, "upper"], -1.0, "table[1].upper has a negative number"),
    (["refit", "objective"], -3.0, "refit.objective has a negative number"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_a_record_that_does_not_agree_with_itself_is_refused(
    path: list[str | int], value: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.loads(example().to_json())
    part = text
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    place = tmp_path / "record.json"
    place.write_text(json.dumps(text))
    with pytest.raises(CorruptStore, match=re.escape(message)):
        read_record(place)
    data = tmp_path / "data.csv"
    data.write_text('a b,"quote""d",y\n1,2,3\n2,1,3\n0,1,2\n')
    for command in (["report"], ["plot"], ["predict", str(data)], ["verify", str(data)]):
        assert run([command[0], str(place), *command[1:]]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and message in told
    assert sorted(tmp_path.iterdir()) == [data, place]


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("messy") / "data.csv"
    rows = ["# collected by hand", "id;age;city;y"]
    for k in range(20):
        age = "" if k == 3 else f"{rng.normal(40, 9):.2f}".replace(".", ",")
        rows.append(f"{k};{age};{('Rome', 'Oslo', 'Bonn')[k % 3]};" + f"{rng.normal():.3f}".replace(".", ","))
    path.write_text("\n".join(rows) + "\n")
    return path


HOW = {"sep": ";", "decimal": ",", "comment": "#", "na": "mean", "encode": "onehot", "index_col": "id"}


def test_a_record_of_a_messy_file_is_verified_and_altered_ones_are_not(messy: Path) -> None:
    data = read_dataset(messy, "y", **HOW)  # type: ignore[arg-type]
    record = Record.from_json(solve(data, folds="5", gammas=0.1).to_json())
    assert record.warnings[0].startswith("1 missing value imputed by the mean")
    assert applied_reading(record.data.reading) == replace(data.reading, notes=())  # type: ignore[type-var]
    again = read_again(messy, record.data)
    assert again.fingerprint == data.fingerprint and verify(record, again).ok
    found = record.data.reading
    assert found is not None and found == reading_info(data.reading)
    for change in ({"means": {"age": 41.0}}, {"levels": {}}, {"left_out": 1}, {"columns": ("city", "age")}):
        wrong = replace(record, data=replace(record.data, reading=replace(found, **change)))  # type: ignore[arg-type]
        assert [one.field for one in verify(wrong, again).failures] == ["data.reading"]
    assert not verify(replace(record, data=replace(record.data, reading=None)), again).ok
    words = replace(record, data=replace(record.data, reading=replace(found, keep_default_na=False)))
    report = verify(words, messy)  # the file has no missing-value codes
    read = {name for words in report.reread for name in words.split(", ") if "reading" in name}
    assert report.ok and {"data.reading.keep_default_na", "data.reading.na"} <= read
    assert read.isdisjoint({"data.reading.means", "data.reading.levels", "data.reading.left_out"})


def test_a_reading_that_cannot_be(messy: Path) -> None:
    data = read_dataset(messy, "y", **HOW)  # type: ignore[arg-type]
    text = json.loads(solve(data, folds="5", gammas=0.1, taus=1).to_json())
    text["data"]["reading"]["na"] = "guess"
    with pytest.raises(CorruptStore, match="field data.reading is not valid"):
        read_again(messy, Record.from_json(json.dumps(text)).data)
