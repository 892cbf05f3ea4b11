"""The exceptions of the package, and the exit code that a command returns after each of them.

If an optional package is not installed, `need_extra` and `naming_extras` raise `MissingPackage`. The message names the
extra that installs the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, TypeVar

Word = TypeVar("Word", bound=StrEnum)


class SparseCVError(Exception):
    """Base class of all errors that are raised on purpose; the message is one clear line."""

    exit_code = 1


class BadInput(SparseCVError, ValueError):
    """The data or an option is wrong; the message names the column, row or option and says what to do."""

    exit_code = 2


class WrongSeparator(BadInput):
    """A text table seems to be separated by another character than requested."""


class UnusableColumns(BadInput):
    """Columns cannot be used together; the message advises to force some of them out, or to count columns."""


@dataclass(eq=False)
class WrongColumn(BadInput):
    """A requested column is not in the data, or is not a single column.

    Attributes
    ----------
    role : str
        Role of the column, such as `target`.
    name : str
        Requested name.
    fault : str
        Rest of the message.
    """

    role: str
    name: str
    fault: str

    def __str__(self) -> str:
        return f"{self.role} {self.name!r} {self.fault}"


class BackendUnavailable(SparseCVError):
    """A solver is not installed, has no licence, or its licence is too small for the model."""

    exit_code = 4


class MissingPackage(SparseCVError, ImportError):
    """A requested feature needs a package that is not installed; the message names the extra that has it."""

    exit_code = 4


class BackendFailed(SparseCVError):
    """A solver stopped in a state that it should not reach.

    Parameters
    ----------
    message : str
        One line for the user.
    raw_status : str
        Status text of the solver.
    log_tail : str
        End of the log of the solver, if there is one.
    """

    exit_code = 4

    def __init__(self, message: str, raw_status: str = "", log_tail: str = "") -> None:
        super().__init__(message)
        self.raw_status = raw_status
        self.log_tail = log_tail


class ProofImpossible(BadInput):
    """Rounding errors prevent the proof of a certified record; the record remains valid."""


class Contradiction(SparseCVError):
    """A lower bound exceeds an upper bound by more than the rounding allowance: a bug, never hidden."""


class Inconsistent(SparseCVError):
    """A number lies outside its own certified interval: a bug; nothing is reported."""


class OutOfTime(SparseCVError):
    """The time limit or a stop request came before any answer was available."""

    exit_code = 3


class Interrupted(OutOfTime):
    """Ctrl-C or another stop request came before any answer was available."""

    exit_code = 130


class CorruptStore(SparseCVError):
    """A record or checkpoint on disk cannot be read back."""

    exit_code = 2


class MissingFile(CorruptStore, FileNotFoundError):
    """The file of a record or checkpoint does not exist."""


class VerificationFailed(SparseCVError):
    """A record does not agree with the data; `field` names the field that differs."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class SparseCVWarning(UserWarning):
    """Base class of warnings about the data, an answer or the machine; the message is one clear line."""


class GridEdgeWarning(SparseCVWarning):
    """The chosen pair is on the edge of the grid; the message names a wider grid."""


ELSEWHERE = {  # names of options in other packages: letters only, without a plural s
    "gamma": ("alpha", "lambda", "lambd", "l2", "l2reg", "penalty", "ridge"),
    "n-gammas": ("nalpha", "nlambda"),
    "folds": ("cv", "nfold", "kfold", "nsplit", "foldid", "k", "group"),
    "logistic": ("binomial",),
    "loss": ("family", "objective", "distribution"),
    "skip-lines": ("skiprow", "skipline", "skip"),
    "most": ("nbest",),
    "cv": ("fold", "nfold", "kfold", "nsplit", "foldid"),
    "tau": ("nvmax", "l0", "nnonzerocoef", "supportsize", "maxfeature", "nfeaturestoselect", "sparsity", "k"),
    "scale": ("standardize", "normalize"),
    "nonnegative": ("positive",),
    "coef-bounds": ("lowerlimit", "upperlimit", "lowerbound", "upperbound", "bound", "coefconstraint"),
    "one-se": ("lambda1se", "oneserule"),
    "weights": ("sampleweight", "weight"),
    "seed": ("randomstate", "randomseed"),
    "threads": ("njob", "nthread", "ncore"),
    "n-jobs": ("thread", "nthread", "ncore"),
    "workers": ("njob", "job", "nproc"),
    "target": ("y", "response", "label"),
    "json": ("o", "out", "output", "record", "save"),
}


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower())).removesuffix("s")


