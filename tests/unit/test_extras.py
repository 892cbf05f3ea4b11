"""The package without its extras: what needs none runs, the rest says in one line what to install."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import sparsecv_mio
from sparsecv_mio.errors import EXTRAS, INSTALLED_AS, MissingPackage, missing_package, naming_extras, need_extra

GONE = {package for packages in EXTRAS.values() for package in packages}
# runs lines of Python, or commands, in a process that has none of the packages
BARE = f"""
import contextlib, io, json, sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {GONE!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Gone())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name in {GONE!r} else found(name, *a)
from sparsecv_mio.cli import run
answers = []
for what in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(what) if isinstance(what, list) else exec(what)
        except Exception as error:
            code = f"{{type(error).__name__}}: {{error}}"
    answers.append([code, err.getvalue()])
print(json.dumps(answers))
"""
PROSTATE = [str(ROOT / "instances" / "prostate.csv"), "--target", "lpsa"]


def test_the_commands_of_a_first_day_need_none_and_the_others_say_what_to_install(tmp_path: Path) -> None:
    small = [*PROSTATE, "--folds", "5", "--gamma", "0.1"]
    first_day: list[Any] = [
        ["inspect", *PROSTATE],
        ["solve", *small, "--json", "a.json", "--proof", "a.proof", "--trace", "a.trace", "--one-se"],
        ["verify", "a.json", PROSTATE[0]],
        ["check", "a.proof", PROSTATE[0]],
        ["predict", "a.json", PROSTATE[0], "-o", "a.csv"],
        ["fit", *PROSTATE, "--tau", "3", "--gamma", "0.1"],
        ["path", *PROSTATE, "--gamma", "0.1"],
        ["near", *small, "--within", "1%"],
        ["bounds", *small],
        ["iacv", "loocv", *PROSTATE, "--gamma", "0.1"],
        "import sparsecv_mio as sc; sc.solve(sc.read_dataset('" + PROSTATE[0] + "', target='lpsa'), gammas=[0.1])",
    ]
    (tmp_path / "plan.toml").write_text('[[data]]\nfile = "a.csv"\ntarget = "y"\n', encoding="utf-8")
    golden = str(ROOT / "tests" / "golden" / "0.1-adff868" / "solve.json")
    read = f"import sparsecv_mio as sc; record = sc.read_record({golden!r}); "
    asked = {
        "this needs jinja2": ["report", golden, "-o", "a.html"],
        "--out needs matplotlib": ["plot", golden, "-o", "a.png"],
        "sparsecv batch needs pandas": ["batch", "plan.toml", "--out", "runs"],
        "this needs pandas": read + "record.to_frame()",
        "MissingPackage: this needs matplotlib": read + "record.plot()",
        "MissingPackage: BestSubsetRidge needs scikit-learn": "import sparsecv_mio as sc; sc.BestSubsetRidgeCV()",
    }
    command = [sys.executable, "-c", BARE, json.dumps([*first_day, *asked.values()])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    answers = json.loads(done.stdout.splitlines()[-1])
    codes = [code for code, _ in answers[:11]]
    assert codes == [0] * 9 + [codes[9], None] and "needs" not in answers[9][1], answers
    for (code, told), (words, what) in zip(answers[11:], asked.items(), strict=True):
        if isinstance(what, list):
            assert code == 4 and told.count("\n") == 1 and words in told and "pip install" in told, (what, code, told)
        else:
            assert words in code and "sparsecv-mio[" not in code, (what, code)
            assert "pip install " in code and " in a clone" in code, (what, code)
    assert not (tmp_path / "runs").exists()


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        found = set()
        for one in extras[extra]:
            if one.startswith("sparsecv-mio["):
                found |= {name for part in one[len("sparsecv-mio[") : -1].split(",") for name in packages(part)}
            else:
                found.add(one.partition(">")[0])
        return found

    for extra, modules in EXTRAS.items():
        assert packages(extra) == {INSTALLED_AS.get(name, name) for name in modules}, extra
    assert set(EXTRAS) <= set(extras) and packages("full") == {INSTALLED_AS.get(name, name) for name in GONE}
    core = {one.partition(">")[0] for one in project["dependencies"]}
    assert core.isdisjoint(packages("all"))


def test_only_packages_of_extras_are_explained() -> None:
    need_extra("plot", "a test")
    assert missing_package(ModuleNotFoundError("No module named 'x'", name="x")) is None
    with pytest.raises(ModuleNotFoundError, match="nowhere"), naming_extras():
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")
    with pytest.raises(MissingPackage, match=r'needs scikit-learn, .*install "\.\[sklearn\]"'), naming_extras():
        raise ModuleNotFoundError("No module named 'sklearn.base'", name="sklearn.base")


def test_only_what_is_public_is_listed() -> None:
    assert sorted(dir(sparsecv_mio)) == sorted([*sparsecv_mio.__all__, "__version__"])
