"""What `same_records.py` runs: data, fixed command lines, and random ones. Nothing of the package is imported."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import INSTANCES, FloatArray, synthetic

TARGETS = {
    "autompg": "mpg", "diabetes": "y", "diabetes11": "y", "diabetes64": "y", "housing": "medv", "housing2": "medv",
    "prostate": "lpsa", "servo": "class", "topgear": "MPG", "topgear_int": "MPG",
}  # fmt: skip
ONE_THREAD = ("solve", "path", "bounds", "fit")  # commands with the option --threads


@dataclass(frozen=True)
class Run:
    """Command lines that are called one after another; the last one writes the record.

    `{record}` stands for the place of the record, `{scratch}` for a folder that is empty at the start.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    quick: bool = False


# A line is a run: what is asked of `sparsecv`; `*` marks the quick set, `;` comes between two commands.
FIXED = """
* solve diabetes --folds loo --gamma 0.01:1:7 --method rounds
  solve diabetes --folds loo --gamma 0.01:1:7 --method joint
* solve diabetes --folds 10 --gamma 0.01:1:5 --method algorithm1
  solve diabetes --folds 5 --gamma 0.01:1:4 --method grid
* solve diabetes --folds blocks:10 --gamma 0.01:1:3 --tau 1:6 --method bounds
* solve diabetes --folds 10 --gamma 1e-3:10:5 --method descent
  solve diabetes --folds loo --gamma 0.01,0.1,1 --one-se
  solve diabetes --folds blocks:10 --gamma 0.01:1:4 --gap 0 --one-se
  solve diabetes --folds blocks:10 --gamma 0.01..1 --gap 1e-3
  solve diabetes11 --folds 10 --gamma 1e-3:10:7 --gap 0
  solve diabetes --folds loo --gamma 0.1
* solve housing --folds loo --gamma 0.05 --gap 0
  solve housing --folds 10 --gamma 0.01:1:5 --scale variance
  solve housing --folds 5 --gamma 0.01:1:5 --method rounds --intercept global
  solve housing --folds 5 --gamma 0.01..1 --intercept global
* solve housing --folds blocks:10 --gamma 0.01:1:4 --method joint --gap 0.05
  solve housing --folds 10 --gamma 0.01:1:3 --method algorithm1 --scale variance --intercept none
  solve housing --folds 5 --gamma 1e-2:10:4 --method descent --scale variance --one-se
  solve housing --folds loo --gamma 0.1,1 --tau 1:2 --method bounds --intercept global
* solve servo --folds loo --gamma 0.01:1:4 --method joint
  solve servo --folds loo --gamma 0.01:1:4 --method rounds
* solve servo --folds loo --gamma 0.01..1 --tau 1:4
* solve servo --folds 10 --gamma 0.1,1 --method rounds
  solve servo --folds 10 --gamma 0.1,1 --method joint
  solve servo --folds 10 --gamma 0.1,1 --method algorithm1
  solve servo --folds 5 --gamma 0.1,1 --method grid --mio-budget 60
  solve autompg --folds blocks:10 --gamma 0.05:1:4 --gap 0.05
  solve autompg --folds 10 --gamma 0.1,1 --method joint --scale none
  solve topgear --folds 5 --gamma 0.5,5 --tau 1:8 --method auto
  solve topgear --folds 5 --gamma 0.5..5 --tau 1:8
* solve diabetes64 --folds 10 --gamma 1 --tau log --gap 0.05
  solve housing2 --folds 5 --gamma 5 --tau 1:5
  solve topgear_int --folds 5 --gamma 5 --tau 1:4 --gap 0.05
* solve groups --folds groups:site --drop day --gamma 0.1,1 --tau 0:10 --one-se
  solve groups --folds column:day --drop site --gamma 0.01:1:4 --method joint --intercept none --scale none
* solve copies --folds loo --gamma 0.01,0.1 --gap 0
  solve copies --folds 5 --seed 3 --gamma 0.01:10:5 --method joint --one-se --mio-budget 30
  solve far --folds 5 --gamma 0.01,1 --gap 0
  solve far --folds 5 --gamma 0.01..1
* solve more --folds 5 --gamma 0.5,2 --tau 1:5
  solve more --folds loo --gamma 2 --tau 1:3 --method rounds --gap 0.05
  solve noisy --folds holdout:0.3 --gamma 0.1,1 --tau 1:8 --method joint
  solve rows --folds loo --gamma 0.1,1 --tau 1:8
* solve columns --folds 3 --gamma 1 --tau 1:2
  solve columns --folds 2 --gamma 6 --tau 2 --method grid --backend highs
  solve columns --folds 2 --gamma 1 --tau 1:2 --method descent
* solve prostate --folds 5 --gamma 0.1,1 --backend highs
  solve prostate --folds 5 --gamma 0.1,1 --tau 1:5 --method algorithm1 --backend highs
* solve prostate --folds 5 --gamma 0.1,1 --backend gurobi
  solve prostate --folds 3 --gamma 0.1 --tau 2:4 --method grid --backend gurobi --formulation benders
  solve prostate --folds 5 --gamma 0.1,1 --method algorithm1 --backend gurobi --formulation benders --mio-budget 2
* solve prostate --folds 3 --gamma 0.1,1 --tau 2:3 --backend scip --one-se
  solve housing --folds 10 --gamma 0.1,1 --mio-budget 5 --method joint --checkpoint {scratch}/run ; \
solve housing --folds 10 --gamma 0.1,1 --method joint --resume {scratch}/run
* path housing --gamma 0.01:1:5
  path housing2 --gamma 20 --tau 1:4 --scale variance --intercept global
  fit diabetes64 --tau 6 --gamma 1
* fit diabetes --tau 4 --gamma 0.1 --backend highs --force-in age --at-most 1:s3,s4,s5 --box bp:0:0.5
* bounds diabetes --folds 10 --gamma 0.1,1
  bounds servo --folds loo --gamma 0.5 --tau 1:6
  path diabetes --gamma 1e-2..1 --tau 1:6
  solve diabetes --folds 5 --gamma 1e-2..1 --tau 1:5 --gap 1e-3
* near diabetes --within 1% --gamma 0.1 --tau 3:6
  near housing --within 1% --by objective --gamma 0.1 --tau 4:6
  solve housing --folds 10 --gamma 0.1,1 --criterion common --tau 1:5
* solve servo --folds 5 --gamma 0.1,1 --tau 1:5 --nonnegative pgain_3,vgain_1 --hierarchy vgain_2=vgain_1
  solve prostate --folds 5 --gamma 0.1,1 --at-most 1:lcavol,lcp --nonnegative lcavol,svi --force-in age
* solve groups --folds groups:site --gamma 0.1,1 --tau 0:8 --weights day
  solve prostate --folds 5 --gamma 0.01:1:4 --nested 3
  solve prostate --folds 5 --gamma 0.01:1:4 --stability 0.5
  solve prostate --folds 3 --gamma 0.01:1:3 --stability nested
* solve diabetes --folds 10
  solve diabetes64 --folds 10 --gamma 0.3,1 --tau 1:8
* solve labels --loss logistic --drop site --folds 10 --gamma 0.003:0.3:3
  solve labels --loss logistic --drop site --folds 5 --gamma 0.01,0.1 --tau 1:6 --gap 0
* solve labels --loss logistic --drop site --folds loo --gamma 0.05 --tau 1:3
  solve labels --loss logistic --folds groups:site --gamma 0.01,0.1 --one-se
  solve labels --loss logistic --folds column:site --gamma 0.01:1:4 --class-weight balanced
  solve labels --loss logistic --drop site --folds stratified:5 --gamma 0.1 --force-in x3 --adjust x5
  path labels --loss logistic --drop site --gamma 0.01,0.1
  near labels --loss logistic --drop site --within 1% --gamma 0.1 --tau 2:4
  fit labels --loss logistic --drop site --tau 3 --gamma 0.1
  bounds labels --loss logistic --drop site --folds 5 --gamma 0.1
* solve counts --loss poisson --exposure hours --folds 10 --gamma 0.03,0.3,3
  solve counts --loss poisson --exposure hours --folds loo --gamma 0.3 --tau 1:3
  solve counts --loss poisson --drop hours --folds 5 --gamma 0.03,0.3 --gap 0 --one-se
  solve counts --loss poisson --exposure hours --folds blocks:10 --gamma 0.3 --tau 1:4
  path counts --loss poisson --exposure hours --gamma 0.3
  near counts --loss poisson --exposure hours --within 1% --gamma 0.3 --tau 2:3
"""


