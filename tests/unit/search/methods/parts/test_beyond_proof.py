"""What a proof leaves over: all cells at gap 0, what the one-standard-error rule needs."""

from __future__ import annotations

from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search import one_se
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof, pairs_for_rule


def test_the_rule_is_sure_of_its_pair() -> None:
    run = to_end(drawn_run("joint", gap=0.05, one_se=True))
    now, asked = run.run.state.bounds(), run.context
    rule = one_se.apply(now, now.best, asked.grid.gammas, asked.grid.taus, asked.scored, asked.data.y_unit**2)
    assert not rule.missing.any() and not pairs_for_rule(run.method).any()


def test_a_wider_gap_without_the_rule_asks_for_nothing() -> None:
    run = drawn_run("joint", gap=0.5)
    run.begin()
    before = run.run.state.cells.decided.sum()
    decide_beyond_proof(run.method, False)
    assert run.run.state.cells.decided.sum() == before
    decide_beyond_proof(run.method, True)
    assert run.run.state.cells.decided.sum() > before
