"""A report as Markdown and LaTeX."""

from __future__ import annotations

import re

from sparsecv_mio.certificate.record import PathRecord, Record
from sparsecv_mio.report.document import Commands, Document, Facts, Grid, Section, Sentences
from sparsecv_mio.report.markup import latex_of, markdown_of
from sparsecv_mio.report.record_report import report_of


def test_tables_have_as_many_cells_in_every_row(record: Record, path: PathRecord) -> None:
    for one in (record, path):
        text = markdown_of(report_of(one))
        blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        assert len(blocks) >= 3
        for block in blocks:
            assert len({line.count("|") - line.count("\\|") for line in block.splitlines()}) == 1
        assert "<svg" not in text and "All 9 pairs" not in text


def test_latex_is_balanced_and_rows_fit_their_columns(record: Record, path: PathRecord) -> None:
    for one in (record, path):
        text = latex_of(report_of(one))
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") >= 1
        for columns, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
            rows = [line for line in body.splitlines() if line.endswith(r"\\")]
            assert rows and all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)


def test_words_of_the_data_are_no_markup() -> None:
    bad = r"a_b & 5% | #1 \ {x} ~ ^ <y> *z*"
    sections = (Section(bad, (Facts(((bad, "1"),)), Sentences((bad,)), Grid(bad, (bad,), ((bad,),), 1))),)
    document = Document(bad, bad, (*sections, Section("c", (Commands("sh", (bad,)),))))
    tex = r"a\_b \& 5\% | \#1 \textbackslash{} \{x\} \textasciitilde{} \textasciicircum{} \textless{}y\textgreater{} *z"
    assert latex_of(document).count(tex) == 6
    markdown = markdown_of(document)
    assert markdown.count(r"a\_b & 5% \| \#1 \\ {x} \~ ^ \<y\> \*z\*") == 8 and f"```sh\n{bad}\n```" in markdown
