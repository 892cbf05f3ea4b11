"""How numbers are written: a file gives the right numbers or a refusal in one line, never a plausible wrong table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.cli.parse import with_dashes
from sparsecv_mio.data.columns import is_unreadable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.number_format import NumberFormat, parse_texts
from sparsecv_mio.data.readers import read_dataset, read_new_rows
from sparsecv_mio.data.reading_options import STRICT, Applied, Reading, feature_names
from sparsecv_mio.data.table_facts import inspect_file
from sparsecv_mio.declared_options import OPTIONS as DECLARED
from sparsecv_mio.declared_options import TABLE
from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Encode

from .files import FRAME, NAMES, X, Y, refused, write

RNG = np.random.default_rng(26)
ROWS = 30
AGE = RNG.integers(20, 60, ROWS).astype(float)
SMALL = RNG.integers(2, 90, ROWS) / 10.0 + 0.05  # two decimals each
SMALL = np.array([float(f"{value:.2f}") for value in SMALL])
WHOLE = np.concatenate([[1078.0, 576.0, 233.0, 3999.0], RNG.integers(200, 4000, ROWS - 4)])
MONEY = np.round(np.concatenate([[-2750.5, 12.25], RNG.uniform(-3000.0, 2e6, ROWS - 2)]), 2)
LARGE = RNG.integers(10**6, 10**8, ROWS).astype(float)
THREE = np.round(RNG.uniform(1.001, 900.0, ROWS), 3)
THOUSAND = np.array([float(f"{7.0 * value:.3f}") for value in THREE])
TARGET = np.concatenate([[1200.0, 345.0], (15.0 * AGE + np.round(WHOLE / 7.0))[2:]])
Spell = Callable[[float], str]

TABLE_FLAGS = [DECLARED[name].flag for name in TABLE]


def spelled(point: str, group: str, digits: int = 0) -> Spell:
    """Spell numbers with these marks."""
    return lambda value: f"{value:,.{digits}f}".replace(",", "g").replace(".", point).replace("g", group)


PLAIN, US, EU, SWISS = spelled(".", ""), spelled(".", ","), spelled(",", "."), spelled(".", "'")
BLANK, NARROW, FIXED = spelled(",", " ", 2), spelled(",", "\u202f"), spelled(",", "\u00a0", 2)
CURLY = spelled(".", "\u2019")


def file_of(columns: dict[str, tuple[Sequence[float], Spell]], sep: str = ",", end: str = "\n") -> str:
    """Return a text table; cells that hold the separator are quoted, as every program does."""
    cells = [[spell(float(v)) for v in values] for values, spell in columns.values()]
    rows = [sep.join(f'"{cell}"' if sep in cell else cell for cell in row) for row in zip(*cells, strict=True)]
    return end.join([sep.join(columns), *rows, ""])


def table(spell: Spell, values: Sequence[float] = WHOLE, target: Spell = PLAIN, **how: str) -> str:
    return file_of({"age": (AGE, PLAIN), "b": (values, spell), "y": (TARGET, target)}, **how)


TWO, THREE_EU = spelled(".", "", 2), spelled(",", ".", 3)
US2, EU2, COMMA2 = spelled(".", ",", 2), spelled(",", ".", 2), spelled(",", "", 2)

# text, options with which it reads, the numbers of column b
READ: dict[str, tuple[str, str, Sequence[float]]] = {
    "quoted thousands": (table(US), "--thousands ,", WHOLE),
    "thousands and cents": (table(US2, MONEY), "--thousands ,", MONEY),
    "the target": (table(PLAIN, target=US), "--thousands ,", WHOLE),
    "tabs": (table(US2, MONEY, sep="\t"), "--sep tab --thousands ,", MONEY),
    "BOM": ("\ufeff" + table(US2, MONEY), "--thousands ,", MONEY),
    "exponents beside": (table(lambda v: f"{v:.3e}" if v > 1e6 else US2(v), MONEY), "--thousands ,",
                         [float(f"{v:.3e}") if v > 1e6 else v for v in MONEY]),
    "plus signs": (table(lambda v: f"{v:+,.2f}", MONEY), "--thousands ,", MONEY),
    "blanks around": (table(lambda v: f" {v:,.2f} ", MONEY), "--thousands ,", MONEY),
    "NA words": (table(lambda v: "NA" if v == WHOLE[3] else US(v)), "--thousands , --na drop", np.delete(WHOLE, 3)),
    "European": (table(EU2, MONEY, sep=";"), "--sep ; --decimal , --thousands .", MONEY),
    "European in commas": (table(EU2, MONEY), "--decimal , --thousands .", MONEY),
    "decimal commas": (table(COMMA2, SMALL, sep=";"), "--sep ; --decimal ,", SMALL),
    "decimal commas quoted": (table(COMMA2, SMALL), "--decimal ,", SMALL),
    "three decimals, said": (table(THREE_EU, THREE, sep=";"), "--sep ; --decimal , --thousands none", THREE),
    "three decimals and larger": (table(THREE_EU, THOUSAND, sep=";"), "--sep ; --decimal , --thousands .", THOUSAND),
    "three decimals, points": (table(spelled(".", "", 3), THREE), "--thousands none", THREE),
    "three decimals beside others": (
        file_of({"age": (SMALL, TWO), "b": (WHOLE / 1000.0, lambda v: f"{v:g}"), "y": (TARGET, PLAIN)}), "",
        WHOLE / 1000.0,
    ),
    "apostrophes": (table(SWISS), "--thousands apostrophe", WHOLE),
    "Swiss and cents": (table(spelled(".", "'", 2), MONEY, sep=";"), "--sep ; --thousands apostrophe", MONEY),
    "blanks": (table(BLANK, MONEY, sep=";"), "--sep ; --decimal , --thousands space", MONEY),
    "narrow blanks": (table(NARROW, LARGE), "--thousands space", LARGE),
    "points said": (table(EU, sep=";"), "--sep ; --thousands none", [v / 1000.0 if v >= 1000.0 else v for v in WHOLE]),
    "two columns, one of them clear": (
        file_of({"a": (LARGE, US), "b": (WHOLE, US), "y": (TARGET, PLAIN)}), "--thousands ,", WHOLE
    ),
    "a column with decimals makes it clear": (
        file_of({"a": (SMALL, TWO), "b": (WHOLE, US), "y": (TARGET, PLAIN)}), "--thousands ,", WHOLE
    ),
}  # fmt: skip
# text, options, what the one line says
BOUNDED = "a bound, such as a detection limit, is not a number"
OTHER = "write plain numbers, such as -1234.5"
AMBIGUOUS = "is ambiguous; give "
REFUSED: dict[str, tuple[str, str, str]] = {
    "1,078 and 576": (table(US), "", "give --thousands , (1078) or --decimal , and --thousands none (1.078)"),
    "three digits behind every point": (table(spelled(".", "", 3), THREE), "", AMBIGUOUS),
    "1,078 and 576, read as decimals": (table(US), "--decimal ,", AMBIGUOUS),
    "1,078 and 576 in semicolons": (table(US, sep=";"), "--sep ; --decimal ,", AMBIGUOUS),
    "1.078 and 576 in semicolons": (table(EU, sep=";"), "--sep ;", AMBIGUOUS),
    "1.078 and 576 and decimal commas": (table(EU, sep=";"), "--sep ; --decimal ,", "--thousands . (1078) or"),
    "whole thousands": (table(US, 1000.0 * AGE), "--decimal ,", AMBIGUOUS),
    "beside decimal commas": (
        file_of({"a": (SMALL, COMMA2), "b": (WHOLE, US), "y": (TARGET, PLAIN)}), "--decimal ,", "column 'b': "
    ),
    "the target as decimals": (table(PLAIN, target=US), "--decimal ,", "column 'y': "),
    "encoded": (table(US), "--encode onehot", "give --thousands , (1078) or"),
    "encoded though clear": (table(US2, MONEY), "--encode onehot", "give --thousands ,"),
    "both marks at once": (table(lambda v: US(v) if v > 3000 else f"{v / 7:.1f}".replace(".", ",")), "--thousands ,",
                           OTHER),
    "1,078 and 1,5, undecided": (table(lambda v: US(v) if v > 3000 else "1,5"), "", "give --decimal ,"),
    "1,5 and a word": (table(lambda v: "k.A." if v < 500 else f"{v / 10:.1f}".replace(".", ",")), "",
                       "give --decimal ,"),
    "groups of two": (table(lambda v: f"{v:.0f}"[:-2] + "," + f"{v:.0f}"[-2:]), "--thousands ,", OTHER),
    "groups of Indian lakhs": (table(lambda v: f"12,{v / 100:02.0f},{v:04.0f}"[:9]), "", OTHER),
    "a leading zero": (table(lambda v: f"0,{v:04.0f}"[:5]), "--thousands ,", OTHER),
    "percent": (table(lambda v: f"{v / 100:.0f}%"), "", OTHER),
    "percent encoded": (table(lambda v: f"{v % 7:.0f}%"), "--encode onehot", OTHER),
    "percent in the target": (table(PLAIN, target=lambda v: f"{v:.0f}%"), "", OTHER),
    "dollars": (table(lambda v: f"${v:,.0f}"), "", OTHER),
    "dollars encoded": (table(lambda v: f"${v % 5:.0f}"), "--encode onehot", OTHER),
    "euros behind": (table(lambda v: f"{v:.0f} \u20ac"), "", OTHER),
    "pounds among numbers": (table(lambda v: f"\u00a3{v:.0f}" if v > 3000 else f"{v:.0f}"), "", OTHER),
    "below a limit": (table(lambda v: "<500" if v < 500 else f"{v:.0f}"), "--encode onehot", BOUNDED),
    "above a limit": (table(lambda v: ">3000" if v > 3000 else f"{v:.0f}"), "", BOUNDED),
    "parentheses": (table(lambda v: f"({-v:,.0f})" if v < 0 else f"{v:,.0f}", MONEY), "--thousands ,", OTHER),
    "a minus behind": (table(lambda v: f"{-v:.0f}-" if v < 0 else f"{v:.0f}", MONEY), "", OTHER),
    "a long minus": (table(lambda v: f"{v:.0f}".replace("-", "\u2212"), MONEY), "", OTHER),
    OTHER: (table(lambda v: f"{v:_.0f}"), "", OTHER),
    "dates": (table(lambda v: f"2024-01-{v % 28 + 1:02.0f}"), "--encode onehot", "give --dates days"),
    "dates with points": (table(lambda v: f"{v % 28 + 1:02.0f}.01.2024"), "", "give --dates days"),
    "times": (table(lambda v: f"12:{v % 60:02.0f}"), "--encode onehot", OTHER),
    "NA words of another kind": (
        table(lambda v: "unknown" if v < 500 else f"{v:.0f}"), "", "give --na-values unknown and --na drop"
    ),
    "an empty column, as it is": (table(lambda v: ""), "", "it is empty in every row; give --drop b"),
    "an empty column and an empty cell": (
        table(lambda v: "").replace("age,b,y", "age,b,y,z").replace("\n", ",\n").replace("z,", "z"),
        "", "--drop b",
    ),
    "an empty column": (table(lambda v: ""), "--na mean", "is empty in every row; give --drop b"),
    "names twice": (table(PLAIN).replace("age,b,y", "b,b,y"), "", "more than once"),
    "unquoted": ("age,b,y\n30,1,078,5\n31,576,6\n", "", "has 4 cells in line 2"),
    "thousands that are decimals": (table(PLAIN), "--thousands .", "is already the decimal mark; give --decimal ,"),
    "thousands of another kind": (table(PLAIN), "--thousands x", "is not a thousands separator"),
}  # fmt: skip


def keywords(options: str) -> dict[str, str]:
    words = shlex.split(options.replace(" ;", " ';'"))
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def stored(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_bytes(text.encode())
    return path


def message_of(path: Path, **given: str) -> str:
    with pytest.raises(BadInput) as caught:
        read_dataset(path, "y", **given)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return with_dashes(str(caught.value), TABLE_FLAGS)


@pytest.mark.parametrize("name", READ)
def test_right_numbers(tmp_path: Path, name: str) -> None:
    text, options, values = READ[name]
    path, given = stored(tmp_path, text), keywords(options)
    data = read_dataset(path, "y", **given)  # type: ignore[arg-type]
    assert np.array_equal(data.X[:, data.names.index("b")], values)
    if len(values) == ROWS:
        assert np.array_equal(data.y, TARGET)
        frame = pd.DataFrame({"b": data.X[:, -1], "y": [f"{v:,.0f}" for v in TARGET]})
        assert np.array_equal(Dataset.from_frame(frame, "y", thousands=",").y, TARGET)
    if "na" in given:
        return
    rows = read_new_rows(path, data.names, "y", data.reading)
    assert rows.has_target.all() and np.array_equal(rows.data.X, data.X)


@pytest.mark.parametrize("name", READ)
def test_inspect_names_the_options_or_proposes_the_right_numbers(tmp_path: Path, name: str) -> None:
    text, options, values = READ[name]
    path, sep = stored(tmp_path, text), {k: v for k, v in keywords(options).items() if k == "sep"}
    found = inspect_file(path, "y", Reading.from_keywords(**sep), None)
    if found.doubts:
        assert all(re.search("give (decimal|thousands)=", said) for said in found.doubts.values())
        return
    words = [word for option in found.options for word in shlex.split(option)]
    given = dict(zip(words[::2], words[1::2], strict=True))
    if "--drop" in given:
        assert any(re.search("give (decimal|thousands)=", " ".join(fact.notes)) for fact in found.columns if fact.drop)
        return
    data = read_dataset(path, "y", **{name.removeprefix("--"): v for name, v in given.items()})  # type: ignore[arg-type]
    assert np.array_equal(data.X[:, data.names.index("b")], values)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(tmp_path: Path, name: str) -> None:
    text, options, said = REFUSED[name]
    assert said in message_of(stored(tmp_path, text), **keywords(options))


def test_each_reading_of_an_ambiguous_number_is_to_be_had(tmp_path: Path) -> None:
    path = stored(tmp_path, 'a,y\n"1,078",1\n576,2\n"2,500",3\n')
    assert "give --thousands , (1078) or --decimal , and --thousands none (1.078)" in message_of(path)
    assert read_dataset(path, "y", thousands=",").X.ravel().tolist() == [1078.0, 576.0, 2500.0]
    assert read_dataset(path, "y", decimal=",", thousands="none").X.ravel().tolist() == [1.078, 576.0, 2.5]
    path.write_text("a,y\n796.232,3\n12.340,5\n101.500,9\n")
    said = "'796.232' in row 1 is ambiguous; give --decimal , and --thousands . (796232) or --thousands none (796.232)"
    assert message_of(path) == f"column 'a': {said}"
    assert read_dataset(path, "y", decimal=",", thousands=".").X[:, 0].tolist() == [796232, 12340, 101500]
    assert read_dataset(path, "y", thousands="none").X[0, 0] == 796.232
    assert read_dataset(stored(tmp_path, "a,b,y\n796.232,0.5,3\n12.340,1.5,5\n"), "y").reading is None
    found = inspect_file(path, "y", Reading(), None)
    path.write_text("a;y\n1.078;1\n576;2\n")
    found = inspect_file(path, "y", Reading.from_keywords(sep=";"), None)
    assert list(found.doubts) == ["a"] and not any("decimal" in option for option in found.options)
    assert "give --decimal , and --thousands . (1078) or --thousands none (1.078)" in message_of(path, sep=";")
    path.write_text("a;b;y\n1,078;2,25;1\n2,576;2,5;2\n")
    assert read_dataset(path, "y", sep=";", decimal=",").X.tolist() == [[1.078, 2.25], [2.576, 2.5]]


def test_new_rows_are_read_as_the_first_were(tmp_path: Path) -> None:
    learnt = read_dataset(stored(tmp_path, table(US2, MONEY)), "y", thousands=",").reading
    assert learnt is not None and learnt.how.thousands == ","
    path = stored(tmp_path, 'age,b\n30,"1,078"\n31,576\n')
    assert read_new_rows(path, ["age", "b"], "y", learnt).data.X[:, 1].tolist() == [1078.0, 576.0]
    plain = read_dataset(stored(tmp_path, table(PLAIN)), "y").reading
    path = stored(tmp_path, "age,b\n30,1.078\n31,576\n")
    with pytest.raises(BadInput, match="^column 'b': '1.078' in row 1 is ambiguous; give "):
        read_new_rows(path, ["age", "b"], "y", plain)
    said = Applied(Reading.from_keywords(thousands="none"), ("age", "b"))
    assert read_new_rows(path, ["age", "b"], "y", said).data.X[:, 1].tolist() == [1.078, 576.0]
    path = stored(tmp_path, "age,b\n30,1.078\n31,57.6\n")
    assert read_new_rows(path, ["age", "b"], "y", plain).data.X[:, 1].tolist() == [1.078, 57.6]


def test_numbers_of_a_large_file_are_settled_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsecv_mio.data import text_tables

    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 256)
    rows = [f"{k % 9 + 1}.{k % 7 + 1:03d}|{k}" for k in range(1, 900)]
    path = stored(tmp_path, "\n".join(["a|y", *rows, "576|1", ""]))
    assert "column 'a': '2.002' in row 1 is ambiguous" in message_of(path, sep="|")
    path = stored(tmp_path, "\n".join(["a|y", *rows, "576|1", "3.25|1", ""]))
    assert read_dataset(path, "y", sep="|").X.max() == 576.0
    path = stored(tmp_path, "\n".join(["a|y", *(f"{k}|{k}" for k in range(900)), "x|1", "NA|2", ""]))
    assert "'a' holds text 'x' in row 901 (line 902)" in message_of(path, sep="|")
    assert read_dataset(path, "y", sep="|", na="drop", na_values="x").n == 900


def test_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["1,078", "576", "2,500"], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(BadInput, match='give thousands="," .1078. or decimal="," and thousands="none" .1.078.'):
        Dataset.from_frame(frame, "y")
    assert Dataset.from_frame(frame, "y", thousands=",").X.ravel().tolist() == [1078.0, 576.0, 2500.0]
    with pytest.raises(BadInput, match="sep: requires a file; omit it for frames"):
        Dataset.from_frame(frame, "y", sep=";")
    for suffix in (".parquet", ".feather"):
        getattr(frame, f"to_{suffix[1:]}")(tmp_path / f"a{suffix}")
        assert read_dataset(tmp_path / f"a{suffix}", "y", thousands=",").X.ravel().tolist() == [1078.0, 576.0, 2500.0]


def test_a_target_is_not_to_be_dropped(tmp_path: Path) -> None:
    path = stored(tmp_path, table(PLAIN, target=lambda v: f"{v:.0f}%"))
    assert message_of(path).endswith(OTHER)
    facts = {one.name: one for one in inspect_file(path, "y", Reading(), None).columns}
    assert facts["y"].kind == "mixed" and facts["y"].notes[0].endswith(OTHER)


def test_words_stay_words(tmp_path: Path) -> None:
    for words in (("<18", "18-35", ">35"), ("1A", "2B", "3C"), ("10-20", "20-30", "30+"), ("A+", "B-", "C")):
        cells = [words[k % 3] for k in range(ROWS)]
        path = stored(tmp_path, "b,y\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
        assert read_dataset(path, "y", encode="onehot").p == 3


@pytest.mark.parametrize("seed", range(8))
def test_spelling_and_reading_are_opposites(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        value = float(np.round(rng.normal() * 10.0 ** rng.integers(-2, 9), int(rng.integers(0, 4))))
        marks = NumberFormat(*[(".", ","), (",", "."), (".", "'"), (",", " "), (".", " ")][int(rng.integers(5))])
        text = spelled(marks.decimal, str(marks.thousands), 3)(value)
        assert parse_texts([text], marks).tolist() == [value]
        if abs(value) >= 1000.0:  # a digit less in a group is not a number
            assert marks.thousands is not None
            wrong = text.replace(marks.thousands, marks.thousands + marks.thousands, 1)
            assert np.isnan(parse_texts([wrong], marks)[0])


STYLES = (  # thousands, decimal mark, between the cells
    ("", ".", ","), (",", ".", ","), (".", ",", ";"), ("", ",", ";"), (" ", ",", ";"), ("'", ".", ","),
    ("'", ".", ";"), ("\u202f", ",", ";"), (" ", ".", "\t"), (".", ",", "\t"), (",", ".", ";"),
)  # fmt: skip
CHOICE = re.compile(r'((?:\w+="[^"]+"(?: and )?)+)(?: \(([^()]+)\))?')  # keywords, and the number that they give


def random_file(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """A file of two to four columns written alike, and its numbers."""
    group, point, sep = STYLES[int(rng.integers(len(STYLES)))]
    n, columns = int(rng.integers(4, 40)), dict[str, tuple[Sequence[float], Spell]]()
    for name in ["a", "b", "c", "y"][-int(rng.integers(2, 5)) :]:
        digits = int(rng.choice([0, 0, 1, 2, 3]))
        values = np.round(rng.lognormal(rng.uniform(1, 11), rng.uniform(0.1, 2), n) * rng.choice([1, 1, -1], n), digits)

        def spell(value: float, digits: int = digits, short: bool = bool(rng.random() < 0.3)) -> str:
            text = spelled(point, group, digits)(value)
            return text.rstrip("0").rstrip(point) if short and digits else text

        columns[name] = (values, spell)
    return file_of(columns, sep=sep), np.column_stack([values for values, _ in columns.values()])


@pytest.mark.parametrize("seed", range(10))
def test_who_follows_the_messages_gets_the_numbers_of_the_file(tmp_path: Path, seed: int) -> None:
    rng, n_read = np.random.default_rng([26, seed]), 0
    for _ in range(10):
        text, truth = random_file(rng)
        path, given = stored(tmp_path, text), dict[str, str]()
        for _ in range(5):
            try:
                data = read_dataset(path, "y", **given)  # type: ignore[arg-type]
            except BadInput as error:
                choices = [(words, number) for words, number in CHOICE.findall(str(error))
                           if not number or np.isclose(truth, float(number), rtol=1e-9).any()]  # fmt: skip
                new = dict(re.findall(r'(sep|decimal|thousands)="([^"]+)"', choices[0][0])) if choices else {}
                if not new or new.items() <= given.items():
                    break  # the file has the number in both readings, or marks that no options read
                given |= new
            else:
                assert np.array_equal(np.column_stack([data.X, data.y]), truth), (text, given)
                n_read += 1
                break
    assert n_read


def test_what_else_knows_words() -> None:
    assert not any(map(is_unreadable, ("Rome", "1st", "A1", "1.2.3", "a-b", "")))
    assert all(map(is_unreadable, ("$5", "5%", "(7)", "7-", "1/2/2024", "12:30", "<0.5", "12,38,376")))


def test_words_for_separators_and_what_is_given() -> None:
    how = Reading.from_keywords(sep="space", na="MEAN", header=False, index_col=0)
    assert (how.sep, how.na, how.index_col) == (" ", "mean", "0")
    assert how.changed_options() == ["sep", "header", "index_col", "na"]
    assert how.needs_rewriting and not STRICT.changed_options() and not STRICT.needs_rewriting
    assert Reading.from_keywords(sep="\\t").sep == "\t" == Reading.from_keywords(sep="tab").sep
    assert [Reading.from_keywords(decimal=word).decimal for word in ("comma", "point", ",", ".")] == [
        ",",
        ".",
        ",",
        ".",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sep": "a"}, "sep: 'a' is not a separator"),
        ({"sep": '"'}, "is not a separator"),
        ({"decimal": "x"}, "decimal: 'x' is not a decimal mark"),
        ({"comment": ","}, "comment: ',' cannot begin a comment"),
        ({"encoding": "no"}, "encoding: 'no' is unknown"),
        ({"na": "x"}, "na: unknown word 'x'"),
        ({"na": None}, "na: None is not a text"),
        ({"thousands": 3}, "thousands: 3 is not a text"),
        (
            {"thousands": "x"},
            "thousands: 'x' is not a thousands separator; use comma, point, space, apostrophe or none",
        ),
        ({"thousands": "."}, "thousands: '.' is already the decimal mark; give decimal=\",\" too"),
        ({"decimal": ",", "thousands": "comma"}, "thousands: 'comma' is already the decimal mark"),
        ({"header": "no"}, "header: 'no' is neither True nor False"),
        ({"index_col": 1.5}, "index_col: 1.5 is neither the name nor the position"),
        ({"skip_lines": "0:2"}, "skip_lines: '0:2' is not a list of line numbers; count from 1, as in 1:3,32"),
        ({"skip_lines": "3:2"}, "skip_lines: '3:2' is not a list of line numbers; count from 1, as in 1:3,32"),
        ({"skip_lines": "two"}, "skip_lines: 'two' is not a list of line numbers; count from 1, as in 1:3,32"),
        ({"encode": "one-hot"}, "encode: unknown word 'one-hot' .did you mean 'onehot'"),
    ],
)
def test_wrong_options(words: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Reading.from_keywords(**words)  # type: ignore[arg-type]


def test_names_of_features() -> None:
    learnt = Applied(Reading.from_keywords(encode="onehot"), ("a", "b"), {}, {"b": ("x", "y", "z")})
    assert learnt.column_features("a") == ("a",) and learnt.column_features("b") == ("b=x", "b=y", "b=z")
    assert feature_names("b", ("x", "y", "z"), Encode.ORDINAL) == ("b",)


def test_thousands_have_one_name() -> None:
    for given in ("space", " ", "\u00a0", "\u202f"):
        assert Reading.from_keywords(thousands=given).thousands == " "
    for given in ("apostrophe", "'", "\u2019"):
        assert Reading.from_keywords(thousands=given).thousands == "'"
    assert Reading.from_keywords(thousands="point", decimal=",").number_format == (",", ".")
    assert Reading.from_keywords(thousands="none").thousands == "none"
    with pytest.raises(TypeError, match="'thousand' .did you mean 'thousands'"):
        Reading.from_keywords(thousand=",")  # type: ignore[call-arg]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".svm"])
def test_features_and_drop_choose_columns_in_file_order(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix)
    kept = read_dataset(path, "y", features=["x4", "x2"])
    assert kept.names == ("x2", "x4")
    assert np.array_equal(kept.X, X[:, [1, 3]])
    assert read_dataset(path, "y", drop=["x1", "x3"]).fingerprint == kept.fingerprint


def test_target_by_position_and_name_before_position(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("2,a,b\n1,2,3\n4,5,6\n")
    assert read_dataset(path, "1").target == "a"
    assert read_dataset(path, 0).target == "2"
    assert read_dataset(path, 2).target == "2", "a column named 2 wins over position 2"


def test_auxiliary_columns_hold_text_or_numbers_and_are_no_features(tmp_path: Path) -> None:
    frame = FRAME.assign(who=["u", "v", "w"] * 10, day=np.arange(30) % 4)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        data = read_dataset(path, "y", aux=["who", "day"])
        assert data.names == tuple(NAMES)
        assert data.aux["who"].tolist() == frame["who"].tolist()
        assert [int(v) for v in data.aux["day"]] == frame["day"].tolist()
    np.savez(tmp_path / "a.npz", X=X, y=Y, g=np.arange(30) % 3)
    data = read_dataset(tmp_path / "a.npz", "y", aux=["g", "x1"])
    assert data.names == ("x0", "x2", "x3")
    assert np.array_equal(data.aux["x1"], X[:, 1]) and data.aux["g"].tolist() == (np.arange(30) % 3).tolist()


BAD_WORDS = [
    ({"features": ["a", "q"]}, "feature 'q' is not in the data"),
    ({"drop": ["q"]}, "dropped column 'q' is not in the data"),
    ({"drop": ["a, b"]}, "dropped column 'a, b' has the names of several columns; give them as a list of names"),
    ({"aux": ["a,b"]}, "exposure or offset column 'a,b' has the names of several columns; give one of them"),
    ({"features": ["a"], "drop": ["b"]}, "features and drop exclude each other; use one"),
    ({"features": ["a", "a"]}, "column 'a' is listed twice in features"),
    ({"drop": ["a", "a"]}, "column 'a' is listed twice in drop"),
    ({"features": ["a", "y"]}, "is the target and cannot be a feature"),
    ({"drop": ["y"]}, "is the target and cannot be dropped"),
    ({"aux": ["y"]}, "is the target and cannot be the column of an option too"),
    ({"aux": ["g"]}, "fold, group, weight, exposure or offset column 'g' is not in the data"),
    ({"aux": ["a"], "features": ["a"]}, "gives folds, weights, exposures, offsets or ids and cannot be a feature"),
    ({"drop": ["a", "b"]}, "no feature is left"),
    ({"features": []}, "no feature is left"),
]


@pytest.mark.parametrize(("options", "message"), BAD_WORDS)
def test_bad_column_words(tmp_path: Path, options: dict[str, list[str]], message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n1,2,3\n4,5,7\n")
    refused(message, path, "y", **options)


def test_a_wrong_name_is_told_the_first_columns_and_the_last(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(",".join(f"g{j}" for j in range(30)) + ",outcome\n" + ",".join(["1"] * 31) + "\n")
    refused("the columns are g0, g1, g2, g3, g4, g5, g6, ..., outcome (31 in all)", path, "zz")


def test_columns_may_be_given_by_position_and_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,bc,y\n1,2,3\n2,3,5\n")
    for given in ([1], ["1"], "bc", 1, ["bc"]):
        assert read_dataset(path, "y", features=given).names == ("bc",)  # type: ignore[arg-type]
        assert read_dataset(path, "y", drop=given).names == ("a",)  # type: ignore[arg-type]
    for wrong in (1.5, [1.5], [["a"]]):
        with pytest.raises(BadInput, match="is not a list of column names or positions"):
            read_dataset(path, "y", features=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, float("nan"), pd.NA, pd.NaT])
def test_a_column_of_a_frame_that_is_called_nothing_is_refused(name: object) -> None:
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3) ** 2, columns=pd.Index(["a", name, "y"], dtype=object))
    with pytest.raises(BadInput, match=r'^column 2 has no name; name it in the header, or give drop=\["1"\]$'):
        read_dataset(frame, "y")
    assert read_dataset(frame, "y", drop=["1"]).names == read_dataset(frame, "y", features=["a"]).names == ("a",)


def test_columns_without_a_name_are_dropped_by_position(tmp_path: Path) -> None:
    frame, path = pd.DataFrame(np.arange(30.0).reshape(6, 5) ** 2, columns=["a", "", "b", "", "y"]), tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    for table in (frame, path):
        with pytest.raises(BadInput, match=r'^columns 2, 4 have no name; .* give drop=\["1", "3"\]$'):
            read_dataset(table, "y")
        record = sc.solve(table, "y", drop=["1", "3"], folds=3, gammas=0.1, taus=1)
        assert sc.verify(record, table).ok and record.predict(table).shape == (6,)
