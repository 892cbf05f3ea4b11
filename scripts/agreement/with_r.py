"""The same questions to R's leaps, glmnet, MASS and lm, and here: do they agree?

    apt-get install r-base-core r-cran-leaps r-cran-glmnet r-cran-mass
    python scripts/agreement/with_r.py --out build/agreement_r.md [--files prostate ties ...] [--work FOLDER]

Twenty tables: those of `instances`, and six that are made here. Exit code 1 where a number differs by more than
`EXACT` (of glmnet `ITERATED`), or a best subset is another one and no tie. How the penalties are translated is
derived in docs/guide/from_r.md.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparsecv_mio as sc
from sparsecv_mio.data.weights import weighted_rows

HERE = Path(__file__).resolve().parent
INSTANCES = HERE.parents[1] / "instances"
GAMMAS = (10.0, 1.0, 0.1, 0.01)
INDEPENDENT = 1e-3  # share of a column's length beyond the columns before it, from which leaps and we take it
SIZES = {
    "diabetes64": 8,
    "housing2": 4,
    "topgear_int": 2,
}  # sizes, from 1 on, that leaps lists in a minute; of others all
EXACT = 1e-9  # what may differ in what is computed directly
ITERATED = (
    1e-5  # and in coefficients of glmnet, which stops where a round changes little; of nearly dependent columns early
)
TIE = 1e-9  # relative difference of residual sums of squares
Array = NDArray[np.float64]
Answers = dict[tuple[str, float], dict[str, float]]  # of R: by question and place, values by name


@dataclass
class Table:
    """A file of numbers; `kept` are the columns that are linearly independent."""

    name: str
    X: Array
    y: Array
    differences: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        return [f"x{j + 1}" for j in range(self.X.shape[1])]

    @property
    def weights(self) -> Array:
        return np.asarray(1 + np.arange(len(self.y)) % 3, dtype=np.float64)

    @property
    def label(self) -> Array:
        return (self.y > np.median(self.y)).astype(np.float64)

    @property
    def kept(self) -> list[str]:
        kept: list[str] = []
        centred, basis = self.X - self.X.mean(axis=0), np.zeros((len(self.X), 0))
        for name, column in zip(self.columns, centred.T, strict=True):
            beyond = column / np.linalg.norm(column)
            for _ in range(2):
                beyond = beyond - basis @ (basis.T @ beyond)
            length = np.linalg.norm(beyond)
            if length > INDEPENDENT:
                basis, kept = np.column_stack([basis, beyond / length]), [*kept, name]
        return kept

    @property
    def sizes(self) -> int:
        known = len(self.kept) if len(self.y) > len(self.kept) + 1 else 0
        return min(SIZES.get(self.name, known), known)

    def dataset(self, y: Array | None = None, columns: list[str] | None = None) -> sc.Dataset:
        columns = columns or self.columns
        places = [self.columns.index(name) for name in columns]
        return sc.Dataset.from_arrays(self.X[:, places], self.y if y is None else y, names=columns)

    def close(self, question: str, ours: Array, theirs: Array) -> None:
        """Keep the largest difference, over the largest of the numbers."""
        size = float(np.abs(ours).max()) or 1.0
        difference = float(np.abs(ours - theirs).max()) / size
        self.differences[question] = max(difference, self.differences.get(question, 0.0))
        if not difference <= (EXACT if question in ("RSS", "lm", "lm.ridge") else ITERATED):
            self.wrong.append(f"{self.name}: {question} differs by {difference:.1e}")


def tables() -> Iterator[Table]:
    for path in sorted(INSTANCES.glob("*.csv")):
        rows = np.genfromtxt(path, delimiter=",", skip_header=1)
        yield Table(path.stem, rows[:, :-1], rows[:, -1])
    yield from made()


def made() -> Iterator[Table]:
    """Six tables of what files rarely show: correlation, far units, near copies, ties, few rows, many rows."""

    def noisy(name: str, X: Array, draw: np.random.Generator) -> Table:
        z = (X - X.mean(axis=0)) / X.std(axis=0)
        return Table(name, X, 10.0 + z[:, ::3].sum(axis=1) + draw.normal(size=len(X)) * 2.0)

    draw = np.random.default_rng(43)
    common = draw.normal(size=(80, 1))
    yield noisy("correlated", draw.normal(size=(80, 15)) + 3.0 * common, draw)
    yield noisy("units", draw.normal(size=(120, 12)) * np.logspace(-4, 7, 12) + 100.0 * np.logspace(-4, 7, 12), draw)
    base = draw.normal(size=(100, 8))
    yield noisy("copies", np.hstack([base, base + 0.01 * draw.normal(size=base.shape)]), draw)
    levels = np.array([[1.0 if row >> bit & 1 else -1.0 for bit in range(5)] for row in range(32)])
    pairs = [levels[:, i] * levels[:, j] for i in range(5) for j in range(i)]
    yield Table("ties", np.column_stack([levels, *pairs]), 3.0 ** (levels > 0).sum(axis=1))
    yield noisy("wide", draw.normal(size=(40, 60)), draw)
    yield noisy("long", draw.standard_t(4, size=(3000, 20)), draw)


def asked_of_r(chosen: list[Table], work: Path) -> str:
    """Write the tables that have no answer in the folder, run R, and return its versions."""
    unasked = [table for table in chosen if not (work / f"{table.name}.r").exists()]
    with (work / "plan.csv").open("w", newline="") as file:
        plan = csv.writer(file)
        plan.writerow(["name", "sizes", "kept"])
        plan.writerows([table.name, table.sizes, " ".join(table.kept)] for table in unasked)
    for table in unasked:
        with (work / f"{table.name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*table.columns, "weight", "label", "y"])
            rows.writerows(np.column_stack([table.X, table.weights, table.label, table.y]).tolist())
    subprocess.run(["Rscript", str(HERE / "with_r.R"), str(work)], check=True)
    return ", ".join((work / "versions.txt").read_text().splitlines())


def answers(path: Path) -> Answers:
    said: Answers = defaultdict(dict)
    for line in path.read_text().splitlines():
        question, place, name, value = line.split("\t")
        said[question, float(place)][name] = float(value)
    return said


@dataclass(frozen=True)
class Penalised:
    """One question about all columns: the data, what R's penalty is multiplied by, and our options."""

    data: sc.Dataset
    y: Array
    weights: Array
    factor: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)

    def value(self, X: Array, gamma: float, at_means: float, b: Array) -> float:
        """Return what both minimise, from its definition; `at_means` is the prediction at the means of the columns."""
        fitted = at_means + (X - X.mean(axis=0)) @ b
        lengths = self.weights @ (X - np.average(X, axis=0, weights=self.weights)) ** 2
        if "scale" in self.options:
            lengths = np.ones(len(b))
        penalty = gamma / 2.0 * float(lengths @ b**2)
        if "loss" in self.options:
            return float(self.weights @ np.logaddexp(0.0, (1.0 - 2.0 * self.y) * fitted)) + penalty
        return float(self.weights @ (self.y - fitted) ** 2) + penalty


