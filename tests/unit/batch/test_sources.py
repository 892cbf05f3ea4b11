"""Designs have the covariance, the signal and the noise that they name; files are held to their bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.batch.sources import coefficients_of, digest_of, signal_of, sources_of
from sparsecv_mio.errors import BadInput


def test_designs() -> None:
    table = {"design": "toeplitz", "n": 20_000, "p": 4, "rho": 0.6, "support": 2, "snr": [0.5, 4.0], "beta": "first"}
    sources = list(sources_of(table, Path()))
    assert [source.name for source in sources] == [
        f"toeplitz n=20000 p=4 rho=0.6 support=2 snr={snr} beta=first" for snr in (0.5, 4.0)
    ]
    steps = np.arange(4)
    sigma = 0.6 ** np.abs(steps[:, None] - steps)
    for source, snr in zip(sources, (0.5, 4.0), strict=True):
        data, spec = source.load(), dict(source.spec)
        truth = coefficients_of(spec)
        assert np.abs(np.cov(data.X.T) - sigma).max() < 0.05 and signal_of(spec) == pytest.approx(truth @ sigma @ truth)
        noise = np.var(data.y - data.X @ truth)
        assert signal_of(spec) / noise == pytest.approx(snr, rel=0.05)
        assert np.array_equal(source.load().X, data.X)


def test_coefficients() -> None:
    spec = {"p": 7, "support": 3}
    assert coefficients_of({**spec, "beta": "even"}).tolist() == [1, 0, 0, 1, 0, 0, 1]
    assert coefficients_of({**spec, "beta": "first"}).tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert coefficients_of({**spec, "beta": "decay"}).tolist() == [10, 5.25, 0.5, 0, 0, 0, 0]
    assert coefficients_of({**spec, "beta": "weak"}).tolist() == [1, 1, 1, 0.5, 0.25, 0.125, 0.0625]
    signs = [coefficients_of({**spec, "beta": "signs", "draw": draw}) for draw in (0, 0, 1)]
    assert np.array_equal(signs[0], signs[1]) and not np.array_equal(signs[0], signs[2])
    assert all(np.sum(np.abs(beta) == 1.0) == 3 and np.sum(beta == 0.0) == 4 for beta in signs)


def test_rows_of_validation_may_be_as_many() -> None:
    table = {"design": "toeplitz", "n": [10, 12], "p": 3, "support": 1, "validation": "n"}
    assert [source.load().n for source in sources_of(table, Path())] == [20, 24]
    with pytest.raises(BadInput, match="validation .or the word n. are whole numbers"):
        list(sources_of({**table, "validation": "m"}, Path()))


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,c,y\n1,u,2\n2,v,1\n")
    (source,) = sources_of({"file": "a.csv", "target": "y", "drop": ["c"]}, tmp_path)
    assert source.name == "a" and source.load().names == ("x",)
    (other,) = sources_of({"file": "a.csv", "target": "y", "encode": "onehot"}, tmp_path)
    assert other.digest != source.digest and other.load().names == ("x", "c=v")
    path.write_text("x,c,y\n1,u,2\n2,v,3\n")
    with pytest.raises(BadInput, match="is not what it was"):
        sources_of({"file": "a.csv"}, tmp_path)
        source.load("5")
        source.load("column:c")
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        digest_of(source.spec)


def test_bundled_data() -> None:
    (source,) = sources_of({"sklearn": "linnerud"}, Path())
    assert source.load().n == 20 and source.load().p == 3
