"""What a report consists of (sentences, facts, tables, commands, pictures), and the formats it is written in.

HTML is one page that needs no other file: pictures are in it, in the colours of the reader's screen. Markdown has
everything but the pictures, LaTeX the tables.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from sparsecv_mio.report.figures import INK
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sentences:
    """A list of sentences; `proved` says what they are: proved, not proved, or neither kind (None)."""

    lines: tuple[str, ...]
    proved: bool | None = None


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ReportTable:
    """A table: the first `words` columns hold text, the others numbers; row `chosen` stands out.

    `folded`: long, and shown only on demand where the format can.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0
    chosen: int | None = None
    folded: bool = False


@dataclass(frozen=True)
class Commands:
    """Lines to be copied, in `language`."""

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A figure of one panel: its name, what it shows in words, its size in inches and what draws it."""

    name: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Axes], object]


Block = Sentences | Facts | ReportTable | Commands | Picture


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report: its title, the answer in a line, and its sections."""

    title: str
    answer: str
    sections: tuple[Section, ...]


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # nothing is loaded from anywhere
KINDS = {True: ("yes", "Proved"), False: ("no", "Not proved"), None: ("", "")}


def html_of(document: Document) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    document : Document
    """
    style = files("sparsecv_mio.report").joinpath("report.css").read_text(encoding="utf-8")
    sections = [
        f"<section>\n<h2>{escape(section.title)}</h2>\n{_blocks(section.blocks)}</section>\n"
        for section in document.sections
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n'
        f'<body>\n<header>\n<h1>{escape(document.title)}</h1>\n<p class="answer">{escape(document.answer)}</p>\n'
        f"</header>\n{''.join(sections)}<footer>Written by sparsecv {__version__}.</footer>\n</body>\n</html>\n"
    )


def _blocks(blocks: Iterable[Block]) -> str:
    pictures = [_figure(block) for block in blocks if isinstance(block, Picture)]
    others = [_block(block) for block in blocks if not isinstance(block, Picture)]
    return "".join(others) + (f'<div class="pictures">\n{"".join(pictures)}</div>\n' if pictures else "")


def _block(block: Block) -> str:
    if isinstance(block, Sentences):
        kind, word = KINDS[block.proved]
        lead = f'<p class="kind {kind}">{word}</p>\n' if word else ""
        lines = "".join(f"<li>{escape(line)}</li>\n" for line in block.lines)
        return f"{lead}<ul>\n{lines}</ul>\n" if block.lines else ""
    if isinstance(block, Facts):
        return f"<dl>\n{''.join(f'<dt>{escape(a)}</dt><dd>{escape(b)}</dd>{chr(10)}' for a, b in block.pairs)}</dl>\n"
    if isinstance(block, Commands):
        return f"<pre><code>{escape(chr(10).join(block.lines))}</code></pre>\n"
    return _table(block) if isinstance(block, ReportTable) else ""


def _table(grid: ReportTable) -> str:
    def row(cells: Iterable[str], tag: str, style: str = "") -> str:
        words = [' class="word"' if k < grid.words or name in ("status", "features") else ""
                 for k, name in enumerate(grid.head)]  # fmt: skip
        inner = "".join(f"<{tag}{word}>{escape(cell)}</{tag}>" for cell, word in zip(cells, words, strict=True))
        return f"<tr{style}>{inner}</tr>\n"

    body = "".join(row(cells, "td", ' class="chosen"' if k == grid.chosen else "") for k, cells in enumerate(grid.rows))
    caption = "" if grid.folded else f"<caption>{escape(grid.caption)}</caption>\n"
    head = f"<thead>{row(grid.head, 'th')}</thead>"
    table = f'<div class="wide"><table>\n{caption}{head}\n<tbody>{body}</tbody>\n</table></div>\n'
    return f"<details><summary>{escape(grid.caption)}</summary>\n{table}</details>\n" if grid.folded else table


def _figure(picture: Picture) -> str:
    words = escape(picture.caption, quote=True)
    return f"<figure>\n{svg_of(picture, words)}<figcaption>{words}</figcaption>\n</figure>\n"


def svg_of(picture: Picture, label: str) -> str:
    """Return a picture as an SVG element of HTML, on no background and with its ink in the colour of the text.

    Parameters
    ----------
    picture : Picture
    label : str
        What it shows, for those who do not see it; escaped.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    text = io.StringIO()
    figure = Figure(figsize=picture.size, layout="constrained")
    picture.draw(figure.subplots())
    with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', rf'\1 role="img" aria-label="{label}"', svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # several pictures of a page must not share names of their parts
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", svg)
    return svg.replace(INK, "currentColor").replace("#ffffff", "var(--card)")


