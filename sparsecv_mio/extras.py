"""Packages that come with an extra of this one, and the line that says so where one is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from sparsecv_mio.errors import MissingPackage

EXTRAS = {
    "frames": ("pandas",),
    "plot": ("matplotlib",),
    "report": ("matplotlib", "jinja2"),
    "sklearn": ("sklearn", "joblib"),
    "batch": ("pandas", "sklearn", "joblib", "matplotlib"),
}
INSTALLED_AS = {"sklearn": "scikit-learn"}  # where it is another name than that of the module


def need_extra(extra: str, what: str) -> None:
    """Refuse before any work what needs the packages of an extra.

    Parameters
    ----------
    extra : str
    what : str
        Who needs them, in the message.

    Raises
    ------
    MissingPackage
    """
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise _missing(package, extra, what)


@contextmanager
def naming_extras() -> Iterator[None]:
    """Name the extra where a package of one is imported and not there; as a decorator too.

    Raises
    ------
    MissingPackage
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None


def missing_package(error: ModuleNotFoundError) -> MissingPackage | None:
    """Return what to say of a module that was not found; None where it is of no extra."""
    package = (error.name or "").partition(".")[0]
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    return None if extra is None else _missing(package, extra, "this")


def _missing(package: str, extra: str, what: str) -> MissingPackage:
    name = INSTALLED_AS.get(package, package)
    return MissingPackage(f'{what} needs {name}, which is not installed: pip install "sparsecv-mio[{extra}]"')
