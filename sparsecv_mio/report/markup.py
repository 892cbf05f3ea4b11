"""A report as text: Markdown of everything but the pictures, LaTeX of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparsecv_mio.report.document import Block, Commands, Document, Facts, Grid, Picture, Sentences

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
    return isinstance(block, Grid) and block.folded


def _markdown(block: Block) -> list[str]:
    if isinstance(block, Sentences):
        lead = {True: ["Proved:", ""], False: ["Not proved:", ""], None: []}[block.proved]
        return [*lead, *(f"- {_md(line)}" for line in block.lines)]
    if isinstance(block, Facts):
        return _pipes(("", ""), block.pairs, 1)
    if isinstance(block, Commands):
        return [f"```{block.language}", *block.lines, "```"]
    return [_md(block.caption), "", *_pipes(block.head, block.rows, block.words)] if isinstance(block, Grid) else []


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
            elif isinstance(block, Grid) and not block.folded:
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