def penalised(table: Table) -> dict[str, Penalised]:
    """The questions by the names that `with_r.R` gives them."""
    y, ones, whole = table.y, np.ones(len(table.y)), table.dataset()
    first = len(y) * table.X[:, 0].var()  # gamma of raw columns over gamma: their lambda is `gamma var(x1) sd(y) / 2`
    return {
        "ridge": Penalised(whole, y, ones),
        "lm.ridge": Penalised(whole, y, ones),
        "ridge of weighted rows": Penalised(weighted_rows(whole, table.weights, "weight"), y, table.weights),
        "ridge of raw columns": Penalised(whole, y, ones, first, {"scale": "none"}),
        "logistic": Penalised(table.dataset(table.label), table.label, ones, options={"loss": "logistic"}),
    }


def compare_ridge(table: Table, theirs: Answers) -> None:
    """All columns, four penalties, by four translations."""
    mean, scale = table.X.mean(axis=0), table.X.std(axis=0)
    for question, asked in penalised(table).items():
        if (question, GAMMAS[0]) not in theirs:
            continue
        gammas = [gamma * asked.factor for gamma in GAMMAS]
        record = sc.best_subsets(asked.data, gammas=gammas, taus=table.X.shape[1], **asked.options)
        for fit in record.path:
            intercept, *coefficients = theirs[question, round(fit.gamma / asked.factor, 9)].values()
            ours, others = np.array([fit.coefficients.get(name, 0.0) for name in table.columns]), np.array(coefficients)
            # at the means of the columns: an intercept itself is a difference of large numbers
            at_means = fit.intercept + ours @ mean, intercept + others @ mean
            table.close(question, ours * scale, others * scale)
            size = np.abs(ours * scale).max()
            table.close(question, np.array([at_means[0], size]), np.array([at_means[1], size]))
            least = asked.value(table.X, fit.gamma, at_means[0], ours)
            beyond = asked.value(table.X, fit.gamma, at_means[1], others) / least - 1.0
            table.differences["objective"] = max(abs(beyond), table.differences.get("objective", 0.0))
            if beyond < -EXACT:
                table.wrong.append(f"{table.name}: {question} of R has an objective that is less by {-beyond:.1e}")


