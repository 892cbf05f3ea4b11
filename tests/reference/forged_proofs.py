"""Proofs as lists of lines, and alterations of one thing in them; the digest at the end is made anew each time."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Lines = list[dict[str, Any]]


def read_lines(path: Path) -> Lines:
    """Return the lines of a proof without its end."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()][:-1]


def write_lines(path: Path, lines: Lines) -> None:
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end = json.dumps({"kind": "end", "sha256": hashlib.sha256(text).hexdigest()}).encode() + b"\n"
    path.write_bytes(gzip.compress(text + end, 1))


def _of(lines: Lines, rng: np.random.Generator, *kinds: str) -> dict[str, Any]:
    found = [line for line in lines if line.get("kind") in kinds]
    return found[int(rng.integers(len(found)))]


def drop_a_leaf(lines: Lines, rng: np.random.Generator) -> None:
    nodes = _of(lines, rng, "tree")["nodes"]
    del nodes[int(rng.choice([i for i, node in enumerate(nodes) if node < 0]))]


def cut_a_subtree(lines: Lines, rng: np.random.Generator) -> None:
    """A split becomes a leaf; what was below it is gone."""
    nodes = _of(lines, rng, "tree")["nodes"]
    splits = [i for i, node in enumerate(nodes) if node >= 0]
    if splits:
        start = end = int(rng.choice(splits))
        left = 1
        while left:
            left += 1 if nodes[end] >= 0 else -1
            end += 1
        nodes[start:end] = [-1]


def swap_a_split(lines: Lines, rng: np.random.Generator) -> None:
    nodes = _of(lines, rng, "tree")["nodes"]
    splits = [i for i, node in enumerate(nodes) if node >= 0]
    if splits:
        nodes[int(rng.choice(splits))] = int(rng.integers(len(lines[0]["columns"])))


def raise_a_threshold(lines: Lines, rng: np.random.Generator) -> None:
    above = _of(lines, rng, "tree")["above"]
    t = int(rng.integers(len(above)))
    above[t] += abs(above[t]) * float(rng.choice([1e-6, 1e-3, 0.5, 10.0]))


def raise_a_lower(lines: Lines, rng: np.random.Generator) -> None:
    line = _of(lines, rng, "best", "pair", "claim")
    line["lower"] += max(abs(line["lower"]), 1e-3 * abs(line["upper"] or 0.0)) * float(rng.choice([1e-6, 1e-3, 0.5]))


def lower_an_upper(lines: Lines, rng: np.random.Generator) -> None:
    line = _of(lines, rng, "best", "pair", "claim")
    if line["upper"] is not None:
        line["upper"] -= abs(line["upper"]) * float(rng.choice([1e-6, 1e-3, 0.5]))


def forget_a_listed_support(lines: Lines, rng: np.random.Generator) -> None:
    listed = _of(lines, rng, "tree")["listed"]
    if listed:
        del listed[int(rng.integers(len(listed)))]


def swap_a_support(lines: Lines, rng: np.random.Generator) -> None:
    line, q = _of(lines, rng, "tree", "best"), len(lines[0]["columns"])
    supports = line["listed"] if "listed" in line else [line["support"]]
    if supports:
        one = supports[int(rng.integers(len(supports)))]
        one[:] = sorted(rng.choice(q, size=len(one), replace=False).tolist())


def move_a_size(lines: Lines, rng: np.random.Generator) -> None:
    line = _of(lines, rng, "best", "pair", "claim")
    line["tau"] = int(rng.integers(len(lines[0]["taus"])))


def move_a_gamma(lines: Lines, rng: np.random.Generator) -> None:
    line = _of(lines, rng, "best", "pair", "claim", "tree")
    line["gamma"] = int(rng.integers(len(lines[0]["gammas"])))


def change_a_gamma(lines: Lines, rng: np.random.Generator) -> None:
    gammas = lines[0]["gammas"]
    g = int(rng.integers(len(gammas)))
    gammas[g] = float(rng.choice([math.nextafter(gammas[g], 0.0), 1.001 * gammas[g], 10.0 * gammas[g]]))


def change_the_coordinates(lines: Lines, rng: np.random.Generator) -> None:
    if rng.random() < 0.5:
        lines[0]["scale"] = str(rng.choice(["length", "variance", "none"]))
    else:
        lines[0]["intercept"] = str(rng.choice(["fold", "global", "none"]))


def drop_a_line(lines: Lines, rng: np.random.Generator) -> None:
    del lines[int(rng.integers(1, len(lines)))]


def change_the_rows_of_a_fold(lines: Lines, rng: np.random.Generator) -> None:
    left = lines[0].get("left")
    if left:
        one = left[int(rng.integers(len(left)))]
        one[int(rng.integers(len(one)))] = int(rng.integers(lines[0]["data"]["n"]))


def move_a_tree(lines: Lines, rng: np.random.Generator) -> None:
    line = _of(lines, rng, "tree")
    line["rows"] = int(rng.integers(-1, len(lines[0].get("left", []))))


def rename_a_statement(lines: Lines, rng: np.random.Generator) -> None:
    pairs = [line for line in lines if line.get("kind") == "pair" and line["parts"]]
    if pairs:
        part = pairs[int(rng.integers(len(pairs)))]["parts"][0]
        count = sum(line.get("kind") == "tree" for line in lines)
        if "tree" in part:
            part["tree"] = int(rng.integers(count))
        else:
            part["trees"][int(rng.integers(len(part["trees"])))] = int(rng.integers(count))


ALTERATIONS: list[Callable[[Lines, np.random.Generator], None]] = [
    drop_a_leaf, cut_a_subtree, swap_a_split, raise_a_threshold, raise_a_lower, lower_an_upper,
    forget_a_listed_support, swap_a_support, move_a_size, move_a_gamma, change_a_gamma, change_the_coordinates,
    drop_a_line, change_the_rows_of_a_fold, move_a_tree, rename_a_statement,
]  # fmt: skip


def altered(lines: Lines, rng: np.random.Generator) -> tuple[str, Lines]:
    """Return the name of an alteration and the lines after it; they may be as before."""
    change = ALTERATIONS[int(rng.integers(len(ALTERATIONS)))]
    out = copy.deepcopy(lines)
    change(out, rng)
    return change.__name__, out
