"""The sources of bounds by name. A new source is one file and one line here."""

from __future__ import annotations

from sparsecv_mio.search.sources.enclosures import Enclosures
from sparsecv_mio.search.sources.fold_relaxations import FoldRelaxations
from sparsecv_mio.search.sources.fold_roots import FoldRoots
from sparsecv_mio.search.sources.fold_searches import FoldSamples, FoldSearches
from sparsecv_mio.search.sources.full_data import FullDataRelaxations, FullDataTrees
from sparsecv_mio.search.sources.held_out_lists import HeldOutLists
from sparsecv_mio.search.sources.initial_supports import FoldSupports, InitialSupports, SupportsInFolds
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.protocol import Source
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.sources.support_fits import SupportFits
from sparsecv_mio.search.sources.weighted_relaxations import WeightedRelaxations
from sparsecv_mio.search.sources.weighted_trees import WeightedTrees
from sparsecv_mio.search.steps import Step

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        InitialSupports(), SupportsInFolds(), FoldSupports(), FoldSearches(), FoldSamples(), FullDataRelaxations(),
        FullDataTrees(), HeldOutLists(), LeftOutTrees(), SupportFits(), Enclosures(), WeightedRelaxations(),
        WeightedTrees(), FoldRoots(), FoldRelaxations(), SubproblemTrees(),
    )
}  # fmt: skip


def source_of(step: Step) -> Source:
    """Return the source that proposed a step."""
    return SOURCES[step.source]
