"""A report as one page of HTML that needs no other file: pictures are in it, in the colours of the reader's screen."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files

from sparsecv_mio.report.document import Block, Commands, Document, Facts, Grid, Picture, Sentences
from sparsecv_mio.report.figures import INK
from sparsecv_mio.version import __version__

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
    return _table(block) if isinstance(block, Grid) else ""


def _table(grid: Grid) -> str:
    def row(cells: Iterable[str], tag: str, style: str = "") -> str:
        words = [' class="word"' if k < grid.words or name in ("status", "features") else ""
                 for k, name in enumerate(grid.head)]  # fmt: skip
        inner = "".join(f"<{tag}{word}>{escape(cell)}</{tag}>" for cell, word in zip(cells, words, strict=True))
        return f"<tr{style}>{inner}</tr>\n"

    body = "".join(
        row(cells, "td", ' class="chosen"' if k == grid.chosen else "") for k, cells in enumerate(grid.rows)
    )
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
