# Everything a newcomer needs: `make demo` and `make test` set up what they use.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
READY := $(VENV)/.ready
WORKERS ?= 2

.PHONY: help setup java demo check test test-quick test-spark interop bench-growth format lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with everything pinned in requirements.lock

$(READY): requirements.lock pyproject.toml
	@scripts/need-python $(PYTHON)
	@[ -x "$(UV)" ] || { $(PYTHON) -m venv .tools && .tools/bin/pip install --quiet uv; }
	@[ -x $(BIN)/python ] || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $(READY)

java: ## see that Java 17 or newer is there; install it where that is allowed
	@scripts/need-java

demo: setup java ## sample NDJSON -> blizzard on local Spark -> Parquet -> penguin -> Delta table
	@$(BIN)/blizzard demo --dir demo

check: setup ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: test-quick test-spark ## the whole test suite

test-quick: setup ## the tests that need no Spark, on all cores
	$(BIN)/pytest -q -m "not spark and not interop" -n $(WORKERS) --dist loadfile

test-spark: setup java ## the tests on a real local Spark
	$(BIN)/blizzard warm
	$(BIN)/pytest -q -m spark -n $(WORKERS) --dist loadgroup

interop: setup java ## Spark with Delta on the same tables; fetches the Delta package
	$(BIN)/pytest -q -m interop tests/interop

bench-growth: setup ## measure what grows with the history; writes docs/performance.md
	$(BIN)/python -m bench.growth --most 1000000 --write

format: setup ## format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lock: ## resolve the dependencies anew into requirements.lock
	$(UV) pip compile --quiet --upgrade pyproject.toml --group dev --universal \
	  --generate-hashes --python-version 3.11 --no-header -o requirements.lock

clean: ## remove what make made
	rm -rf $(VENV) .tools demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
