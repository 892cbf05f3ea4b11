"""Files are held to their bytes; designs may have rows of validation."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.batch.sources import digest_of, sources_of
from sparsecv_mio.errors import BadInput


def test_rows_of_validation_may_be_as_many() -> None:
    table = {"design": "toeplitz", "n": [10, 12], "p": 3, "support": 1, "validation": "n"}
    assert [source.load().n for source in sources_of(table, Path())] == [20, 24]
    with pytest.raises(BadInput, match="validation .or the word n. are whole numbers"):
        list(sources_of({**table, "validation": "m"}, Path()))


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,c,y\n1,u,2\n2,v,1\n")
    (source,) = sources_of({"file": "a.csv", "target": "y", "drop": ["c"]}, tmp_path)
    assert source.name == "a" and source.load().names == ("x",)
    (other,) = sources_of({"file": "a.csv", "target": "y", "encode": "onehot"}, tmp_path)
    assert other.digest != source.digest and other.load().names == ("x", "c=v")
    path.write_text("x,c,y\n1,u,2\n2,v,3\n")
    with pytest.raises(BadInput, match="is not what it was"):
        sources_of({"file": "a.csv"}, tmp_path)
        source.load("5")
        source.load("column:c")
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        digest_of(source.spec)


def test_bundled_data() -> None:
    (source,) = sources_of({"sklearn": "linnerud"}, Path())
    assert source.load().n == 20 and source.load().p == 3


def test_lists_of_files_and_targets_by_pattern(tmp_path: Path) -> None:
    for name in ("a1", "a2", "b[1]"):
        (tmp_path / f"{name}.csv").write_text("x,y,z\n1,2,3\n2,1,4\n")

    def goals(**table: object) -> dict[str, object]:
        return {one.name: dict(one.spec).get("target") for one in sources_of(table, tmp_path)}

    assert goals(file=["b[1].csv", "a*.csv", "a1.csv"], target="y") == {"b[1]": "y", "a1": "y", "a2": "y"}
    assert goals(file="*.csv", target={"a2": "z", "*": "y"}) == {"a1": "y", "a2": "z", "b[1]": "y"}
    assert goals(file="a*.csv", target={"*": "y", "a2": 0}) == {"a1": "y", "a2": 0}
    with pytest.raises(BadInput, match="target names no column of 'a1': add it, or one for all others"):
        goals(file="a*.csv", target={"a2": "z"})
