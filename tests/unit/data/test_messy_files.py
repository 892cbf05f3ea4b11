"""Files as people have them: each is read with the options that the message named, or refused in one line."""

from __future__ import annotations

import gzip
import re
import shlex
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.cli.parse import with_dashes
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.declared_options import OPTIONS as DECLARED
from sparsecv_mio.declared_options import TABLE
from sparsecv_mio.errors import BadInput

# text, what the messages name one after the other, X and y in the end
CURED: list[tuple[str, str, str, list[list[float]], list[float]]] = [
    ("a.csv", "a;y\n1;2\n3;4\n", "--sep semicolon", [[1], [3]], [2, 4]),
    ("b.csv", "a\ty\n1\t2\n3\t4\n", "--sep tab", [[1], [3]], [2, 4]),
    ("c.txt", "a,y\n1,2\n3,4\n", "--sep comma", [[1], [3]], [2, 4]),
    ("d.txt", "a\ty\n1\t2\n", "", [[1]], [2]),
    ("e.csv", "a|y\n1|2\n", "--sep pipe", [[1]], [2]),
    ("f.txt", "a y\n1   2\n  3 \t 4 \n", "--sep space", [[1], [3]], [2, 4]),
    ("g.dat", "a;y\n1,5;2\n3;4,25\n", "--sep semicolon --decimal ,", [[1.5], [3]], [2, 4.25]),
    ("h.csv", "a;b;y\n1,5;x;2\n3;y;4\n", "--sep semicolon --encode onehot --decimal ,", [[1.5, 0], [3, 1]], [2, 4]),
    ("i.csv", "# made by hand\na,y\n1,2\n# half way\n3,4\n", "--comment '#'", [[1], [3]], [2, 4]),
    ("j.csv", "% made by hand\na,y\n1,2\n", "--comment %", [[1]], [2]),
    ("k.csv", "#made;by\na;y\n1;2\n", "--comment '#' --sep semicolon", [[1]], [2]),
    ("l.csv", "1.5,2\n3,4\n", "--no-header", [[1.5], [3]], [2, 4]),
    ("m.txt", "1.5 2\n3 4\n", "--sep space --no-header", [[1.5], [3]], [2, 4]),
    ("n.csv", ",a,y\n0,1,2\n1,3,4\n", "--drop 0", [[1], [3]], [2, 4]),
    ("o.csv", "a,y\n1,2\nNA,3\n5,6\n", "--na drop", [[1], [5]], [2, 6]),
    ("p.csv", "a,y\n1,2\n,3\n5,6\n", "--na mean", [[1], [3], [5]], [2, 3, 6]),
    ("q.csv", "a,y\n1,2\n?,3\n5,6\n", "--na drop", [[1], [5]], [2, 6]),
    ("r.csv", "a,y\n1,2\nn/a,3\n5,6\n", "--na mean", [[1], [3], [5]], [2, 3, 6]),
    ("s.csv", "a,y\n1,2\n2,\n5,6\n", "--na drop", [[1], [5]], [2, 6]),
    ("t.csv", "a,b,y\n1,,2\n,4,3\n5,6,6\n", "--na mean", [[1, 5], [3, 4], [5, 6]], [2, 3, 6]),
    ("u.csv", "a,y\n1,2\nnan,3\n5,6\n", "--na drop", [[1], [5]], [2, 6]),
    ("v.csv", "a,y\nyes,2\nno,3\n", "--encode onehot", [[1], [0]], [2, 3]),
    ("w.csv", "a,y\nTRUE,2\nfalse,3\n", "--encode onehot", [[1], [0]], [2, 3]),
    ("x.csv", "a,y\nT,2\nF,3\n", "--encode onehot", [[1], [0]], [2, 3]),
    ("y.csv", "a,y\nred,2\nblue,3\nred,4\n", "--encode onehot", [[1], [0], [1]], [2, 3, 4]),
    ("z.csv", "a,y\nr,2\ng,3\nb,4\n", "--encode onehot", [[0, 0, 1], [0, 1, 0], [1, 0, 0]], [2, 3, 4]),
    ("aa.csv", "a,b,y\nu,1,2\n,2,3\nv,3,4\n", "--na mean --encode onehot",
     [[1, 0, 0, 1], [0, 0, 1, 2], [0, 1, 0, 3]], [2, 3, 4]),
    ("ab.csv", "a,b,y\nu,1,2\n,2,3\nv,3,4\n", "--na drop --encode onehot", [[0, 1], [1, 3]], [2, 4]),
    ("ac.csv", 'a,y\n"1,5",2\n"2,5",3\n', "--decimal ,", [[1.5], [2.5]], [2, 3]),
    ("ad.csv", "é,y\n1,2\n".encode("latin-1").decode("latin-1"), "--encoding latin-1", [[1]], [2]),
    ("ae.csv", "a,y\n1,2\n", "--encoding utf-16", [[1]], [2]),
    ("af.csv", "id,a,y\nr1,1,2\nr2,3,4\n", "--index-col id", [[1], [3]], [2, 4]),
    ("ag.csv", "a,name,y\n1,Ann,2\n3,Bo,4\n", "--drop 1", [[1], [3]], [2, 4]),
    ("ah.csv", "a,y\n 1 , 2 \n 3 ,4\n", "", [[1], [3]], [2, 4]),
    ("ai.csv", "a,y\r\n1,2\r\n3,4\r\n", "", [[1], [3]], [2, 4]),
    ("aj.csv", "\ufeffa,y\n1,2\n", "", [[1]], [2]),
    ("ak.csv", "\n\na,y\n\n1,2\n\n\n3,4\n\n", "", [[1], [3]], [2, 4]),
    ("al.csv", 'a,"y"\n"1",2\n3,"4"\n', "", [[1], [3]], [2, 4]),
    ("am.csv", "a,y\n1e-3,2E2\n+.5,-4.\n", "", [[0.001], [0.5]], [200, -4]),
]  # fmt: skip
REFUSED: list[tuple[str, str, str, str]] = [
    ("a.csv", "a,y\n1,2\n3,4,5\n", "", "has 3 cells in line 3"),
    ("b.csv", "a,y\n1,2\n3\n", "", "has 1 cell in line 3"),
    ("c.csv", "a,y\n1,2\n3,inf\n", "--na drop", "column 'y' holds inf in row 2 (line 3); replace it"),
    ("d.csv", "a,y\n1,2\n3,4\n5x,6\n7,8\n", "--encode onehot", "in row 3 (line 4); text in 1 of 4 cells; correct them"),
    ("e.csv", "a,y\n1,2\n,3\n", "--encode onehot", "column 'a' is empty in row 2"),
    ("f.csv", "a,b,y\n,1,2\n,2,3\n", "--na mean", "column 'a' is empty in every row; give --drop a"),
    ("g.csv", "a,b,y\n,1,2\n3,,3\n", "--na drop", "no row is left"),
    ("h.csv", "a,y\n" + "".join(f"w{k},{k}\n" for k in range(60)), "--encode onehot", "60 different text values"),
    ("i.csv", "a,y\n1,red\n2,blue\n3,green\n", "--encode onehot", "has 3 text values; a target of more than two"),
    ("j.csv", "a,y\nu,1\n,2\nv,3\n", "--na mean --order a=u<v", "--na mean does not impute; give --na drop"),
    ("k.csv", "a,a=v,y\nu,1,1\nv,2,2\n", "--encode onehot", "with the name 'a=v'"),
    ("l.csv", "a,y\n1,2\n", "--sep ab", "--sep: 'ab' is not a separator"),
    ("m.csv", "a,y\n1,2\n", "--decimal ;", "--decimal: ';' is not a decimal mark"),
    ("n.csv", "a,y\n1,2\n", "--sep comma --decimal ,", "--decimal: ',' is already the separator"),
    ("o.csv", "a,y\n1,2\n", "--comment ##", "--comment: '##' cannot begin a comment"),
    ("p.csv", "a,y\n1,2\n", "--encoding klingon", "--encoding: 'klingon' is unknown"),
    ("q.csv", "a,y\n1,2\n", "--na mode", "--na: unknown word 'mode'"),
    ("r.csv", "a,y\n1,2\n", "--encode target", "--encode: unknown word 'target'"),
    ("s.csv", "a,y\n1,2\n", "--index-col 7", "index column 7 is neither a name nor one of the positions 0..1"),
    ("t.csv", "a,y\n1,2\n", "--drop 9", "dropped column 9 is neither a name nor one of the positions 0..1"),
    ("u.csv", "a,a,y\n1,2,3\n", "", "column name 'a' is in the header more than once"),
    ("v.xlsx", "a,y\n1,2\n", "", "in Python give sc.solve(pd.read_excel('"),
    ("w.csv", "a,y\n1.234,5,2\n", "", "has 3 cells in line 2"),
    ("x.csv", "a,y\n$5,2\n6,3\n7,4\n", "--encode onehot", "column 'a' holds text '$5'"),
]

