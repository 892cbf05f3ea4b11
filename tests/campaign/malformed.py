"""Files that something is wrong with, by name: text, packed text, NPZ, Parquet, svmlight, records, checkpoints."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GOOD = "a,b,y\n" + "".join(f"{i},{(i * 7) % 5},{(i * 3) % 7}\n" for i in range(12))
X, Y = np.arange(24.0).reshape(12, 2) ** 1.5, np.sin(np.arange(12.0))


# cells of a column of numbers, and headers: nothing, words, marks, numbers of other writings, what breaks a line
CELLS = (
    "", "   ", "abc", "nan", "NA", "inf", "-Infinity", "1e999", "-1e999", "0x1F", "0o17", '"1,234"', "1.234.567",
    "12%", "$12", "2024-01-31", "12:30", "True", "1+2j", "1/2", "−3", "١٢", "１２", "null", "-", ".", "+", "--3", "e5",
    "1_000", '""', '"x"', '"3', '1"2', "\x00", "1\t2", "=1+1", "9" * 400, "0." + "1" * 5000, "x" * 100_000, "🙂",
    "\u202e12", "1\u200b2", "\x07", "\\", "[1]",
)  # fmt: skip
HEADERS = (
    "a,a,y", "a,,y", "a, ,y", ",,", "a,y,y", "a,b,c", "a,y", "a,b,y,d,e", "1,2,3", '"a,b,y', '"a\nb",b,y',
    '"a,b",c,y', "--tau,b,y", "a\x00,b,y", "n" * 100_000 + ",b,y", "a\\ud800,b,y", "", "   ", "# a,b,y",
    "[bold]a,b,y",
)  # fmt: skip


def text_files() -> dict[str, bytes]:
    """Comma-separated text."""
    rows = GOOD.splitlines()
    made = {f"cell {i}": "\n".join([*rows[:4], f"{cell},1,2", *rows[5:]]).encode() for i, cell in enumerate(CELLS)}
    made |= {f"header {i}": "\n".join([head, *rows[1:]]).encode() for i, head in enumerate(HEADERS)}
    whole = {
        "empty": b"",
        "one byte": b"a",
        "new line": b"\n",
        "new lines": b"\n" * 1000,
        "blanks": b"   ",
        "BOM only": b"\xef\xbb\xbf",
        "header only": b"a,b,y\n",
        "header without end": b"a,b,y",
        "one row": b"a,b,y\n1,2,3\n",
        "two rows": b"a,b,y\n1,2,3\n2,1,4\n",
        "short row": GOOD.encode() + b"1,2\n",
        "long row": GOOD.encode() + b"1,2,3,4\n",
        "empty rows": GOOD.replace("\n", "\n\n").encode(),
        "trailing commas": GOOD.replace("\n", ",\n").encode(),
        "leading commas": GOOD.replace("\n", "\n,").encode(),
        "semicolons": GOOD.replace(",", ";").encode(),
        "tabs": GOOD.replace(",", "\t").encode(),
        "mixed": GOOD.replace(",", ";", 9).encode(),
        "old Mac": GOOD.replace("\n", "\r").encode(),
        "UTF-16": GOOD.encode("utf-16"),
        "UTF-16 LE": GOOD.encode("utf-16-le"),
        "UTF-32": GOOD.encode("utf-32"),
        "Latin-1": GOOD.replace("a,b", "ä,ö").encode("latin-1"),
        "random": bytes(range(256)) * 40,
        "PDF": b"%PDF-1.7\n%\xe2\xe3\n1 0 obj\n",
        "HTML": b"<!doctype html><table><tr><td>1</td></tr></table>",
        "JSON": b'[{"a": 1, "y": 2}]',
        "executable": b"\x7fELF\x02\x01\x01" + b"\x00" * 200,
        "spreadsheet": b"PK\x03\x04" + b"\x00" * 60,
        "form feed": GOOD.encode() + b"\x0c",
        "end of file mark": GOOD.encode() + b"\x1a",
        "half a character": GOOD.encode() + b"1,2,\xc3\n",
        "NULs": b"\x00" * 4096,
        "constant target": b"a,y\n" + b"".join(b"%d,3\n" % i for i in range(9)),
        "constant column": b"a,y\n" + b"".join(b"3,%d\n" % i for i in range(9)),
        "target only": b"y\n" + b"".join(b"%d\n" % i for i in range(9)),
        "equal rows": b"a,b,y\n" + b"1,2,3\n" * 9,
        "quotes never closed": b'a,b,y\n"1,2,3\n' + b"4,5,6\n" * 50,
        "huge numbers": b"a,y\n" + b"".join(b"%de300,%d\n" % (i, i) for i in range(9)),
        "tiny numbers": b"a,y\n" + b"".join(b"%de-320,%d\n" % (i, i) for i in range(9)),
        "many columns": (",".join(f"c{j}" for j in range(3000)) + "\n1,2\n").encode(),
        "comments only": b"# a\n# b\n",
        "git conflict": b"<<<<<<< HEAD\n" + GOOD.encode() + b"=======\n>>>>>>> x\n",
    }
    return {
        f"{name}.csv": content for name, content in (made | {f"file: {name}": c for name, c in whole.items()}).items()
    }


def packed_files() -> dict[str, bytes]:
    """Text that is packed, or says so."""
    good = gzip.compress(GOOD.encode(), mtime=0)

    def zipped(members: dict[str, bytes], **changes: int) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as store:
            for name, content in members.items():
                store.writestr(name, content)
        found = bytearray(buffer.getvalue())
        for word, at in (("flag", found.find(b"PK\x01\x02") + 8), ("method", found.find(b"PK\x01\x02") + 10)):
            if word in changes:
                found[at : at + 2] = struct.pack("<H", changes[word])
        return bytes(found)

    one = zipped({"t.csv": GOOD.encode()})
    made = {
        "empty.csv.gz": b"",
        "header of gzip.csv.gz": good[:10],
        "half.csv.gz": good[: len(good) // 2],
        "no end.csv.gz": good[:-8],
        "wrong sum.csv.gz": good[:-8] + bytes(8),
        "plain text.csv.gz": GOOD.encode(),
        "twice packed.csv.gz": gzip.compress(good, mtime=0),
        "nothing inside.csv.gz": gzip.compress(b"", mtime=0),
        "rest.csv.gz": good + b"rest",
        "flipped.csv.gz": good[:20] + bytes([good[20] ^ 255]) + good[21:],
        "zlib.csv.gz": zlib.compress(GOOD.encode()),
        "gzip.csv": good,
        "zip.csv": one,
        "empty.csv.zip": b"",
        "end only.csv.zip": zipped({}),
        "half.csv.zip": one[: len(one) // 2],
        "two.csv.zip": zipped({"a.csv": b"1", "b.csv": b"2"}),
        "folder.csv.zip": zipped({"a/": b""}),
        "picture.zip": zipped({"a.png": b"x"}),
        "secret.csv.zip": zipped({"t.csv": GOOD.encode()}, flag=1),
        "odd method.csv.zip": zipped({"t.csv": GOOD.encode()}, method=99),
        "up.csv.zip": zipped({"../../t.csv": GOOD.encode()[:9]}),
        "gzip inside.zip": zipped({"t.csv.gz": good}),
        "text.csv.zip": GOOD.encode(),
        "flipped.csv.zip": one[:40] + bytes([one[40] ^ 255]) + one[41:],
        "xz.csv.xz": b"\xfd7zXZ\x00",
        "bz2.csv.bz2": b"BZh9",
    }
    return made


def npz_files() -> dict[str, bytes]:
    """Archives of arrays."""

    def stored(**arrays: Any) -> bytes:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    def raw(header: bytes, body: bytes = b"") -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as store:
            store.writestr("X.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body)
            store.writestr("y.npy", b"")
        return buffer.getvalue()

    good = stored(X=X, y=Y)
    words = {
        "empty": b"",
        "text": GOOD.encode(),
        "half": good[: len(good) // 2],
        "npy": b"\x93NUMPY" + bytes(100),
        "no X": stored(y=Y),
        "no y": stored(X=X),
        "nothing": stored(),
        "flat X": stored(X=X[:, 0], y=Y),
        "deep X": stored(X=X[None], y=Y),
        "wide y": stored(X=X, y=np.stack([Y, Y])),
        "number y": stored(X=X, y=np.float64(3)),
        "rows differ": stored(X=X, y=Y[:-1]),
        "objects": stored(X=np.array([[{}], [1]], dtype=object), y=Y[:2]),
        "words": stored(X=X.astype(str), y=Y),
        "complex": stored(X=X + 1j, y=Y),
        "dates": stored(X=X.astype("datetime64[s]"), y=Y),
        "records": stored(X=np.zeros((12, 2), dtype=[("a", "f8")]), y=Y),
        "no rows": stored(X=X[:0], y=Y[:0]),
        "no columns": stored(X=X[:, :0], y=Y),
        "NaN": stored(X=np.where(X > 3, np.nan, X), y=Y),
        "inf y": stored(X=X, y=np.where(Y > 0.5, np.inf, Y)),
        "names twice": stored(X=X, y=Y, names=["a", "a"]),
        "few names": stored(X=X, y=Y, names=["a"]),
        "names are numbers": stored(X=X, y=Y, names=[1, 2]),
        "name y": stored(X=X, y=Y, names=["y", "b"]),
        "empty names": stored(X=X, y=Y, names=["", ""]),
        "bytes as names": stored(X=X, y=Y, names=[b"a", b"b"]),
        "deep names": stored(X=X, y=Y, names=[["a", "b"]]),
        "huge shape": raw(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000000), }\n"),
        "negative shape": raw(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }\n"),
        "no dict": raw(b"[]\n"),
        "open dict": raw(b"{'descr': \n"),
        "code in the header": raw(b"{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (1, 1)}\n"),
        "long header": raw(b"{" + b" " * 60000 + b"}"),
        "unknown type": raw(b"{'descr': '<q9', 'fortran_order': False, 'shape': (1, 1)}\n"),
        "no body": raw(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2)}\n"),
        "masked": stored(X=np.ma.masked_array(X, X > 3).filled(np.nan), y=Y),
        "void": stored(X=np.zeros((12, 2), dtype="V8"), y=Y),
        "flipped": good[:200] + bytes([good[200] ^ 255]) + good[201:],
    }
    return {f"{name}.npz": content for name, content in words.items()}


def parquet_files() -> dict[str, bytes]:
    """Parquet tables."""

    def stored(**columns: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        return buffer.getvalue()

    good, y = stored(a=X[:, 0], b=X[:, 1], y=Y), list(range(12))
    words = {
        "empty": b"",
        "magic": b"PAR1",
        "half": good[: len(good) // 2],
        "no end": good[:-4],
        "text": GOOD.encode(),
        "flipped": good[:60] + b"\xff" * 9 + good[69:],
        "no length": good[:-8] + b"\xff\xff\xff\xffPAR1",
        "lists": stored(a=[[1]] * 12, y=y),
        "structs": stored(a=[{"q": 1}] * 12, y=y),
        "words": stored(a=list("abcdefghijkl"), y=y),
        "nulls": stored(a=[None] * 12, y=y),
        "some nulls": stored(a=[1, None] * 6, y=y),
        "flags": stored(a=[True, False] * 6, y=y),
        "bytes": stored(a=[b"x"] * 12, y=y),
        "no rows": stored(a=pa.array([], pa.float64()), y=pa.array([], pa.float64())),
        "no columns": stored(),
        "target only": stored(y=y),
        "NaN": stored(a=[float("nan")] * 12, y=y),
        "infinite": stored(a=[float("inf")] * 12, y=y),
        "days": stored(a=pa.array(y, pa.date32()), y=y),
        "moments": stored(a=pa.array(y, pa.timestamp("ns")), y=y),
        "times": stored(a=pa.array(y, pa.duration("s")), y=y),
        "decimals": stored(a=pa.array(y, pa.decimal128(38, 2)), y=y),
        "dictionary": stored(a=pa.array(["u", "v"] * 6).dictionary_encode(), y=y),
        "words as target": stored(a=y, y=list("abcdefghijkl")),
        "big whole numbers": stored(a=pa.array([2**63 + i for i in y], pa.uint64()), y=y),
    }
    return {f"{name}.parquet": content for name, content in words.items()}


def svmlight_files() -> dict[str, bytes]:
    """Text by index and value."""
    words = {
        "empty": "",
        "comment": "# only\n",
        "no features": "1\n2\n3\n",
        "no colon": "1 1 2\n",
        "no value": "1 1:\n",
        "no index": "1 :2\n",
        "index 0": "1 0:2 1:3\n2 0:1\n",
        "negative index": "1 -1:2\n",
        "huge index": "1 1000000000000:2\n2 1:3\n",
        "descending": "1 3:1 1:2\n2 1:1\n3 2:2\n",
        "twice": "1 1:1 1:2\n2 1:1\n",
        "word": "1 1:x\n",
        "word as target": "a 1:2\n",
        "NaN": "1 1:nan\n2 1:1\n3 1:2\n",
        "inf": "inf 1:1\n2 1:3\n",
        "query": "1 qid:1 1:2\n2 qid:1 1:3\n3 qid:2 1:4\n",
        "two targets": "1,2 1:3\n",
        "fraction as index": "1 1.5:2\n",
        "binary": "\x00\x01\x02",
        "long line": "1 " + " ".join(f"{j}:1" for j in range(1, 20_000)) + "\n",
    }
    return {f"{name}.svm": content.encode() for name, content in words.items()}


def records(text: str) -> dict[str, bytes]:
    """A record that is right, spoilt."""
    whole = json.loads(text)

    def changed(change: Callable[[dict[str, Any]], Any]) -> bytes:
        copy = json.loads(text)
        change(copy)
        return json.dumps(copy).encode()

    made: dict[str, bytes] = {f"first {part} tenths": text[: len(text) * part // 10].encode() for part in range(10)}
    made |= {f"without {key}": changed(lambda one, key=key: one.pop(key)) for key in whole if key not in ("mae",)}
    for key in ("gamma", "tau", "table", "support", "status", "schema", "folds", "request"):
        for name, value in {"null": None, "word": "x", "list": [], "number": 1e400, "object": {}}.items():
            if value != whole[key]:
                made[f"{key} is {name}"] = changed(lambda one, key=key, value=value: one.update({key: value}))
    made |= {
        "no JSON": b"hello",
        "list": b"[]",
        "number": b"3",
        "deep": b"[" * 100_000,
        "deep object": b'{"a":' * 50_000,
        "two": (text * 2).encode(),
        "UTF-16": text.encode("utf-16"),
        "BOM": b"\xef\xbb\xbf" + text.encode(),
        "NUL": text.encode() + b"\x00",
        "half a character": text.encode()[:-2] + b"\xc3",
        "unknown schema": changed(lambda one: one.update(schema="sparsecv/99")),
        "NaN": text.replace(repr(whole["gamma"]), "NaN").encode(),
        "long number": text.replace(repr(whole["gamma"]), "1" * 5000).encode(),
        "unknown field": changed(lambda one: one.update(extra=1)),
    }
    return {f"{name}.json": content for name, content in made.items()}
