"""The options that say how a file is read, for every command that reads one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from sparsecv_mio.cli import parse
from sparsecv_mio.words import Encode, Missing

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
                    name, Parameter.KEYWORD_ONLY, default=None if format_only else OPTIONS[name][1],
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
