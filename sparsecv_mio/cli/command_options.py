"""Commands, made from functions and their declared options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, getdoc, signature
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click

from sparsecv_mio import declared_options
from sparsecv_mio.cli import parse
from sparsecv_mio.declared_options import FORMAT, MOST_USED, OPTIONS, PANELS, check_whole, option_name
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.model_space import MOST_DIGITS, finite_number, parse_integer

Given = dict[str, Any]  # values of a group of options, by name
NUMBERS: Mapping[Any, Callable[[str, str], Any]] = {int: parse_integer, float: finite_number}
SHARED_GROUPS: dict[str, Mapping[str, Any]] = {  # by the name of the parameter of a command
    "table": declared_options.TABLE, "rows": declared_options.DEALING, "losses": declared_options.LOSSES,
    "restrictions": declared_options.RESTRICTING, "units": declared_options.UNITS, "reading": FORMAT,
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A positional argument of a command, with its placeholder in the help: the metadata of an annotated parameter."""

    metavar: str
    help: str


DataFile = Annotated[str, Place("DATA", "CSV, TSV, Parquet, Feather, NPZ or svmlight file.")]


class _Argument(click.Argument):
    """A positional argument that is in the help, too."""

    def __init__(self, parameter: Parameter) -> None:
        kind, self.place = get_args(parameter.annotation)
        count = -1 if get_origin(kind) is list else 1
        is_required = parameter.default is Parameter.empty
        super().__init__([parameter.name], required=is_required, nargs=count, metavar=self.place.metavar, type=str)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the placeholder, in brackets if the argument is optional."""
        return [self.place.metavar if self.required else f"[{self.place.metavar}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return the placeholder and the help."""
        return self.place.metavar, f"{self.place.help}  [required]" if self.required else self.place.help


