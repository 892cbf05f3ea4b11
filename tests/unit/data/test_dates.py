"""Columns of dates and durations become numbers, alike in files and frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset, read_new_rows
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.table_facts import inspect_file
from sparsecv_mio.errors import BadInput


def visits(n: int = 40) -> pd.DataFrame:
    """Return a frame of dates with clock times, durations and a target that depends on day and month."""
    rng = np.random.default_rng(5)
    when = pd.Timestamp("2022-01-03 06:00") + pd.to_timedelta(17 * np.arange(n), unit="D")
    lag = pd.to_timedelta(rng.integers(-9, 99, n), unit="h")
    y = 0.3 * when.month + lag.total_seconds() / 86400.0 + rng.normal(0.0, 0.1, n)
    return pd.DataFrame({"when": when, "lag": lag, "x": rng.normal(size=n), "y": y})


@pytest.mark.parametrize("kind", ["frame", "arrow", "csv", "parquet"])
def test_dates_and_durations_are_the_same_numbers_everywhere(tmp_path: Path, kind: str) -> None:
    frame = visits()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    table = {"frame": frame, "arrow": pa.Table.from_pandas(frame)}.get(kind, tmp_path / f"t.{kind}")
    data = read_dataset(table, "y", dates="days,year,month,weekday")
    assert data.names == ("when", "when.year", "when.month", "when.weekday", "lag", "x")
    when = frame["when"]
    days = (when - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    wanted = np.column_stack(
        [
            days,
            when.dt.year,
            when.dt.month,
            when.dt.day_of_week + 1,
            frame["lag"].dt.total_seconds() / 86400.0,
            frame["x"],
        ]
    )
    np.testing.assert_array_equal(data.X, wanted)
    whole = frame.assign(lag=frame["lag"].where(frame.index > 0))
    assert read_dataset(whole, "y", dates="days", na="drop").n == len(frame) - 1
    assert read_dataset(table, "y", features=["lag", "x"]).X.tolist() == data.X[:, 4:].tolist()
    assert Dataset.from_frame(frame[["x", "lag"]], "lag").y.tolist() == data.X[:, 4].tolist()


@pytest.mark.parametrize("months", [0, 1])
def test_intervals_of_arrow_without_months_are_days(months: int) -> None:
    """DuckDB exports intervals as months, days and nanoseconds."""
    frame = visits()
    whole = np.floor(frame["lag"] / pd.Timedelta(days=1)).astype(int)
    nanoseconds = (frame["lag"] - pd.to_timedelta(whole, unit="D")).astype("timedelta64[ns]").astype("int64")
    cells = [None, *zip([months] * (len(frame) - 1), whole[1:].tolist(), nanoseconds[1:].tolist(), strict=True)]
    lag = pa.array(cells, pa.month_day_nano_interval())
    table = pa.Table.from_pandas(frame.drop(columns=["when", "lag"])).append_column("lag", lag)
    if months:
        with pytest.raises(BadInput, match=r"^column 'lag' holds .*; .*drop=\[\"lag\"\]$"):
            read_dataset(table, "y", na="drop")
        return
    data = read_dataset(table, "y", na="drop")
    assert data.names == ("x", "lag")
    np.testing.assert_allclose(data.X[:, 1], frame["lag"].dt.total_seconds()[1:] / 86400.0, rtol=1e-14)


def test_a_model_of_dates_is_verified_and_predicts(tmp_path: Path) -> None:
    frame, place = visits(), tmp_path / "t.csv"
    frame["when"] = frame["when"].dt.strftime("%d.%m.%Y %H:%M")
    frame.loc[3, "when"] = ""
    frame.to_csv(place, index=False)
    common = ["--target", "y", "--dates", "month,days", "--na", "mean", "--na-indicator", "--threads", "1", "--quiet"]
    assert run(["solve", str(place), *common, "--folds", "4", "--json", str(tmp_path / "r.json")]) == 0
    assert run(["verify", str(tmp_path / "r.json"), str(place), "--quiet"]) == 0
    record = read_record(tmp_path / "r.json")
    assert isinstance(record, Record) and {"when.month", "lag"} <= set(record.support)
    reading = record.data.reading
    assert reading is not None and reading.dates == ("month", "days") and reading.marked == ("when.month",)
    assert reading.date_forms == {"when": "%d.%m.%Y"} and reading.columns == ("when", "lag", "x")
    from_file, from_frame = record.predict(place), record.predict(frame)
    np.testing.assert_allclose(from_file, from_frame, rtol=1e-13)
    one = frame.iloc[[7]].assign(when="01.02.2023 06:00")  # the form is that of the fit, not month first
    january = record.predict(one.assign(when="01.01.2023 06:00"))
    assert (record.predict(one) - january)[0] > 0.2
    with pytest.raises(
        BadInput,
        match=r"row 1 \(index 7\): '2023-02-01' is not a date such as 31.12.2024; write the dates as day.month.year",
    ):
        record.predict(one.assign(when="2023-02-01"))
    with pytest.raises(BadInput, match=r"row 1 \(index 7\): '19000' is not a date"):
        record.predict(one.assign(when=19000))


@pytest.mark.parametrize(
    ("cells", "dates", "said"),
    [
        (["1/2/2024", "3/4/2024"], "days", "dates: '1/2/2024' in column 'd' may begin with the day or the month; a"),
        (["2024-01-02", "soon", "2024-02-01"], "days", r"column 'd', row 2 \(index 1\): 'soon' is not a date such"),
        (["2024-01-02", "#N/A", "2024-02-01"], "days", ".* in one form, or give na_values=.d=#N/A. if this cell"),
        (["red", "blue"], "days", "dates: no feature is read as dates; write dates as 2024-12-31, or leave this"),
        (["2024-01-02"] * 2, "wekday", r"dates: 'wekday' is unknown \(did you mean 'weekday'\?\); give one or"),
        (["2024-01-02"] * 2, "dayfirst", "dates: 'dayfirst' states only the order .* as in dates=\"days,dayfirst\""),
        (
            ["2024-01-02"] * 2,
            None,
            r"column 'd' holds '2024-01-02', which looks like a date, in row 1 \(index 0\); give dates=.day",
        ),
    ],
)  # fmt: skip
def test_dates_that_are_not_clear_are_refused(cells: list[str], dates: str | None, said: str) -> None:
    frame = pd.DataFrame({"d": cells, "y": np.arange(len(cells), dtype=float)})
    with pytest.raises(BadInput, match=f"^{said}"):
        read_dataset(frame, "y", **({} if dates is None else {"dates": dates}))  # type: ignore[arg-type]


def test_inspect_proposes_both_readings_of_ambiguous_dates(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(
        {"d": [f"{1 + k % 12:02d}/{1 + k % 7:02d}/2024" for k in range(24)], "y": np.arange(24.0) ** 2}
    )
    frame.to_csv(path, index=False)
    (note,) = inspect_file(path, "y", Reading(), None).columns[0].notes
    for first in ("days,dayfirst", "days,monthfirst"):
        assert f'dates="{first}"' in note and read_dataset(path, "y", dates=first).n == 24
    with pytest.raises(BadInput, match='add dayfirst or monthfirst to dates, as in dates="days,dayfirst"'):
        read_dataset(path, "y", dates="days")


def test_days_or_months_come_first_as_stated() -> None:
    frame = pd.DataFrame({"d": ["1/2/2024", "3/4/2024"], "y": [1.0, 2.0]})
    assert read_dataset(frame, "y", dates="month,dayfirst").X.ravel().tolist() == [2.0, 4.0]
    assert read_dataset(frame, "y", dates=["month", "monthfirst"]).X.ravel().tolist() == [1.0, 3.0]


def test_durations_are_numbers_and_words_that_begin_alike_are_words() -> None:
    texts = ["-1 days +12:00:00", "2 days", "1 day, 6:00:00", "P1DT12H", "PT36H"]
    frame = pd.DataFrame({"d": texts, "y": np.arange(5.0)})
    assert read_dataset(frame, "y", na="drop").X.ravel().tolist() == [-0.5, 2.0, 1.25, 1.5, 1.5]
    frame["d"] = ["2 days", "2 days", "none so far", "2 days", "none so far"]
    assert read_dataset(frame, "y", encode="onehot").names == ("d=none so far",)


def test_inspect_reads_dates_as_asked(tmp_path: Path) -> None:
    frame = visits().assign(when=lambda table: table["when"].dt.strftime("%Y-%m-%d"))
    frame = frame[frame["when"] < "2023"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = inspect_file(tmp_path / "t.csv", "y", Reading.from_keywords(dates="year,month"), None)
    assert found.options[0] == "--dates 'year,month'" and found.refused == ""
    assert [fact.name for fact in found.columns][:2] == ["when.year", "when.month"]
    assert not any(option.startswith("--drop") for option in found.options)  # the year is constant, and no column
    assert found.p == 4 and "--folds forward:5" in found.options


def test_inspect_proposes_days_for_dates_that_are_clear(tmp_path: Path) -> None:
    count = np.arange(40)
    frame = pd.DataFrame({
        "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(count * count % 37, unit="D"),
        "x": count % 7, "y": count % 5 + 0.5,
    })  # fmt: skip
    frame["sold"] = frame["sold"].dt.strftime("%Y-%m-%d")
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = inspect_file(tmp_path / "t.csv", "y", Reading.from_keywords(), None)
    assert found.options == ("--dates 'days'",) and found.refused == "" and found.p == 2
    assert found.columns[0].notes == ("dates, as days since 1970-01-01 (--dates days)",)
    frame["sold"] = [f"{day % 12 + 1}/{day % 11 + 1}/2024" for day in count]  # the day or the month may be first
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert inspect_file(tmp_path / "t.csv", "y", Reading.from_keywords(), None).options == ("--drop sold",)
    frame["sold"] = "2024-01-01"  # constant: better left out, and no date is left for --dates
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert inspect_file(tmp_path / "t.csv", "y", Reading.from_keywords(), None).options == ("--drop sold",)


def test_new_rows_with_dates_are_not_advised_an_option(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("d\n2024-01-02\n2024-01-03\n")
    learnt = read_dataset(pd.DataFrame({"d": np.arange(4.0) ** 2, "y": np.arange(4.0)}), "y").reading
    with pytest.raises(BadInput, match="line 2.; write the value as in the data of the model, or leave the row out$"):
        read_new_rows(tmp_path / "new.csv", ("d",), "y", learnt)


def test_dates_that_are_no_feature_are_named(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-13", periods=12).strftime("%d.%m.%Y")
    pd.DataFrame({"seen": days, "a": np.arange(12.0) ** 2, "y": np.arange(12.0)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    with pytest.raises(BadInput, match="^dates: no feature is read as dates; 'seen' holds dates, but it gives ids, "):
        read_dataset(tmp_path / "t.csv", "y", aux=["seen"], dates="days")
    with pytest.raises(BadInput, match="^dates: no feature is read as dates; write dates as 2024-12-31, or leave"):
        read_dataset(tmp_path / "t.csv", "y", drop=["seen"], dates="days")


def test_a_frame_of_dates_is_not_said_to_hold_text() -> None:
    frame = pd.DataFrame({"seen": pd.date_range("2024-01-21", periods=8), "y": np.arange(8.0)})
    with pytest.raises(BadInput, match="column 'seen' holds '2024-01-21 00:00:00', which looks like a date, in "):
        sc.solve(frame, "y")


def test_forward_folds_of_rows_out_of_order_are_named() -> None:
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=40)
    frame = pd.DataFrame({"when": days.strftime("%Y-%m-%d"), "a": rng.normal(size=40), "y": rng.normal(size=40)})
    asked = {"folds": "forward:4", "gammas": [0.1], "taus": [1], "dates": "days"}
    mixed = frame.sample(frac=1.0, random_state=1)
    for table, is_named in ((frame, False), (mixed, True)):
        record = sc.solve(table.reset_index(drop=True), "y", **asked)
        assert any("the rows are not in the order of when" in note for note in record.warnings) == is_named
    assert not any("not in the order" in note for note in sc.solve(mixed, "y", **asked | {"folds": "4"}).warnings)
