"""Backends side by side: agreement on the small data sets, one second on a hard instance, random problems.

    python scripts/bench/backends.py [--quick] [--out build/backends_acceptance.md]

Four tables: (1) the optimum of every (data, tau, gamma) by every usable backend, with the largest relative
disagreement; (2) diabetes64, tau 10, gamma 0.01 with a limit of one second: what is held, and when it came back;
(3) random problems against enumeration: wrong bounds, wrong statuses, proved; (4) exceptions inside callbacks, and the
command line where a licence is missing or too small. `--quick` takes a tenth of everything.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import _common  # first: it pins the threads of linear algebra
import numpy as np

from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.backends import BACKENDS, get_backend
from sparsecv_mio.formulation.outcome import Limits, Outcome, Stop
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import full_problem

TAUS, GAMMAS, DATA = (3, 6, 9), (0.01, 0.1, 1.0), ("diabetes", "servo", "autompg")


def usable() -> list[str]:
    """Backends that can be used here."""
    return [name for name in BACKENDS if get_backend(name).available().usable]


def load(name: str, gamma: float) -> SparseProblem:
    """All rows of an instance."""
    dataset = read_dataset(str(_common.INSTANCES / f"{name}.csv"), _common.TARGETS[name])
    return full_problem(standardize(dataset), gamma)


def agreement(names: list[str], quick: bool) -> Iterator[str]:
    """Table 1."""
    yield "| data | tau | gamma | " + " | ".join(names) + " | disagreement | all proved |"
    yield "|" + " --- |" * (len(names) + 5)
    worst = 0.0
    for data, tau, gamma in itertools.product(DATA[: 1 if quick else 3], TAUS, GAMMAS):
        problem = load(data, gamma)
        found = {name: get_backend(name).solve(problem, tau, limits=Limits(seconds=300.0)) for name in names}
        values = [outcome.upper for outcome in found.values()]
        apart = (max(values) - min(values)) / min(values)
        worst = max(worst, apart)
        proved = all(outcome.stop is Stop.OPTIMAL for outcome in found.values())
        seconds = " | ".join(f"{found[name].seconds:.3f} s" for name in names)
        yield f"| {data} | {tau} | {gamma} | {seconds} | {apart:.1e} | {'yes' if proved else 'no'} |"
    yield ""
    yield f"Largest relative disagreement between two optima: {worst:.1e}."


def one_second(names: list[str]) -> Iterator[str]:
    """Table 2."""
    yield "| backend | formulation | stop | in the solver | with set-up | lower | upper | bounds hold |"
    yield "|" + " --- |" * 8
    problem = load("diabetes64", 0.01)
    known = get_backend("native").solve(problem, 10, limits=Limits(seconds=20.0)).upper
    for name in names:
        backend = get_backend(name)
        for form in backend.capabilities.formulations:
            backend.solve(load("diabetes", 1.0), 2, formulation=form)  # imports, compilation, licence
            out = backend.solve(problem, 10, formulation=form, limits=Limits(seconds=1.0))
            again = refit_moments(problem, out.incumbent or ()).objective
            held = out.lower <= known and abs(again / out.upper - 1.0) < 1e-9
            times = f"{out.seconds:.2f} s | {out.seconds + out.setup_seconds:.2f} s"
            row = f"| {name} | {form} | {out.stop} | {times} | {out.lower:.4f} | {out.upper:.4f} |"
            yield f"{row} {'yes' if held else 'NO'} |"
    yield ""
    yield f"Bounds hold: the lower one is below the best support known, {known:.4f}; the upper one is a refit."


def random_problem(rng: np.random.Generator) -> SparseProblem:
    """A small problem, any regime."""
    q, n, rho = int(rng.integers(2, 9)), int(rng.integers(4, 40)), rng.uniform(0.0, 0.99)
    X = np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1.0 - rho) * rng.standard_normal((n, q))
    X, _ = _common.centred(X, np.zeros(n), 1.0)
    y = X @ (rng.standard_normal(q) * (rng.random(q) < 0.5) * 3.0) + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal(n)
    y = y - y.mean()
    return SparseProblem(
        X.T @ X, X.T @ y, float(y @ y), np.ones(q), 10.0 ** rng.uniform(-4, 4) / 2.0, n, np.zeros(q), 0.0
    )


def best_of_all(problem: SparseProblem, tau: int) -> float:
    """Enumeration."""
    return min(
        refit_moments(problem, support).objective
        for size in range(tau + 1)
        for support in itertools.combinations(range(problem.q), size)
    )


def random_study(names: list[str], count: int) -> Iterator[str]:
    """Table 3."""
    yield "| backend | formulation | problems | wrong bounds | wrong statuses | proved |"
    yield "|" + " --- |" * 6
    for name in names:
        backend = get_backend(name)
        for form in backend.capabilities.formulations:
            rng = np.random.default_rng(2026)
            wrong_bounds = wrong_status = proved = 0
            for _ in range(count):
                problem = random_problem(rng)
                tau = int(rng.integers(0, problem.q + 1))
                truth = best_of_all(problem, tau)
                out = backend.solve(problem, tau, formulation=form, limits=Limits(seconds=60.0))
                wrong_bounds += not _valid(out, truth, problem.yy)
                optimal = out.stop is Stop.OPTIMAL
                wrong_status += optimal and out.upper - truth > 1e-7 * truth + out.allowance + 1e-12 * problem.yy
                proved += optimal
            yield f"| {name} | {form} | {count} | {wrong_bounds} | {wrong_status} | {proved} |"


class BrokenEvent(threading.Event):
    """A cancel event that raises when it is asked for the fourth time."""

    asked = 0

    def is_set(self) -> bool:
        """Whether to stop."""
        self.asked += 1
        if self.asked > 3:
            raise ZeroDivisionError("inside the callback")
        return False


def breakdowns(names: list[str]) -> Iterator[str]:
    """Table 4."""
    yield "| backend | formulation | an exception inside its callback |"
    yield "|" + " --- |" * 3
    problem = load("diabetes64", 0.01)
    for name in names:
        backend = get_backend(name)
        for form in backend.capabilities.formulations:
            try:
                out = backend.solve(problem, 10, formulation=form, limits=Limits(seconds=20.0, cancel=BrokenEvent()))
                said = f"NOT RAISED: {out.stop}"
            except ZeroDivisionError as error:
                said = f"raised by solve: ZeroDivisionError({error})"
            yield f"| {name} | {form} | {said} |"
    yield ""
    data, small = str(_common.INSTANCES / "housing2.csv"), str(_common.INSTANCES / "diabetes.csv")
    asked = [
        ["fit", data, "--target", "medv", "--tau", "3", "--gamma", "1", "--backend", "gurobi"],
        ["fit", small, "--target", "y", "--tau", "3", "--gamma", "1", "--backend", "mosek"],
        ["solve", small, "--target", "y", "--tau", "3", "--gamma", "1", "--backend", "mosek"],
    ]
    for words in asked:
        done = subprocess.run([sys.executable, "-m", "sparsecv_mio.cli", *words], capture_output=True, text=True)
        words[1] = f"instances/{Path(words[1]).name}"
        yield f"    $ sparsecv {' '.join(words)}"
        yield from (f"    {line}" for line in (done.stdout + done.stderr).splitlines())
        yield f"    exit code {done.returncode}"
        yield ""


def _valid(out: Outcome, truth: float, yy: float) -> bool:
    rounding = 1e-9 * truth + 1e-13 * yy
    return out.lower <= truth + rounding and out.upper >= truth - rounding


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="build/backends_acceptance.md")
    options = parser.parse_args()
    names = usable()
    parts = [
        ("One optimum, every backend (gap 1e-7, seconds inside the solver)", agreement(names, options.quick)),
        ("One second on diabetes64, tau 10, gamma 0.01", one_second(names)),
        ("Random problems against enumeration", random_study(names, 50 if options.quick else 500)),
        ("Breakdowns", breakdowns(names)),
    ]
    missing = [f"{name}: {get_backend(name).available().why}" for name in BACKENDS if name not in names]
    lines = ["# Backends: acceptance", "", "`python scripts/bench/backends.py`", "", _common.environment(), ""]
    lines += [f"Not run: {text}." for text in missing] + [""]
    for title, rows in parts:
        lines += [f"## {title}", ""]
        for row in rows:
            print(row, flush=True)
            lines.append(row)
        lines.append("")
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