TABLE_FLAGS = [DECLARED[name].flag for name in TABLE]


def options_of(text: str) -> dict[str, object]:
    """Options as the command line writes them, as the keywords of `read_dataset`."""
    words, found = shlex.split(text), dict[str, object]()
    while words:
        name = words.pop(0).removeprefix("--").replace("-", "_")
        if name == "no_header":
            found["header"] = False
        elif name == "drop":
            found["drop"] = [words.pop(0)]
        else:
            found[name] = words.pop(0)
    return found


@pytest.mark.parametrize(("name", "text", "options", "X", "y"), CURED, ids=[case[0] for case in CURED])
def test_read_with_the_options_that_the_messages_name(
    tmp_path: Path, name: str, text: str, options: str, X: list[list[float]], y: list[float]
) -> None:
    path, given = tmp_path / name, options_of(options)
    path.write_bytes(text.encode(str(given.get("encoding", "utf-8"))))
    target = "y" if given.get("header", True) else 1
    tried: dict[str, object] = {}
    left = re.findall(r"--[a-z-]+(?: [^-]\S*)?", options)
    while left:
        with pytest.raises(BadInput) as caught:
            read_dataset(path, target, **tried)  # type: ignore[arg-type]
        message = with_dashes(str(caught.value), TABLE_FLAGS)
        assert "\n" not in message
        named = [one for one in left if one in message or one.startswith(("--drop", "--index-col id", "--encoding"))]
        assert named, f"{message} names none of {left}"
        for one in named:
            tried |= options_of(one)
            left.remove(one)
    data = read_dataset(path, target, **tried)  # type: ignore[arg-type]
    assert data.X.tolist() == X and data.y.tolist() == y
    assert (data.reading is None) == (not set(given) - {"drop"})


