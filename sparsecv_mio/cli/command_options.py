"""Options of all interfaces and of single commands, in the form that the package typer requires."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import Parameter, Signature, signature
from types import UnionType
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from sparsecv_mio.cli import parse
from sparsecv_mio.declared_options import FORMAT, MOST_USED, OPTIONS, PANELS, option_name
from sparsecv_mio.model_space import MOST_DIGITS

Given = dict[str, Any]  # values of a group of options, by name

DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="CSV, TSV, Parquet, Feather, NPZ or svmlight file.", show_default=False)
]


@dataclass(frozen=True)
class CommandOption:
    """An option of a single command; see :func:`option`."""

    default: Any
    metavar: str
    help: str
    words: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    read: Callable[[str], str] | None = None
    is_off: bool = False  # True if the option switches off a default
    least: int | None = None  # bounds of an integer
    most: int = 10**MOST_DIGITS

    def parameter(self, name: str, kind: Any) -> Parameter:
        """Return the option in the form that typer reads.

        Parameters
        ----------
        name : str
            Name of the parameter of the command.
        kind : type
            Type of the parameter of the command.
        """
        default = Parameter.empty if self.default is ... else None if self.default == () else self.default
        info = typer.Option(
            *((f" /--no-{self.flags[0][2:]}",) if self.is_off else self.flags),
            metavar=self.metavar or "|".join(self.words) or None,
            callback=self._callback(),
            help=self._help(),
            rich_help_panel=next((panel for panel, names in PANELS.items() if name in names), None),
            show_default=False,
        )
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])

    def _help(self) -> str:
        """Return the help with the default at its end."""
        text, bracket, words = self.help.rpartition("[")
        if bracket and self.help.endswith("]"):
            return f"{text} [default: {words}" if self.default in (None, ()) else self._with_default(text)
        return self._with_default(self.help)

    def _with_default(self, text: str) -> str:
        if self.is_off or self.default in (None, (), False, ...):
            return text
        default = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{text.rstrip()}  [default: {default}]"

    def _callback(self) -> Callable[[Any], Any] | None:
        """Return the function that checks a value and may replace it."""
        if self.least is not None:
            return parse.make_integer_check(self.flags[0], self.least, self.most)
        return parse.word(self.words, self.flags[0]) if self.words else self.read


def option(
    default: Any, metavar: str, help: str, words: Iterable[str] = (), *, flag: str = "", also: str = "",
    read: Callable[[str], str] | None = None, least: int | None = None, most: int = 10**MOST_DIGITS,
) -> Any:  # fmt: skip
    """Return an option of a single command, to be used as the default of its parameter.

    Parameters
    ----------
    default : object
        Default value; `...` for a required option.
    metavar : str
        Placeholder of the value in the help; empty for keywords, which are listed, and for switches.
    help : str
        Help text; a default that needs an explanation is given at the end, in brackets.
    words : iterable of str
        Allowed keywords.
    flag, also : str
        Name, if it differs from that of the parameter, and an additional name.
    read : callable, optional
        Parser of the value, instead of `words`.
    least, most : int, optional
        Bounds of an integer, both included.
    """
    return CommandOption(default, metavar, help, tuple(words), (flag, also), read, default is True, least, most)


REFERENCE = option(
    None, "A=X,B=Y,...",
    "With --count factors: print the coefficients of each factor as differences from this level. [deviations from the "
    "mean of the levels]",
)  # fmt: skip


@dataclass(frozen=True)
class OptionGroup:
    """Declared options whose values one field of the options of a command has; see :func:`group`."""

    defaults: Mapping[str, Any]


def group(defaults: Mapping[str, Any]) -> Any:
    """Return a group of declared options, to be used as the default of a field with a dict of their values.

    Parameters
    ----------
    defaults : mapping of str to object
        Default values of the options, by name.
    """
    return OptionGroup(defaults)


def with_declared_options(**groups: Mapping[str, Any] | type) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return a decorator that gives a command options declared in `sparsecv_mio.declared_options`.

    A parameter with the name of a declared option and no other declaration becomes this option, with its own default.

    Parameters
    ----------
    **groups : mapping of str to object, or dataclass
        Groups of options by the name of the parameter that they replace. For a mapping of options to default values the
        command receives a dict. For a dataclass it receives an object; each field of the class is an option, or a
        :func:`group` of options.
    """

    def give(command: Callable[..., int]) -> Callable[..., int]:
        places: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            options = groups.get(parameter.name)
            if isinstance(options, type):
                hints = get_type_hints(options)
                for field in fields(options):
                    places += _make_parameters(Parameter(
                        field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
                    ))  # fmt: skip
            elif options is not None:
                places += _make_parameters(parameter.replace(default=OptionGroup(options)))
            else:
                places += _make_parameters(parameter)

        def run(**given: Any) -> int:
            chosen = {name: _take_values(values, given) for name, values in groups.items()}
            return command(**given, **chosen)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = Signature(places)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in places}
        return run

    return give


