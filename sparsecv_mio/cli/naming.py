"""Messages of the library, which knows options by their names in Python, as the command line has them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection

from sparsecv_mio.data.reading import TableWords

IN_PYTHON = {"taus": "tau", "gammas": "gamma"}
PLACES = (  # of the name of an option in a message: "gap: 2 is ...", "tau 99 is ...", "... goes with method grid"
    re.compile(r"^([a-z][a-z_-]*)(?=:| ['\d.-]| [^ ]+:)"),
    re.compile(r"(?<= goes with )([a-z][a-z_-]*)(?= [a-z])"),
    re.compile(r"(?<=: )([a-z][a-z_-]*)(?= goes with )"),
)
GIVEN = re.compile(r"""\b([a-z][a-z_]*)=(\[(?:"(?:[^"\\]|\\.)*"(?:, )?)+\]|"(?:[^"\\]|\\.)*"|False|\d+)(?![\w(])""")


def with_dashes(message: str, options: Collection[str]) -> str:
    """Return a message with the names of options as they are given on the command line.

    Parameters
    ----------
    message : str
    options : collection of str
        Of the command, `--tau` for one; other words are left as they are. A command that reads tables is told of
        every way to read one.

    Examples
    --------
    >>> with_dashes("taus: '99' is out of range", ["--tau"])
    "--tau: '99' is out of range"
    >>> with_dashes("one-se: goes with method auto or joint, not bounds", ["--one-se", "--method"])
    '--one-se: goes with --method auto or joint, not bounds'
    >>> with_dashes('give sep="space" and drop=["a", "b c"]', ["--sep"])
    "give --sep space and --drop 'a,b c'"
    """
    tables = {f"--{name.replace('_', '-')}" for name in TableWords.__annotations__}
    known = {*options, *(tables if "--sep" in options else ())}

    def named(found: re.Match[str]) -> str:
        word = IN_PYTHON.get(found[1], found[1]).replace("_", "-")
        return f"--{word}" if f"--{word}" in known else found[1]

    def given(found: re.Match[str]) -> str:
        word = f"--{found[1].replace('_', '-')}"
        if word not in known:
            return found[0]
        if found[2] == "False":
            return word.replace("--", "--no-")
        value = ast.literal_eval(found[2])
        if isinstance(value, list):
            value = ",".join(f'"{name}"' if "," in name else name for name in value)
        return f"{word} {shlex.quote(str(value))}"

    message = GIVEN.sub(given, message)
    for place in PLACES:
        message = place.sub(named, message)
    return message
