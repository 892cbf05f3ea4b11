# Needs Python 3.11 to 3.14 and make, nothing else. Another interpreter: make test PYTHON=/path/to/python3.13
PYTHON ?= python3.11
VENV ?= .venv
JOBS ?= 2
BIN = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BEFORE ?= main
# The processes already share the cores: more threads inside each would only make them wait for one another. OMP is that
# of scikit-learn, whose threads spin while they wait.
ONE_THREAD = NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: help setup peers demo test slow oldest newest solvers wheel lint docs bench bench-guard fuzz audit sbom locked lock clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    solve the diabetes data by certified leave-one-out cross-validation"
	@echo "make test    the test suite ($(JOBS) processes; make test JOBS=1 for one)"
	@echo "make slow    the tests with the mark slow, which the workflow slow runs nightly"
	@echo "make oldest  the quick suite with the oldest packages that pyproject.toml allows; make newest with the newest"
	@echo "make solvers  the conformance suite with the locked packages, but the newest solvers"
	@echo "make wheel   wheels with compiled kernels, for every Python at hand, into dist/"
	@echo "make lint    ruff and mypy"
	@echo "make docs    the docs site, with its examples run, into build/docs (open build/docs/index.html)"
	@echo "make bench   whole cross-validations, some minutes (python scripts/bench lists all benchmarks and studies)"
	@echo "make bench-guard  short questions here and at another commit, fails where this one is slower (BEFORE=main; LONG=1: long ones, here alone)"
	@echo "make peers   the packages of other authors that batches compare with (abess, skglm)"
	@echo "make fuzz    random runs over every option against enumeration, altered records and proofs (FUZZ_EXAMPLES=2000)"
	@echo "make audit   known vulnerabilities of the pinned dependencies (asks the index of PyPI)"
	@echo "make sbom    what is installed, as a CycloneDX list, into build/sbom.json"
	@echo "make locked  whether what is installed is what the lock says (no network)"
	@echo "make lock    rewrite requirements.lock and requirements-peers.lock from pyproject.toml"

# One stamp for the pinned dependencies, one for the package itself: a changed pyproject alone reinstalls no dependency.
# --no-compile: half the time; Python compiles what is imported, when it is. --require-hashes: a file that is not one of
# those the lock was made of is refused, whatever index it comes from; the package is built by the setuptools of the lock.
$(VENV)/.dependencies: requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements.lock
	@touch $@

$(VENV)/.package: $(VENV)/.dependencies pyproject.toml
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(VENV)/.package

peers: setup
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements-peers.lock

demo: setup
	$(BIN)/sparsecv solve instances/diabetes.csv --target y --folds loo

# worksteal: each begins with files of its own, so that both do not compile the same kernels.
# What Python makes of sources is kept, whatever the shell says: else each process and each test that starts one would
# parse all of them, packages (pip left them as they are) and tests among them.
test slow: setup
	$(ONE_THREAD) PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/bytecode \
	  $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(if $(filter slow,$@),-m slow)

# The quick suite, of units and backends, with the ends of what pyproject.toml allows, in environments of their own: each
# lower bound of a package is one that ran. Packages that those need in turn are the newest in both.
build/oldest/.installed build/newest/.installed: build/%/.installed: build/lock/bin/uv pyproject.toml
	$(PYTHON) -m venv --clear build/$*
	build/lock/bin/uv pip install --quiet --python build/$*/bin/python --only-binary :all: --no-binary sparsecv-mio \
	  --resolution $(if $(filter oldest,$*),lowest-direct,highest) --group test --editable ".[all,peers]"
	@touch $@

oldest newest: %: build/%/.installed
	$(ONE_THREAD) NUMBA_CACHE_DIR=$(CURDIR)/build/$*/kernels \
	  build/$*/bin/python -m pytest -n $(JOBS) --dist worksteal tests/unit tests/conformance

# Solvers change between releases of this package, so that a failure here is the solver's alone.
build/solvers/.installed: build/lock/bin/uv requirements.lock pyproject.toml
	$(PYTHON) -m venv --clear build/solvers
	build/lock/bin/uv pip install --quiet --python build/solvers/bin/python --require-hashes --requirement requirements.lock
	build/lock/bin/uv pip install --quiet --python build/solvers/bin/python --upgrade-package gurobipy \
	  --upgrade-package highspy --upgrade-package mosek --upgrade-package pyscipopt --editable ".[gurobi,highs,mosek,scip]"
	@touch $@

