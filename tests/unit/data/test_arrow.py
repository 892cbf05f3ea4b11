"""Text tables by Arrow: types, blocks, and refusals; the plain parser has no part in what is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data import arrow
from sparsecv_mio.data.readers import read_dataset

from .files import refused


def test_the_plain_parser_never_reads_a_file_that_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "blame", lambda *_: pytest.fail("a file without a fault"))
    path = tmp_path / "data.csv"
    path.write_text('g,a,y\n"u ""v""", +1.5 ,"2"\r\n"two\nlines",-.5e-3,5.\n\n,1E+5,-0\n')
    data = read_dataset(path, "y", aux=["g"])
    assert data.X.tolist() == [[1.5], [-0.0005], [1e5]] and data.y.tolist() == [2.0, 5.0, 0.0]
    assert data.aux["g"].tolist() == ['u "v"', "two\nlines", ""]


def test_lines_and_quotes_may_cross_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BLOCK_BYTES", 64)
    path = tmp_path / "data.csv"
    path.write_text("note,a,y\n" + "".join(f'"{"x" * (k % 9)}\n",{k},{k * k}\n' for k in range(200)))
    data = read_dataset(path, "y", drop=["note"])
    assert data.X[:, 0].tolist() == list(range(200)) and data.y.tolist() == [k * k for k in range(200)]
    wide = np.random.default_rng(0).standard_normal((5, 400))
    pd.DataFrame(wide).add_prefix("c").to_csv(path, index=False)
    assert np.array_equal(read_dataset(path, "c0").X, wide[:, 1:])


def test_what_arrow_refuses_without_a_fault_to_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "blame", lambda *_, **__: None)
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,2\nfoo,3\n")
    refused("cannot be read as a table: In CSV column", path, "y")
