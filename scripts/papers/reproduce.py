"""A table or figure of the paper, from its plan to a page of results: batch, collect, tables, figures, in one command.

    python scripts/papers/reproduce.py NAME [--workers N] [--set NAME=VALUES ...] [--work DIR] [--out DIR] [--no-run]

NAME is tables_1_2 (with Figures 2 and 3), figure_1, table_3 or table_3_downloaded, or one of the papers on
cross-validation without all of its trainings: treecv, glru, iacv. `--set` changes the plan, as for
`sparsecv batch`: `--set split=0:19 --set cpu_limit=300` for a larger Table 3. What was done before in the work folder
is not done again; `--no-run` only makes tables and figures of it. What the paper published (published/*.csv) becomes
rows of the collected table, whose column `source` tells both apart.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

from _common import environment  # noqa: E402

from sparsecv_mio.cli import run  # noqa: E402

ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Study:
    """What is made of a plan: the levels to collect, and for each output its title and the words of its command.

    In the words RUNS and PAIRS stand for the collected tables, OUT for the folder of figures.
    """

    title: str
    outputs: Sequence[tuple[str, str]]
    levels: Sequence[str] = ("tasks",)


SAVED = "--reduction method=grid --problem data,folds,gammas,source"
COUNTED = (
    "--columns method,gap_asked,source --name 'grid published=grid, published' --name 'grid 0.0001 ours=grid' "
    "--name 'algorithm1 published=Algorithm 1, published' --name 'algorithm1 0.05 ours=Algorithm 1, 5%' "
    "--name 'algorithm1 0.0001 ours=Algorithm 1, 0.01%' --name 'joint 0.05 ours=joint, 5%' "
    "--name 'joint 0.0001 ours=joint, 0.01%' --name 'rounds 0.0001 ours=rounds, 0.01%'"
)
LOOSE = "--where method=algorithm1 --where gap_asked=,0.05"  # the tolerance of the paper
METHODS = (
    "--columns estimator,method,source --name 'sparsecv rounds ours=certified' --name 'sparsecv descent ours=descent' "
    "--name 'elastic-net ours=elastic net' --name 'lasso ours=lasso' --name 'mcp ours=MCP' "
    "--name 'sparsecv descent published=published SP' --name 'elastic-net published=published GLMNet' "
    "--name 'mcp published=published MCP'"
)
BY_LAM = "--rows design_n,design_p,lam --columns way"
ALONG = "--kind lines --against iterations --by estimator --name iacv= --panels solver,design_n,batch"
BY_STEP = (
    "--rows solver,design_n,batch,iterations --columns estimator --name iacv= --aggregate median --best none --digits 3"
)
APPROXIMATIONS = ("iacv", "newton", "jackknife", "full")


def _of(number: str, *methods: str) -> str:
    return ",".join(f"{number}_{method}" for method in methods)


def reductions(folds: str) -> list[tuple[str, str]]:
    """The table and the two pictures of leave-one-out, or of blocks of ten rows."""
    number, figure = (1, 2) if folds == "loo" else (2, 3)
    mine = f"--where folds={folds}"
    return [
        (f"Table {number}: MIOs and nodes, in full",
         f"table RUNS --rows data,gammas {COUNTED} --values mios,nodes {mine} "
         "--aggregate mean --best none --digits 6"),
        (f"Table {number}: MIOs saved, % (mean over gammas)",
         f"table RUNS {COUNTED} --values mios {SAVED} {mine} --where method=algorithm1,joint "
         "--aggregate mean --overall --digits 3"),
        (f"Table {number}: nodes saved, % (mean over gammas)",
         f"table RUNS {COUNTED} --values nodes {SAVED} {mine} "
         "--where method=algorithm1,joint,rounds --aggregate mean --overall --digits 3"),
        (f"Figure {figure}: MIOs saved, % (distribution over gammas)",
         f"plot RUNS --kind box --value mios {SAVED} {mine} {LOOSE} "
         f"--by data --panels source --out OUT/paper_figure{figure}_mios.png"),
        (f"Figure {figure}: nodes saved, %",
         f"plot RUNS --kind box --value nodes {SAVED} {mine} {LOOSE} "
         f"--by data --panels source --out OUT/paper_figure{figure}_nodes.png"),
    ]  # fmt: skip


def errors() -> list[tuple[str, str]]:
    """CV error, test error and features of every method, and the mean over data relative to the elastic net."""
    relative = "--relative 'estimator=elastic-net' --problem data,split,source --overall --digits 3"
    return [
        *((f"Table 3: {title}", f"table RUNS --values {value} {METHODS} --best none")
          for title, value in (("CV error", "cv_error"), ("test error", "test_error"), ("features", "features"))),
        ("CV error over that of the elastic net", f"table RUNS --values cv_error {METHODS} {relative}"),
        ("Test error over that of the elastic net", f"table RUNS --values test_error {METHODS} {relative}"),
        ("Seconds of the fit", f"table RUNS --values seconds --where source=ours {METHODS} --aggregate median"),
        ("Our proofs: relative gap reached",
         "table RUNS --values gap --where source=ours --where estimator=sparsecv --where method=rounds --columns state "
         "--digits 2"),
    ]  # fmt: skip


STUDIES = {
    "tables_1_2": Study("Tables 1 and 2, Figures 2 and 3", [*reductions("loo"), *reductions("blocks:10")]),
    "figure_1": Study(
        "Figure 1",
        [
            ("Bounds of every tau before the second MIO, after 200, and at the end of Algorithm 1",
             "plot PAIRS --kind lines --value lower,upper --against tau --where method=algorithm1 "
             "--where mio_budget=1,200,600 --by estimator --name sparsecv= --panels mio_budget "
             "--out OUT/paper_figure1.png"),
            ("Bounds of the least error as MIOs are solved",
             "plot RUNS --kind lines --value lower,upper --against mios --by method --panels method "
             "--out OUT/paper_figure1_convergence.png"),
            ("MIOs, nodes and the interval of the least error",
             "table RUNS --rows method,mio_budget --columns source --name ours= "
             "--values mios,nodes,lower,upper,cv_error --best none --aggregate mean --digits 5"),
        ],
        ("tasks", "pairs"),
    ),
    "table_3": Study("Table 3", errors()),
    "treecv": Study(
        "TreeCV: Figure 2 and Table 2",
        [
            ("Figure 2: seconds of the processor by the number of rows",
             "plot RUNS --kind lines --value cpu_seconds --against design_n --by way,order --panels learner,folds "
             "--out OUT/paper_treecv_times.png"),
            ("The same in numbers",
             "table RUNS --rows learner,folds,design_n --columns way,order --values cpu_seconds --aggregate median "
             "--best none --digits 3"),
            ("Table 2: misclassification (pegasos) or squared error (lsqsgd), mean and standard error over draws",
             "table RUNS --rows learner,folds,design_n --columns way,order --best none"),
            ("Rows that the learners are fed",
             "table RUNS --rows learner,folds,design_n --columns way --values rows_learned --aggregate mean "
             "--best none --digits 6"),
        ],
    ),
    "glru": Study(
        "GLRU: Table 3",
        [
            ("Table 3: share of the rows that the bound leaves open",
             f"table RUNS {BY_LAM} --values open_share --where way=trainings --aggregate mean --best none --digits 3"),
            ("Table 3: seconds of the processor over those of a training for every row",
             f"table RUNS {BY_LAM} --values cpu_seconds --relative way=naive --problem data,lam --aggregate mean "
             "--best none --digits 3"),
            ("Errors, and rows that took a training (of newton: an uncertified step)",
             f"table RUNS {BY_LAM} --values errors,trainings --aggregate mean --best none"),
            ("Seconds of the processor",
             "plot RUNS --kind lines --value cpu_seconds --against lam --by way --panels data "
             "--out OUT/paper_glru_times.png"),
        ],
    ),
    "iacv": Study(
        "IACV: Figures 1 to 4",
        [
            ("Figure 1: the leave-one-out loss along the iterations",
             f"plot RUNS --value {_of('cv_error', 'exact', *APPROXIMATIONS[:3])} --where solver=gd,sgd {ALONG} "
             "--out OUT/paper_iacv_figure1.png"),
            *((f"Figure {number}: mean distance of the approximations from the exact left-out fits, {words}",
               f"plot RUNS --value {_of('distance', *APPROXIMATIONS)} --where solver={solver} {ALONG} "
               f"--out OUT/paper_iacv_figure{number}.png")
              for number, solver, words in ((2, "gd", "gradient descent"), (3, "sgd", "stochastic gradient descent"),
                                            (4, "proxgd", "proximal gradient descent"))),
            ("Distance from the exact left-out fits, medians over draws",
             f"table RUNS {BY_STEP} --values {_of('distance', *APPROXIMATIONS)}"),
            ("Relative error of the leave-one-out loss, medians over draws",
             f"table RUNS {BY_STEP} --values {_of('relative_error', *APPROXIMATIONS)}"),
            ("Seconds of IACV and of the exact fits, which advance together in blocked matrix products",
             f"table RUNS {BY_STEP} --values seconds,seconds_exact"),
        ],
    ),
    "table_3_downloaded": Study("Table 3, more columns than rows, and wine", errors()),
}  # fmt: skip


def call(words: Sequence[str], allowed: Sequence[int] = (0,)) -> str:
    """Run one command line; its output, or the end of this script."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        code = run(list(words))
    if code not in allowed:
        raise SystemExit(f"sparsecv {shlex.join(words)}: exit code {code}\n{shown.getvalue()}")
    return shown.getvalue()


