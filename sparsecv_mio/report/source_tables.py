"""Tables of the plan of a search, and a table and a figure of the cost and gain of each source of bounds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Console

from sparsecv_mio.certificate.parts import GapStep, PlanSetting
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.report import figures, layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADS = ("bounding method", "problems", "nodes", "seconds", "CPU s", "solved", "excluded", "gap closed")
CAPTION = (
    "Cost and gain of each bounding method: ridge problems set up, branch-and-bound nodes, wall and CPU seconds; "
    "subproblems solved, subproblems excluded by the bound of their pair, and the share of the relative gap of the "
    "grid (100% at first) that the method closed."
)


def source_rows(record: Record) -> list[tuple[str, ...]]:
    """Return a row for each source of bounds, under `HEADS`; no rows for records without this information."""
    return [
        (work.source, f"{work.problems:,}", f"{work.nodes:,}", f"{work.seconds:.2f}", f"{work.cpu_seconds:.2f}",
         f"{work.decided:,}", f"{work.ruled_out:,}", f"{100.0 * work.gap_closed:.1f}%")
        for work in record.work.sources
    ]  # fmt: skip


def print_plan(console: Console, record: Record) -> None:
    """Print the settings that differ from their defaults, and disabled switches, if the search had a reader of them.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record; nothing is printed if it has no plan.
    """
    if not record.work.plan:
        return
    used = settings_used(record)
    changed = [setting for setting in used if not setting.is_default or setting.name == "orders"]
    rows = [(setting.name, _value_in_words(setting), setting.reason) for setting in changed]
    layout.say(console, "settings of the search plan that differ from their defaults", style="bold")
    layout.print_table(console, ("setting", "value", "meaning"), rows, text=("setting", "value", "meaning"))
    off = [setting.name for setting in used if setting.setting is False]
    layout.say(console, f"settings that are off: {', '.join(off)}", style="dim")


def settings_used(record: Record) -> list[PlanSetting]:
    """Return the settings that an order of the search, or a bounding method that worked in it, reads."""
    from sparsecv_mio.search.plan import Plan  # pages without a search load no search

    readers = {setting.name: set(setting.metadata["readers"]) for setting in fields(Plan)}
    settings: dict[str, Any] = {setting.name: setting.setting for setting in record.work.plan}
    present = {"all", settings["order_of_pairs"], *settings["orders"], *(work.source for work in record.work.sources)}
    if settings["counts_mios"]:
        present.add("subproblem trees")  # their account has the name of the solver
    return [setting for setting in record.work.plan if readers.get(setting.name, present) & present]


def _value_in_words(setting: PlanSetting) -> str:
    """Return the value of a setting with its unit."""
    value, unit = setting.setting, "" if setting.unit in ("-", "name", "names") else f" {setting.unit}"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return "no limit"
    return (value if isinstance(value, str) else f"{value:,.12g}") + unit


def print_sources(console: Console, record: Record) -> None:
    """Print the table of sources; nothing if the record has no such information.

    Parameters
    ----------
    console : rich.console.Console
        Console to print on.
    record : Record
        Record of a search.
    """
    rows = source_rows(record)
    if rows:
        layout.say(console, "cost and gain of each bounding method", style="bold")
        layout.print_table(console, HEADS, rows, text=HEADS[:1])


def plot_sources(record: Record, ax: Axes) -> Axes:
    """Draw the relative gap of the grid over time, coloured by the source that worked.

    Parameters
    ----------
    record : Record
        Record with the course of the gap.
    ax : matplotlib Axes
        Axes to draw on.
    """
    import matplotlib

    figures.tidy(ax)
    colours = matplotlib.colormaps["tab10"]
    sources = list(dict.fromkeys(step.source for step in record.work.course))
    before, named = GapStep("", 0.0, 1.0), set()
    for step in record.work.course:
        label = "_" if step.source in named else step.source
        colour = colours(sources.index(step.source) % colours.N)
        ends = (before.seconds, step.seconds), (before.gap, step.gap)
        ax.plot(*ends, color=colour, linewidth=2.2, solid_capstyle="butt", label=label)
        named.add(step.source)
        before = step
    ax.set(xlabel="seconds", ylabel="relative gap", ylim=(-0.02, 1.04), xlim=(0.0, None))
    figures.write_title(ax, "Relative gap of the grid, by the bounding method at work")
    figures.draw_outer_legend(ax)
    return ax
