"""One MIO, more and more columns: our engine, abess, HiGHS, SCIP and Gurobi, as a table and the benchmarks' picture.

The best 10 of p columns on 500 rows (Toeplitz 0.5, ten unit coefficients, gamma 0.1), with much signal (SNR 5) and with
little (SNR 1). Counted are processor seconds of one thread from X and y in memory to the answer. A method stops at the
first p where it reached the limit. abess proves nothing and knows no ridge weight: its subset is refitted with it and
compared with the certified lower bound of our engine. Needs what `make peers` installs.

    python scripts/bench/columns.py --picture docs/_static/columns.png --out build/columns.md
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from _common import FloatArray, centred, deliver, environment, np, parser_of, synthetic, table
from matplotlib.ticker import FuncFormatter

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.report.figures import panels, save

ROWS, TAU, GAMMA = 500, 10, 0.1
SIGNALS = ((5.0, "much signal (SNR 5)"), (1.0, "little signal (SNR 1)"))
PERSPECTIVE_COLUMNS, BENDERS_COLUMNS = 66, 1_900  # what the licence inside Gurobi's wheel admits

SHORT = 2.0  # seconds below which a run is made twice


@dataclass(frozen=True)
class Run:
    """One answer: processor seconds, whether it is proved (None where nothing is claimed), and the objective."""

    seconds: float
    proved: bool | None
    objective: float
    lower: float = -np.inf


@contextmanager
def processor_limit(seconds: float) -> Iterator[threading.Event]:
    """Yield an event that is set once the process has used so many more processor seconds, whatever else runs."""
    over, done, end = threading.Event(), threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not done.wait(0.05):
            if time.process_time() > end:
                over.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield over
    finally:
        done.set()
        watcher.join()


def by_backend(name: str, X: FloatArray, y: FloatArray, limit: float) -> Run:
    """Solve by our engine or a solver, under our contract; ours refits the support of each."""
    p = X.shape[1]
    form = None
    if name == "gurobi":
        form = "perspective" if p <= PERSPECTIVE_COLUMNS else "benders"
    data = Dataset.from_arrays(X, y)
    began = time.process_time()
    with processor_limit(limit) as over:
        limits = Limits(gap=1e-4, cancel=over)
        record = fit_one(data, tau=TAU, gamma=GAMMA, backend=name, formulation=form, limits=limits)
    return Run(time.process_time() - began, record.status == "proved", record.objective, record.lower)


def by_abess(X: FloatArray, y: FloatArray, limit: float) -> Run:
    """Splice by abess at the size asked for; it has no limit."""
    from abess import LinearRegression

    model = LinearRegression(support_size=[TAU], thread=1)
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    part = X[:, np.flatnonzero(model.coef_)]
    beta = np.linalg.solve(part.T @ part + GAMMA / 2.0 * np.eye(part.shape[1]), part.T @ y)
    return Run(seconds, None, float(y @ (y - part @ beta)))


Method = Callable[[FloatArray, FloatArray, float], Run]


def methods_of(wanted: Sequence[str]) -> dict[str, Method]:
    """Names as they stand in the picture, and what solves."""
    known: dict[str, tuple[str, Method]] = {
        "native": ("sparsecv-mio, proved", lambda X, y, limit: by_backend("native", X, y, limit)),
        "abess": (f"abess {version('abess')}, no proof", by_abess),
        "gurobi": (f"Gurobi {version('gurobipy')}", lambda X, y, limit: by_backend("gurobi", X, y, limit)),
        "highs": (f"HiGHS {version('highspy')}", lambda X, y, limit: by_backend("highs", X, y, limit)),
        "scip": ("SCIP (PySCIPOpt " + version("pyscipopt") + ")", lambda X, y, limit: by_backend("scip", X, y, limit)),
    }
    return dict(known[name] for name in wanted)


def measure(
    methods: dict[str, Method], sizes: Sequence[int], snr: float, seeds: int, limit: float
) -> dict[str, dict[int, list[Run]]]:
    """Runs of every method and p, in turns over the seeds."""
    runs: dict[str, dict[int, list[Run]]] = {name: {} for name in methods}
    over: set[str] = set()
    for p in sizes:
        problems = [centred(*synthetic(ROWS, p, TAU, seed, snr=snr), length=1.0) for seed in range(seeds)]
        for name, method in methods.items():
            if name in over or (name.startswith("Gurobi") and p > BENDERS_COLUMNS):
                continue
            for X, y in problems:
                run = method(X, y, limit)
                if run.seconds < SHORT:  # kernels may have been loaded, or a core been taken away
                    run = min((run, method(X, y, limit)), key=lambda each: each.seconds)
                runs[name].setdefault(p, []).append(run)
                print(f"snr {snr:g}  p {p}  {name}: {run.seconds:.3f} s, proved {run.proved}", flush=True)
                if run.proved is False:
                    over.add(name)
                    break
    return runs


def rows_of(runs: dict[str, dict[int, list[Run]]], signal: str) -> list[list[object]]:
    """One row a p and method; the objective is compared with the least one known of that data set."""
    rows: list[list[object]] = []
    for p in sorted({p for by_size in runs.values() for p in by_size}):
        for name, by_size in runs.items():
            if p not in by_size:
                continue
            held = by_size[p]
            best = [
                min(each[p][at].objective for each in runs.values() if at < len(each.get(p, [])))
                for at in range(len(held))
            ]
            worst = max(run.objective / least - 1.0 for run, least in zip(held, best, strict=True))
            seconds = [run.seconds for run in held]
            claim = (
                "nothing claimed" if held[0].proved is None else f"{sum(bool(r.proved) for r in held)} of {len(held)}"
            )
            rows.append([signal, p, name, statistics.median(seconds), max(seconds), claim, f"{max(worst, 0.0):.1e}"])
    return rows


def draw(all_runs: Sequence[tuple[str, dict[str, dict[int, list[Run]]]]], path: str) -> None:
    """Median seconds against columns, a panel for each signal; a hollow mark stands where the limit was reached."""
    figure, axes = panels(1, len(all_runs), (9.0, 3.6))
    styles = [("#0b6e8a", "o"), ("#3a3f47", "s"), ("#b3541e", "^"), ("#3b8b3b", "D"), ("#8a5fa8", "v")]
    for ax, (signal, runs) in zip(axes.flat, all_runs, strict=True):
        for (name, by_size), (colour, mark) in zip(runs.items(), styles, strict=False):
            sizes = sorted(by_size)
            medians = [statistics.median(run.seconds for run in by_size[p]) for p in sizes]
            ax.plot(sizes, medians, marker=mark, color=colour, lw=1.6, markersize=5.5, label=name)
            for p, seconds in zip(sizes, medians, strict=True):
                if any(run.proved is False for run in by_size[p]):
                    ax.plot(p, seconds, mark, color=colour, markersize=5.5, markerfacecolor="white")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(signal, fontsize=10)
        ax.set_xlabel("columns")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for ax in axes.flat[1:]:
        ax.sharey(axes.flat[0])
    axes.flat[0].set_ylabel("processor seconds, one thread")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save(figure, path)


def main() -> None:
    """Measure, draw, and write the table."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--sizes", default="20,50,100,200,500,1000,2000")
    parser.add_argument("--methods", default="native,abess,gurobi,highs,scip")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds of a run")
    parser.add_argument("--picture", default="")
    options = parser.parse_args()
    methods = methods_of(options.methods.split(","))
    X, y = centred(*synthetic(ROWS, 12, TAU, 0), length=1.0)
    for method in methods.values():
        method(X, y, 60.0)  # imports, licences, compiled kernels
    sizes = [int(size) for size in options.sizes.split(",")]
    measured = [(name, measure(methods, sizes, snr, options.seeds, options.limit)) for snr, name in SIGNALS]
    head = ["data", "columns", "method", "median s", "longest s", "proved", "objective above the least"]
    rows = [row for signal, runs in measured for row in rows_of(runs, signal)]
    lines = [
        "# One MIO, more and more columns",
        "",
        "`python scripts/bench/columns.py`: the best 10 of p columns on 500 rows, Toeplitz 0.5, gamma 0.1; processor",
        f"seconds of one thread, data sets per row: {options.seeds}; a method ends at its first limit",
        f"({options.limit:g} processor seconds, after which a solver is asked to stop, and stops when it can).",
        "",
        environment(),
        "",
        table(head, rows),
        "",
    ]
    deliver("\n".join(lines), options.out)
    if options.picture:
        draw(measured, options.picture)


if __name__ == "__main__":
    main()
