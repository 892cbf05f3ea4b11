"""What a report consists of, whatever it is written in: sections of sentences, facts, tables, commands and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sentences:
    """A list of sentences; `proved` says what they are: proved, not proved, or neither kind (None)."""

    lines: tuple[str, ...]
    proved: bool | None = None


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Grid:
    """A table: the first `words` columns hold text, the others numbers; row `chosen` stands out.

    `folded`: long, and shown only on demand where the format can.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0
    chosen: int | None = None
    folded: bool = False


@dataclass(frozen=True)
class Commands:
    """Lines to be copied, in `language`."""

    language: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A figure of one panel: its name, what it shows in words, its size in inches and what draws it."""

    name: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Axes], object]


Block = Sentences | Facts | Grid | Commands | Picture


@dataclass(frozen=True)
class Section:
    """A title and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report: its title, the answer in a line, and its sections."""

    title: str
    answer: str
    sections: tuple[Section, ...]