MARKDOWN_SPECIAL = re.compile(r"([\\`*_|<>~#\[\]])")
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def markdown_of(document: Document) -> str:
    """Return a report as Markdown, without its pictures and the tables that are folded elsewhere.

    Parameters
    ----------
    document : Document
    """
    lines = [f"# {_md(document.title)}", "", _md(document.answer), ""]
    for section in document.sections:
        blocks = [block for block in section.blocks if not isinstance(block, Picture) and not _folded(block)]
        if blocks:
            lines += [f"## {_md(section.title)}", ""]
            for block in blocks:
                lines += [*_markdown(block), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _folded(block: Block) -> bool:
    return isinstance(block, ReportTable) and block.folded


def _markdown(block: Block) -> list[str]:
    if isinstance(block, Sentences):
        lead = {True: ["Proved:", ""], False: ["Not proved:", ""], None: []}[block.proved]
        return [*lead, *(f"- {_md(line)}" for line in block.lines)]
    if isinstance(block, Facts):
        return _pipes(("", ""), block.pairs, 1)
    if isinstance(block, Commands):
        return [f"```{block.language}", *block.lines, "```"]
    return (
        [_md(block.caption), "", *_pipes(block.head, block.rows, block.words)] if isinstance(block, ReportTable) else []
    )


def _pipes(head: Iterable[str], rows: Iterable[Iterable[str]], words: int) -> list[str]:
    names = list(head)
    rule = ["---" if k < words or names[k] in ("", "status", "features") else "---:" for k in range(len(names))]
    return [f"| {' | '.join(map(_md, names))} |", f"| {' | '.join(rule)} |",
            *(f"| {' | '.join(map(_md, row))} |" for row in rows)]  # fmt: skip


def _md(text: str) -> str:
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def latex_of(document: Document) -> str:
    """Return the facts of the answer and the tables of a report as LaTeX, which needs the package booktabs.

    Long tables that are folded elsewhere are left out.

    Parameters
    ----------
    document : Document
    """
    parts = [f"% {' '.join(document.title.split())}: \\usepackage{{booktabs}}", ""]
    for place, section in enumerate(document.sections):
        for block in section.blocks:
            if isinstance(block, Facts) and place == 0:
                parts += [*_tabular("ll", None, block.pairs, document.answer), ""]
            elif isinstance(block, ReportTable) and not block.folded:
                align = "".join("l" if k < block.words or name in ("status", "features") else "r"
                                for k, name in enumerate(block.head))  # fmt: skip
                parts += [*_tabular(align, block.head, block.rows, f"{section.title}. {block.caption}"), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _tabular(align: str, head: Iterable[str] | None, rows: Iterable[Iterable[str]], caption: str) -> list[str]:
    def line(cells: Iterable[str]) -> str:
        return "  " + " & ".join(map(_tex, cells)) + r" \\"

    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_tex(caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
    lines += [line(head), r"\midrule"] if head is not None else []
    return [*lines, *map(line, rows), r"\bottomrule", r"\end{tabular}", r"\end{table}"]


def _tex(text: str) -> str:
    r"""Escape a text.

    Examples
    --------
    >>> _tex("R^2 of a_b: 5%")
    'R\\textasciicircum{}2 of a\\_b: 5\\%'
    """
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in text)
