"""The command line, which parses options, calls one library function, prints the answer and returns the exit code.

The start-up does no numerical work and imports no numerical library. Each command is a function that returns the exit
code. `COMMANDS` names the module of each function; the module is imported when the command is called. The help of a
command ends with its exit codes, which are defined next to the function (for example `SOLVE_CODES`). For a group of
commands, the module has a group of the package click, `NAME_app`, instead of a function. Optional folders register
their commands (:mod:`sparsecv_mio.satellites`).
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import threading
import time
from functools import cache
from importlib import import_module
from typing import Any

import click

from sparsecv_mio.cli.command_options import HELP_ALL, PanelledCommand
from sparsecv_mio.cli.ending import take_streams, tell, write_stream
from sparsecv_mio.cli.parse import with_dashes
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import (
    BadInput,
    Interrupted,
    OutOfTime,
    SparseCVError,
    did_you_mean,
    missing_package,
    named_elsewhere,
)
from sparsecv_mio.files import reason
from sparsecv_mio.satellites import satellite_commands
from sparsecv_mio.version import __version__

LOADED = time.monotonic()
FORCED_EXITS = list[threading.Timer]()  # timers of SIGTERM that end this process
INTERRUPTED = "interrupted before there was a result"
TERMINATION_GRACE = 10.0  # seconds after SIGTERM after which the process ends without any cleanup
LONGEST_START = 3.0  # maximum seconds counted from the start of the process to the import of this package


class Began:
    """Moment of `time.monotonic` from which the time limit of a command counts."""

    moment = LOADED


CORE_COMMANDS = {
    "inspect": "model_commands",
    "solve": "solve",
    "path": "model_commands",
    "near": "model_commands",
    "predict": "record_commands",
    "verify": "record_commands",
    "report": "record_commands",
    "cite": "record_commands",
    "plot": "record_commands",
    "bounds": "model_commands",
    "fit": "model_commands",
    "export": "model_commands",
    "backends": "model_commands",
    "warmup": "model_commands",
}  # with the module of each in this folder
COMMANDS = {name: f"{__name__}.{module}" for name, module in CORE_COMMANDS.items()} | satellite_commands()
EXIT_CODES = (
    "Exit codes: 0 done and certified; 1 wrong record or proof, failed task of a batch, or internal error; 2 bad "
    "input, or a limit before any answer; 3 limit reached (bounds valid, answer printed); 4 backend unavailable; 130 "
    "interrupted (answer and record written)."
)


class LazyCommands(click.Group):
    """A group that imports the module of a command when the command is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return the command; None for an unknown name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the requested command; the error for an unknown one suggests the most similar name."""
        if args and args[0] not in COMMANDS:
            near = did_you_mean(args[0], COMMANDS)
            raise BadInput(f"no command {args[0]!r}{near}; use {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and pass its errors on; click would turn Ctrl-C into an exit code without a message."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(INTERRUPTED) from None
        except BadInput as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise BadInput(with_dashes(str(error), _option_words(command))) from None


@cache
def load_command(name: str) -> Any:
    """Import the module of a command and return the command, which is cached: building one takes up to 10 ms.

    Parameters
    ----------
    name : str
        Name from `COMMANDS`.
    """
    module = import_module(COMMANDS[name])
    command = getattr(module, f"{name}_app", None) or getattr(module, name)
    for inner in getattr(command, "commands", {name: command}).values():
        inner.epilog = getattr(module, f"{name.upper()}_CODES", None)
    command.short_help = (command.help or "").split("\n\n")[0]  # in full: the default short help is truncated
    return command


def _option_words(command: Any) -> set[str]:
    """Return the options of a command, or of all commands of a group."""
    inner = getattr(command, "commands", {}).values()
    options = [option for source in (command, *inner) for option in getattr(source, "params", ())]
    return {word for option in options for word in (*option.opts, *option.secondary_opts)}


def _print_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        print(f"sparsecv {__version__}")
        ctx.exit()


app = LazyCommands(
    "sparsecv",
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
            help="Print the version and exit.",
        )
    ],
    help="Certified cross-validation for best-subset ridge, logistic, Poisson and Cox regression.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def run(arguments: list[str] | None = None, began: float | None = None) -> int:
    """Run one command line.

    Parameters
    ----------
    arguments : list of str, optional
        Arguments without the program name; `sys.argv[1:]` by default.
    began : float, optional
        Moment of `time.monotonic` from which a time limit counts; the moment of this call by default.

    Returns
    -------
    int
        The exit code; every user error is reported as one line on stderr.

    Examples
    --------
    >>> run(["--version"])                                              # doctest: +ELLIPSIS
    sparsecv ...
    0
    """
    Began.moment = time.monotonic() if began is None else began
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app.main(args=words or ["--help"], prog_name="sparsecv", standalone_mode=False)
    except SparseCVError as error:
        # exit code 3 promises an answer, and no answer was printed before this limit
        return _say(str(error), BadInput.exit_code if type(error) is OutOfTime else error.exit_code)
    except click.Abort:  # Ctrl-C while click reads the arguments
        return _say(INTERRUPTED, Interrupted.exit_code)
    except click.UsageError as error:
        message = _explain_usage_error(error)
        return _say(message, 2) if message else 2
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        return _say(str(missing), missing.exit_code)
    except SystemExit:  # click, if nobody reads what it prints
        return 0
    except MemoryError:
        return _say("the data and the search do not fit in memory; use fewer columns, rows or folds", 2)
    except OSError as error:
        # from printing --help, or from a file that no other code reported on
        write_stream(sys.stdout, [])
        return _say(f"cannot write{f' {error.filename}' if error.filename else ''}: {reason(error)}", 2)
    return int(code or 0)


def _explain_usage_error(error: click.UsageError) -> str:
    """Return the message for a usage error."""
    if isinstance(error, click.NoSuchOption):
        unknown = error.option_name
        return f"no option {unknown}{_elsewhere(unknown, error) or did_you_mean(unknown, _command_options(error))}"
    if isinstance(error, click.MissingParameter):
        given: Any = error
        option, missed, meant = given.param, given.param.metavar, ""
        if option.param_type_name == "option":
            missed, meaning = option.opts[0], option.help.partition(" [")[0].rstrip(".")
            meant = f" ({meaning[0].lower()}{meaning[1:]})"
        return f"{missed} is missing{meant}; see `{given.ctx.command_path} --help`"
    return error.format_message()


def _command_options(error: Exception) -> list[str]:
    """Return the options of the command with the usage error."""
    context = getattr(error, "ctx", None)
    if context is None:
        return []
    names = [name for parameter in context.command.params for name in parameter.opts]
    return [*names, HELP_ALL] if isinstance(context.command, PanelledCommand) else names


def _elsewhere(option: str, error: Exception) -> str:
    """Return the end of a message about an option that other commands have, or an empty text."""
    context = error.ctx  # type: ignore[attr-defined]
    group, here = context.find_root().command, context.info_name
    params = {name: group.get_command(context, name).params for name in COMMANDS}

    def takers(wanted: str) -> list[str]:
        return [name for name in COMMANDS if any(wanted in parameter.opts for parameter in params[name])]

    own, ours = _command_options(error), [f"--{name}" for name in named_elsewhere(option)]
    if commands := takers(option):
        own_options = [name for name in ours if name in own]
        near = did_you_mean(option, own_options) if own_options else ""
        return f" of `{here}`; it is an option of {abbreviate_list(commands)}{near}"
    for name in ours:
        if (commands := takers(name)) and not set(ours) & set(own):
            return f" of `{here}`; the equivalent option is {name} of {abbreviate_list(commands)}"
    return ""


def _say(message: str, code: int) -> int:
    tell(f"error: {message}")
    return code


def process_start() -> float:
    """Return the approximate moment of `time.monotonic` at which the process began.

    A process that ran another program first (`exec` in a script) is older than this program, so at most `LONGEST_START`
    seconds before the import of the package are counted.
    """
    age = time.process_time()  # fallback: the process is at least as old as its processor time
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
            ticks = int(stat.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, LookupError, AttributeError):
        pass
    return min(max(time.monotonic() - age, LOADED - LONGEST_START), LOADED)


def terminate(number: int, frame: Any) -> None:
    """Handle SIGTERM, which a scheduler sends: interrupt the command as Ctrl-C does, and end the process soon.

    Parameters
    ----------
    number : int
        Number of the signal.
    frame : frame or None
        Frame that the signal interrupts.

    Raises
    ------
    KeyboardInterrupt
    """
    # some libraries swallow the exception during their import, and compiled code delays it
    forced_exit = threading.Timer(TERMINATION_GRACE, _exit_interrupted)
    forced_exit.daemon = True
    forced_exit.start()
    FORCED_EXITS.append(forced_exit)
    raise KeyboardInterrupt


def _exit_interrupted() -> None:
    tell(f"error: {INTERRUPTED}")
    os._exit(Interrupted.exit_code)


def main() -> None:
    """Entry point of the script `sparsecv`."""
    take_streams()
    gc.set_threshold(200_000, 20, 20)  # a tenth of a short command is spent on objects of imports, which stay anyway
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)
    logging.getLogger("sparsecv_mio").setLevel(logging.ERROR)  # the live view reports what is compiled
    code = run(began=process_start())
    failure = write_stream(sys.stdout, [])  # flushes the output of --help
    if failure is not None:
        code = _say(str(failure), failure.exit_code)
    write_stream(sys.stderr, [])
    for forced_exit in FORCED_EXITS:
        forced_exit.cancel()
        forced_exit.join()
    # A thread whose result is no longer wanted would delay a clean exit. A thread of Arrow that frees a file while
    # Python ends is killed, and aborts the process.
    if threading.active_count() > 1 or "pyarrow" in sys.modules:
        atexit._run_exitfuncs()
        os._exit(code)
    sys.exit(code)
