"""splitmix64 and Fisher-Yates in whole numbers of Python."""

from __future__ import annotations

MASK = (1 << 64) - 1


def plain_splitmix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def plain_shuffle(first: int, last: int, seed: int) -> list[int]:
    """The rows first .. last-1 in the order of this seed."""
    out = list(range(first, last))
    key = plain_splitmix(plain_splitmix(plain_splitmix(seed) ^ first) ^ last)
    for i in range(len(out) - 1, 0, -1):
        key = plain_splitmix(key)
        j = int((key >> 11) * 2.0**-53 * (i + 1))
        out[i], out[j] = out[j], out[i]
    return out
