# make demo, make test: each sets up what it needs in .venv, without root, and runs. PYTHON=... chooses the interpreter.

.PHONY: demo test test-sweeps lint types generated bench clean labs-up labs-down test-labs
.SHELLFLAGS := -euc
SHELL := /bin/bash

VENV := .venv
PY := $(VENV)/bin/python
# More than half of the time is spent in waiting for stand-ins: five processes a core, where there are few
PYTEST_ARGS ?= -q -p tests.side_by_side \
               --processes $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$(( n < 4 ? 5 * n : n + 12 )))
# Where pytest notes which tests failed
PYTEST_CACHE ?= .pytest_cache
BENCH_ARGS ?=
# Unix sockets lie below it: keep it short
LABS ?= /tmp/sssjob-labs-$(shell id -u)
LAB_ARGS ?= -q -m lab
# Tests start hundreds of interpreters: their bytecode is kept whatever the surroundings say (make clean removes it).
unexport PYTHONDONTWRITEBYTECODE

demo: $(VENV)/.runtime
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" examples/demo.sh

# The files of the tests are removed; PYTEST_DEBUG_TEMPROOT=/tmp make test keeps them there (tests/place.py says why not).
test: $(VENV)/.development
	@place=; if [ -z "$${PYTEST_DEBUG_TEMPROOT:-}" ]; then \
	  place=$$($(PY) tests/place.py); export PYTEST_DEBUG_TEMPROOT="$$place"; trap 'rm -rf "$$place"' EXIT; \
	fi; \
	$(PY) -m pytest -o cache_dir=$(PYTEST_CACHE) $(PYTEST_ARGS)

# What make test leaves out: one thing tried at many moments, seeds or places.
test-sweeps:
	@$(MAKE) --no-print-directory test PYTEST_ARGS='$(PYTEST_ARGS) -m sweep'

lint: $(VENV)/.development
	$(PY) -m ruff check .
	@if command -v shellcheck > /dev/null; then \
	  (cd tests/labs && shellcheck -x *-up *-down labs lib.sh) && cd psij/launchers && shellcheck -x *.sh; fi

types: $(VENV)/.development
	$(PY) -m mypy --strict

generated: $(VENV)/.development
	$(PY) -m sssjob.derive --check

bench: $(VENV)/.development
	$(PY) -m bench.run $(BENCH_ARGS)
	$(PY) -m bench.scripts
	$(PY) -m bench.lint
	$(PY) -m bench.request
	$(PY) -m bench.charges
	$(PY) -m bench.year
	$(PY) -m bench.large
	$(PY) -m bench.journal
	$(PY) -m bench.routing
	$(PY) -m bench.exchange
	$(PY) -m bench.psij_core
	$(PY) -m bench.psij_batch
	$(PY) -m bench.psij_local
	$(PY) -m bench.psij_async
	$(PY) -m bench.fluxexec

# Private Slurm and Grid Engine: docs/labs.md.
labs-up:
	@tests/labs/labs up $(LABS)

labs-down:
	@tests/labs/labs down $(LABS)

test-labs: $(VENV)/.development
	@tests/labs/labs run $(LABS) $(PY) -m pytest $(LAB_ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------------------

$(VENV)/bin/python:
	@for p in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$p" --version)"; \
	    exec "$$p" -m venv $(VENV); \
	  fi; \
	done; \
	echo "sssjob needs Python 3.11 or newer with its venv module; none was found." >&2; \
	echo "Install one (python3-venv on some systems), or name it: make PYTHON=/path/to/python3.12" >&2; \
	exit 1

# Dependency groups need a recent pip; -q keeps its list of downloads off the screen.
$(VENV)/.pip: $(VENV)/bin/python
	@PYTHONWARNINGS=ignore $(PY) -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.runtime: pyproject.toml $(VENV)/.pip
	@PYTHONWARNINGS=ignore $(PY) -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.development: pyproject.toml $(VENV)/.runtime
	@PYTHONWARNINGS=ignore $(PY) -m pip install -q --disable-pip-version-check -e . --group dev
	@touch $@
