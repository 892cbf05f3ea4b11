"""The references of a result: the package and the papers of its methods, as BibTeX and as text.

`references.bib` in this folder has the entries. The text of a report cites them by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from sparsecv_mio.version import __version__

PACKAGE = "sparsecv_mio"  # key of the entry of this package
FIRST_PAPER = "corywright2023"  # key of the paper that the package starts from
MAX_NAMED_AUTHORS = 3  # authors of a citation in the text; of longer lists only the first one is named
ENTRY = re.compile(r"@(\w+)\{(\w+),\n(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"^  (\w+) = \{(.*)\},?$", re.MULTILINE)


class Reference(NamedTuple):
    """An entry of the bibliography: its type, its key and its fields."""

    kind: str
    key: str
    fields: dict[str, str]

    def to_bibtex(self) -> str:
        """Return the entry as BibTeX."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields.items())
        return f"@{self.kind}{{{self.key},\n{lines}\n}}"

    @property
    def short_name(self) -> str:
        """Authors and year, as in a citation in the text."""
        names = [author.partition(",")[0] for author in _without_braces(self.fields["author"]).split(" and ")]
        if len(names) > MAX_NAMED_AUTHORS or names[-1] == "others":
            return f"{names[0]} and others {self._year}"
        listed = ", ".join(names[:-1])
        return f"{listed} and {names[-1]} {self._year}" if listed else f"{names[0]} {self._year}"

    @property
    def _year(self) -> str:
        return self.fields.get("year") or f"version {self.fields['version']}"

    def to_text(self) -> str:
        """Return the entry as one line of a list of references, without its link."""
        got = {name: _without_braces(value).replace("--", "–") for name, value in self.fields.items()}
        authors = "; ".join(got["author"].split(" and ")).replace("; others", " and others")
        where = got.get("journal") or got.get("booktitle") or got.get("publisher") or f"Version {got['version']}"
        if "volume" in got:
            where += f" {got['volume']}" + (f"({got['number']})" if "number" in got else "")
        where += f", {got['pages']}" if "pages" in got else ""
        year = f" ({got['year']})" if "year" in got else ""
        return f"{authors}{year}. {got['title']}. {where}."

    @property
    def link(self) -> str:
        """Address of the publication; empty if it has none."""
        doi = self.fields.get("doi")
        return self.fields.get("url", "") if doi is None else f"https://doi.org/{doi}"


def _without_braces(text: str) -> str:
    return text.replace("{", "").replace("}", "")


@cache
def _read_references() -> dict[str, Reference]:
    """Return all entries of the file by their keys."""
    text = files("sparsecv_mio.report").joinpath("references.bib").read_text(encoding="utf-8")
    return {key: Reference(kind, key, dict(FIELD.findall(body))) for kind, key, body in ENTRY.findall(text)}


def find_references(keys: Iterable[str] = (PACKAGE, FIRST_PAPER), version: str = __version__) -> list[Reference]:
    """Return entries of the bibliography, each once, in the order of the keys.

    Parameters
    ----------
    keys : iterable of str
        Keys of the entries; by default those of the package and of the paper that it starts from.
    version : str
        Version of the package to cite. The year of another version than this one is not known, and omitted.

    Examples
    --------
    >>> [reference.short_name for reference in find_references(["bertsimas2016", "stone1974", "zhu2020"])]
    ['Bertsimas, King and Mazumder 2016', 'Stone 1974', 'Zhu and others 2020']
    >>> find_references(["bertsimas2016"])[0].to_text()[-40:]
    'The Annals of Statistics 44(2), 813–852.'
    """
    found = [_read_references()[key] for key in dict.fromkeys(keys)]
    return [_with_version(reference, version) if reference.key == PACKAGE else reference for reference in found]


def _with_version(reference: Reference, version: str) -> Reference:
    """Return the entry of the package for a version."""
    fields = dict(reference.fields)
    url = fields.pop("url")
    if version != __version__:
        del fields["year"]
    return reference._replace(fields=fields | {"version": version, "url": url})


def bibliography(references: Iterable[Reference]) -> str:
    """Return entries as the text of a BibTeX file."""
    return "\n\n".join(reference.to_bibtex() for reference in references) + "\n"