def with_published(table: Path, name: str) -> None:
    """Add the rows of the paper to a collected table."""
    import pandas as pd

    from sparsecv_mio.batch.run_tables import write_table

    frame = pd.read_parquet(table).assign(source="ours")
    published = HERE / "published" / f"{name.removesuffix('_downloaded')}.csv"
    if published.exists():
        rows = pd.read_csv(published).assign(state="published")
        rows = rows[rows["data"].isin(frame["data"])]
        rows["estimator"] = rows.get("estimator", "sparsecv")
        frame = pd.concat([frame, rows], ignore_index=True)
    write_table(frame, table)


def page(name: str, study: Study, commands: Sequence[str], body: Sequence[str]) -> str:
    """The page of results: how it was made, then every table and figure with its command."""
    made = "\n".join(f"    {line}" for line in commands)
    return "\n".join([f"# {study.title}", "", made, "", environment(), "", *body])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(STUDIES))
    parser.add_argument("--workers", default="1")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUES")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "papers")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results")
    parser.add_argument("--no-run", action="store_true")
    options = parser.parse_args()
    name, study = options.name, STUDIES[options.name]
    options.out.mkdir(parents=True, exist_ok=True)  # before the work of hours
    folder = options.work / name
    changes = [word for change in options.set for word in ("--set", change)]
    if not options.no_run:
        plan = str(HERE / f"{name}.toml")
        call(["batch", plan, "--out", str(folder), "--workers", options.workers, *changes], (0, 1, 3))
    tables = {"tasks": options.work / f"{name}.parquet", "pairs": options.work / f"{name}_pairs.parquet"}
    for level in study.levels:
        call(["collect", str(folder), "-o", str(tables[level]), "--level", level])
        with_published(tables[level], name)
    places = {"RUNS": str(tables["tasks"]), "PAIRS": str(tables["pairs"])}
    body: list[str] = []
    for title, words in study.outputs:
        plain = words.replace("OUT/", f"{options.out}/").replace("NAME", name)
        text = call([places.get(word, word) for word in shlex.split(plain)])
        shown = words.replace("OUT/", "build/results/").replace("NAME", name)
        body += [f"## {title}", "", f"`sparsecv {shown}`", ""]
        figure = Path(shlex.split(shown)[-1]).name
        body += [text if words.startswith("table") else f"![{title}]({figure})", ""]
    again = shlex.join(["python", "scripts/papers/reproduce.py", name, *changes])
    (options.out / f"paper_{name}.md").write_text(page(name, study, [again], body), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