def named_elsewhere(word: str) -> list[str]:
    """Return the options that have the given name in other packages.

    Examples
    --------
    >>> named_elsewhere("--k"), named_elsewhere("--gamma")
    (['folds', 'tau'], [])
    """
    return [name for name, theirs in ELSEWHERE.items() if _letters(word[:100]) in theirs]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: a similar option, or one known by that name elsewhere.

    Examples
    --------
    >>> did_you_mean("lenght", ["length", "variance"]), did_you_mean("xyz", ["length"])
    (" (did you mean 'length'?)", '')
    >>> did_you_mean("--lambda", ["--gamma", "--tau"]), did_you_mean("alphas", ["gammas", "n_gammas"])
    (" (did you mean '--gamma'?)", " (did you mean 'gammas'?)")
    >>> print(did_you_mean("size", ["age", "size, m2"]))
    ; in a list, put a name with a comma in double quotes: '"size, m2"'
    """
    from difflib import get_close_matches

    names = list(known)
    if whole := next((name for name in names if "," in name and word in map(str.strip, name.split(","))), ""):
        doubled = whole.replace('"', '""')
        return f"; in a list, put a name with a comma in double quotes: '\"{doubled}\"'"
    by_small_letters = {word_known.lower().lstrip("-"): word_known for word_known in names}
    near = [name for name in by_small_letters if _letters(name) in map(_letters, named_elsewhere(word))]
    near = near or get_close_matches(word[:100].lower().lstrip("-"), by_small_letters, n=1)
    return f" (did you mean {' or '.join(repr(by_small_letters[name]) for name in near)}?)" if near else ""


def parse_keyword(kind: type[Word], value: str, option: str) -> Word:
    """Return the member of an enumeration for a keyword, in upper or lower case.

    Parameters
    ----------
    kind : type
        The enumeration.
    value : str
        Keyword given by the user.
    option : str
        Name of the option in messages.

    Returns
    -------
    StrEnum
        The member of `kind`.

    Raises
    ------
    BadInput
        If the keyword is unknown; the message names the most similar keyword.

    Examples
    --------
    >>> from sparsecv_mio.words import Method
    >>> parse_keyword(Method, "ROUNDS", "method")
    <Method.ROUNDS: 'rounds'>
    """
    return kind(match_keyword(value, kind, option))


def match_keyword(value: str, words: Iterable[str], option: str) -> str:
    """Return the allowed keyword that a text matches, in upper or lower case.

    Parameters
    ----------
    value : str
        Text given by the user.
    words : iterable of str
        Allowed keywords, in lower case.
    option : str
        Name of the option in messages.

    Returns
    -------
    str
        The keyword.

    Raises
    ------
    BadInput
        If no keyword matches; the message names the most similar one.

    Examples
    --------
    >>> match_keyword("LOGISTIC", ("logistic", "squared"), "--loss")
    'logistic'
    """
    allowed = [str(word) for word in words]
    text = str(value)
    word = text.strip().lower()
    if word not in allowed or not isinstance(value, str):  # None is not the word "none"
        raise BadInput(f"{option}: unknown word {text!r}{did_you_mean(text, allowed)}; use {', '.join(allowed)}")
    return word


EXTRAS = {
    "frames": ("pandas",),
    "plot": ("matplotlib",),
    "report": ("matplotlib", "jinja2"),
    "sklearn": ("sklearn", "joblib"),
    "inference": ("statsmodels",),
    "batch": ("pandas", "sklearn", "joblib", "loky", "matplotlib"),
}
INSTALLED_AS = {"sklearn": "scikit-learn"}  # distributions whose name differs from the module


def need_extra(extra: str, what: str) -> None:
    """Check before any work that the packages of an extra are installed.

    Parameters
    ----------
    extra : str
        Name of the extra.
    what : str
        Feature that needs the packages, for the message.

    Raises
    ------
    MissingPackage
    """
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise _missing(package, extra, what)


@contextmanager
def naming_extras() -> Iterator[None]:
    """Name the extra if an import within the context, or the decorated function, finds a package missing.

    Raises
    ------
    MissingPackage
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None


def missing_package(error: ModuleNotFoundError) -> MissingPackage | None:
    """Return the error that names the extra of a missing module, or None if no extra has the module."""
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    return None if extra is None else _missing(package, extra, "this")


def advise_extra(name: str, extra: str) -> str:
    """Return the advice to install a package, or the extra that has it."""
    return f'run pip install {name}, or pip install ".[{extra}]" in a clone'


def _missing(package: str, extra: str, what: str) -> MissingPackage:
    name = INSTALLED_AS.get(package, package)
    return MissingPackage(f"{what} needs {name}, which is not installed: {advise_extra(name, extra)}")


@contextmanager
def name_index_labels(frame: Any) -> Iterator[None]:
    """Add the index label of a row, in errors about the cells of a pandas frame, to its position counted from 1."""
    try:
        yield
    except BadInput as error:
        if type(error) is BadInput and hasattr(frame, "iloc"):

            def add_label(found: re.Match[str]) -> str:
                label = frame.index[min(int(found[1]), len(frame)) - 1]
                return f"{found[0]} (index {label!r})" if isinstance(label, str) else f"{found[0]} (index {label})"

            error.args = (re.sub(r"(?:\bin|,) row (\d+)\b(?! \(index)", add_label, str(error)),)
        raise
