"""The content of a report (sentences, facts, tables, commands, figures) and its output formats.

Each format has a template in this folder. An HTML report is a single file, whose figures adapt to a light or a dark
screen. A Markdown report has neither figures nor collapsible sections, and a LaTeX report has only the tables.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar

from sparsecv_mio.digits import CONTROLS
from sparsecv_mio.report.figures import INK, collect_missing_glyphs, new_figure
from sparsecv_mio.report.journal_numbers import MINUS, PLAIN_DIGITS, SUPERSCRIPTS, print_number
from sparsecv_mio.report.layout import cell
from sparsecv_mio.report.references import Reference
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sentences:
    """A list of sentences; `proved` is True for certified statements, False for open ones, None for others."""

    kind: ClassVar[str] = "sentences"

    lines: tuple[str, ...]
    proved: bool | None = None


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    kind: ClassVar[str] = "facts"

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ReportTable:
    """A table: the first `words` columns hold text, the others numbers; row `chosen` is highlighted.

    If `folded`, the table is long and is collapsed in formats that support it.
    """

    kind: ClassVar[str] = "table"

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0
    chosen: int | None = None
    folded: bool = False

    @property
    def texts(self) -> list[bool]:
        """True for each column that holds text."""
        return [k < self.words or name in ("status", "features") for k, name in enumerate(self.head)]


@dataclass(frozen=True)
class Commands:
    """Lines to copy, in `language`."""

    kind: ClassVar[str] = "commands"

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A figure of one panel: its name, a caption, its size in inches, and the function that draws it."""

    kind: ClassVar[str] = "picture"

    name: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Axes], object]


def facts(*pairs: tuple[str, str | None]) -> Facts:
    """Return names with their values, without empty values."""
    return Facts(tuple((name, value) for name, value in pairs if value))


def report_table(
    caption: str, heads: Iterable[str], rows: Iterable[Iterable[object]], words: int = 0, folded: bool = False
) -> ReportTable:
    """Return a table of values, which are written as on the screen; see :func:`sparsecv_mio.report.layout.cell`."""
    return ReportTable(caption, tuple(heads), tuple(tuple(map(cell, row)) for row in rows), words, folded=folded)


Block = Sentences | Facts | ReportTable | Commands | Picture


@dataclass(frozen=True)
class Section:
    """A title and the blocks below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report: its title, a one-line answer, and its sections."""

    template: ClassVar[str] = "report"

    title: str
    answer: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Publication:
    """A table for a paper with its notes, the texts of the sections on methods and results, and references.

    Texts have one paragraph a line, and citations as `⟦key⟧`.
    """

    template: ClassVar[str] = "publication"

    table: ReportTable
    notes: str
    methods: str
    results: str
    references: tuple[Reference, ...]

    def to_markdown(self, text: str) -> str:
        """Return a text for Markdown, which cites authors and years."""
        names = {reference.key: reference.short_name for reference in self.references}

        def cite(citation: re.Match[str]) -> str:
            return f" ({markdown_text('; '.join(names[key] for key in citation[1].split(',')))})"

        return "\n\n".join(CITATION.sub(cite, markdown_text(line)) for line in text.splitlines())


CITATION = re.compile(r" ⟦([^⟧]+)⟧")
MARKDOWN_SPECIAL = re.compile(r"([\\`*|>~#$&\[\]]|<(?![\d ])|(?<!\w)_|_(?!\w)|:(?=//))")
CODE_SPAN = re.compile(r"(`[A-Za-z-][\w .=:-]*`)")  # a command, an option or a field in a sentence of the report
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "[": "{[}", "*": "{*}",  # at the start of a row they would be read as arguments of the preceding line break
    "`": r"\textasciigrave{}", "|": r"\textbar{}", "τ": r"$\tau$", "γ": r"$\gamma$", "²": "$^2$", MINUS: "$-$",
    "×": r"$\times$", **{sign: f"$^{plain}$" for sign, plain in zip(SUPERSCRIPTS, PLAIN_DIGITS, strict=True)},
}  # fmt: skip
FORMULA = re.compile(r"\$\\(tau|gamma)\$( = [\d.,]*\d|/2)")
TAG = re.compile(r"<[^>]*>")


def text_of(document: Document | Publication, kind: str) -> str:
    """Return a report as HTML, as Markdown, or its tables as LaTeX for the package booktabs.

    Parameters
    ----------
    document : Document or Publication
        Report, or the table and the texts for a paper, which have no HTML format.
    kind : {"html", "md", "latex"}
        Format of the text.
    """
    template = _load_template(f"{document.template}.{kind}.jinja", kind == "html")
    text = template.render(document=document, version=__version__).translate(CONTROLS)
    return text if kind == "html" else re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


@cache
def _load_template(name: str, is_html: bool) -> Template:
    """Return a compiled template of this folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("sparsecv_mio.report")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=is_html, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined,
        keep_trailing_newline=True, comment_start_string="<#", comment_end_string="#>",
    )  # fmt: skip
    environment.filters.update(
        md=markdown_text, html=html_text, tex=tex, tex_text=tex_text, svg=draw_svg, number=print_number
    )
    return environment.get_template(name)


def markdown_text(text: str) -> str:
    r"""Return a text escaped for Markdown; a command, an option or a field between backticks stays code.

    Examples
    --------
    >>> markdown_text("`verify` reads a_b|c")
    '`verify` reads a_b\\|c'
    """
    parts = CODE_SPAN.split(" ".join(text.split()))
    return "".join(piece if k % 2 else MARKDOWN_SPECIAL.sub(r"\\\1", piece) for k, piece in enumerate(parts))


def html_text(text: str) -> str:
    """Return a text escaped for HTML; a command, an option or a field between backticks becomes code.

    Examples
    --------
    >>> html_text("`verify` reads <b>")
    '<code>verify</code> reads &lt;b&gt;'
    """
    parts = CODE_SPAN.split(text)
    return "".join(f"<code>{piece.strip('`')}</code>" if k % 2 else escape(piece) for k, piece in enumerate(parts))


def tex(text: str) -> str:
    r"""Return a text escaped for LaTeX.

    Examples
    --------
    >>> tex("R^2 of a_b: 5%")
    'R\\textasciicircum{}2 of a\\_b: 5\\%'
    """
    escaped = "".join(LATEX_SPECIAL.get(letter, letter) for letter in " ".join(text.split())).replace("--", "-{}-")
    return FORMULA.sub(r"$\\\1\2$", escaped)


def tex_text(text: str) -> str:
    """Return a text with citations as LaTeX."""

    def cite(citation: re.Match[str]) -> str:
        return rf"~\cite{{{citation[1]}}}".replace(r"\_", "_")

    return "\n\n".join(CITATION.sub(cite, tex(line)) for line in text.splitlines())


def draw_svg(picture: Picture) -> str:
    """Return a figure as an SVG element for HTML, with transparent background and the colour of the text.

    Parameters
    ----------
    picture : Picture
        Figure; its caption is the alternative text for screen readers.
    """
    from matplotlib import rc_context

    text, label = io.StringIO(), escape(picture.caption, quote=True)
    figure = new_figure(*picture.size)
    picture.draw(figure.subplots())
    with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none"}), collect_missing_glyphs():
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)

    def rewrite_tag(tag: re.Match[str]) -> str:
        # figures on one page must not share element names
        named = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", tag[0])
        return named.replace(INK, "currentColor").replace("#ffffff", "var(--card)")

    svg = TAG.sub(rewrite_tag, svg)  # only in tags, since texts hold names of the data
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