def compare_subsets(table: Table, theirs: Answers) -> None:
    """Best subsets of every size at gamma 0, the fit of all columns, and what stepping ends with."""
    record = sc.best_subsets(table.dataset(columns=table.kept), gammas=0, taus=range(1, table.sizes + 1))
    if record.status != "proved":
        table.wrong.append(f"{table.name}: best subsets are not proved")
    same = ties = 0
    for fit in record.path:
        support = set(theirs["leaps support", fit.tau])
        rss, own = theirs["leaps", fit.tau].values()
        table.close("RSS", np.array([fit.objective]), np.array([rss]))
        table.close("RSS of leaps", np.array([fit.objective]), np.array([own]))
        if support == set(fit.support):
            same += 1
        elif abs(rss - fit.objective) <= TIE * fit.objective:
            ties += 1
        else:
            table.wrong.append(f"{table.name}: another subset of {fit.tau}, {rss:.12g} in leaps, {fit.objective:.12g}")
    table.words["sizes"] = f"{same} of {len(record.path)}" + (f", {ties} ties" if ties else "")
    if table.sizes == len(table.kept):
        whole, said = record.path[-1], theirs["lm", 0.0]
        table.close(
            "lm",
            np.array([whole.coefficients[name] for name in table.kept]),
            np.array([said[name] for name in table.kept]),
        )
    stepped = theirs.get(("stepAIC", 0.0))
    if stepped and table.sizes == len(table.kept):
        n = len(table.y)
        best = min(record.path, key=lambda fit: n * np.log(fit.objective / n) + 2 * (fit.tau + 1))
        least = n * np.log(best.objective / n) + 2 * (best.tau + 1)
        beyond = stepped["aic"] - least
        chosen = set(stepped) - {"aic", "(Intercept)"}
        table.words["stepAIC"] = "the best" if chosen == set(best.support) else f"{beyond:.2f} above"
        if beyond < -EXACT:
            table.wrong.append(f"{table.name}: stepAIC has a smaller AIC, by {-beyond:.1e}")


