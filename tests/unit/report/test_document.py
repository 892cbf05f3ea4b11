"""A report in its formats: HTML in a real browser, one page without anything from outside; Markdown and LaTeX."""

from __future__ import annotations

import io
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browser import browser, executable
from matplotlib.axes import Axes

from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.report import figures
from sparsecv_mio.report.document import (
    Commands,
    Document,
    Facts,
    Picture,
    ReportTable,
    Section,
    Sentences,
    draw_svg,
    text_of,
)
from sparsecv_mio.report.layout import DataConsole, print_table, say
from sparsecv_mio.report.record_report import report_of

from .printing import data, printed

VOID = {"meta", "link", "path", "use", "rect"}
SEEN = """(() => {
  const pictures = [...document.querySelectorAll("figure svg")];
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  const links = [...document.querySelectorAll("use")].map(one => one.href.baseVal);
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    pictures: pictures.length,
    drawn: pictures.filter(one => one.getBBox().width > 100 && one.getBoundingClientRect().height > 100).length,
    ids: ids.length - new Set(ids).size,
    dangling: links.filter(link => !document.getElementById(link.slice(1))).length,
    text: getComputedStyle(document.querySelector("figure svg")).color,
    paper: getComputedStyle(document.body).backgroundColor,
  };
})()"""


class Balanced(HTMLParser):
    """Elements that are open; every one must be closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages(record: Record, path: PathRecord) -> list[tuple[str, int]]:
    """A page for records of every kind, and the number of its pictures."""
    fit: FitRecord = fit_one(data(), tau=2, gamma=0.1)
    asked = (record, 6, data()), (path, 1, data()), (fit, 1, None)
    return [(text_of(report_of(one, "a.json", rows), "html"), count) for one, count, rows in asked]


def test_pages_are_well_formed_and_ask_for_nothing(pages: list[tuple[str, int]]) -> None:
    for page, count in pages:
        parser = Balanced()
        parser.feed(page)
        assert parser.open == [] and page.count("<svg ") == count
        assert not re.search(r"""(src|href)=["'](?!#|data:)|@import|<script""", page)
        assert "sparsecv verify a.json" in page and "#3a3f47" not in page


def test_commands_in_sentences_are_code() -> None:
    words = Sentences(("`verify` checks `--proof PROOF`; `<b>` and ` x` of the data are text.",))
    document = Document("title", "answer", (Section("how", (words,)),))
    assert "- `verify` checks `--proof PROOF`; \\`\\<b\\>\\` and \\` x\\` of" in text_of(document, "md")
    page = text_of(document, "html")
    assert "<li><code>verify</code> checks <code>--proof PROOF</code>; `&lt;b&gt;` and ` x` of" in page


def test_words_of_the_data_are_no_markup() -> None:
    bad = '<script>alert("x")</script> & co'
    grid = ReportTable(bad, (bad, "b"), ((bad, "1"),), words=1, chosen=0)
    section = Section(bad, (Sentences((bad,), True), Facts(((bad, bad),)), grid))
    page = text_of(Document(bad, bad, (section,)), "html")
    assert "<script" not in page and page.count("&lt;script&gt;") == 10 and 'class="chosen"' in page


def test_a_browser_shows_it_all(pages: list[tuple[str, int]], tmp_path: Path) -> None:
    program = executable()
    if program is None:
        pytest.skip("no Chromium on this machine: install one, or name it in the variable CHROMIUM")
    files = []
    for place, (text, count) in enumerate(pages):
        files.append((tmp_path / f"{place}.html", count))
        files[-1][0].write_text(text, encoding="utf-8")
    with browser(program, tmp_path / "profile") as page:
        for file, count in files:
            for width, dark in ((400, False), (1400, True)):
                page.size(width, dark=dark)
                page.asked.clear()
                page.open(file)
                seen = page.ask(SEEN)
                assert page.said == [], "something on the console"
                assert {asked for asked in page.asked if not asked.startswith("data:")} == {file.as_uri()}
                assert (seen["pictures"], seen["drawn"]) == (count, count)
                assert seen["overflow"] <= 0 and seen["ids"] == seen["dangling"] == 0
                light = {"text": "rgb(36, 41, 47)", "paper": "rgb(255, 255, 255)"}
                assert ({name: seen[name] for name in light} == light) is not dark
        page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10000


def test_tables_have_as_many_cells_in_every_row(record: Record, path: PathRecord) -> None:
    for one in (record, path):
        text = text_of(report_of(one), "md")
        blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        assert len(blocks) >= 3
        for block in blocks:
            assert len({line.count("|") - line.count("\\|") for line in block.splitlines()}) == 1
        assert "<svg" not in text and "All 9 pairs" not in text


