"""Table 4 and Figures 5, 6 of "Generalized Low-Rank Update" (Hanada, Hashimoto, Taji, Takeuchi 2023), in form.

python scripts/bench/glru_changes.py [--parts labels,stepwise] [--data 600x10000,digits] [--exponents 0,5,10]
                                     [--samples 50] [--out results]

What its bounds say after a change other than one row left out, which `scripts/papers/glru.toml` has.

`stepwise`: the first step of stepwise elimination, a tenth of the rows for validation; naive is the number of columns
times the median of `--samples` trainings.

`labels`: share of test rows whose label the bounds determine after 1 .. 10 rows or columns are removed or added.

Data: NxD is two Gaussian classes of N rows in all and D columns whose Bayes error is 2%; `breast_cancer` and `digits`
(0-4 against 5-9) come with scikit-learn. Columns have mean 0 and variance 1, as in the paper; there is no intercept.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from _common import FloatArray, environment, np, table

from sparsecv_mio.oracles.glru import (
    Logistic,
    Regularizer,
    StepwiseOptions,
    change_columns,
    change_rows,
    make_problem,
    prediction_intervals,
    stepwise,
    train,
)
from sparsecv_mio.oracles.glru.stepwise import ColumnView

RESULTS = Path(__file__).resolve().parents[2] / "build"
BAYES_DISTANCE = 2.0537489106318225  # Phi(-z) = 0.02
TOL = 1e-6


def data(name: str, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Rows and labels -1 / +1, columns of mean 0 and variance 1."""
    size = re.fullmatch(r"(\d+)x(\d+)", name)
    if size:
        n, d = int(size[1]), int(size[2])
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        X = rng.standard_normal((n, d))
        X += y[:, None] * (BAYES_DISTANCE / np.sqrt(d))
    else:
        from sklearn import datasets

        load = {"breast_cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}[name]
        X, labels = load(return_X_y=True)
        y = np.where(labels <= (4 if name == "digits" else 0), -1.0, 1.0)
    X = X[:, X.std(axis=0) > 0.0]
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return X, y


def label_share(X: FloatArray, y: FloatArray, lam: float, rng: np.random.Generator) -> list[tuple[object, ...]]:
    """Label determination rates after 1, 3 and 10 rows or columns go or come (a tenth of the rows is the test set)."""
    order = rng.permutation(len(y))
    test, spare, rows = order[: len(y) // 10], order[len(y) // 10 : len(y) // 10 + 10], order[len(y) // 10 + 10 :]
    columns = rng.permutation(X.shape[1])
    new, old = columns[:10], np.sort(columns[10:])
    base = X[np.ix_(rows, old)]
    fit = train(make_problem(base, y[rows], Logistic(), Regularizer(lam)), tol=TOL)
    out: list[tuple[object, ...]] = []
    for k in (1, 3, 10):
        cases = {
            "rows go": (change_rows(fit, np.arange(k)), X[np.ix_(test, old)]),
            "rows come": (change_rows(fit, add=(X[np.ix_(spare[:k], old)], y[spare[:k]])), X[np.ix_(test, old)]),
            "columns go": (change_columns(fit, np.arange(k)), X[np.ix_(test, old[k:])]),
            "columns come": (
                change_columns(fit, add=X[np.ix_(rows, new[:k])]),
                X[np.ix_(test, np.concatenate([old, new[:k]]))],
            ),
        }
        for change, (region, V) in cases.items():
            shares = [
                float(np.mean(~np.isnan(prediction_intervals(region, V, method).sign())))
                for method in ("primal", "dual", "sharp", "best")
            ]
            out.append((f"2^{round(np.log2(lam))}", change, k, *[f"{100 * share:.1f}%" for share in shares]))
    return out


def labels_table(name: str, exponents: list[int]) -> str:
    X, y = data(name)
    rng = np.random.default_rng(5)
    rows = [row for k in exponents for row in label_share(X, y, 2.0**-k, rng)]
    head = ("lam", "change", "k", "Primal-SCB", "Dual-SCB", "sharp", "best")
    return f"## {name}: n = {X.shape[0]}, d = {X.shape[1]}\n\n{table(head, rows)}\n"


def first_elimination(X: FloatArray, y: FloatArray, lam: float, samples: int) -> tuple[object, ...]:
    """One line of Table 4."""
    order = np.random.default_rng(6).permutation(len(y))
    test, rows = order[: len(y) // 10], order[len(y) // 10 :]
    problem = make_problem(X[rows], y[rows], Logistic(), Regularizer(lam))
    found = stepwise(problem, X[test], y[test], StepwiseOptions(tol=TOL, max_steps=1))
    d, fit = X.shape[1], train(problem, tol=TOL)
    spent = []
    for j in np.random.default_rng(7).choice(d, size=min(samples, d), replace=False).tolist():
        view = ColumnView.from_problem(problem, np.delete(np.arange(d), j))
        begin = time.perf_counter()
        train(view.problem, tol=TOL, start=view.narrow(fit.w))
        spent.append(time.perf_counter() - begin)
    naive = float(np.median(spent)) * d
    return (
        f"2^{round(np.log2(lam))}",
        found.start_errors,
        found.errors,
        naive,
        found.seconds,
        f"{100 * found.seconds / naive:.1f}%",
        found.trainings,
        f"{100 * found.trainings / d:.1f}%",
    )


def stepwise_table(name: str, exponents: list[int], samples: int) -> str:
    X, y = data(name)
    head = ("lam", "errors before", "after", "naive, s", "GLRU, s", "of naive", "trained", "of d")
    rows = [first_elimination(X, y, 2.0**-k, samples) for k in exponents]
    held = X.shape[0] // 10
    return f"## {name}: n = {X.shape[0] - held} + {held}, d = {X.shape[1]}\n\n{table(head, rows)}\n"


def exponent_list(text: str) -> list[int]:
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="labels,stepwise")
    parser.add_argument("--data", default="600x10000,6000x5000")
    parser.add_argument("--exponents", type=exponent_list, default="0-10")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    exponents = exponent_list(given.exponents) if isinstance(given.exponents, str) else given.exponents
    given.out.mkdir(exist_ok=True)
    for part, title, make in (
        ("labels", "GLRU, Figures 5 and 6 in form", lambda name: labels_table(name, exponents)),
        ("stepwise", "GLRU, Table 4 in form", lambda name: stepwise_table(name, exponents, given.samples)),
    ):
        if part not in given.parts.split(","):
            continue
        body = "\n".join(make(name) for name in given.data.split(","))
        shown = ",".join(map(str, exponents)) if len(exponents) < 11 else "0-10"
        command = f"`python scripts/bench/glru_changes.py --parts {part} --data {given.data} --exponents {shown}`"
        target = given.out / f"glru_{part}.md"
        target.write_text(f"# {title}\n\n{command}\n\n{environment()}; one thread.\n\n{NOTES[part]}\n\n{body}")
        print(target.read_text())


NOTES = {
    "stepwise": (
        "L2 logistic regression, relative duality gap 1e-6: the first elimination (Algorithm 4). *naive*: d times the "
        "median of 50 trainings without one column, each warm-started. *GLRU*: the whole run, its first and last fit "
        "included; a training stops once its errors are known or cannot win. As in the paper, what the bounds spare "
        "swings with the error counts. The candidates they spare are the cheap ones (often no step at all), so where "
        "a warm-started training is a step or less the bounds cost about the time they save, or more."
    ),
    "labels": (
        "L2 logistic regression trained to a relative gap of 1e-6. A tenth of the rows is the test set; a share is "
        "that of the test rows whose label is certain after k rows or columns are removed (go) or added (come)."
    ),
}


if __name__ == "__main__":
    main()
