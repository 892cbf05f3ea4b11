"""Proofs are accepted in both modes, and no false claim is: against all supports of small problems."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_checker
from forged_proofs import Lines, read_lines, write_lines
from repository import INSTANCES, ROOT
from true_claims import Truth

from sparsecv_mio.check.main import _proved_interval, check, check_file, run_check
from sparsecv_mio.check.proof_file import Refused, Unreadable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.proofs.proof_writing import write_proof
from sparsecv_mio.proofs.threshold_trees import Units, prove_thresholds
from sparsecv_mio.search.api import cross_validate

Maker = Callable[[int, Path], tuple[Dataset, Lines]]
SCALES, INTERCEPTS = ("length", "variance", "none"), ("fold", "global", "none")


def small(seed: int, rows: int = 10, columns: int = 4) -> Dataset:
    rng = np.random.default_rng([18, seed])
    X = rng.normal(size=(rows, columns)) + rng.normal(size=(rows, 1)) + 2.0
    X[:, 1] = (X[:, 1] > 2.0) * 1.0
    if np.ptp(X[:, 1]) == 0.0:
        X[0, 1] = 2.0
    return Dataset.from_arrays(X, X @ rng.normal(size=columns) + rng.normal(size=rows))


def searched(seed: int, place: Path) -> tuple[Dataset, Lines]:
    """Write a proof of a cross-validation of a small problem, and return its lines."""
    data = small(seed)
    plan = make_folds(("loo", "3", "blocks:4", "holdout:0.4")[seed % 4], data, seed)
    how: dict[str, Any] = {"scale": SCALES[seed % 3], "intercept": INTERCEPTS[seed // 3 % 3]}
    gammas = [0.03, 0.3, 3.0][: 1 + seed % 3]
    how |= {"gammas": gammas, "taus": range(seed % 2, 5), "gap": (0.0, 1e-4)[seed % 2]}
    record = cross_validate(data, plan, threads=1, one_se=plan.has_standard_error and seed % 3 == 2, **how)
    write_proof(record, data, place, plan)
    lines = read_lines(place)
    claim, known = lines[-1], record.certificate  # another pair that a rule chose has no proof
    assert known.lower * (1.0 - 1e-6) <= claim["lower"]
    assert claim["upper"] <= known.upper * (1.0 + 1e-6) + known.allowance
    assert (lines[0]["gammas"][claim["gamma"]], lines[0]["taus"][claim["tau"]]) == (known.gamma, known.tau)
    return data, lines


def proved(seed: int, place: Path) -> tuple[Dataset, Lines]:
    """Write a proof of best subsets of a small problem, and return its lines."""
    data = small(seed)
    how = {"scale": SCALES[seed % 3], "intercept": INTERCEPTS[seed // 3 % 3]}
    record = best_subsets(data, gammas=[0.01, 0.3, 3.0][: 1 + seed % 3], taus=range(5), **how)
    write_proof(record, data, place)
    return data, read_lines(place)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_that_kept_no_training_objectives_is_proved_all_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparsecv_mio.search.state.cells.MANY_CELLS", 0)
    data, _ = searched(seed, tmp_path / "p")
    check(str(tmp_path / "p"), data.X, data.y, "exact")


@pytest.mark.parametrize("make", [proved, searched])
@pytest.mark.parametrize("seed", range(9))
def test_proofs_are_accepted_in_both_modes(seed: int, make: Maker, tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, lines = make(seed, place)
    assert Truth(data.X, data.y).false_claim(lines) is None
    ends = [check(str(place), data.X, data.y, mode).intervals for mode in ("fast", "exact")]
    for pair, (low, high) in ends[0].items():
        exact_low, exact_high = ends[1][pair]
        assert low <= exact_low * (1.0 + 1e-12) <= exact_high * (1.0 + 2e-12) <= high * (1.0 + 3e-12)


@pytest.mark.parametrize("seed", range(4))
def test_excluded_pairs_leave_the_fast_check_room_for_rounding(seed: int, tmp_path: Path) -> None:
    """A proof of a file of large numbers failed its fast check by 6e-9, on a pair far from the best one."""
    data = small(seed, rows=20)
    plan = make_folds("forward:3", data)
    record = cross_validate(data, plan, gammas=[0.03, 0.3], taus=range(5), threads=1)
    write_proof(record, data, tmp_path / "p", plan)
    lines = read_lines(tmp_path / "p")
    stated = {(line["gamma"], line["tau"]): line["lower"] for line in lines[1:] if line["kind"] == "pair"}
    far = [row for row in record.table if row.lower > record.certificate.lower * 1.01]
    assert far
    for row in far:
        pair = lines[0]["gammas"].index(row.gamma), lines[0]["taus"].index(row.tau)
        assert lines[-1]["lower"] <= stated[pair] < row.upper * (1.0 - 9e-6)


def with_random_losses(seed: int, place: Path) -> tuple[Dataset, Lines]:
    """A proof whose pairs rest on trees of random thresholds and on the training loss of random supports."""
    data, lines = searched(seed, place)
    head, rng = lines[0], np.random.default_rng(seed)
    standard = standardize(data, head["scale"], head["intercept"])
    whole, units = row_moments(standard, slice(0, data.n)).problem(standard, 1.0), Units.from_data(standard)
    claim = lines.pop() | {"lower": 0.0}
    for line in [line for line in lines[1:] if line["kind"] == "pair"]:
        g, size = line["gamma"], min(head["taus"][line["tau"]], standard.q)
        problem = whole.with_gamma(head["gammas"][g])
        every = [list(one) for one in combinations(range(standard.q), size)]
        worth = [problem.yy - problem.c[s] @ np.linalg.solve(problem.M[np.ix_(s, s)], problem.c[s]) for s in every]
        above = {size: float(rng.choice(worth) * rng.uniform(0.9, 1.1)) * units.square}
        lines.append(next(prove_thresholds(problem, above, units, 0.0)).line(-1, g))
        part = {"by": "loss", "tree": sum(one["kind"] == "tree" for one in lines[1:]) - 1}
        part["supports"] = [every[i] for i in rng.integers(len(every), size=3)]
        if seed % 3:
            part["which"] = rng.integers(3, size=len(head["left"])).tolist()
        reported = (g, line["tau"]) == (claim["gamma"], claim["tau"])
        rest = line["parts"] if reported else []
        lines.append(line | {"parts": [part, *rest], "lower": 0.0, "upper": line["upper"] if reported else None})
    lines.append(claim)
    write_lines(place, lines)
    return data, lines


@pytest.mark.parametrize("seed", [3, 6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 200))])
def test_the_training_loss_bounds_held_out_errors(seed: int, tmp_path: Path) -> None:
    data, lines = with_random_losses(seed, tmp_path / "p")
    found = {mode: check(str(tmp_path / "p"), data.X, data.y, mode).intervals for mode in ("fast", "exact")}
    truth = Truth(data.X, data.y)
    for line in lines[-2 * len(found["fast"]) - 1 : -1]:
        pair = line["gamma"], line.get("tau")
        if line["kind"] == "tree":
            continue
        low = found["fast"][pair][0]
        assert low <= found["exact"][pair][0] * (1.0 + 1e-12)
        assert truth.false_claim([lines[0], line | {"lower": low, "upper": None}]) is None
        line["lower"] = max(low * (1.0 - 1e-9), 0.0)
    write_lines(tmp_path / "p", lines)
    data_file = tmp_path / "data.csv"
    columns = np.column_stack([data.X, data.y])
    np.savetxt(data_file, columns, delimiter=",", header=",".join([*data.names, data.target]), comments="", fmt="%.17g")
    assert second_checker.check(tmp_path / "p", data_file).accepted


def test_a_file_that_is_no_whole_proof(tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, lines = proved(0, place)
    whole = place.read_bytes()
    for cut in (whole[:-20], whole[: len(whole) // 2], b"", b"no gzip"):
        place.write_bytes(cut)
        with pytest.raises((Unreadable, Refused)):
            check(str(place), data.X, data.y)
    for cut, message in (
        (whole[: len(whole) // 2], "not a complete proof.*ended before"),
        (b"no gzip", "not a complete proof.*Not a gzipped"),
    ):
        place.write_bytes(cut)
        with pytest.raises(Unreadable, match=message):
            check(str(place), data.X, data.y)
    text = gzip.decompress(whole)
    place.write_bytes(gzip.compress(text.replace(b'"lower":', b'"lower": ', 1)))
    with pytest.raises(Refused, match="digest"):
        check(str(place), data.X, data.y)
    place.write_bytes(gzip.compress(text.rsplit(b"\n", 2)[0] + b"\n"))
    with pytest.raises(Refused, match="end line is missing"):
        check(str(place), data.X, data.y)
    write_lines(place, [{**lines[0], "format": "sparsecv-proof/4"}, *lines[1:]])
    with pytest.raises(Unreadable, match="this checker reads sparsecv-proof/1, sparsecv-proof/2 and sparsecv-proof/3"):
        check(str(place), data.X, data.y)


HOSTILE = ["[1]", "{", "nul", '{"kind":"tree"}', '{"kind":"pair","gamma":true,"tau":0,"parts":[]}', "9" * 5000,
           '{"kind":"claim","gamma":0,"tau":0,"lower":NaN,"upper":1}', '{"kind":"what"}', "[" * 100_000,
           '{"kind":"best","gamma":0,"tau":0,"tree":0,"support":[0.0],"lower":0,"upper":1}',
           '{"kind":"tree","rows":-1,"gamma":0,"taus":[0,4],"above":[1,1,1,1,1e999],"listed":[],"nodes":[-1]}',
           '{"kind":"tree","rows":-1,"gamma":0,"taus":[0,9],"above":[],"listed":[],"nodes":[-2]}']  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
@pytest.mark.parametrize("first", [True, False])
def test_lines_that_mean_nothing(line: str, first: bool, tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, _ = proved(0, place)
    text = gzip.decompress(place.read_bytes()).splitlines()[:-1]
    text.insert(0 if first else 1, line.encode())
    body = b"".join(one + b"\n" for one in text)
    end = b'{"kind":"end","sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    place.write_bytes(gzip.compress(body + end))
    with pytest.raises((Unreadable, Refused)):
        check(str(place), data.X, data.y)


def test_the_reader_is_told_of_which_problem_all_is_proved(tmp_path: Path) -> None:
    """A proof of easier folds, or of a grid without the best pair, is right in itself."""
    data, _ = searched(1, tmp_path / "p")
    words = check(str(tmp_path / "p"), data.X, data.y).words
    assert words[1] == "grid: gamma 0.03, 0.3; tau 1, 2, 3, 4; scale: variance; intercept: fold"
    digest = make_folds("3", data, 1).digest
    assert words[2] == f"folds: 3, with 3 to 4 rows each; each row is scored once; digest {digest}"
    assert words[-2].startswith("proved: every CV error of the grid is at least ") and "(quote this " in words[-2]
    data, _ = searched(0, tmp_path / "loo")
    digest = make_folds("loo", data, 0).digest
    assert check(str(tmp_path / "loo"), data.X, data.y).words[2].endswith(f"each row is scored once; digest {digest}")
    data, _ = searched(3, tmp_path / "q")
    assert check(str(tmp_path / "q"), data.X, data.y).words[2].endswith("each row is scored 0 to 1 times")


def test_other_data_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "p"
    data, _ = proved(0, place)
    other = data.X.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9.0)
    with pytest.raises(Refused, match="digest"):
        check(str(place), other, data.y)
    with pytest.raises(Refused, match="the data have 9 rows and 4 features, but the data of the proof have 10 and 4"):
        check(str(place), data.X[1:], data.y[1:])


def test_the_command_needs_nothing_of_the_package(tmp_path: Path) -> None:
    from sparsecv_mio.data.readers import read_dataset

    csv, place = str(INSTANCES / "prostate.csv"), tmp_path / "p"
    data = read_dataset(csv, "lpsa")
    write_proof(best_subsets(data, gammas=[0.1], taus=[1, 3]), data, place)
    assert len(check_file(str(place), csv).intervals) == 2
    words = (
        "import sys; from check.main import run_check; print(run_check(sys.argv[1:]), 'sparsecv_mio' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", words, str(place), csv], cwd=ROOT / "sparsecv_mio", capture_output=True, text=True
    )
    assert told.stdout.splitlines()[-1] == "0 False" and "cover all supports" in told.stdout
    assert run_check([str(place), str(INSTANCES / "housing.csv")]) == 2
    assert run_check([str(place)]) == 2


def test_a_claim_beyond_what_floats_prove_names_the_mode_that_rounds_nothing() -> None:
    near, far, above = ({"lower": lower, "upper": 3.0} for lower in (1.0001, 2.0, 2.75))
    with pytest.raises(Refused, match="the proof gives only 1.0, computed with rounding; use --mode exact"):
        _proved_interval(near, 1.0, 2.5, "tau 1")
    for line in (far, above):  # no rounding explains them
        with pytest.raises(Refused, match="gives only 1.0$"):
            _proved_interval(line, 1.0, 2.5, "tau 1")
    with pytest.raises(Refused, match="gives only 1.0$"):
        _proved_interval(near, Fraction(1), Fraction(5, 2), "tau 1")
    with pytest.raises(Refused, match="use --mode exact"):  # the error is small compared with the target
        _proved_interval(far, 1.0, 2.5, "tau 1", 1.5)


@pytest.mark.parametrize("seed", [1, 2])
def test_columns_far_from_0_without_an_intercept_are_proved(tmp_path: Path, seed: int) -> None:
    """f of all columns had the digits of an inverse: supports that had to be listed were not, in one of ten proofs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 4)) + 1e3
    data = Dataset.from_arrays(X, rng.normal(size=15) + X[:, 2])
    record = best_subsets(data, gammas=[9.0], taus=[1, 2], scale="none", intercept="none")
    write_proof(record, data, tmp_path / "far.proof")
    assert all(check(str(tmp_path / "far.proof"), X, data.y, mode).words for mode in ("fast", "exact"))


def test_an_almost_exact_fit_is_proved_from_the_rows(tmp_path: Path) -> None:
    """Columns at 1e5, noise of 1e-7: larger supports differ from the best one by less than the moments can tell."""
    for seed, kind in ((1, "5"), (2, "5"), (2, "loo")):
        rng, place = np.random.default_rng(seed), tmp_path / "p"
        X = 1e5 + rng.normal(size=(40, 4))
        data = Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, 1] + 1e-7 * rng.normal(size=40))
        plan = make_folds(kind, data)
        record = cross_validate(data, plan, gammas=[0.0], taus=[1, 2, 3])
        if kind == "loo":  # one list of supports of all rows, compared by moments
            with pytest.raises(BadInput, match=r"give smaller sizes \(--tau\) or a much larger --gamma, or use"):
                write_proof(record, data, place, plan)
            record = cross_validate(data, plan, gammas=[0.0], taus=[1, 2])
        write_proof(record, data, place, plan)
        assert check(str(place), X, data.y, "exact").words
