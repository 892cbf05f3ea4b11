"""A second checker, written from docs/proof-format.md alone, judges proofs and forgeries as `sparsecv check` does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_checker
from altered_numbers import altered, numbers
from forged_proofs import Lines, read_lines, write_lines
from repository import INSTANCES

from sparsecv_mio.cli import run

PROSTATE, DIABETES = INSTANCES / "prostate.csv", INSTANCES / "diabetes.csv"
MADE = {
    "leave-one-out": ("solve", PROSTATE, "-t lpsa --features lcavol,lweight,svi,age --folds loo --gamma 0.1 --tau 1:2"),
    "folds": ("solve", PROSTATE, "-t lpsa --folds 5 --gamma 0.1 --tau 1:3 --scale none --intercept global"),
    "repeated": ("solve", DIABETES, "-t y --features bmi,s5,bp,sex --folds 2x3 --gamma 0.5 --tau 1:4 --scale variance"),
    "no intercept": ("solve", DIABETES, "-t y --features bmi,s5,bp --folds 4 --gamma 1 --tau 1:2 --intercept none"),
    "path": ("path", PROSTATE, "-t lpsa --gamma 0.1,1 --tau 0:4"),
    "adjusted": ("solve", PROSTATE, "-t lpsa --adjust age,svi --folds 5 --gamma 0.1 --tau 0:3"),
    "without a ridge": ("solve", PROSTATE, "-t lpsa --features lcavol,lweight,svi,age --folds 3 --gamma 0,1 --tau 1:3"),
    "fit": ("fit", DIABETES, "-t y --features bmi,s5,bp,s3 --gamma 0.01 --tau 2 --scale variance --intercept global"),
}


def make(command: str, data: Path, options: str, proof: Path) -> Path:
    """A proof; where the program says that it has none, no file."""
    code = run([command, str(data), *options.split(), "--threads", "1", "-q", "--proof", str(proof)])
    assert proof.exists() or code in (1, 2)
    return proof


def verdicts(proof: Path, data: Path, mode: str = "exact") -> tuple[bool, bool]:
    """Whether `sparsecv check` accepts a proof, and whether the second checker does."""
    code = run(["check", str(proof), str(data), "--mode", mode])
    assert code in (0, 1, 2)
    return code == 0, second_checker.check(proof, data).accepted


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("proofs")
    return {name: make(*how, folder / f"{k}.proof") for k, (name, how) in enumerate(MADE.items())}


def of_kind(lines: Lines, kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("kind") == kind]


@pytest.mark.parametrize("name", MADE)
def test_the_same_proofs_are_accepted(made: dict[str, Path], name: str) -> None:
    assert verdicts(made[name], MADE[name][1], "fast") == (True, True)


@pytest.mark.parametrize("name", ["folds", "path"])
def test_entries_of_another_type_are_refused(made: dict[str, Path], tmp_path: Path, name: str) -> None:
    """One number of each field; alterations that leave a proof well formed are those of tests/campaign."""
    lines, forged, seen = read_lines(made[name]), tmp_path / "forged.proof", set[tuple[Any, ...]]()
    for place, value in numbers(lines):
        field = lines[place[0]].get("kind"), *("[]" if isinstance(key, int) else key for key in place[1:])
        if field in seen or field[1] == "folds":  # words for the reader, of which nothing is proved
            continue
        seen.add(field)
        for other in (None, str(value), [value], True):
            write_lines(forged, json.loads(altered(lines, place, other)))
            accepted = other is None and field == ("pair", "upper")  # such a pair has no upper bound
            assert verdicts(forged, MADE[name][1], "fast") == (accepted, accepted), (place, other)
    assert len(seen) > 15


def test_a_bound_without_margin_holds_for_no_other_gamma(made: dict[str, Path], tmp_path: Path) -> None:
    """A proof keeps 1e-9 from what holds, so that it holds of an ulp more gamma too; a sharp `upper` does not."""
    lines, place = read_lines(made["path"]), tmp_path / "sharp.proof"
    best = of_kind(lines, "best")[-1]
    setting = second_checker.Setting(lines[0], PROSTATE)
    high = setting.problem(-1, best["gamma"]).objective(tuple(best["support"])).high
    assert high is not None
    best["upper"] = math.nextafter(float(high / setting.in_units(Fraction(1))), math.inf)
    write_lines(place, lines)
    assert second_checker.check(place, PROSTATE).accepted
    lines[0]["gammas"][best["gamma"]] *= 1 + 1e-13
    write_lines(place, lines)
    verdict = second_checker.check(place, PROSTATE)
    assert not verdict.accepted and verdict.reason == "upper of best"


def missing_upper(lines: Lines) -> None:
    del of_kind(lines, "pair")[0]["upper"]


def fraction_for_size(lines: Lines) -> None:
    lines[0]["data"]["n"] = float(lines[0]["data"]["n"])


def constant_column(lines: Lines) -> None:
    lines[0]["columns"].append(2)
    lines[0]["units"].append(0)


def fold_twice(lines: Lines) -> None:
    part = next(part for line in of_kind(lines, "pair") for part in line["parts"] if part["by"] == "own")
    for name in ("folds", "trees"):
        part[name].append(part[name][0])


def pair_twice(lines: Lines) -> None:
    lines.insert(-1, of_kind(lines, "pair")[0])


@pytest.mark.parametrize(
    "change, name, accepted",
    [
        (missing_upper, "folds", 0),
        (fraction_for_size, "path", 0),
        (fold_twice, "folds", 0),
        (pair_twice, "folds", 1),
    ],
)
def test_what_the_page_left_open(
    made: dict[str, Path], tmp_path: Path, change: Callable[[Lines], None], name: str, accepted: bool
) -> None:
    lines = read_lines(made[name])
    change(lines)
    forged = tmp_path / "forged.proof"
    write_lines(forged, lines)
    assert verdicts(forged, MADE[name][1], "fast") == (bool(accepted), bool(accepted))


def test_a_constant_column_is_no_candidate(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a,b,one,y\n" + "".join(f"{i},{i * i % 7},1,{i * 3 % 5}\n" for i in range(12)))
    proof = make("path", data, "-t y --scale none --intercept none --gamma 1 --tau 1", tmp_path / "proof")
    assert verdicts(proof, data) == (True, True)
    lines = read_lines(proof)
    constant_column(lines)
    write_lines(proof, lines)
    assert verdicts(proof, data) == (False, False)


def nearly_singular(seed: int, folder: Path) -> tuple[Path, Path]:
    """Data of columns of units far apart, often with near copies, and a proof of a random question about them."""
    draw = np.random.default_rng(seed)
    n, p = int(draw.integers(8, 30)), int(draw.integers(2, 7))
    X = draw.normal(size=(n, p)) * 10.0 ** draw.integers(-3, 4, size=p) + draw.integers(-5, 6, size=p)
    if draw.random() < 0.2:
        X[:, 0] = 3.0
    if draw.random() < 0.3:
        X[:, -1] = X[:, 0] + 1e-8 * draw.normal(size=n)
    y = X @ draw.normal(size=p) / np.abs(X).max() + draw.normal(size=n) * draw.choice([0.1, 1, 3])
    data, header = folder / f"{seed}.csv", ",".join([*(f"x{j}" for j in range(p)), "y"])
    np.savetxt(data, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    scale, intercept = draw.choice(["length", "variance", "none"]), draw.choice(["fold", "global", "none"])
    draw.choice(5)
    options = f"-t y --scale {scale} --intercept {intercept} --gamma {draw.choice(['0.01,1', '0.1', '0.5,5', '20'])}"
    options += f" --tau {draw.integers(0, 2)}:{draw.integers(1, max(p, 2))}"
    options += f" --folds {draw.choice(['loo', '3', '5', '2x3', 'blocks:3', 'forward:3'])}"
    return data, make("solve", data, options, folder / f"{seed}.proof")


@pytest.mark.parametrize("seed", [28, 42, 92, 158])
def test_nearly_singular_moments_are_checked_exactly(tmp_path: Path, seed: int) -> None:
    """Inverses of floats were too coarse for the exact mode, one step of a solution for the second checker.

    Of 158, the writer's leverages of all columns were less than those of the data by rounding of their moments.
    """
    data, proof = nearly_singular(seed, tmp_path)
    assert verdicts(proof, data, "exact") == (True, True)
