"""What names a release agrees, recipes for contributors are said once, and workflows run what was pinned."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from repository import ROOT

from sparsecv_mio.bounds.cv_error import SCHEMA as BOUNDS
from sparsecv_mio.certificate import fit_records, records
from sparsecv_mio.check.proof_file import FORMAT
from sparsecv_mio.search.observers import CHECKPOINT_SCHEMA, TRACE_SCHEMA

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def agree(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "release" / "agree.py"), *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_version_changelog_citation_and_recipe_agree() -> None:
    done = agree()
    assert done.returncode == 0, done.stdout
    wrong = agree("--tag", "v9.9", "--repository", "some/where")
    assert wrong.returncode == 4 and "the tag is v9.9" in wrong.stdout and "some/where" in wrong.stdout


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "sparsecv_mio.version.__version__"}
    tree = ast.parse(text("sparsecv_mio/version.py"))  # read without an import when the package is built
    assert isinstance(ast.literal_eval(tree.body[-1].value), str)  # type: ignore[attr-defined]


def test_formats_of_the_page_are_those_of_the_code() -> None:
    page = text("docs/compatibility.md")
    kinds = (fit_records.PATH_SCHEMA, fit_records.FIT_SCHEMA, fit_records.NEAR_SCHEMA, fit_records.COMMON_SCHEMA)
    for name in (records.SCHEMA, records.FIRST_SCHEMA, *kinds, FORMAT, CHECKPOINT_SCHEMA, TRACE_SCHEMA, BOUNDS):
        assert f"`{name}`" in page, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_and_may_only_read(path: Path) -> None:
    workflow = path.read_text(encoding="utf-8")
    uses = re.findall(r"uses: (\S+)", workflow)
    assert uses and all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", one) for one in uses), uses
    assert "\npermissions:\n  contents: read\n" in workflow and "secrets." not in workflow
    assert workflow.count("runs-on:") == workflow.count("timeout-minutes:")


def test_pythons_of_the_classifiers_are_among_those_of_the_tests() -> None:
    project = tomllib.loads(text("pyproject.toml"))["project"]
    said = [one.rsplit(" ", 1)[1] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert said and set(said) <= set(PYTHONS) and project["requires-python"] == f">={PYTHONS[0]}"
    tests = text(".github/workflows/tests.yml")
    listed = ", ".join(f'"{one}"' for one in PYTHONS)
    assert tests.count(f"python: [{listed}]") == 2
