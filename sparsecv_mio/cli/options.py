"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

import sparsecv_mio.words as words
from sparsecv_mio import model_space
from sparsecv_mio.cli import parse
from sparsecv_mio.words import Encode, Missing

DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, TSV, Parquet, Feather, NPZ or svmlight file.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="T", help="Column to predict, by name or position. [NPZ, svmlight: y]"),
]
Features = Annotated[
    str | None, typer.Option("--features", metavar="A,B,...", help="Use these columns only. [all but the target]")
]
Drop = Annotated[str | None, typer.Option("--drop", metavar="C,D,...", help="Use all columns but these.")]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="COLUMN",
        help="How much each row counts in every fit and in the errors: a column of the data, or file:F with a number a "
        "line; any numbers from 0 on, a row of weight 0 is left out. [each once]",
    ),
]
ForceIn = Annotated[
    str | None,
    typer.Option(
        "--force-in",
        metavar="A,B,...",
        help="Features in every model, by name or by position among the features; they count in --tau.",
    ),
]
ForceOut = Annotated[
    str | None, typer.Option("--force-out", metavar="C,D,...", help="Features in no model, as if they were dropped.")
]
AtMost = Annotated[
    list[str] | None,
    typer.Option("--at-most", metavar="K:A,B,...", help="At most K of these features in a model; may be repeated."),
]
Hierarchy = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchy",
        metavar="RULE",
        help="strong or weak: features named as products (a:b, a*b, a b, a^2) only with all, or at least one, of their "
        "factors; or AB=A,B (AB only with A and B), AB=A|B (with one at least). May be repeated.",
    ),
]
Nonnegative = Annotated[
    str | None,
    typer.Option("--nonnegative", metavar="A,B,...", help="Features whose coefficient is not below 0; all: every one."),
]
Nonpositive = Annotated[
    str | None,
    typer.Option("--nonpositive", metavar="A,B,...", help="Features whose coefficient is not above 0; all: every one."),
]
Folds = Annotated[
    str,
    typer.Option(
        "--folds",
        metavar="SPEC",
        help="K (shuffled), RxK (R repeats), loo, stratified:K (by the target), forward:K (time series), blocks:B "
        "(blocks of B rows), holdout:F (one scored fold), groups:COLUMN, column:COLUMN or file:F (a fold id per row).",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the shuffle. [0]")]
Gamma = Annotated[
    str | None,
    typer.Option(
        "--gamma",
        metavar="LIST",
        help="Ridge weights: 0.01,0.1,1 or LO:HI:COUNT, logarithmic, inclusive; of solve also LO..HI, every one. "
        f"[{model_space.DEFAULT_GAMMAS}; if p >= n_train, {model_space.WIDE_GAMMAS}]",
    ),
]
Tau = Annotated[
    str | None,
    typer.Option(
        "--tau",
        metavar="LIST",
        help="Support sizes: K, LO:HI (inclusive) or a list; 0 is the intercept alone; log: all with "
        "tau log tau <= min(p, n_train). [1:p; if p > 30, 1 to n_train / 8, but to 10 at least and 50 at most]",
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="WORD",
        callback=parse.word(words.Scale, "--scale"),
        help="What the penalty measures: length (centred unit l2 norm), variance (unit variance) or none.",
    ),
]
Intercept = Annotated[
    str,
    typer.Option(
        "--intercept",
        metavar="WORD",
        callback=parse.word(words.Intercept, "--intercept"),
        help="fold (free in every training set), global (centre once on all rows) or none.",
    ),
]
Gap = Annotated[
    float,
    typer.Option("--gap", metavar="G", help="Stop at this certified relative gap; 0 asks for every optimum."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="S", help="Stop after S seconds with valid bounds. [none]")
]
Threads = Annotated[int | None, typer.Option("--threads", metavar="N", help="Threads. [all cores]")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", help="Scheduler of a dask cluster, tcp://HOST:PORT, which does the work."
    ),
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="FILE", help="Write the record here; - is standard output.")
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw a figure of the answer (PNG, PDF or SVG).")
]
Full = Annotated[bool, typer.Option("--full", help="Print the table of every gamma, not a summary.")]
Proof = Annotated[
    str | None,
    typer.Option("--proof", metavar="FILE", help="Write a proof of the bounds here, for `sparsecv check`."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer: no live view, table or warnings.")]


OPTIONS: dict[str, tuple[Any, Any]] = {
    "sep": (
        Annotated[
            str | None,
            typer.Option(
                "--sep",
                metavar="CHAR",
                help="Between the cells of a text table: a character, or comma, semicolon, tab, pipe or space (any run "
                "of blanks). [.csv: comma, .tsv and .txt: tab]",
            ),
        ],
        None,
    ),
    "decimal": (Annotated[str, typer.Option("--decimal", metavar="CHAR", help="Decimal mark of a text table.")], "."),
    "thousands": (
        Annotated[
            str | None,
            typer.Option(
                "--thousands",
                metavar="CHAR",
                help="Sets off thousands in numbers, groups of three digits: comma, point, space, apostrophe, or none "
                "where nothing does. [none; a number that could be two is refused]",
            ),
        ],
        None,
    ),
    "comment": (
        Annotated[
            str | None, typer.Option("--comment", metavar="CHAR", help="Leave out lines that begin with it. [none]")
        ],
        None,
    ),
    "encoding": (Annotated[str, typer.Option("--encoding", metavar="NAME", help="Of a text table.")], "utf-8"),
    "header": (
        Annotated[
            bool,
            typer.Option(
                " /--no-header", help="The first line holds numbers: columns are x0, x1, ...", show_default=False
            ),
        ],
        True,
    ),
    "index_col": (
        Annotated[
            str | None,
            typer.Option(
                "--index-col", metavar="C", help="Column that only numbers the rows, by name or position. [none]"
            ),
        ],
        None,
    ),
    "na": (
        Annotated[
            str,
            typer.Option(
                "--na",
                metavar="|".join(Missing),
                callback=parse.word(Missing, "--na"),
                help="Empty cells, NA and the like: refused, their rows left out, or filled with the mean of the "
                "column over all rows, held-out ones included.",
            ),
        ],
        "error",
    ),
    "encode": (
        Annotated[
            str,
            typer.Option(
                "--encode",
                metavar="|".join(Encode),
                callback=parse.word(Encode, "--encode"),
                help="Columns of words: refused, a column of zeros and ones for every word, or their places in the "
                "alphabet. Two opposites (no, yes) are 0 and 1.",
            ),
        ],
        "error",
    ),
}


FORMATS = tuple(name for name in OPTIONS if name not in ("na", "encode"))


def reads_tables(command: Callable[..., int], format_only: bool = False) -> Callable[..., int]:
    """Give a command the options of how its file is read, in place of its parameter `reading`.

    Parameters
    ----------
    command : callable
        Takes `reading`, a dict of the options by name, as a keyword.
    format_only : bool
        Whether it has the options of the format alone, each None where it is not given.

    Returns
    -------
    callable
        With a parameter for every option, as typer reads them.
    """
    parameters: list[Parameter] = []
    names = FORMATS if format_only else tuple(OPTIONS)
    for one in signature(command, eval_str=True).parameters.values():
        if one.name == "reading":
            parameters += [
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=None if format_only else OPTIONS[name][1],
                    annotation=OPTIONS[name][0],
                )  # fmt: skip
                for name in names
            ]
        else:
            parameters.append(one.replace(kind=Parameter.KEYWORD_ONLY))

    def run(**given: Any) -> int:
        reading = {name: given.pop(name) for name in names}
        return command(**given, reading=reading)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def reads_like_a_record(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of a file's format alone: cells are treated as the record says.

    Parameters
    ----------
    command : callable
        As for :func:`reads_tables`; what is not given is as in the record.
    """
    return reads_tables(command, format_only=True)
