"""A record says how its file was read; `verify` and `predict` read alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.certificate.source import applied_reading, read_again, reading_info
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.solve import solve


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
    assert record.warnings[0].startswith("1 empty cell filled with the mean")
    assert applied_reading(record.data.reading) == replace(data.reading, notes=())  # type: ignore[type-var]
    again = read_again(messy, record.data)
    assert again.fingerprint == data.fingerprint and verify(record, again).ok
    found = record.data.reading
    assert found is not None and found == reading_info(data.reading)
    for change in ({"means": {"age": 41.0}}, {"levels": {}}, {"left_out": 1}, {"columns": ("city", "age")}):
        wrong = replace(record, data=replace(record.data, reading=replace(found, **change)))  # type: ignore[arg-type]
        assert [one.field for one in verify(wrong, again).failures] == ["data.reading"]
    assert not verify(replace(record, data=replace(record.data, reading=None)), again).ok


def test_a_reading_that_cannot_be(messy: Path) -> None:
    data = read_dataset(messy, "y", **HOW)  # type: ignore[arg-type]
    text = json.loads(solve(data, folds="5", gammas=0.1, taus=1).to_json())
    text["data"]["reading"]["na"] = "guess"
    with pytest.raises(CorruptStore, match="field data.reading is not valid"):
        read_again(messy, Record.from_json(json.dumps(text)).data)
