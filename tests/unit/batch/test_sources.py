"""Designs have the covariance, the signal, the noise and the classes that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.batch.sources import make_coefficients, make_sources, signal_variance, source_digest
from sparsecv_mio.errors import BadInput


def test_rows_of_a_known_covariance() -> None:
    table = {"design": "toeplitz", "n": 20_000, "p": 4, "rho": 0.6, "support": 2, "snr": [0.5, 4.0], "beta": "first"}
    sources = list(make_sources(table, Path()))
    assert [source.name for source in sources] == [
        f"toeplitz n=20000 p=4 rho=0.6 support=2 snr={snr} beta=first" for snr in (0.5, 4.0)
    ]
    steps = np.arange(4)
    sigma = 0.6 ** np.abs(steps[:, None] - steps)
    for source, snr in zip(sources, (0.5, 4.0), strict=True):
        data, spec = source.load(), dict(source.spec)
        truth = make_coefficients(spec)
        assert np.abs(np.cov(data.X.T) - sigma).max() < 0.05 and signal_variance(spec) == pytest.approx(
            truth @ sigma @ truth
        )
        noise = np.var(data.y - data.X @ truth)
        assert signal_variance(spec) / noise == pytest.approx(snr, rel=0.05)
        assert np.array_equal(source.load().X, data.X)


def test_coefficients() -> None:
    spec = {"p": 7, "support": 3}
    assert make_coefficients({**spec, "beta": "even"}).tolist() == [1, 0, 0, 1, 0, 0, 1]
    assert make_coefficients({**spec, "beta": "first"}).tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert make_coefficients({**spec, "beta": "decay"}).tolist() == [10, 5.25, 0.5, 0, 0, 0, 0]
    assert make_coefficients({**spec, "beta": "weak"}).tolist() == [1, 1, 1, 0.5, 0.25, 0.125, 0.0625]
    signs = [make_coefficients({**spec, "beta": "signs", "draw": draw}) for draw in (0, 0, 1)]
    assert np.array_equal(signs[0], signs[1]) and not np.array_equal(signs[0], signs[2])
    assert all(np.sum(np.abs(beta) == 1.0) == 3 and np.sum(beta == 0.0) == 4 for beta in signs)


def test_two_classes_are_as_far_apart_as_their_bayes_error() -> None:
    for error in (0.02, 0.2):
        (source,) = make_sources({"design": "classes", "n": 20_000, "p": 9, "bayes_error": error}, Path())
        data = source.load()
        assert np.mean(np.sign(data.X.sum(axis=1)) != data.y) == pytest.approx(error, rel=0.1)
        assert np.sum(data.y) == 0.0


def test_labels_by_the_logistic_model() -> None:
    (source,) = make_sources({"design": "logistic", "n": 40_000, "p": 3, "support": 3, "draw": 1}, Path())
    data, rng = source.load(), np.random.default_rng([1, 40_000, 3])
    theta = np.zeros(3)
    theta[rng.choice(3, 3, replace=False)] = rng.standard_normal(3)
    predicted = data.X @ theta
    assert np.abs(np.cov(data.X.T) - np.eye(3)).max() < 0.03
    for low in (-1.0, 0.0, 1.0):
        near = np.abs(predicted - low) < 0.2
        assert np.mean(data.y[near] == 1.0) == pytest.approx(1.0 / (1.0 + np.exp(-low)), abs=0.05)


def test_stand_ins_for_covertype_and_year() -> None:
    tables = ({"design": "covertype", "n": 3000}, {"design": "year", "n": 3000})
    rows, songs = (next(make_sources(table, Path())).load() for table in tables)
    assert rows.p == 54 and np.mean(rows.y == 1.0) == pytest.approx(0.36, abs=0.001)
    assert np.all(rows.X[:, 10:14].sum(axis=1) == 1.0) and np.all(rows.X[:, 14:].sum(axis=1) == 1.0)
    assert songs.p == 90 and songs.y.min() == 0.0 and songs.y.max() == 1.0 and np.median(songs.y) > 0.8


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"design": "clases"}, "unknown word 'clases'.*classes"),
        ({"design": "classes", "snr": 1.0}, "unknown key 'snr'"),
        ({"design": "classes", "bayes_error": 0.5}, "bayes_error must be between 0 and 0.5, not 0.5"),
        ({"design": "toeplitz", "rho": 1.0}, "rho must be between -1 and 1"),
        ({"design": "toeplitz", "snr": "high"}, "snr must be above 0, not 'high'"),
        ({"design": "toeplitz", "snr": 0}, "snr must be above 0"),
        ({"design": "year", "n": 3}, "n at least 4"),
        ({"design": "logistic", "p": 3, "support": 4}, "support from 1 to p"),
    ],
)
def test_what_is_no_design(table: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        list(make_sources(table, Path()))


def test_rows_of_validation_may_be_as_many() -> None:
    table = {"design": "toeplitz", "n": [10, 12], "p": 3, "support": 1, "validation": "n"}
    assert [source.load().n for source in make_sources(table, Path())] == [20, 24]
    with pytest.raises(BadInput, match="validation must be whole numbers"):
        list(make_sources({**table, "validation": "m"}, Path()))


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,c,y\n1,u,2\n2,v,1\n")
    (source,) = make_sources({"file": "a.csv", "target": "y", "drop": ["c"]}, tmp_path)
    assert source.name == "a" and source.load().names == ("x",)
    (other,) = make_sources({"file": "a.csv", "target": "y", "encode": "onehot"}, tmp_path)
    assert other.digest != source.digest and other.load().names == ("x", "c=v")
    path.write_text("x,c,y\n1,u,2\n2,v,3\n")
    with pytest.raises(BadInput, match="changed after the plan was read"):
        make_sources({"file": "a.csv"}, tmp_path)
        source.load("5")
        source.load("column:c")
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        source_digest(source.spec)


def test_bundled_data() -> None:
    (source,) = make_sources({"sklearn": "linnerud"}, Path())
    assert source.load().n == 20 and source.load().p == 3


def test_lists_of_files_and_targets_by_pattern(tmp_path: Path) -> None:
    for name in ("a1", "a2", "b[1]"):
        (tmp_path / f"{name}.csv").write_text("x,y,z\n1,2,3\n2,1,4\n")

    def goals(**table: object) -> dict[str, object]:
        return {one.name: dict(one.spec).get("target") for one in make_sources(table, tmp_path)}

    assert goals(file=["b[1].csv", "a*.csv", "a1.csv"], target="y") == {"b[1]": "y", "a1": "y", "a2": "y"}
    assert goals(file="*.csv", target={"a2": "z", "*": "y"}) == {"a1": "y", "a2": "z", "b[1]": "y"}
    assert goals(file="a*.csv", target={"*": "y", "a2": 0}) == {"a1": "y", "a2": 0}
    with pytest.raises(BadInput, match="target has no entry for the file 'a1'; add one"):
        goals(file="a*.csv", target={"a2": "z"})