class _Number(click.ParamType):
    """A number in the text of an option."""

    name = "number"

    def __init__(self, read: Callable[[str, str], Any], flag: str) -> None:
        self.read, self.flag = read, flag

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; a default value is already one."""
        return self.read(value, self.flag) if isinstance(value, str) else value


@dataclass(frozen=True)
class CommandOption:
    """An option of a command; see :func:`option`."""

    default: Any
    metavar: str
    help: str
    words: tuple[str, ...] = ()
    flag: str = ""
    also: str = ""
    read: Callable[[str], str] | None = None
    least: int | None = None
    most: int = 10**MOST_DIGITS
    is_off: bool = False  # True if the option switches off a default

    def make(self, name: str, kind: Any) -> click.Option:
        """Return the option of a command.

        Parameters
        ----------
        name : str
            Name of the parameter of the command.
        kind : type
            Type of the parameter of the command.
        """
        kind = get_args(kind)[0] if isinstance(kind, UnionType) else kind
        flag = self.flag or f"--{option_name(name.rstrip('_'))}"
        read = parse.seconds_or_none if name == "time_limit" else NUMBERS.get(kind)
        default = {} if self.default in (..., ()) else {"default": self.default}  # `()` is the default of click
        return click.Option(
            [name, *((f" /--no-{flag[2:]}",) if self.is_off else filter(None, (flag, self.also)))],
            type=bool if kind is bool else str if read is None else _Number(read, flag),
            is_flag=True if kind is bool else None,
            multiple=get_origin(kind) is list,
            required=self.default is ...,
            metavar=self.metavar or "|".join(self.words) or None,
            callback=lambda ctx, option, value: self._check(flag, value),
            help=self._help(),
            **default,
        )

    def _help(self) -> str:
        """Return the help with the default at its end."""
        text, bracket, words = self.help.rpartition("[")
        is_described = bool(bracket) and self.help.endswith("]")
        if is_described and self.default in (None, ()):
            return f"{text} [default: {words}"
        text = text if is_described else self.help
        if self.is_off or self.default in (None, (), False, ...):
            return text
        default = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{text.rstrip()}  [default: {default}]"

    def _check(self, flag: str, value: Any) -> Any:
        """Return a value after checking it; keywords are spelt as declared."""
        if self.least is not None:
            check_whole(flag, value, self.least, self.most)
        elif self.words:
            return value if value is None else match_keyword(value, self.words, flag)
        elif self.read is not None:
            return self.read(value)
        return value


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
    return CommandOption(default, metavar, help, tuple(words), flag, also, read, least, most, default is True)


ID = option(
    None, "COLUMN",
    "Column of row labels, such as names or identifiers. It is not a feature; `solve --save-held-out` writes it next "
    "to each row. [none]",
)  # fmt: skip
REFERENCE = option(
    None, "A=X,B=Y,...",
    "With --count factors: print the coefficients of factor A as differences from its level X. [deviations from the "
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


def with_declared_options(**groups: Mapping[str, Any] | type) -> Callable[[Callable[..., int]], PanelledCommand]:
    """Return a decorator that makes a command of a function, with options of `sparsecv_mio.declared_options`.

    A parameter with the name of a declared option and no other declaration becomes this option, with its own default.
    A parameter of type `Given` that `groups` does not name becomes the group of `SHARED_GROUPS` with its name.

    Parameters
    ----------
    **groups : mapping of str to object, or dataclass
        Groups of options by the name of the parameter that they replace. For a mapping of options to default values the
        function receives a dict. For a dataclass it receives an object; each field of the class is an option, or a
        :func:`group` of options.
    """
    stored = {name: given if isinstance(given, type) else OptionGroup(given) for name, given in groups.items()}

    def make(function: Callable[..., int]) -> PanelledCommand:
        own = []
        for name, parameter in signature(function, eval_str=True).parameters.items():
            default = stored.get(name, parameter.default)
            if parameter.annotation == Given and name not in stored:
                default = OptionGroup(SHARED_GROUPS[name])
            own.append(parameter.replace(default=default))
        params = [param for parameter in own for param in _make_params(parameter)]

        def run(**given: Any) -> int:
            return function(**{parameter.name: _take_value(parameter, given) for parameter in own})

        return PanelledCommand(function.__name__, callback=run, params=params, help=getdoc(function))

    return make


def _parameters_of_fields(options: type) -> list[Parameter]:
    """Return a parameter for each field of a dataclass of options."""
    hints = get_type_hints(options)
    return [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(options)
    ]


def _make_params(parameter: Parameter) -> list[click.Parameter]:
    """Return the options or the argument that a parameter of a function stands for."""
    name, default = parameter.name, parameter.default
    if isinstance(default, type) and is_dataclass(default):
        return [param for field in _parameters_of_fields(default) for param in _make_params(field)]
    if isinstance(default, OptionGroup):
        of_record = default.defaults is FORMAT
        return [_make_shared_option(name, value, of_record) for name, value in default.defaults.items()]
    if isinstance(default, CommandOption):
        return [default.make(name, parameter.annotation)]
    has_place = get_origin(parameter.annotation) is Annotated
    return [_Argument(parameter) if has_place else _make_shared_option(name, default)]


def _take_value(parameter: Parameter, given: Given) -> Any:
    """Return the value of a parameter of a command: a plain one, a dict or an object with the values of its options."""
    default = parameter.default
    if isinstance(default, type) and is_dataclass(default):
        return default(**{field.name: _take_value(field, given) for field in _parameters_of_fields(default)})
    if isinstance(default, OptionGroup):
        return {name: given[name] for name in default.defaults}
    return given[parameter.name]


def _make_shared_option(name: str, default: Any, of_record: bool = False) -> click.Option:
    """Return an option declared for all interfaces, with the default of a command or of a record."""
    declared = OPTIONS[name]
    text, words = declared.help, tuple(declared.words or ())
    if of_record and text.endswith("]"):
        text = f"{text.rpartition(' [')[0]} [as in the record]"
    default = None if default is None or default == () else str(default) if words else default
    kind: Any = list[str] if declared.several else declared.kind
    made = CommandOption(
        default, declared.metavar, text, words, declared.flag, declared.letter, is_off=declared.default is True
    )
    option = made.make(name, kind)
    option.opts += [declared.alias] if declared.alias else []
    return option


def _refuse_repeated_options(given: Sequence[click.Parameter]) -> None:
    """Raise `BadInput` if an option with a single value is given more than once."""
    for option in dict.fromkeys(given):
        count, has_one_value = given.count(option), not getattr(option, "is_flag", True)
        if count > 1 and has_one_value and not getattr(option, "multiple", True):
            word, value = option.opts[0], option.metavar or "VALUE"
            raise BadInput(f"{word}: the option is given {count} times; give it once, as {word} {value}")


MIN_MOST_USED = 3  # options of a command that are in the panel of the most used ones; fewer join the panel of output
MAX_SHORT_HELP = 25  # options that `--help` shows in full; of more it shows the most used ones
HELP_ALL = "--help-all"
ALL_OPTIONS = "sparsecv.all_options"  # key of a context in which the help shows every option


class PanelledCommand(click.Command):
    """A command whose help has its options in panels, as plain text: its own first, then those of `PANELS`.

    Of a command with many options `--help` shows the most used ones; `--help-all` shows all of them.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; `--help-all` prints the help with every option and ends the program.

        Raises
        ------
        BadInput
            If the value of an option is the name of another option (the value was forgotten), if an option with a
            single value is repeated, or if there are too many arguments.
        """
        words = args[: args.index("--") if "--" in args else None]
        if HELP_ALL in words:
            ctx.meta[ALL_OPTIONS] = True
            print(ctx.get_help())
            ctx.exit()
        options = {word: option for option in self.params for word in getattr(option, "opts", ())}
        for word, value in pairwise(words):
            if value in options and word in options and not getattr(options[word], "is_flag", True):
                raise BadInput(
                    f"{word}: the value is missing, because {value} follows, which is read as an option; for a "
                    f"file of this name, write ./{value}"
                )
        _, extra, given = self.make_parser(ctx).parse_args(args=[*args])
        if extra:
            arguments = (option for option in self.params if option.param_type_name == "argument")
            taken = " ".join(piece for option in arguments for piece in option.get_usage_pieces(ctx)) or "only options"
            advice = "; give the data of the record as --data FILE" if "--data" in options else ""
            raise BadInput(f"{ctx.command_path}: this command takes {taken}; remove {' '.join(extra)}{advice}")
        _refuse_repeated_options(given)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the panels of options."""
        params, most_used = self.get_params(ctx), PANELS[MOST_USED]
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in ("Arguments", "Options", *PANELS)}
        for parameter in sorted(params, key=lambda one: most_used.index(one.name) if one.name in most_used else -1):
            panel = next((panel for panel, names in PANELS.items() if parameter.name in names), "Options")
            panel = "Arguments" if isinstance(parameter, _Argument) else panel
            if (record := parameter.get_help_record(ctx)) is not None:
                rows[panel].append((record[0].removeprefix(" / "), record[1]))
        n_options = sum(map(len, rows.values())) - len(rows["Arguments"])
        if len(rows[MOST_USED]) < MIN_MOST_USED:
            rows["Output"] += rows.pop(MOST_USED)
        elif len(params) > MAX_SHORT_HELP and not ctx.meta.get(ALL_OPTIONS):
            rows = {panel: rows[panel] for panel in ("Arguments", "Options", MOST_USED)}
            rows["Options"].append((HELP_ALL, f"Show all {n_options} options and exit."))
        if all(row[0].startswith(("-h, --help", "--help")) for row in rows["Options"]):
            rows["Options"] = rows.pop("Options")  # `--help` comes last if the command has no option of its own
        for panel, lines in rows.items():
            if lines:
                with formatter.section(panel):
                    formatter.write_dl(lines)
