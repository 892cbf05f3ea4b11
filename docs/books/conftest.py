"""Pages whose data are no files of the repository: tests/unit/test_books.py runs them, by hand."""

collect_ignore = ["birth_weight.md", "heart_disease.md"]
