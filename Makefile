# Everything a contributor runs. "make" alone lists the targets.
# Paths are relative, so a checkout in a folder with spaces works.

PYTHON ?= python3
PYTEST_ARGS ?=

SHELL := /bin/sh
VENV := .venv
# What the integration tests talk to has requirements of its own.
GATEWAY := .venv-gateway
PY := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)
CODE := $(wildcard gambit_actors tests benchmarks decks examples)

ifdef UV
VENV_FLAGS := --without-pip
VENV_NEEDS := venv
ENSURE_PIP := :
INSTALL := uv pip install --quiet --python $(PY)
else
VENV_FLAGS :=
VENV_NEEDS := venv, ensurepip
# An environment made while uv was on PATH has no pip yet.
ENSURE_PIP := $(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null
INSTALL := $(PY) -m pip install -qq --no-input --disable-pip-version-check
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check check-static format bench soak integration docs \
  conformance lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.run ## run a tree of decks, check those here; no key, network only to install
	@$(VENV)/bin/gambit demo
	@$(VENV)/bin/gambit check decks

test: $(VENV)/.dev ## run the tests (PYTEST_ARGS="-k name" to choose)
	@$(PY) -m pytest $(PYTEST_ARGS)

check: check-static test ## everything a change must pass: check-static, then test

check-static: $(VENV)/.dev ## format, lint, types, async rules and layers
	@echo "ruff format"
	@$(PY) -m ruff format --quiet --check . || { echo "run: make format"; exit 1; }
	@echo "ruff check"
	@$(PY) -m ruff check --quiet .
	@echo "mypy"
	@$(PY) -m mypy --strict --no-error-summary $(CODE)
	@echo "flake8-async"
	@$(PY) -m flake8 $(CODE)
	@echo "import-linter"
	@$(VENV)/bin/lint-imports >$(VENV)/imports.log 2>&1 \
	  || { cat $(VENV)/imports.log; exit 1; }

format: $(VENV)/.dev ## rewrite the code in the house format
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

bench: $(VENV)/.bench ## measure SSE events, decks, arguments, runs, logs, HTTP streams
	@$(PY) -m benchmarks.sse_events
	@$(PY) -m benchmarks.deck_loading
	@$(PY) -m benchmarks.runs
	@$(PY) -m benchmarks.logs
	@$(PY) -m benchmarks.http_streams

integration: $(VENV)/.dev $(GATEWAY)/.installed ## ask a gateway that others have written (LiteLLM; about 600 MB)
	@GAMBIT_TEST_GATEWAY=$(abspath $(GATEWAY))/bin/litellm \
	  $(PY) -m pytest -m integration $(PYTEST_ARGS)

soak: $(VENV)/.dev ## the long sweeps: 50,000 runs, many more random examples
	@HYPOTHESIS_PROFILE=soak $(PY) -m pytest -m "not integration" $(PYTEST_ARGS)

docs: conformance $(VENV)/.docs ## build the documentation into docs/_build/html
	@$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

conformance: $(VENV)/.dev ## rewrite the two pages that are made from the tests
	@$(PY) -m pytest -qq --collect-only --write-conformance >$(VENV)/conformance.log \
	  || { cat $(VENV)/conformance.log; exit 1; }
	@echo "wrote docs/reference/conformance.md"
	@$(PY) -m tests.deck.diagnostics_page

# dev is resolved first and constrains the others, so that any of them can be
# installed into the same environment in any order.
COMPILE = uv pip compile --quiet --universal --python-version 3.11 \
  --generate-hashes --no-strip-extras --no-emit-index-url --no-header $(UPGRADE) pyproject.toml

lock: ## resolve the lock files again with uv (UPGRADE=--upgrade for newer versions)
	@command -v uv >/dev/null || { \
	  echo "make lock needs uv: install it (pip install uv) and put it on PATH." >&2; \
	  exit 1; }
	@$(COMPILE) --group dev -o locks/dev.txt
	@$(COMPILE) --group build -c locks/dev.txt -o locks/run.txt
	@$(COMPILE) --group build --group bench -c locks/dev.txt -o locks/bench.txt
	@$(COMPILE) --group build --group docs -c locks/dev.txt -o locks/docs.txt
	@$(subst pyproject.toml,locks/gateway.in,$(COMPILE)) -o locks/gateway.txt
	@echo "wrote locks/"

clean: ## remove the environment, caches and built files
	@rm -rf $(VENV) $(GATEWAY) build dist docs/_build .mypy_cache .pytest_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "gambit needs Python 3.11 or newer as '$(PYTHON)': install it (for" \
	    "example: apt install python3) or name another one: make demo PYTHON=python3.12" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import $(VENV_NEEDS)' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module" \
	    "(for example: apt install python3-venv)." >&2; \
	  exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV_FLAGS) $(VENV) || { rm -rf $(VENV); exit 1; }

# One stamp per lock file: run, dev, bench, docs.
$(VENV)/.%: locks/%.txt pyproject.toml | $(PY)
	@echo "installing locks/$*.txt and the project into $(VENV)"
	@$(ENSURE_PIP)
	@$(INSTALL) --require-hashes -r locks/$*.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(GATEWAY)/.installed: locks/gateway.txt | $(PY)
	@echo "installing locks/gateway.txt into $(GATEWAY)"
	@$(PYTHON) -m venv $(VENV_FLAGS) $(GATEWAY)
	@$(subst $(VENV),$(GATEWAY),$(INSTALL)) --require-hashes -r locks/gateway.txt
	@touch $@