@pytest.mark.parametrize(("name", "text", "options", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refused_in_one_line(tmp_path: Path, name: str, text: str, options: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_dataset(path, "y", **options_of(options))  # type: ignore[arg-type]
    assert message in with_dashes(str(caught.value), TABLE_FLAGS) and "\n" not in str(caught.value)


def test_of_many_bad_columns_the_number_of_the_others_is_said(tmp_path: Path) -> None:
    names = "abcdefghijk"
    (tmp_path / "t.csv").write_text(f"{','.join(names)},y\n" + f"{'u,' * 11}1\n" + f"{',' * 11}2\n{'v,' * 11}3\n")
    with pytest.raises(BadInput, match="^11 columns have cells") as caught:
        read_dataset(tmp_path / "t.csv", "y")
    assert "; `sparsecv inspect`" in str(caught.value) and ", and 3 more columns;" in str(caught.value)
    assert all(f"{name!r} holds text" in str(caught.value) for name in names[:8])


def test_all_bad_columns_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("a,b,c,d,y\n1,u,,1,1\nNA,v,2,1,2\n,u,inf,1,3\n")
    expected = (
        "3 columns have cells that are not numbers: 'b' holds text 'u' in row 1 (line 2) "
        '(3 cells; give encode="onehot", or drop=["b"]), '
        "'c' is empty in row 1 (line 2) (1 cell; give na=\"drop\" or na=\"mean\"), 'a' has the missing-value code 'NA' "
        'in row 2 (line 3) (2 cells; give na="drop" or na="mean", or keep_default_na=False if \'NA\' is a text value), '
        "'c' holds inf in row 3 (line 4) (1 cell; replace it by a finite number, or leave the "
        "row out); `sparsecv inspect` proposes options for the whole file"
    )
    with pytest.raises(BadInput) as caught:
        read_dataset(path, "y")
    assert str(caught.value) == expected
    frame = pd.read_csv(path, keep_default_na=True)
    from_frame = partial(Dataset.from_frame, frame, "y")
    for read in (from_frame, partial(parquet, frame, tmp_path)):
        with pytest.raises(BadInput) as caught:
            read()
        of_file = expected.partition("; `sparsecv inspect`")[0]
        with_labels = re.sub(r" \(line (\d)\)", partial(label_of_line, read is from_frame), of_file)
        assert str(caught.value) == with_labels.replace("has the missing-value code 'NA'", "is empty").replace(
            'give na="drop" or na="mean", or keep_default_na=False if \'NA\' is a text value',
            'most of its cells are empty; give drop=["a"], or na="mean"',
        )


def label_of_line(is_frame: bool, line: re.Match[str]) -> str:
    return f" (index {int(line[1]) - 2})" if is_frame else ""


def parquet(frame: pd.DataFrame, folder: Path) -> Dataset:
    frame.to_parquet(folder / "bad.parquet")
    return read_dataset(folder / "bad.parquet", "y")


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zip", "tsv.gz"])
def test_packed_files(tmp_path: Path, kind: str) -> None:
    between = "\t" if kind.startswith("tsv") else ","
    text, path = f"a{between}y\n1{between}2\n3{between}4\n".encode(), tmp_path / f"data.{kind}"
    if kind.endswith("gz"):
        path.write_bytes(gzip.compress(text))
    else:
        with zipfile.ZipFile(path, "w") as store:
            store.writestr("data.csv", text)
    data = read_dataset(path, "y")
    assert data.X.tolist() == [[1.0], [3.0]] and data.reading is None
    assert read_dataset(path, "y", na="mean").X.tolist() == [[1.0], [3.0]]
    if kind.endswith("gz"):
        path.write_bytes(gzip.compress(text)[:-9])
        with pytest.raises(BadInput, match="cannot be unpacked"):
            read_dataset(path, "y")


def test_options_that_a_file_cannot_have(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=np.arange(3.0))
    with pytest.raises(BadInput, match="na: requires a text table or Parquet"):
        read_dataset(tmp_path / "a.npz", "y", na="drop")
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="sep: requires a text table"):
        read_dataset(tmp_path / "a.parquet", "y", sep=";")
