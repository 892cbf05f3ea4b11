"""Messages of the library, which knows options by their names in Python, as the command line has them."""

from __future__ import annotations

import re
from collections.abc import Collection

IN_PYTHON = {"taus": "tau", "gammas": "gamma"}
PLACES = (  # of the name of an option in a message: "gap: 2 is ...", "tau 99 is ...", "... goes with method grid"
    re.compile(r"^([a-z][a-z_-]*)(?=:| ['\d.-]| [^ ]+:)"),
    re.compile(r"(?<= goes with )([a-z][a-z_-]*)(?= [a-z])"),
    re.compile(r"(?<=: )([a-z][a-z_-]*)(?= goes with )"),
)


def with_dashes(message: str, options: Collection[str]) -> str:
    """Return a message with the names of options as they are given on the command line.

    Parameters
    ----------
    message : str
    options : collection of str
        Of the command, `--tau` for one; other words are left as they are.

    Examples
    --------
    >>> with_dashes("taus: '99' is out of range", ["--tau"])
    "--tau: '99' is out of range"
    >>> with_dashes("one-se: goes with method auto or joint, not bounds", ["--one-se", "--method"])
    '--one-se: goes with --method auto or joint, not bounds'
    """

    def named(found: re.Match[str]) -> str:
        word = IN_PYTHON.get(found[1], found[1]).replace("_", "-")
        return f"--{word}" if f"--{word}" in options else found[1]

    for place in PLACES:
        message = place.sub(named, message)
    return message
