"""The references of a result: the package and the papers of its methods, as BibTeX and as text.

`references.bib` in this folder has the entries. The text of a report cites these entries by their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

from sparsecv_mio.version import __version__

PACKAGE = "sparsecv_mio"  # key of the entry of this package
FIRST_PAPER = "corywright2023"  # key of the paper that the package starts from
ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"^  (\w+) = \{(.*)\},?$", re.MULTILINE)


class Reference(NamedTuple):
    """An entry of the bibliography: its key, its fields and its text in BibTeX."""

    key: str
    fields: dict[str, str]
    bibtex: str

    @property
    def short_name(self) -> str:
        """Authors and year, as in a citation in the text; of more than three authors only the first one is named."""
        *others, last = [author.partition(",")[0] for author in _strip_braces(self.fields["author"]).split(" and ")]
        year = self.fields.get("year") or f"version {self.fields['version']}"
        if len(others) > 2 or last == "others":
            return f"{others[0]} and others {year}"
        return f"{', '.join(others)} and {last} {year}" if others else f"{last} {year}"

    def to_text(self) -> str:
        """Return the entry as one line of a list of references, without its link."""
        stored = {name: _strip_braces(value).replace("--", "–") for name, value in self.fields.items()}
        authors = "; ".join(stored["author"].split(" and ")).replace("; others", " and others")
        places = (stored.get(name) for name in ("journal", "booktitle", "publisher"))
        where = next(filter(None, places), None) or f"Version {stored['version']}"
        for name, form in (("volume", " {}"), ("number", "({})"), ("pages", ", {}")):
            where += form.format(stored[name]) if name in stored else ""
        year = f" ({stored['year']})" if "year" in stored else ""
        return f"{authors}{year}. {stored['title']}. {where}."

    @property
    def link(self) -> str:
        """Address of the publication; empty if it has none."""
        return f"https://doi.org/{self.fields['doi']}" if "doi" in self.fields else self.fields.get("url", "")


def _strip_braces(text: str) -> str:
    return re.sub("[{}]", "", text)


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
    text = files("sparsecv_mio.report").joinpath("references.bib").read_text(encoding="utf-8")
    entries = {entry[1]: entry[0] for entry in ENTRY.finditer(text)}
    own = re.sub("  year = .*\n", "", entries[PACKAGE]) if version != __version__ else entries[PACKAGE]
    entries[PACKAGE] = own.replace("{VERSION}", f"{{{version}}}")
    return [Reference(key, dict(FIELD.findall(entries[key])), entries[key]) for key in dict.fromkeys(keys)]


def bibliography(references: Iterable[Reference]) -> str:
    """Return entries as the text of a BibTeX file."""
    return "\n\n".join(reference.bibtex for reference in references) + "\n"
