# One command per chore, the same here and in continuous integration. Needs make, git and Python >= 3.11.

SHELL := /bin/sh
.DEFAULT_GOAL := help
BIN := .venv/bin
# pip reports, servers log and tests print as they go, also when the output is a file.
export PYTHONUNBUFFERED := 1

# How many pytest workers, and how often each chaos round runs. `make test` cuts the rounds to a few.
WORKERS ?= 2
CHAOS_ROUNDS ?= 30
# Further arguments for pytest, ruff or the benchmark: make test ARGS="-k cursor"
ARGS ?=

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: serve
serve: runtime ## Start the demo agent at http://127.0.0.1:8000 (PORT=… to change), tasks kept in dragoman.db
	@exec $(BIN)/dragoman serve $(ARGS)

.PHONY: test
test: check ## Check, then run every test, with the chaos rounds cut to a few
	CHAOS_ROUNDS=$${CHAOS_TEST_ROUNDS:-3} $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

.PHONY: check
check: dev ## Format, lint, types and import contracts, without changing anything
	$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff --quiet .; echo "Run: make format"; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/basedpyright --level error
	$(BIN)/lint-imports --no-cache

.PHONY: format
format: dev ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: chaos
chaos: dev ## Kill, starve and disconnect real processes, all rounds
	CHAOS_ROUNDS=$(CHAOS_ROUNDS) $(BIN)/python -m pytest tests/chaos $(ARGS)

.PHONY: bench
bench: dev ## Measure Dragoman beside its peers; prints ratios, writes bench/out/
	$(BIN)/python -m bench $(ARGS)

.PHONY: tck
tck: dev ## Run the official test kit: make tck TCK="<checkouts of a2aproject/a2a-tck>"
	@test -n "$(TCK)" || { echo "Name a checkout of a2aproject/a2a-tck: make tck TCK=../a2a-tck"; exit 2; }
	$(BIN)/python conformance/run.py $(TCK) $(ARGS)

.PHONY: docs
docs: dev ## Check that the documentation is true: settings, examples, links
	$(BIN)/python -m pytest tests/docs tests/test_exports.py $(ARGS)

.PHONY: cover
cover: dev ## Run the unit tests under coverage and show what no test reached
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not interop and not chaos" $(ARGS)
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report

.PHONY: lock
lock: dev ## Renew requirements/*.txt from pyproject.toml (LOCK_PYTHONS="python3.11 python3.12 …")
	$(BIN)/python scripts/lock $(LOCK_PYTHONS)

.PHONY: clean
clean: ## Remove what the chores made: environments, caches, reports (never a database)
	rm -rf .venv .envs build dist htmlcov .pytest_cache .hypothesis .ruff_cache .import_linter_cache bench/out .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: runtime dev
runtime:
	@scripts/environment runtime

dev:
	@scripts/environment dev
