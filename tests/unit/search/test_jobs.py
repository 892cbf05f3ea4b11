"""Jobs on threads: one writer, nothing lost at the end, an error of a piece is raised where it is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.jobs import Job, Jobs, nothing
from sparsecv_mio.search.run import Run


def jobs_on(threads: int) -> Jobs:
    run = drawn_run("joint").run
    return Jobs(replace(run, context=replace(run.context, threads=threads)))


def job(*pieces: Callable[[], Callable[[], None]], then: Callable[[], None] = nothing) -> Job:
    return Job(BoundSource.FOLD_TREES, (0, 0), pieces, then)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_written_in_order_by_the_thread_that_waits(threads: int) -> None:
    jobs, written = jobs_on(threads), list[tuple[int, int]]()

    def piece(number: int) -> Callable[[], Callable[[], None]]:
        return lambda: lambda: written.append((number, threading.get_ident()))

    jobs.do(job(*map(piece, range(5)), then=lambda: written.append((5, threading.get_ident()))))
    assert written == [(number, threading.get_ident()) for number in range(6)]
    assert not jobs.some and jobs.room


def test_another_job_begins_while_one_is_worked_on() -> None:
    jobs, other = jobs_on(2), threading.Event()
    order = list[str]()

    def waits() -> Callable[[], None]:
        assert other.wait(10.0)
        return lambda: order.append("first begun")

    def frees() -> Callable[[], None]:
        other.set()
        return lambda: order.append("second begun")

    jobs.begin(job(waits))
    assert jobs.room and jobs.pairs[0, 0] and jobs.pairs.sum() == 1
    jobs.begin(job(frees))
    while jobs.some:
        jobs.wait()
    assert set(order) == {"first begun", "second begun"}
    jobs.end()


def test_what_is_held_is_written_at_the_end_and_lost_when_abandoned() -> None:
    for ended in (True, False):
        jobs, written = jobs_on(2), list[int]()

        def until_unwanted(jobs: Jobs = jobs, written: list[int] = written) -> Callable[[], None]:
            while not jobs.expired():
                pass
            return lambda: written.append(1)

        jobs.begin(job(until_unwanted))
        if ended:
            jobs.end()
        else:
            jobs.abandon()
        assert not jobs.some and written == [1] * ended and jobs.expired() is not ended


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_a_piece_is_raised(threads: int) -> None:
    jobs = jobs_on(threads)

    def fails() -> Callable[[], None]:
        raise ArithmeticError("of a piece")

    with pytest.raises(ArithmeticError, match="of a piece"):
        jobs.do(job(fails))
    assert not jobs.some


def test_processor_time_goes_to_the_source_that_a_thread_worked_for() -> None:
    jobs = jobs_on(2)
    run: Run = jobs.run

    def works() -> Callable[[], None]:
        sum(range(3_000_000))
        return nothing

    jobs.do(job(works, works))
    work = next(work for work in run.accounts.table() if work.source == BoundSource.OTHER)
    run.counts.add(0, problems=1)
    with run.accounts.of(BoundSource.FOLD_TREES):
        run.counts.add(0, problems=1)
    booked = next(work for work in run.accounts.table() if work.source == BoundSource.FOLD_TREES)
    assert booked.cpu_seconds > 0.0 and booked.seconds > 0.0 and work.cpu_seconds >= 0.0
