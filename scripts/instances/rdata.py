"""Read data frames and matrices from R's `.rda` / `.RData` files: just enough of R's XDR serialisation."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE, NULL, GLOBAL_ENV, ALTREP = 255, 254, 253, 238
SYMBOL, PAIRLIST, CHAR, LOGICAL, INTEGER, REAL, STRING, VECTOR = 1, 2, 9, 10, 13, 14, 16, 19


@dataclass
class RObject:
    """A vector with its attributes (names, dim, dimnames, class, ...)."""

    value: Any
    attributes: dict[str, Any] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names attribute."""
        return list(self.attributes["names"].value)

    def column(self, name: str) -> RObject:
        """Return an element of a list or data frame by name."""
        return self.value[self.names().index(name)]

    def matrix(self) -> np.ndarray:
        """Return a numeric vector in the shape of its dim attribute (R stores columns first)."""
        return self.value.reshape(tuple(self.attributes["dim"].value), order="F")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.references = data, 0, []

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def integer(self) -> int:
        return struct.unpack(">i", self.take(4))[0]

    def item(self) -> Any:
        flags = self.integer()
        kind, has_attributes, has_tag = flags & 0xFF, flags & 0x200, flags & 0x400
        if kind in (NULL, GLOBAL_ENV):
            return None
        if kind == REFERENCE:
            return self.references[(flags >> 8) - 1]
        if kind == SYMBOL:
            self.references.append(self.item())
            return self.references[-1]
        if kind == PAIRLIST:
            return self.pairs(has_attributes, has_tag)
        if kind == CHAR:
            size = self.integer()
            return None if size == -1 else self.take(size).decode("latin-1" if flags & 0x4000 else "utf-8")
        if kind == ALTREP:
            return self.altrep()
        out = RObject(self.vector(kind))
        if has_attributes:
            out.attributes = dict(self.item())
        return out

    def pairs(self, has_attributes: int, has_tag: int) -> list[tuple[str, Any]]:
        if has_attributes:
            self.item()
        tag = self.item() if has_tag else ""
        head = self.item()
        return [(tag, head), *(self.item() or [])]

    def vector(self, kind: int) -> Any:
        size = self.integer()
        if kind in (LOGICAL, INTEGER):
            return np.frombuffer(self.take(4 * size), dtype=">i4").astype(np.int64)
        if kind == REAL:
            return np.frombuffer(self.take(8 * size), dtype=">f8").astype(np.float64)
        if kind in (STRING, VECTOR):
            return [self.item() for _ in range(size)]
        raise ValueError(f"R type {kind} is not read here")

    def altrep(self) -> RObject:
        info, state, _ = self.item(), self.item(), self.item()
        if info[0][1] != "compact_intseq":
            raise ValueError(f"R's compact form {info[0][1]} is not read here")
        size, first, step = (int(v) for v in state.value)
        return RObject(np.arange(size, dtype=np.int64) * step + first)


def read_rdata(path: Path) -> dict[str, RObject]:
    """Return the objects of an `.rda` / `.RData` file (XDR, gzip / bzip2 / xz or bare) by name."""
    raw = path.read_bytes()
    for magic, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        if raw.startswith(magic):
            raw = unpack(raw)
    if raw[:5] not in (b"RDX2\n", b"RDX3\n") or raw[5:7] != b"X\n":
        raise ValueError(f"{path} is not an XDR file of R")
    reader = _Reader(raw)
    reader.take(7)
    version = reader.integer()
    reader.take(8)
    if version == 3:
        reader.take(reader.integer())
    return dict(reader.item())