solvers: build/solvers/.installed
	$(ONE_THREAD) NUMBA_CACHE_DIR=$(CURDIR)/build/solvers/kernels \
	  build/solvers/bin/python -m pytest -n $(JOBS) --dist worksteal tests/conformance

# A wheel for each interpreter at hand, with all kernels compiled for a plain processor: nothing is compiled at first use.
# Each is built from a copy of what is committed or added, in an environment of its own.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
wheel:
	@for python in $(PYTHONS); do \
	  $$python -c "" 2>/dev/null || { echo "no $$python here"; continue; }; \
	  place=build/wheel/$$python; rm -rf $$place; mkdir -p $$place/source || exit 1; \
	  git ls-files -z | tar --create --null --files-from - | tar --extract --directory $$place/source || exit 1; \
	  $$python -m venv $$place/venv || exit 1; \
	  $$place/venv/bin/python -m pip install --quiet "setuptools>=77" $$place/source || exit 1; \
	  $$place/venv/bin/python -m pip uninstall --quiet --yes sparsecv-mio || exit 1; \
	  $$place/venv/bin/python $$place/source/scripts/ship_kernels.py || exit 1; \
	  $$place/venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist $$place/source || exit 1; \
	done; ls -l dist/*.whl

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy scripts/bench
	$(BIN)/mypy scripts/agreement

# Pages of examples and names that are gone must not survive, so what is generated is made anew.
docs: setup
	rm -rf docs/generated build/docs build/doctrees
	NUMBA_NUM_THREADS=$(JOBS) OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MPLBACKEND=agg \
	  $(BIN)/python -m sphinx -b html -j $(JOBS) -W --keep-going -q -d build/doctrees docs build/docs

bench: setup
	$(BIN)/python scripts/bench/whole_runs.py

# Two commits side by side, one thread each: BEFORE, and what stands in this folder.
bench-guard: setup
	$(BIN)/python scripts/bench/guard.py $(if $(LONG),--long,$(BEFORE))

# By hand: examples are drawn anew each time and counted in build/campaign.jsonl; a failure prints what reproduces it.
FUZZ_EXAMPLES ?= 1000
FUZZ_FORGERIES ?= 1000
FUZZ_SEED ?= 0
fuzz: setup
	$(ONE_THREAD) \
	  FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) FUZZ_FORGERIES=$(FUZZ_FORGERIES) FUZZ_SEED=$(FUZZ_SEED) \
	  $(BIN)/python -m pytest tests/campaign --hypothesis-seed=$(FUZZ_SEED)

# Tools that look at the dependencies live in an environment of their own, so that they are none of them.
build/audit/bin/pip-audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet pip-audit cyclonedx-bom

audit: build/audit/bin/pip-audit
	build/audit/bin/pip-audit --strict --requirement requirements.lock --no-deps --disable-pip --progress-spinner off

sbom: setup build/audit/bin/pip-audit
	build/audit/bin/cyclonedx-py environment --output-format JSON --output-file build/sbom.json $(BIN)/python

# Without a network: what is installed is what the lock says, and nothing that it needs is missing.
locked: setup
	$(BIN)/python -m pip install --quiet --dry-run --no-index --no-deps --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip check

# uv lives in an environment of its own, so that the lock never lists it. The locks are those of every system and every
# Python from 3.11.5 on: what only some of them need has a marker. uv takes the hashes of all files of a release
# from the index; pip-compile downloads each of the files, some ten gigabytes.
build/lock/bin/uv:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv

COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" build/lock/bin/uv pip compile --quiet --universal --python-version 3.11.5 \
  --python build/lock/bin/python --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links

lock: build/lock/bin/uv
	$(COMPILE) --extra all --group dev --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra peers --constraint requirements.lock --output-file requirements-peers.lock pyproject.toml

clean:
	rm -rf build docs/generated .pytest_cache .ruff_cache .mypy_cache .hypothesis .benchmarks
