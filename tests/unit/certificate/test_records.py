"""Predictions of a record: columns by name, missing ones named; how good they are."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import read_csv
from hypothesis import given
from hypothesis.strategies import floats
from repository import INSTANCES
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import sparsecv_mio as sc
from sparsecv_mio.certificate.accuracy import accuracy
from sparsecv_mio.certificate.parts import applied_reading, relative_gap
from sparsecv_mio.certificate.read_back import read_again
from sparsecv_mio.certificate.records import Classes, Counts, Record
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.report.publication import publication_text
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.targets import Loss

from .examples import example

FRAME = read_csv(INSTANCES / "prostate.csv")
DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


@pytest.fixture(scope="module")
def record() -> Record:
    return sc.solve(DATA, gammas=0.1, taus=3)


def test_rows_of_any_form_give_one_prediction(record: Record) -> None:
    used = list(record.coefficients)
    truth = FRAME[used].to_numpy() @ list(record.coefficients.values()) + record.intercept
    for X in (DATA, DATA.X, DATA.X.tolist(), FRAME, FRAME[used[::-1]], FRAME.assign(note="text")):
        assert record.predict(X) == pytest.approx(truth, rel=1e-12)
    assert record.predict(FRAME[:0]).shape == (0,)
    for path in (INSTANCES / "prostate.csv", str(INSTANCES / "prostate.csv")):
        assert record.predict(path) == pytest.approx(truth, rel=1e-12)
    with pytest.raises(sc.SparseCVError, match="'nosuch.csv' does not exist"):
        record.predict("nosuch.csv")


def test_a_fit_predicts_as_the_definition_says() -> None:
    from sparsecv_mio.problem.objective import fit

    model = fit_one(DATA, tau=2, gamma=0.1)
    plain = fit(DATA.X, DATA.y, [DATA.names.index(name) for name in model.support], 0.1)
    assert model.predict(DATA) == pytest.approx(plain.predict(DATA.X), rel=1e-10)


def test_a_file_is_read_as_the_training_rows_were(tmp_path: Path) -> None:
    lines = [f"{('none', 'old', 'new')[k % 3]};{k},5;{k // 2 + 9 * (k % 3 == 0)}" for k in range(24)]
    (tmp_path / "d.csv").write_text("\n".join(["town;x;y", *lines, ";2,5;1"]))
    how: dict[str, Any] = {"sep": ";", "decimal": ",", "encode": "onehot", "keep_default_na": False, "na": "drop"}
    found = sc.solve(tmp_path / "d.csv", "y", gammas=1e-3, taus=2, **how)
    assert found.support == ("town=none", "x")
    (tmp_path / "new.csv").write_text("x;town\n1,5;none\n;new\n1,5;new\n")
    first, empty, last = found.predict(tmp_path / "new.csv")
    assert np.isnan(empty) and first - last == pytest.approx(found.coefficients["town=none"], rel=1e-12)
    ends = found.predict_interval(tmp_path / "new.csv", data=sc.read_dataset(tmp_path / "d.csv", "y", **how))
    assert ends[0, 0] < first < ends[0, 1] and np.isnan(ends[1]).all() and ends[2, 0] < last < ends[2, 1]


def test_rows_of_a_frame_or_a_file_have_their_weights(tmp_path: Path) -> None:
    frame = FRAME.assign(w=np.arange(len(FRAME)) % 3)
    frame.to_csv(tmp_path / "w.csv", index=False)
    asked = sc.solve(frame, "lpsa", weights="w", gammas=0.1, taus=2, folds=5)
    data = sc.read_dataset(frame, "lpsa", weights="w")
    for read in (data, sc.read_dataset(tmp_path / "w.csv", "lpsa", weights="w")):
        found = sc.solve(read, gammas=0.1, taus=2, folds=5)
        assert (found.cv_error, found.folds, found.data) == (asked.cv_error, asked.folds, asked.data)
        assert sc.verify(found, read).ok and sc.verify(asked, read).ok
        assert sc.verify(found, sc.read_dataset(tmp_path / "w.csv", "lpsa", aux=["w"])).ok
    with pytest.raises(
        sc.SparseCVError,
        match=r"^weights: not supported here; use read_dataset\(frame, target, "
        r"weights=...\)",
    ):
        sc.Dataset.from_frame(frame, "lpsa", weights="w")
    with pytest.raises(
        sc.SparseCVError,
        match="^weights: 'w' is given, but the data already have the weights 'w'; leave this option out",
    ):
        sc.solve(data, weights="w")


def test_codes_of_yes_and_no_are_in_answer_record_and_report() -> None:
    ill = np.array(["no", "yes", "no"] * 8)
    frame = pd.DataFrame({"ill": ill, "x": np.arange(24.0) % 5, "y": 2.0 * (ill == "yes") + np.arange(24.0) % 2})
    found = sc.solve(frame.assign(sex=np.where(frame["x"] > 2.0, "f", "m")), "y", encode="onehot", gammas=1e-3, taus=2)
    assert found.coefficients["ill"] > 1.5 and "\ncodes of ill: no = 0, yes = 1" in found.summary()
    assert found.data.reading is not None and found.data.reading.code_lines == ["codes of ill: no = 0, yes = 1"]
    assert "Codes of ill: no = 0, yes = 1." in publication_text(found, "md")
    assert "codes of ill | no = 0, yes = 1" in report_text(found, "md", "R", None, "D")


def test_codes_of_ranks_are_in_answer_record_and_report(tmp_path: Path) -> None:
    sizes = pd.Categorical(["small", "large", "medium"] * 8, ["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame({"size": sizes, "x": np.arange(24.0) % 5, "y": 2.0 * sizes.codes + np.arange(24.0) % 2})
    found = sc.solve(frame, "y", encode="ordinal", gammas=1e-3, taus=2)
    codes = "small = 0, medium = 1, large = 2"
    stored = Record.from_json(found.to_json())
    assert found.coefficients["size"] > 1.5 and f"codes of size: {codes}" in stored.summary()
    assert stored.data.reading is not None and stored.data.reading.order == {"size": ("small", "medium", "large")}
    stored.write_report(tmp_path / "r.md", sc.Dataset.from_frame(frame, "y", encode="ordinal"))
    report = (tmp_path / "r.md").read_text()
    assert "codes of size" in report and codes in report
    frame.to_csv(tmp_path / "d.csv", index=False)  # a file declares no order: the record does
    assert sc.verify(stored, read_again(tmp_path / "d.csv", stored.data)).ok
    before = dataclasses.replace(
        stored.data.reading, order={}, levels={"size": ("large", "medium", "small")}
    )  # as before 61
    assert applied_reading(before).how.orders == {"size": ("large", "medium", "small")}  # type: ignore[union-attr]


def test_a_frame_of_words_is_read_as_the_training_rows_were() -> None:
    towns = ["Oslo", "Bergen", "Rome"] * 8
    frame = pd.DataFrame({"town": towns, "x": np.arange(24.0), "y": np.arange(24.0) + [5.0, 0.0, 1.0] * 8})
    found = sc.solve(frame, "y", encode="onehot", gammas=1e-3, taus=2)
    assert found.support == ("town=Oslo", "x")
    plain = frame.assign(**{"town=Oslo": (frame.town == "Oslo") * 1.0})
    assert found.predict(frame[["x", "town"]]) == pytest.approx(found.predict(plain), rel=1e-12)
    with pytest.raises(
        sc.SparseCVError, match=r"'Paris' in row 1 \(index 0\), but its values in the data of the model are"
    ):
        found.predict(frame.assign(town="Paris"))


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (FRAME[["age"]], "the model needs the columns 'lcavol', 'lweight', 'svi'; add"),
        (FRAME.drop(columns="svi"), "the model needs the column 'svi'; add"),
        (DATA.X[:, :3], r"X has the shape \(97, 3\); give a table or an array with the 8 columns"),
        (DATA.X[0], r"X has the shape \(8,\); .* for one row give X.reshape\(1, -1\)"),
        ({"svi": 1.0}, r"X has the shape \(\); give a table or an array"),
        (FRAME.assign(svi="yes"), r"column 'svi' holds 'yes' in row 1 \(index 0\); give a number"),
        (FRAME.assign(svi=[np.nan] * 97), "column 'svi' has no finite number in row 1"),
    ],
)
def test_what_is_wrong_is_one_line(record: Record, X: Any, said: str) -> None:
    with pytest.raises(sc.SparseCVError, match=f"^{said}[^\n]*$"):
        record.predict(X)


def test_errors_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=50), rng.normal(size=50)
    found = accuracy(y, predicted)
    assert found.rmse == pytest.approx(root_mean_squared_error(y, predicted))
    assert found.mae == pytest.approx(mean_absolute_error(y, predicted))
    assert found.r_squared == pytest.approx(r2_score(y, predicted))
    assert np.isnan(accuracy([1.0, 1.0], [0.0, 2.0]).r_squared)


TEXT = Path(__file__).with_name("example.json").read_text(encoding="utf-8")  # as it was written first


def test_the_text_stays_what_it_was() -> None:
    record = example(upper=math.inf, versions={"numpy": "2.4.6"})
    assert record.to_json() == TEXT
    assert Record.from_json(TEXT) == record and Record.from_json(TEXT).to_json() == TEXT


def of_first_schema(**changes: object) -> str:
    """A record as it was written when its pair and its model could be of two rules."""
    plain = example(least=None, least_folds=None, **changes).to_json()
    return plain.replace('"sparsecv/2"', '"sparsecv/1"')


def test_a_record_of_the_schema_before_reads_with_the_interval_of_the_grid() -> None:
    known = example().table[0]
    better = dataclasses.replace(known, gamma=1.0, cv_error=2.0, lower=1.0, upper=2.0)
    rows = (dataclasses.replace(known, upper=3.0), better)
    gap = relative_gap(1.0, 3.0)
    record = Record.from_json(of_first_schema(status="limit", lower=1.0, upper=3.0, gap=gap, table=rows))
    assert (record.schema, record.lower, record.upper, record.gap) == ("sparsecv/2", 1.0, 2.0, 0.5)
    altered = Record.from_json(of_first_schema(status="limit", lower=1.0, upper=2.5, gap=0.6, table=rows))
    assert altered.upper == 2.5, "what no search wrote is left for `verify` to refuse"


def test_a_record_of_the_schema_before_with_two_pairs_is_refused_in_one_line() -> None:
    with pytest.raises(CorruptStore, match="has the older format sparsecv/1, in which errors and model"):
        Record.from_json(of_first_schema(refit=dataclasses.replace(example().refit, gamma=1.0)))


def test_a_whole_number_in_the_place_of_a_float_is_written_as_one() -> None:
    assert example(tie_width=0, upper=3).to_json() == example(tie_width=0.0, upper=3.0).to_json()


def test_an_unknown_bound_is_never_made_of_what_is_no_bound() -> None:
    for value in (math.nan, -math.inf, None, "1"):
        with pytest.raises(ValueError, match="field upper"):
            example(upper=value).to_json()


@given(floats(allow_nan=False, allow_infinity=False), floats(min_value=1e-300, max_value=1e300))
def test_numbers_come_back_to_the_last_bit(lower: float, gamma: float) -> None:
    record = Record.from_json(example(lower=lower, gamma=gamma, coefficients={"a b": lower}).to_json())
    assert (record.lower.hex(), record.gamma.hex()) == (lower.hex(), gamma.hex())
    assert record.coefficients["a b"].hex() == lower.hex()


def test_numpy_scalars_become_plain_numbers() -> None:
    record = example(gamma=np.float64(0.1), tau=np.int64(1))
    assert Record.from_json(record.to_json()) == example()


@pytest.mark.parametrize("field", ["lower", "intercept", "gamma"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_json_cannot_carry_is_never_written(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        example(**{field: value}).to_json()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["gamma"], "0.1", "gamma must be a number"),
        (["tau"], 1.5, "tau must be an integer"),
        (["tau"], True, "tau must be an integer"),
        (["lower"], None, "lower must be a number"),
        (["status"], "optimal", "status must be one of"),
        (["schema"], "sparsecv/9", "schema must be"),
        (["support"], "age", "support must be a list"),
        (["support"], [1], r"support\[0\] must be a text"),
        (["coefficients"], {"a b": None}, "coefficients.a b must be a number"),
        (["table", 1, "folds"], "x", r"table\[1\].folds must be an integer"),
        (["chosen_folds", 2, "fold"], 7, r"chosen_folds\[2\].fold must be 2"),
        (["data"], [], "data must be an object"),
        (["one_se"], 1, "one_se must be an object or null, not an integer"),
        (["refit", "gamma"], -0.1, "refit.gamma must be a number >= 0.0"),
        (["table", 0, "upper"], "1", r"table\[0\].upper must be a number, not a text"),
        (["chosen_folds", 1, "error"], "2", r"chosen_folds\[1\].error must be a number or null, not a text"),
        (["versions", "numpy"], 2, "versions"),
    ],
)
def test_a_malformed_field_is_named(path: list[str | int], value: object, named: str) -> None:
    entries = json.loads(example().to_json())
    place = entries
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(CorruptStore, match=named):
        Record.from_json(json.dumps(entries))


FIELDS = [f.name for f in dataclasses.fields(Record) if f.name != "schema" and f.default is dataclasses.MISSING]


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_named(field: str) -> None:
    entries = json.loads(example().to_json())
    del entries[field]
    with pytest.raises(CorruptStore, match=f"field {field} is missing"):
        Record.from_json(json.dumps(entries))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": NaN}', "[" * 100_000, "null"])
def test_text_that_is_no_record(text: str) -> None:
    with pytest.raises(CorruptStore):
        Record.from_json(text)


def test_records_are_short_on_a_screen_and_long_in_a_frame() -> None:
    record = example()
    minimum = "proved, minimum CV error: tau=1, gamma=1, CV error 1.5 in [1.5, 1.5]"
    reported = "reported by the one-standard-error rule: tau=1, gamma=0.1, CV error 2 in [1.9999, 2.0001]"
    assert repr(record) == f"Record({minimum}\n{reported})"
    assert (
        repr(dataclasses.replace(record, least=None))
        == "Record(proved: tau=1, gamma=0.1, CV error 2 in [1.9999, 2.0001])"
    )
    tied = dataclasses.replace(record, least=None, tie_width=0.5)
    assert repr(tied).startswith("Record(proved except for ties: tau=1")
    frame = record.to_frame()
    assert frame.shape == (2, len(dataclasses.fields(record.table[0]))) and frame.status.tolist() == ["decided", "open"]
    lines = record.summary().splitlines()
    assert lines[:3] == [minimum, reported, "on held-out rows: RMSE 1.41421, R^2 0.3000"]
    assert record.one_se is not None
    unsettled = dataclasses.replace(record, one_se=dataclasses.replace(record.one_se, estimate=True))
    assert "\nreported by the one-standard-error rule (choice not certified): tau=1" in repr(unsettled)
    assert lines[4].endswith("tau=1, gamma=0.1:") and [line.split()[-1] for line in lines[5:]] == ["0.3", "-1e-150"]
    assert "CV error ~2 in" in repr(example(estimate=True))


def test_a_record_states_its_loss() -> None:
    classes, counts = Classes("no", "yes", 0.5), Counts(0.5)
    for loss, words in ((Loss.SQUARED, {}), (Loss.LOGISTIC, {"classes": classes}), (Loss.POISSON, {"counts": counts})):
        older = example(**words)
        stated = dataclasses.replace(older, data=dataclasses.replace(older.data, loss=loss))
        assert older.data.loss is None  # records of 0.2, whose loss follows from their parts
        assert Record.from_json(older.to_json()).loss is loss is Record.from_json(stated.to_json()).loss
    for text, said in (("squared", "field counts must be null with loss squared"), ("gamma", "data.loss")):
        with pytest.raises(CorruptStore, match=said):
            Record.from_json(stated.to_json().replace('"loss": "poisson"', f'"loss": "{text}"'))


@pytest.mark.filterwarnings("ignore::sparsecv_mio.errors.SparseCVWarning")
def test_parts_of_a_record_have_a_short_repr() -> None:
    whole = sc.bootstrap(sc.solve(FRAME, "lpsa", gammas=[0.1, 1.0], folds=5, nested=2), FRAME, draws=3)
    parts = {field.name: getattr(whole, field.name) for field in dataclasses.fields(whole)}
    shown = {name: repr(part).splitlines() for name, part in parts.items() if dataclasses.is_dataclass(part)}
    assert {"work", "data", "request", "nested", "bootstrap"} <= set(shown)
    assert {name for name, lines in shown.items() if len(lines) > 3 or sum(map(len, lines)) > 340} == set()
    assert shown["work"][0].startswith("Work(") and "<" in "".join(shown["work"])


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    for text, fault in (
        ("a,b\n1,2\n", "not a JSON file .invalid character, line 1.;?"),
        ("{}", "field schema is missing"),
    ):
        (tmp_path / "d.csv").write_text(text)
        with pytest.raises(CorruptStore, match=f"^record .*d.csv: {fault}"):
            sc.read_record(tmp_path / "d.csv")