def _make_parameters(parameter: Parameter) -> list[Parameter]:
    """Return the options that a parameter of a command stands for, or the parameter itself."""
    default = parameter.default
    if isinstance(default, OptionGroup):
        of_record = default.defaults is FORMAT
        return [_make_shared_option(name, value, of_record) for name, value in default.defaults.items()]
    if isinstance(default, CommandOption):
        return [_make_command_option(parameter.name, parameter.annotation, default)]
    if parameter.name in OPTIONS and isinstance(parameter.annotation, type | UnionType):
        return [_make_shared_option(parameter.name, default)]
    return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]


def _take_values(options: Mapping[str, Any] | type, given: Given) -> Any:
    """Remove the values of a group of options from those of a command, and return the dict or object with them."""
    if not isinstance(options, type):
        return {name: given.pop(name) for name in options}
    values = {}
    for field in fields(options):
        default: Any = field.default
        inside = isinstance(default, OptionGroup)
        values[field.name] = _take_values(default.defaults, given) if inside else given.pop(field.name)
    return options(**values)


def _make_command_option(name: str, kind: Any, given: Any) -> Parameter:
    """Return an option of a few commands."""
    flag, *also = given.flags
    flags = (flag or f"--{option_name(name.rstrip('_'))}", *filter(None, also))
    return replace(given, flags=flags).parameter(name, kind)


def _make_shared_option(name: str, default: Any, of_record: bool = False) -> Parameter:
    """Return an option declared for all interfaces, with the default of a command or of a record."""
    declared_option = OPTIONS[name]
    text = declared_option.help
    if of_record and text.endswith("]"):
        text = f"{text.rpartition(' [')[0]} [as in the record]"
    default = None if default is None or default == () else str(default) if declared_option.words else default
    kind: Any = list[str] if declared_option.several else declared_option.kind
    flags = (declared_option.flag, *filter(None, [declared_option.letter]))
    made = CommandOption(
        default,
        declared_option.metavar,
        text,
        tuple(declared_option.words or ()),
        flags,
        None,
        declared_option.default is True,
    )
    return made.parameter(name, kind if default is not None else kind | None)


def _plain_name(text: str) -> str:
    """Return the name of an option or argument without the marks of typer.

    Examples
    --------
    >>> _plain_name(" / --no-header"), _plain_name("DATA <str>"), _plain_name("--tau LIST")
    ('--no-header', 'DATA', '--tau LIST')
    """
    return text.strip().removeprefix("/ ").partition(" <")[0]


MIN_MOST_USED = 3  # options of a command that are in the panel of the most used ones; fewer join the panel of output
MAX_SHORT_HELP = 25  # options that `--help` shows in full; of more it shows the most used ones
HELP_ALL = "--help-all"
ALL_OPTIONS = "sparsecv.all_options"  # key of a context in which the help shows every option


class PanelledCommand(TyperCommand):
    """A command whose help has its options in panels, as plain text: its own first, then those of `PANELS`.

    Of a command with many options `--help` shows the most used ones; `--help-all` shows all of them.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; `--help-all` prints the help with every option and ends the program."""
        if HELP_ALL in args[: args.index("--") if "--" in args else None]:
            ctx.meta[ALL_OPTIONS] = True
            print(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    @staticmethod
    def _is_long(params: Sequence[Any]) -> bool:
        """Return True if `--help` shows only the most used options."""
        most_used = sum(getattr(parameter, "rich_help_panel", None) == MOST_USED for parameter in params)
        return most_used >= MIN_MOST_USED and len(params) > MAX_SHORT_HELP

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments of the usage line without the braces of typer."""
        pieces = [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]
        return [piece.replace("[[", "[").replace("]]", "]").replace("......", "...") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the panels of options."""
        order = ["Arguments", "Options", *PANELS]
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in order}
        places: dict[tuple[str, str], int] = {}
        params = self.get_params(ctx)
        for parameter in params:
            panel = (
                "Arguments" if parameter.param_type_name == "argument" else getattr(parameter, "rich_help_panel", None)
            )
            if (record := parameter.get_help_record(ctx)) is not None:
                row = (_plain_name(record[0]), record[1])
                rows[panel or "Options"].append(row)
                places[row] = PANELS[MOST_USED].index(parameter.name) if panel == MOST_USED else 0
        if len(rows[MOST_USED]) < MIN_MOST_USED:
            rows["Output"] += rows.pop(MOST_USED)
            order.remove(MOST_USED)
        if all(row[0].startswith(("-h, --help", "--help")) for row in rows["Options"]):
            order.append(order.pop(1))
        if self._is_long(params) and not ctx.meta.get(ALL_OPTIONS):
            order = [panel for panel in order if panel in ("Arguments", "Options", MOST_USED)]
            rows["Options"].append(
                row := (HELP_ALL, f"Show all {len(places) - len(rows['Arguments'])} options and exit.")
            )
            places[row] = 1
        for panel in filter(rows.__getitem__, order):
            with formatter.section(panel):
                formatter.write_dl(sorted(rows[panel], key=places.__getitem__))