QUESTIONS = (
    "RSS", "RSS of leaps", "lm", "ridge", "ridge of weighted rows", "ridge of raw columns", "lm.ridge", "logistic",
    "objective",
)  # fmt: skip
HEAD = """# Agreement with R

    python scripts/agreement/with_r.py --out build/agreement_r.md

{versions}; here sparsecv-mio {ours}.

{count} tables, those of `instances/` and six that the script makes; how the penalties are translated is derived in
docs/guide/from_r.md. The script ends with exit code 1 where a number differs by more than {exact:g} ({iterated:g} where
glmnet iterates, and of sums of leaps), R finds coefficients of a smaller objective (by {exact:g}), or a best subset is
another one and its residual sum of squares is not equal to {tie:g}.

* **best subsets**: `regsubsets(method = "exhaustive")` and `path --gamma 0`, sizes 1, 2, ...: how many of the subsets
  are the same; a *tie* is another subset of the same residual sum of squares (RSS). Columns of which less than
  {independent:g} of the length is new beside the columns before are left out of both: `kept` says how many stay. All
  sizes are compared but for {some}. *RSS*: largest relative difference,
  of R's `lm.fit` of the subset; *of leaps*: of the number that leaps gives, which has fewer digits.
* **stepAIC**: whether stepping from all columns ends with the subset of the least AIC of all sizes, or how far above.
* **lm**, **ridge** (`glmnet`, alpha 0), **weighted** (rows count 1, 2, 3), **raw** (`standardize = FALSE`),
  **lm.ridge** (MASS), **logistic** (`glmnet`, binomial, target above its median or not): the largest difference of a
  coefficient times the standard deviation of its column, over the largest of these, or of the prediction at the means
  of the columns. All columns; gamma 10, 1, 0.1 and 0.01, of lm 0. `glmnet` iterates until a round changes less than
  its tolerance, 1e-22 here: what is left of differences is that.
* **objective**: by how much, relatively, what both minimise is larger at R's coefficients than at ours, the most of
  these five questions, without regard to sign.
"""


def written(chosen: list[Table], versions: str) -> str:
    """The page: what was asked, a row a table, the largest difference of each column."""
    some = ", ".join(f"{name} ({sizes})" for name, sizes in SIZES.items())
    head = HEAD.format(
        versions=versions, ours=sc.__version__, count=len(chosen), exact=EXACT, iterated=ITERATED, tie=TIE, some=some,
        independent=INDEPENDENT,
    )  # fmt: skip
    titles = [
        "table",
        "rows",
        "columns",
        "kept",
        "best subsets",
        "stepAIC",
        "RSS",
        "of leaps",
        "lm",
        "ridge",
        "weighted",
        "raw",
    ]
    lines = [
        [*titles, "lm.ridge", "logistic", "objective"],
        ["---", *["---:"] * 3, "---", "---", *["---:"] * len(QUESTIONS)],
    ]
    for table in chosen:
        kept = str(len(table.kept)) if table.sizes else "-"
        words = [table.words.get("sizes", "-"), table.words.get("stepAIC", "-")]
        numbers = [f"{table.differences[q]:.0e}" if q in table.differences else "-" for q in QUESTIONS]
        lines.append([table.name, str(len(table.y)), str(table.X.shape[1]), kept, *words, *numbers])
    largest = [f"{max(table.differences.get(q, 0.0) for table in chosen):.0e}" for q in QUESTIONS]
    lines.append(["largest", "", "", "", "", "", *largest])
    return head + "\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--files", nargs="*", help="some of the tables")
    parser.add_argument(
        "--work",
        type=Path,
        help="folder for the tables and for what R says, which is not asked again what it has answered there",
    )
    ask = parser.parse_args()
    chosen = [table for table in tables() if not ask.files or table.name in ask.files]
    with tempfile.TemporaryDirectory() as place:
        work = ask.work or Path(place)
        work.mkdir(exist_ok=True)
        versions = asked_of_r(chosen, work)
        for table in chosen:
            theirs = answers(work / f"{table.name}.r")
            compare_ridge(table, theirs)
            if table.sizes:
                compare_subsets(table, theirs)
            print(
                table.name,
                table.X.shape,
                table.words,
                {k: f"{v:.0e}" for k, v in table.differences.items()},
                flush=True,
            )
    if ask.out:
        ask.out.write_text(written(chosen, versions), encoding="utf-8")
    wrong = [line for table in chosen for line in table.wrong]
    print("\n".join(wrong) or f"{len(chosen)} tables, no disagreement")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
