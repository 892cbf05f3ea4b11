"""The sources of bounds by name, and the methods that every source has.

To add a source, add one file, its row, import and instance to this registry, and one line to each search order
(`search/orders`) that uses the source. Each source is a class with the name of the source, in one of these files:

=================  =====================================================================
file               sources
=================  =====================================================================
fold_searches      fold searches, fold samples
full_data          full-data relaxations, first full-data trees, full-data trees
held_out_lists     held-out lists
initial_supports   initial supports, supports in folds, fold supports, support fits
left_out_trees     left-out trees
relaxed_folds      enclosures, fold relaxations, fold roots
subproblem_trees   subproblem trees
weighted_rows      weighted relaxations, weighted trees
=================  =====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Protocol

from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.sources.fold_searches import FoldSamples, FoldSearches
from sparsecv_mio.search.sources.full_data import FirstFullDataTrees, FullDataRelaxations, FullDataTrees
from sparsecv_mio.search.sources.held_out_lists import HeldOutLists
from sparsecv_mio.search.sources.initial_supports import FoldSupports, InitialSupports, SupportFits, SupportsInFolds
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.relaxed_folds import Enclosures, FoldRelaxations, FoldRoots
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.sources.weighted_rows import WeightedRelaxations, WeightedTrees
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step


class Source(Protocol):
    """A bounding method. It has no state: the state of the search stores what was tried.

    A source has a method `steps` too, which reads the state and the plan and yields steps. Its other parameters depend
    on the source: the pairs (G, T) that are wanted, or one pair with the sum of lower bounds to reach.
    """

    name: ClassVar[str]

    def run_step(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Run a step."""

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note in the state what a step tried."""


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        InitialSupports(), SupportsInFolds(), FoldSupports(), FoldSearches(), FoldSamples(), FullDataRelaxations(),
        FirstFullDataTrees(), FullDataTrees(), HeldOutLists(), LeftOutTrees(), SupportFits(), Enclosures(),
        WeightedRelaxations(), WeightedTrees(), FoldRoots(), FoldRelaxations(), SubproblemTrees(),
    )
}  # fmt: skip

REQUIRED = tuple(  # every search needs these sources
    source.name for source in (InitialSupports, SupportsInFolds, FirstFullDataTrees, SubproblemTrees)
)


def find_source(step: Step) -> Source:
    """Return the source that proposed a step."""
    return SOURCES[step.source]


def parse_sources(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the sources that `--sources` switches off, each with a minus before its name.

    Parameters
    ----------
    given : str, iterable of str or None
        Names of sources. Names with a minus switch those sources off. Names without a minus switch off all others,
        except those that every search needs. `all` switches no source off, `none` every source that can be. Words of a
        name are separated by blanks, dashes or underscores.

    Raises
    ------
    BadInput
        If a name is unknown, if only some names have a minus, or if a required source has a minus.

    Examples
    --------
    >>> parse_sources("-weighted-trees, -enclosures"), parse_sources("all")
    (('-enclosures', '-weighted trees'), ())
    """
    if given is None:
        return ()
    names = {_command_line_name(name): name for name in SOURCES}
    every = f"give some of {', '.join(names)}"
    words = _split(given, every)
    has_minus, chosen = {word.strip().startswith("-") for word in words}, set[str]()
    for word in words:
        name = _command_line_name(word)
        if name not in names:
            raise BadInput(f"sources: unknown bounding method {name!r}{did_you_mean(name, names)}; {every}")
        if True in has_minus and names[name] in REQUIRED:
            raise BadInput(f"sources: every search needs {name}; remove -{name}")
        chosen.add(names[name])
    if len(has_minus) > 1:
        raise BadInput(
            "sources: some names have a minus and others do not; list the sources to use, or the sources to switch "
            "off, each with a minus"
        )
    return tuple(f"-{name}" for name in SOURCES if name not in REQUIRED and (name in chosen) == (True in has_minus))


def _split(given: str | Iterable[str], every: str) -> list[str]:
    """Return the names in `given`, with `all` and `none` replaced by the names that they mean."""
    words = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(word, str) for word in words):
        raise BadInput(f"sources: {given!r} is not a list of names; {every}")
    if len(words) == 1 and _command_line_name(words[0]) in ("all", "none"):
        return list(SOURCES if _command_line_name(words[0]) == "all" else REQUIRED)
    return words


def _command_line_name(name: str) -> str:
    """Return the name of a source for the command line, without its minus."""
    return "-".join(re.split(r"[\s_-]+", name.strip(" -").lower()))