def test_latex_is_balanced_and_rows_fit_their_columns(record: Record, path: PathRecord) -> None:
    for one in (record, path):
        text = text_of(report_of(one), "latex")
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") >= 1
        for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
            rows = [line for line in body.splitlines() if line.endswith(r"\\")]
            assert rows and all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)


def test_words_of_the_data_are_no_markup_in_text() -> None:
    bad = r"a_b & 5% | #1 \ {x} ~ ^ <y> *z*"
    sections = (Section(bad, (Facts(((bad, "1"),)), Sentences((bad,)), ReportTable(bad, (bad,), ((bad,),), 1))),)
    document = Document(bad, bad, (*sections, Section("c", (Commands("sh", (bad,)),))))
    tex = r"a\_b \& 5\% \textbar{} \#1 \textbackslash{} \{x\} \textasciitilde{} \textasciicircum{} "
    tex += r"\textless{}y\textgreater{} {*}z"
    assert text_of(document, "latex").count(tex) == 6
    markdown = text_of(document, "md")
    assert markdown.count(r"a_b \& 5% \| \#1 \\ {x} \~ ^ \<y\> \*z\*") == 8 and f"```sh\n{bad}\n```" in markdown


def test_names_that_look_like_markup_stay_names_in_text() -> None:
    names = ("[2ex]", "*", "_a_", "$x$ per $y$", "https://a.b", "&amp;", "a--b", "\x1b[31mred", "two\nlines")
    table = ReportTable("t", ("feature",), tuple((name,) for name in names), 1)
    latex, markdown = (text_of(Document("d", "a", (Section("s", (table,)),)), kind) for kind in ("latex", "md"))
    rows = [line.strip().removesuffix(r" \\") for line in latex.splitlines() if line.endswith(r"\\")][1:]
    assert rows == ["{[}2ex]", "{*}", r"\_a\_", r"\$x\$ per \$y\$", "https://a.b", r"\&amp;", "a-{}-b", "␛{[}31mred",
                    "two lines"]  # fmt: skip
    cells = [line[2:-2] for line in markdown.splitlines() if line.startswith("| ")][2:]
    assert cells == [r"\[2ex\]", r"\*", r"\_a\_", r"\$x\$ per \$y\$", r"https\://a.b", r"\&amp;", "a--b", r"␛\[31mred",
                     "two lines"]  # fmt: skip


def test_names_stay_as_they_are_in_a_picture_of_a_page() -> None:
    names = ("$a_$ $b_$", "#ffffff", "url(#a", 'id="a', r"c:\1\g<0>", "_under")

    def draw(ax: Axes) -> None:
        ax.set_yticks(range(len(names)), figures.shorten_names(names))

    svg = draw_svg(Picture("p", f"of {names[4]}", (4.0, 3.0), draw))
    texts = [escape(name, quote=False) for name in names]
    assert all(f">{text.replace('_under', ' _under')}</text>" in svg for text in texts)
    assert r'aria-label="of c:\1\g&lt;0&gt;"' in svg and svg.startswith("<svg role=")


def random_cell(text: bool, rng: np.random.Generator) -> str:
    return "some words of text" if text else f"{10.0 ** rng.integers(-9, 12) * rng.random():.{rng.integers(3, 13)}g}"


def test_random_tables_are_never_cut() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        count = int(rng.integers(1, 9))
        columns = {f"head number {k}" if k % 2 else f"x{k}": bool(rng.integers(2)) for k in range(count)}
        rows = [[random_cell(text, rng) for text in columns.values()] for _ in range(3)]
        words = {head for head, text in columns.items() if text}
        width = int(rng.integers(24, 120))
        printed_text = printed(lambda console, c=list(columns), r=rows, w=words: print_table(console, c, r, w), width)  # type: ignore[misc]
        for row in rows:
            for text, cell in zip(columns.values(), row, strict=True):
                assert text or cell in printed_text


def test_names_cannot_control_the_terminal() -> None:
    text = io.StringIO()
    console = DataConsole(file=text, width=60, force_terminal=True, markup=False)
    say(console, "\x1b[31mred\x07 \x9b2J", style="bold")
    print_table(console, ["feature"], [["[bold]\x1b[2J"]], text=["feature"])
    shown = text.getvalue()
    assert "␛[31mred" in shown and "[bold]␛[2J" in shown and "\ufffd2J" in shown
    assert "\x1b[31m" not in shown and "\x1b[2J" not in shown and "\x1b[1m" in shown


def test_long_texts_side_by_side_get_equal_widths() -> None:
    texts = tuple("  ".join(f"{1.5 + k} name{k}" for k in range(count)) for count in (30, 24))
    text = printed(
        lambda console: print_table(console, ("tau", "left", "right"), [(1, *texts)], ("left", "right")), 120
    )
    rows = text.splitlines()
    assert max(map(len, rows)) <= 120 and len(rows) <= 12  # the right one had 18 of 120 characters, and 20 rows
    assert all(f"name{k}" in text for k in range(30))
