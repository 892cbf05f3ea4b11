"""Tables 1 and 2 of the paper in form: MIOs, nodes and seconds of grid search, Algorithm 1 and ours.

Four data sets, leave-one-out (Table 1) and blocks of ten rows (Table 2), seven gammas one by one, p - 1 values of
tau, one thread, native engine, one tau at a time. An MIO is one (fold, tau) handed to branch-and-bound. The joint
search also solves all rows at some tau, which speaks for all folds: one MIO more, and its nodes count.
Algorithm 1 and the joint search run once, to the smallest tolerance; what they had spent when a tolerance was met is
its row. `rounds` decides many cells by one tree and has no MIOs to count.

    python scripts/papers/tables_1_2.py [--data diabetes,servo] [--folds loo,blocks:10] [--gammas 0.1,1] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from _common import deliver, environment, table  # noqa: E402
from _runs import held, warm_up  # noqa: E402

from sparsecv_mio.data.dataset import Dataset  # noqa: E402
from sparsecv_mio.data.folds import FoldPlan, make_folds  # noqa: E402
from sparsecv_mio.data.standard import StandardData, standardize  # noqa: E402
from sparsecv_mio.search.api import cross_validate  # noqa: E402
from sparsecv_mio.search.methods.parts.grid_search import GridSearch  # noqa: E402
from sparsecv_mio.search.observers.signals import Signals  # noqa: E402
from sparsecv_mio.search.options import Grid, SearchOptions  # noqa: E402
from sparsecv_mio.search.registry import context_of, new_method  # noqa: E402
from sparsecv_mio.search.state.deadline import Deadline  # noqa: E402

GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TOLERANCES = (5e-2, 1e-2, 1e-4)
COUNTED = ("algorithm1", "joint")
PAPER = {"loo": 70, "blocks:10": 52}
HEAD = ["data", "folds", "gamma", "tolerance", "method", "MIOs", "of", "saved %", "nodes", "seconds", "tau", "CV error"]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    spec: str
    gamma: float
    tolerance: float
    method: str
    mios: int | None
    cells: int
    nodes: int
    seconds: float
    tau: int
    cv_error: float

    @property
    def saved(self) -> float:
        """MIOs that grid search solves and this does not, in %."""
        return 100.0 * (1.0 - self.mios / self.cells) if self.mios is not None else float("nan")

    def cells_of_table(self) -> list[object]:
        """The row in the order of HEAD."""
        mios, saved = (self.mios, round(self.saved, 1)) if self.mios is not None else ("-", "-")
        where = [self.name, self.spec, f"{self.gamma:g}", f"{self.tolerance:g}", self.method]
        return [*where, str(mios), self.cells, str(saved), self.nodes, round(self.seconds, 3), self.tau, self.cv_error]


def counted(name: str, data: StandardData, folds: FoldPlan, gamma: float, method: str) -> list[Row]:
    """Run one method once; a row for each tolerance at the moment it was met (grid search: at the end)."""
    p = data.dataset.p
    grid = Grid.of([gamma], range(1, p), p)
    begin = time.perf_counter()
    options = SearchOptions.of(method=method, gap=min(TOLERANCES), threads=1)
    context = context_of(data, folds, grid, options, Deadline(None, None))
    run = new_method(context, options, Signals())
    run.begin()
    left = sorted(TOLERANCES, reverse=True) if method in COUNTED else []
    rows: list[Row] = []
    here = (name, folds.spec, gamma)
    while True:
        while left and run.run.state.bounds().proved(left[0]):
            rows.append(_row(here, left.pop(0), method, run, time.perf_counter() - begin))
        if run.finished:
            break
        run.step()
    if left or method not in COUNTED:
        if not run.run.state.bounds().proved(min(TOLERANCES)):
            raise SystemExit(f"{here} {method}: not proved")
        rows += [_row(here, tol, method, run, time.perf_counter() - begin) for tol in left or [min(TOLERANCES)]]
    return rows


def _row(here: tuple[str, str, float], tolerance: float, method: str, run: GridSearch, seconds: float) -> Row:
    now = run.run.state.bounds()
    g, t = now.best
    state, asked = run.run.state, run.context
    h = float(now.nominal[g, t]) * asked.per_row
    total, nodes, tau = state.cells.final.size, state.counts.nodes, int(asked.grid.taus[t])
    return Row(*here, tolerance, method, run.method.mios(), total, nodes, seconds, tau, h)


def shared(name: str, dataset: Dataset, folds: FoldPlan, gamma: float) -> Row:
    """Run the default method, which shares trees between taus and folds."""
    begin = time.perf_counter()
    record = cross_validate(dataset, folds, gammas=[gamma], taus=range(1, dataset.p), gap=min(TOLERANCES), threads=1)
    if record.status != "proved":
        raise SystemExit(f"{name} {folds.spec} {gamma} rounds: {record.status}")
    cells = (dataset.p - 1) * folds.k
    seconds = time.perf_counter() - begin
    where = (name, folds.spec, gamma, min(TOLERANCES), "rounds")
    return Row(*where, None, cells, record.work.nodes, seconds, record.tau, record.cv_error)


def summary(rows: Sequence[Row]) -> list[list[object]]:
    """Averages over data sets and gammas: MIOs saved, nodes against Algorithm 1."""
    out: list[list[object]] = []
    for spec in dict.fromkeys(row.spec for row in rows):
        for method in dict.fromkeys(row.method for row in rows):
            for tolerance in TOLERANCES:
                mine = [r for r in rows if (r.spec, r.method, r.tolerance) == (spec, method, tolerance)]
                if not mine or method == "grid":
                    continue
                first = [r for r in rows if (r.spec, r.method, r.tolerance) == (spec, "algorithm1", tolerance)]
                nodes = sum(r.nodes for r in mine), sum(r.nodes for r in first)
                saved = sum(r.saved for r in mine) / len(mine)
                seconds = sum(r.seconds for r in mine)
                below = f"{100.0 * (1.0 - nodes[0] / nodes[1]):.1f}" if nodes[1] else "-"
                paper = str(PAPER.get(spec, "-")) if tolerance == max(TOLERANCES) else "-"
                kept = "-" if mine[0].mios is None else f"{saved:.1f}"
                out.append([spec, method, f"{tolerance:g}", kept, paper, nodes[0], below, round(seconds, 2)])
    return out


def _measured(options: argparse.Namespace) -> list[Row]:
    """Rows of every data set, plan and gamma asked for."""
    keep = Path(options.keep) if options.keep else None
    known = [Row(**json.loads(line)) for line in keep.read_text().splitlines()] if keep and keep.exists() else []
    warm_up()
    rows: list[Row] = []
    for name in options.data.split(","):
        dataset = held(name)
        data = standardize(dataset)
        for spec in options.folds.split(","):
            folds = make_folds(spec, dataset)
            for gamma in map(float, options.gammas.split(",")):
                mine = [row for row in known if (row.name, row.spec, row.gamma) == (name, spec, gamma)]
                if not mine:
                    for method in ("grid", *COUNTED):
                        mine += counted(name, data, folds, gamma, method)
                    mine.append(shared(name, dataset, folds, gamma))
                    if keep:
                        with keep.open("a") as out:
                            out.writelines(json.dumps(asdict(row)) + "\n" for row in mine)
                rows += mine
                print(f"{name} {spec} gamma {gamma:g}", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="diabetes,housing,servo,autompg")
    parser.add_argument("--folds", default="loo,blocks:10")
    parser.add_argument("--gammas", default=",".join(f"{gamma:g}" for gamma in GAMMAS))
    parser.add_argument("--keep", default=None, help="JSON lines: rows measured before are read, new ones appended")
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    rows = _measured(options)
    head = ["folds", "method", "tolerance", "MIOs saved %", "paper %", "nodes", "nodes below Algorithm 1 %", "seconds"]
    text = "\n".join(
        [
            "# Tables 1 and 2 of the paper, in form", "",
            f"    python scripts/papers/tables_1_2.py --data {options.data} --folds {options.folds}"
            f" --gammas {options.gammas}", "", environment(), "",
            "MIOs saved: averages over data sets and gammas; nodes and seconds: sums. The paper's reductions are at "
            "tolerance 5e-2, with bounds that are not valid (docs/theory.md section 2). What `joint` solves on all "
            "rows for all folds of a tau counts as one MIO; its nodes count. The seconds were taken while the machine "
            "had other work: read them as ratios. `rounds` is the default.",
            "", table(head, summary(rows)), "",
            table(HEAD, [row.cells_of_table() for row in rows]), "",
        ]
    )  # fmt: skip
    deliver(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
