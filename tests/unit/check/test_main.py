"""Proofs are accepted in both modes, and no false claim is: against all supports of small problems."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from forged_proofs import Lines, altered, read_lines, write_lines
from repository import INSTANCES, ROOT
from true_claims import Truth

from sparsecv_mio.check.main import check, check_file, run
from sparsecv_mio.check.reading import Refused, Unreadable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.proofs.best import write_best_proof

SCALES, INTERCEPTS = ("length", "variance", "none"), ("fold", "global", "none")


def small(seed: int, rows: int = 10, columns: int = 4) -> Dataset:
    rng = np.random.default_rng([18, seed])
    X = rng.normal(size=(rows, columns)) + rng.normal(size=(rows, 1)) + 2.0
    X[:, 1] = (X[:, 1] > 2.0) * 1.0
    if np.ptp(X[:, 1]) == 0.0:
        X[0, 1] = 2.0
    return Dataset.from_arrays(X, X @ rng.normal(size=columns) + rng.normal(size=rows))


def proved(seed: int, place: Path) -> tuple[Dataset, Lines]:
    """Write a proof of best subsets of a small problem, and return its lines."""
    data = small(seed)
    how = {"scale": SCALES[seed % 3], "intercept": INTERCEPTS[seed // 3 % 3]}
    record = best_subsets(data, gammas=[0.01, 0.3, 3.0][: 1 + seed % 3], taus=range(5), **how)
    write_best_proof(record, data, place)
    return data, read_lines(place)


@pytest.mark.parametrize("seed", range(9))
def test_proofs_are_accepted_in_both_modes(seed: int, tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, lines = proved(seed, place)
    assert Truth(data.X, data.y).false_claim(lines) is None
    ends = [check(str(place), data.X, data.y, mode).intervals for mode in ("fast", "exact")]
    for pair, (low, high) in ends[0].items():
        exact_low, exact_high = ends[1][pair]
        assert low <= exact_low * (1.0 + 1e-12) <= exact_high * (1.0 + 2e-12) <= high * (1.0 + 3e-12)


def forge(seeds: range, times: int, place: Path) -> tuple[int, int, int]:
    """Alter proofs; return how many alterations were false, how many of these accepted, how many accepted in all."""
    false = wrong = accepted = 0
    for seed in seeds:
        data, lines = proved(seed, place)
        truth, rng = Truth(data.X, data.y), np.random.default_rng(seed)
        for _ in range(times):
            name, forged = altered(lines, rng)
            if forged == lines:
                continue
            write_lines(place, forged)
            try:
                check(str(place), data.X, data.y)
                ended = True
            except Refused:
                ended = False
            accepted += ended
            if ended:
                claim = truth.false_claim(forged)
                wrong += claim is not None
                assert claim is None, (seed, name, claim)
            else:
                false += 1
    return false, wrong, accepted


def test_altered_proofs_are_never_accepted_when_they_are_false(tmp_path: Path) -> None:
    false, wrong, accepted = forge(range(5), 40, tmp_path / "p")
    assert wrong == 0 and false > 100 > accepted


def test_a_file_that_is_no_whole_proof(tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, lines = proved(0, place)
    whole = place.read_bytes()
    for cut in (whole[:-20], whole[: len(whole) // 2], b"", b"no gzip"):
        place.write_bytes(cut)
        with pytest.raises((Unreadable, Refused)):
            check(str(place), data.X, data.y)
    text = gzip.decompress(whole)
    place.write_bytes(gzip.compress(text.replace(b'"lower":', b'"lower": ', 1)))
    with pytest.raises(Refused, match="digest"):
        check(str(place), data.X, data.y)
    place.write_bytes(gzip.compress(text.rsplit(b"\n", 2)[0] + b"\n"))
    with pytest.raises(Refused, match="end is missing"):
        check(str(place), data.X, data.y)
    write_lines(place, [{**lines[0], "format": "sparsecv-proof/2"}, *lines[1:]])
    with pytest.raises(Unreadable, match="this checker reads 'sparsecv-proof/1'"):
        check(str(place), data.X, data.y)


def test_other_data_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, _ = proved(0, place)
    other = data.X.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9.0)
    with pytest.raises(Refused, match="digest"):
        check(str(place), other, data.y)
    with pytest.raises(Refused, match="size"):
        check(str(place), data.X[1:], data.y[1:])


def test_the_command_needs_nothing_of_the_package(tmp_path: Path) -> None:
    from sparsecv_mio.data.readers import read_dataset

    csv, place = str(INSTANCES / "prostate.csv"), tmp_path / "p"
    data = read_dataset(csv, "lpsa")
    write_best_proof(best_subsets(data, gammas=[0.1], taus=[1, 3]), data, place)
    assert len(check_file(str(place), csv).intervals) == 2
    words = "import sys; from check.main import run; print(run(sys.argv[1:]), 'sparsecv_mio' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", words, str(place), csv], cwd=ROOT / "sparsecv_mio", capture_output=True, text=True
    )
    assert told.stdout.splitlines()[-1] == "0 False" and "cover all supports" in told.stdout
    assert run([str(place), str(INSTANCES / "housing.csv")]) == 2
    assert run([str(place)]) == 2
