"""Proofs as lists of lines, and alterations of one thing in them; the digest at the end is made again each time."""

from __future__ import annotations

import gzip
import hashlib
import json
import marshal
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
    path.write_bytes(gzip.compress(text + end, 0))


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


def change_a_digest(lines: Lines, rng: np.random.Generator) -> None:
    """The data are said to be others: their digest, their size, a name, the target."""
    data = lines[0]["data"]
    part = str(rng.choice(["digest", "n", "p", "names", "target"]))
    if part == "digest":
        at, digit = int(rng.integers(7, 71)), "0123456789abcdef"[int(rng.integers(16))]
        data[part] = data[part][:at] + digit + data[part][at + 1 :]
    elif part == "names":
        data[part].reverse()
    else:
        data[part] += "'" if part == "target" else int(rng.choice([-1, 1]))


def raise_a_sum(lines: Lines, rng: np.random.Generator) -> None:
    """Every pair is said to be a little worse, and so is their least."""
    factor = 1.0 + float(rng.choice([1e-6, 1e-3, 0.1]))
    for line in lines:
        if line.get("kind") in ("pair", "claim"):
            line["lower"] *= factor


def gamma_by_an_ulp(lines: Lines, rng: np.random.Generator) -> None:
    gammas = lines[0]["gammas"]
    g = int(rng.integers(len(gammas)))
    gammas[g] = math.nextafter(gammas[g], float(rng.choice([0.0, math.inf])))


def change_the_columns(lines: Lines, rng: np.random.Generator) -> None:
    columns, units = lines[0]["columns"], lines[0]["units"]
    at = int(rng.integers(len(columns)))
    if rng.random() < 0.5:
        del columns[at], units[at]
    else:
        units[at] += int(rng.choice([-1, 1, 30]))


def move_the_sizes_of_a_tree(lines: Lines, rng: np.random.Generator) -> None:
    """The thresholds are said to be of other sizes, or of more of them."""
    line = _of(lines, rng, "tree")
    by = int(rng.choice([-1, 1]))
    line["taus"] = [line["taus"][0] + by, line["taus"][1] + by]
    if rng.random() < 0.5:
        line["taus"][0] -= by
        line["above"] = line["above"][:by] if by < 0 else [*line["above"], line["above"][-1]]


def change_a_point(lines: Lines, rng: np.random.Generator) -> None:
    """A leaf's dual point, or which one it is of."""
    trees = [line for line in lines if line.get("points")]
    if trees:
        line = trees[int(rng.integers(len(trees)))]
        point = line["points"][int(rng.integers(len(line["points"])))]
        way = int(rng.integers(3))
        if way == 0 or not point[1]:
            point[0] += int(rng.choice([-1, 1, 20]))
        elif way == 1:
            point[2][int(rng.integers(len(point[2])))] *= int(rng.choice([-1, 0, 2]))
        else:
            leaves = [i for i, node in enumerate(line["nodes"]) if node < 0]
            line["nodes"][int(rng.choice(leaves))] = -1 - int(rng.integers(len(line["points"]) + 2))


def forget_a_fold(lines: Lines, rng: np.random.Generator) -> None:
    """A statement of a pair speaks of one fold less, of one twice, or of another one; of all where it names none."""
    for line in lines:
        for part in line.get("parts", []) if rng.random() < 0.5 else []:
            part.setdefault("folds", list(range(len(lines[0]["left"]))))
    parts = [part for line in lines if line.get("kind") == "pair" for part in line["parts"] if part.get("folds")]
    if parts:
        folds = parts[int(rng.integers(len(parts)))]["folds"]
        at, way = int(rng.integers(len(folds))), int(rng.integers(3))
        if way == 0:
            del folds[at]
        elif way == 1:
            folds.append(folds[at])
        else:
            folds[at] = int(rng.integers(len(lines[0]["left"])))


def change_what_is_scored(lines: Lines, rng: np.random.Generator) -> None:
    head = lines[0]
    if "left" in head:
        scored = [list(rows) for rows in head.get("scored") or head["left"]]
        del scored[int(rng.integers(len(scored)))][0:1]
        head["scored"] = scored


def exchange_two_lines(lines: Lines, rng: np.random.Generator) -> None:
    """Trees are known by their place."""
    one, other = (int(rng.integers(1, len(lines))) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]


def change_the_loss(lines: Lines, rng: np.random.Generator) -> None:
    """The same lines, of another loss or in the words of the other format."""
    head, way = lines[0], int(rng.integers(3))
    if way == 0:
        head["format"] = "sparsecv-proof/1" if head["format"][-1] != "1" else f"sparsecv-proof/{rng.integers(2, 4)}"
    else:
        head["loss"] = ("logistic", "poisson")[way - 1]


def change_what_is_adjusted_for(lines: Lines, rng: np.random.Generator) -> None:
    """A column moves from those that are chosen from to those that are adjusted for, or back, or is in no model."""
    head, way = lines[0], int(rng.integers(3))
    adjust, columns = head.setdefault("adjust", []), head["columns"]
    if way < 2 and adjust:
        moved = adjust.pop(int(rng.integers(len(adjust))))
        if way == 0:
            columns.append(moved)
            columns.sort()
            head["units"].insert(columns.index(moved), 0)
    elif columns:
        at = int(rng.integers(len(columns)))
        adjust[:] = sorted([*adjust, columns[at]])
        del columns[at], head["units"][at]


def change_the_terms(lines: Lines, rng: np.random.Generator) -> None:
    """Two terms are said to be one, one to be two, a column to be of another, or nothing of them."""
    head, way = lines[0], int(rng.integers(4))
    terms = head.setdefault("terms", [[j] for j in range(len(head["columns"]))])
    at = int(rng.integers(len(terms)))
    if way == 0:
        del head["terms"]
    elif way == 1 and len(terms) > 1:
        moved = terms.pop(at)
        terms[int(rng.integers(len(terms)))] += moved
    elif way == 2:
        terms.append([terms[at].pop()])
    else:
        other = terms[int(rng.integers(len(terms)))]
        terms[at], other[:] = list(other), list(terms[at])


def change_what_folds_see(lines: Lines, rng: np.random.Generator) -> None:
    """Empty cells are said to be filled by another rule, columns to be measured by other rows, or neither."""
    head, way = lines[0], int(rng.integers(3))
    within = head.setdefault("within", {"na": None, "scale": False})
    if way == 0:
        within["na"] = {"mean": "median", "median": "mean"}.get(str(within["na"]), "mean")
    elif way == 1:
        within["scale"] = not within["scale"]
    else:
        del head["within"]


ALTERATIONS: list[Callable[[Lines, np.random.Generator], None]] = [
    drop_a_leaf, cut_a_subtree, swap_a_split, raise_a_threshold, raise_a_lower, lower_an_upper,
    forget_a_listed_support, swap_a_support, move_a_size, move_a_gamma, change_a_gamma, change_the_coordinates,
    drop_a_line, change_the_rows_of_a_fold, move_a_tree, rename_a_statement, change_a_digest, raise_a_sum,
    gamma_by_an_ulp, change_the_columns, move_the_sizes_of_a_tree, change_a_point, forget_a_fold,
    change_what_is_scored, exchange_two_lines, change_the_loss, change_what_is_adjusted_for, change_the_terms,
    change_what_folds_see,
]  # fmt: skip


def altered_by(change: Callable[[Lines, np.random.Generator], None], lines: Lines, rng: np.random.Generator) -> Lines:
    """Return the lines after one alteration."""
    out: Lines = marshal.loads(marshal.dumps(lines))  # a tenth of the time of deepcopy
    change(out, rng)
    return out
