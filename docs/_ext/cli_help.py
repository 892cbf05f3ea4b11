"""What the site takes from the program as it is built.

The directive `cli-help` has the help text of every command, `option-rules` what options of a search demand of another,
`plan-settings` the settings of a plan, and `search-settings` the settings of a search.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import fields
from typing import Any
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import Directive

from sparsecv_mio import cli
from sparsecv_mio.cli.command_options import HELP_ALL, PanelledCommand
from sparsecv_mio.declared_options import option_name, plan_panels
from sparsecv_mio.search.options import RULES
from sparsecv_mio.search.plan import Plan

WIDTH = "88"


def commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of a group after the group itself."""
    for name in cli.COMMANDS:
        yield (name,)
        inside: Any = cli.load_command(name)
        yield from ((name, word) for word in getattr(inside, "commands", ()))


def help_text(words: tuple[str, ...]) -> str:
    """Return the help of a command with every option.

    Raises
    ------
    RuntimeError
        The command has no help, so that the build fails and not the reader.
    """
    screen = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": WIDTH}), redirect_stdout(screen):
        code = cli.run([*words, _option_of(words)])
    text = "\n".join(line.rstrip() for line in screen.getvalue().strip().splitlines())
    if code != 0 or not text.startswith("Usage:"):
        raise RuntimeError(f"sparsecv {' '.join(words)} --help ended with exit code {code}")
    return text


def _option_of(words: tuple[str, ...]) -> str:
    """Return the option that shows all options of a command; groups of commands have `--help` alone."""
    command: Any = cli.app
    for word in words:
        command = command.get_command(None, word) if hasattr(command, "get_command") else None
    return HELP_ALL if isinstance(command, PanelledCommand) else "--help"


class CliHelp(Directive):
    """One section for each command, with its help as printed."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [self._section(words) for words in [(), *commands()]]

    def _section(self, words: tuple[str, ...]) -> nodes.section:
        title = " ".join(("sparsecv", *words))
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title("", "", nodes.literal("", title))
        text = help_text(words)
        section += nodes.literal_block(text, text, language="text")
        return section


class OptionRules(Directive):
    """What options of a search demand of each other, a line each."""

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        found = nodes.bullet_list()
        for rule in RULES:
            line = nodes.paragraph("", "", nodes.literal("", option_name(rule.option)))
            line += nodes.Text(f" {rule.describe().replace('_', '-')}: {rule.why.replace('_', '-')}")
            found += nodes.list_item("", line)
        return [found]


class PlanSettings(Directive):
    """The settings of a plan that are options of commands, in the panels of their help."""

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        found = nodes.bullet_list()
        for panel, names in plan_panels().items():
            line = nodes.paragraph("", "", nodes.strong("", panel), nodes.Text(": "))
            for name in names:
                line += [nodes.literal("", name), nodes.Text(", " if name != names[-1] else "")]
            found += nodes.list_item("", line)
        return [found]


class SearchSettings(Directive):
    """The settings of the plan of a search, with unit and meaning."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        return [settings_table()]


def settings_table() -> nodes.table:
    """Return name, unit and meaning of every setting of a search."""
    group, head, body = nodes.tgroup(cols=3), nodes.thead(), nodes.tbody()
    group += [*(nodes.colspec(colwidth=width) for width in (20, 10, 70)), head, body]
    settings = [(setting.name, setting.metadata["unit"], setting.metadata["reason"]) for setting in fields(Plan)]
    for part, rows in ((head, [("setting", "unit", "meaning")]), (body, settings)):
        for row in rows:
            part += nodes.row("", *(nodes.entry("", nodes.paragraph("", "", nodes.Text(cell))) for cell in row))
    return nodes.table("", group)


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("cli-help", CliHelp)
    app.add_directive("option-rules", OptionRules)
    app.add_directive("plan-settings", PlanSettings)
    app.add_directive("search-settings", SearchSettings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
