"""IACV beside exact leave-one-out: speed in one run, the order of its error in n, and its limit.

python scripts/bench/iacv_acceptance.py [--n 1000] [--p 20] [--iterations 6000] [--repeats 5] [--alone 20]

The data are the paper's simulation (section 6): logistic regression, ridge lam = 1e-6 n, step 0.5 / n, from the
origin. Exact leave-one-out is run two ways with the same steps: all n fits together, their predictors as blocked matrix
products (what the package does, timed in full, in the same run as IACV), and each fit on its own in plain numpy
matrix-vector products (`--alone` fits timed, times n / alone).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from _common import FloatArray, environment, np, table
from scipy.special import expit

from sparsecv_mio.oracles.iacv import (
    Erm,
    Logistic,
    Penalty,
    Regularizer,
    exact_step,
    gd,
    iacv_step,
    newton_step,
    proxgd,
    run,
    start,
)

RESULTS = Path(__file__).resolve().parents[2] / "build"


def simulate(n: int, p: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """The paper's data: standard normal columns, five coefficients from N(0, 1), logistic labels -1 / +1."""
    rng = np.random.default_rng(seed)
    theta = np.zeros(p)
    theta[rng.choice(p, 5, replace=False)] = rng.standard_normal(5)
    X = rng.standard_normal((n, p))
    return X, np.where(rng.random(n) < expit(X @ theta), 1.0, -1.0)


def problem(n: int, p: int, seed: int, penalty: Penalty) -> Erm:
    X, y = simulate(n, p, seed)
    return Erm(X, y, Logistic(), penalty, 1e-6 * n)


def one_by_one(X: FloatArray, y: FloatArray, steps: int, fits: int) -> float:
    """Seconds for all n exact fits run on their own, from the first `fits` of them."""
    n, p = X.shape
    alpha, lam = 0.5 / n, 1e-6 * n
    begin = time.perf_counter()
    for i in range(fits):
        A, b = np.delete(X, i, axis=0), np.delete(y, i)
        theta = np.zeros(p)
        for _ in range(steps):
            theta = theta - alpha * ((-b / (1.0 + np.exp(b * (A @ theta)))) @ A + 2.0 * lam * theta)
    return (time.perf_counter() - begin) * n / fits


def speed(options: argparse.Namespace) -> str:
    erm = problem(options.n, options.p, 0, Regularizer(2.0))
    report = run(erm, gd(0.5 / options.n), options.iterations, record=[options.iterations], methods=("exact",))
    assert report.seconds_exact is not None
    mine, together = float(report.seconds[-1]), float(report.seconds_exact[-1])
    alone = one_by_one(erm.X, erm.y, options.iterations, options.alone)
    rows = [
        ["IACV, all fits", mine, 1.0],
        ["exact, all fits together", together, together / mine],
        ["exact, one by one", alone, alone / mine],
    ]
    return table(["method", "seconds", "times IACV"], rows)


def converged(n: int, p: int, steps: int, seed: int) -> float:
    erm = problem(n, p, seed, Regularizer(2.0))
    report = run(erm, gd(0.5 / n), steps, record=[steps], methods=("exact",))
    error = report.traces["iacv"].err_approx
    assert error is not None
    return float(error[-1])


def order(options: argparse.Namespace) -> str:
    sizes = (250, 500, 1000)
    errors = [np.median([converged(n, options.p, 1000, s) for s in range(options.repeats)]) for n in sizes]
    rows: list[list[object]] = []
    for i, n in enumerate(sizes):
        slope = "" if i == 0 else f"{np.log(errors[i] / errors[0]) / np.log(n / sizes[0]):.2f}"
        rows.append([n, float(errors[i]), slope])
    return table(["n", "median Err_approx", "exponent from n = 250"], rows)


def limit() -> str:
    rows = []
    for name, penalty, solver in (("gd, ridge", Regularizer(2.0), gd), ("proxgd, l1", Regularizer(0.0, 1.0), proxgd)):
        erm = problem(250, 20, 0, penalty)
        method, state = solver(0.5 / 250), start(problem(250, 20, 0, penalty))
        for _ in range(10_000):
            state = iacv_step(erm, method, state)
        ns = newton_step(erm, state.theta, proximal=method.proximal)
        exact = np.tile(state.theta, (250, 1))
        for t in range(3000):
            exact = exact_step(erm, method, t, exact)
        gap = float(np.linalg.norm(state.approx - ns, axis=1).max())
        rows.append([name, gap, float(np.linalg.norm(state.approx - exact, axis=1).mean())])
    return table(["method", "largest distance from the Newton step", "mean distance from the exact fits"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--p", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--alone", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS / "iacv_acceptance.md")
    options = parser.parse_args()
    command = (
        f"python scripts/bench/iacv_acceptance.py --n {options.n} --p {options.p} --iterations {options.iterations} "
        f"--repeats {options.repeats} --alone {options.alone}"
    )
    text = "\n".join([
        "# IACV beside exact leave-one-out\n",
        f"`{command}`\n",
        f"{environment()}; one thread, so read the ratios.\n",
        f"## Speed, n = {options.n}, p = {options.p}, {options.iterations} steps of gradient descent\n",
        speed(options),
        "\nThe paper reports 6 to 7 times against runs one by one.\n",
        f"## Order of the error, p = {options.p}, 1,000 steps, {options.repeats} data sets (Theorem 4.4: -2)\n",
        order(options),
        "\n## Limit, n = 250, p = 20, 10,000 steps (Theorems 5.1 and A.3)\n",
        limit(),
        "",
    ])  # fmt: skip
    print(text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