def fixed(place: Path) -> list[Run]:
    """The fixed runs; data that are not committed are written into a folder."""
    made = _made(place)
    runs = []
    for text in FIXED.strip("\n").splitlines():
        commands = tuple(_command(part.split(), made) for part in text[2:].split(";"))
        runs.append(Run(text[2:].replace("{scratch}/", ""), _recorded(commands), text.startswith("*")))
    return runs


def _command(words: list[str], made: dict[str, tuple[Path, str]]) -> tuple[str, ...]:
    path, target = made[words[1]] if words[1] in made else (INSTANCES / f"{words[1]}.csv", TARGETS[words[1]])
    return _whole(words[0], path, target, words[2:])


def _whole(command: str, path: Path, target: str, options: list[str]) -> tuple[str, ...]:
    threads = ["--threads", "1"] if command in ONE_THREAD else []
    return (command, str(path), "--target", target, *options, *threads, "--quiet")


def _recorded(commands: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return (*commands[:-1], (*commands[-1], "--json", "{record}"))


# -- data -------------------------------------------------------------------------------------------------------------


def _made(place: Path) -> dict[str, tuple[Path, str]]:
    found = {}
    for name, draw in MADE.items():
        X, y, extra = draw()
        found[name] = write(place / f"{name}.csv", X, y, extra), "y"
    return found


def write(path: Path, X: FloatArray, y: FloatArray, extra: dict[str, list[int]]) -> Path:
    """A CSV file of columns x0, x1, ..., whatever is in `extra`, and y; every digit is kept."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow([*(f"x{j}" for j in range(X.shape[1])), *extra, "y"])
        for i, values in enumerate(X.tolist()):
            rows.writerow([*map(repr, values), *(ids[i] for ids in extra.values()), repr(float(y[i]))])
    return path


Drawn = tuple[FloatArray, FloatArray, dict[str, list[int]]]


def _groups() -> Drawn:
    """Groups of unequal sizes, and a fold a day."""
    X, y = synthetic(120, 15, 4, seed=1)
    rng = np.random.default_rng(1)
    site = np.minimum(rng.geometric(0.2, size=120), 8)
    return X, y, {"site": site.tolist(), "day": (np.arange(120) % 7).tolist()}


def _copies() -> Drawn:
    """Copies, a negative, a near copy, a sum of two columns and a constant one."""
    X, y = synthetic(60, 12, 3, seed=2)
    noise = np.random.default_rng(2).standard_normal(60)
    X[:, 7], X[:, 8], X[:, 9], X[:, 10], X[:, 11] = X[:, 0], -X[:, 4], X[:, 0] + 1e-3 * noise, X[:, 1] + X[:, 2], 3.7
    return X, y, {}


def _far() -> Drawn:
    """Columns far from zero and of very different lengths."""
    X, y = synthetic(80, 8, 3, seed=3)
    rng = np.random.default_rng(3)
    return X * 10.0 ** rng.uniform(-4, 4, size=8) + 1e5 * rng.standard_normal(8), y - 1e3, {}


def _labels() -> Drawn:
    """Two classes by the logistic model, and groups."""
    X, _ = synthetic(160, 12, 3, seed=8)
    rng = np.random.default_rng(8)
    y = X[:, :3].sum(axis=1) + rng.logistic(size=160) > 0.0
    return X, y.astype(np.float64), {"site": (rng.permutation(160) % 6).tolist()}


def _counts() -> Drawn:
    """Counts by the Poisson model with log link, and the hours in which they were counted."""
    X, _ = synthetic(150, 10, 3, seed=9)
    rng = np.random.default_rng(9)
    hours = rng.integers(1, 9, size=150)
    y = rng.poisson(hours * np.exp(0.4 * X[:, :3].sum(axis=1) - 0.5))
    return X, y.astype(np.float64), {"hours": hours.tolist()}


MADE: dict[str, Callable[[], Drawn]] = {
    "groups": _groups,
    "copies": _copies,
    "far": _far,
    "more": lambda: (*synthetic(40, 60, 3, seed=4), {}),  # more columns than rows
    "noisy": lambda: (*synthetic(100, 25, 5, seed=5, rho=0.8, snr=0.5), {}),
    "rows": lambda: (*synthetic(3000, 10, 4, seed=6), {}),
    "labels": _labels,
    "counts": _counts,
    "columns": lambda: (*synthetic(24, 4500, 2, seed=7, rho=0.2, snr=50.0), {}),  # so many that they go by rows
}


# -- random runs ------------------------------------------------------------------------------------------------------

METHODS = ("auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent")
BY_MIO = ("auto", "joint", "algorithm1", "grid")
LOSSES = ("squared", "logistic", "poisson")
BOUNDS = ("safe", "as-printed")
BACKENDS = ("highs", "gurobi", "scip")


def random_runs(place: Path, count: int, seed: int) -> Iterator[Run]:
    """Random small problems with random options, each made when it is asked for."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        X, y = _hostile(rng)
        loss = str(rng.choice(LOSSES, p=[0.6, 0.2, 0.2]))
        y = TARGET_OF[loss](y)
        ids = rng.permutation(np.arange(len(y)) % int(rng.integers(2, 6)))
        path = write(place / f"random{number}.csv", X, y, {"id": ids.tolist()})
        command = str(rng.choice(["solve", "path", "bounds", "fit"], p=[0.8, 0.06, 0.08, 0.06]))
        draw_options = _solve_smooth if command == "solve" and loss != "squared" else OPTIONS[command]
        options = draw_options(rng, *X.shape) + (["--loss", loss] if loss != "squared" else [])
        folds = options[options.index("--folds") + 1] if "--folds" in options else ""
        options += [] if folds.endswith(":id") else ["--drop", "id"]
        name = f"{number}: {command} {len(y)}x{X.shape[1]} {' '.join(options)}"
        yield Run(name, _recorded((_whole(command, path, "y", options),)))
        path.unlink()


def _hostile(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Few rows; ties, copies, near copies, indicators, offsets, any length of columns, noise or none."""
    n, p = int(rng.integers(8, 41)), int(rng.integers(1, 13))
    X = rng.standard_normal((n, p))
    kind = str(rng.choice(["normal", "correlated", "whole", "one-hot", "copies", "near copies", "low rank", "heavy"]))
    if kind == "correlated":
        X += 3.0 * rng.standard_normal((n, 1))
    elif kind == "whole":
        X = np.round(X)
    elif kind == "one-hot":
        X = np.eye(p)[rng.integers(0, p, size=n)]
    elif kind == "copies":
        X[:, -1] = X[:, 0] * rng.choice([1.0, -1.0, 2.0])
    elif kind == "near copies":
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-7, -1) * rng.standard_normal(n)
    elif kind == "low rank":
        X = rng.standard_normal((n, 2)) @ np.round(rng.standard_normal((2, p)))
    elif kind == "heavy":
        X = rng.standard_cauchy((n, p))
    if rng.random() < 0.2:
        X *= 10.0 ** rng.uniform(-4, 4, size=p)
    X += rng.choice([0.0, 0.0, 1.0, 1e3, 1e6]) * np.abs(X).max(axis=0)
    X[0, 0] += 1.0
    weight = np.round(2.0 * rng.standard_normal(p)) * (rng.random(p) < 0.5) / (X.std(axis=0) + 1e-300)
    y = X @ np.where(X.std(axis=0) > 0.0, weight, 0.0) + rng.choice([0.0, 1e-6, 0.1, 1.0, 5.0]) * rng.standard_normal(n)
    if rng.random() < 0.2:
        y = np.round(y)
    y[0] += 0.5
    return X, y + rng.choice([0.0, 0.0, 10.0, 1e4])


def _two_classes(y: FloatArray) -> FloatArray:
    """Return classes 0 and 1, about half of the rows each, at least one row each."""
    classes = (y > np.median(y)).astype(np.float64)
    classes[:2] = 0.0, 1.0
    return classes


def _event_counts(y: FloatArray) -> FloatArray:
    """Return whole numbers from 0 on, at least one above 0."""
    counts = np.floor(np.exp((y - y.mean()) / (y.std() + 1e-300)))
    counts[0] += 1.0
    return counts


TARGET_OF: dict[str, Callable[[FloatArray], FloatArray]] = {
    "squared": lambda y: y,
    "logistic": _two_classes,
    "poisson": _event_counts,
}


def _grid(rng: np.random.Generator, p: int) -> list[str]:
    gammas = ",".join(f"{g:.3g}" for g in 10.0 ** rng.uniform(-4, 3, size=rng.integers(1, 4)))
    taus = sorted({int(t) for t in rng.integers(0, p + 1, size=rng.integers(1, 5))})
    return ["--gamma", gammas, "--tau", ",".join(map(str, taus)), *_scales(rng)]


def _scales(rng: np.random.Generator) -> list[str]:
    scale = str(rng.choice(["length", "length", "variance", "none"]))
    return ["--scale", scale, "--intercept", str(rng.choice(["fold", "fold", "global", "none"]))]


def _folds(rng: np.random.Generator) -> list[str]:
    spec = str(rng.choice(["loo", "loo", "3", "5", "blocks:3", "holdout:0.3", "groups:id", "column:id"]))
    return ["--folds", spec] + (["--seed", str(rng.integers(100))] if spec in ("3", "5") else [])


def _solve(rng: np.random.Generator, n: int, p: int) -> list[str]:
    words, folds = _grid(rng, p), _folds(rng)
    backend = str(rng.choice(BACKENDS)) if rng.random() < 0.1 else "native"
    method = str(rng.choice(METHODS if backend == "native" else BY_MIO))
    words += ["--method", method] + (["--backend", backend] if backend != "native" else [])
    words += ["--gap", str(rng.choice(["0", "1e-4", "1e-4", "5e-2"]))]
    if method in BY_MIO[1:] and rng.random() < 0.2:
        words += ["--mio-budget", str(rng.integers(0, 12))]
    if method != "bounds" and not folds[1].startswith("holdout") and rng.random() < 0.3:
        words += ["--one-se"]
    return words + folds


def _solve_smooth(rng: np.random.Generator, n: int, p: int) -> list[str]:
    """Return options that every version supports with logistic and Poisson loss."""
    words, folds = _grid(rng, p), _folds(rng)
    words += ["--gap", str(rng.choice(["0", "1e-4", "1e-4", "5e-2"]))]
    if not folds[1].startswith("holdout") and rng.random() < 0.3:
        words += ["--one-se"]
    return words + folds


def _bounds(rng: np.random.Generator, n: int, p: int) -> list[str]:
    return [*_grid(rng, p), *_folds(rng), "--bounds", str(rng.choice(BOUNDS))]


def _fit(rng: np.random.Generator, n: int, p: int) -> list[str]:
    words = ["--tau", str(rng.integers(0, p + 1)), "--gamma", f"{10.0 ** rng.uniform(-3, 3):.3g}", *_scales(rng)]
    return [*words, "--backend", str(rng.choice(["native", *BACKENDS]))]


OPTIONS: dict[str, Callable[[np.random.Generator, int, int], list[str]]] = {
    "solve": _solve,
    "path": lambda rng, n, p: _grid(rng, p),
    "bounds": _bounds,
    "fit": _fit,
}
