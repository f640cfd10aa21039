# Needs Python 3.11 or newer with venv, and nothing else. PYTHON names another interpreter.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test check bench lock clean

run: $(STAMP)  ## set everything up and run the quickstart profile
	$(BIN)/benchctl run quickstart

test: $(STAMP)-dev  ## set everything up and run all tests
	$(BIN)/pytest

check: $(STAMP)-dev  ## style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)-dev  ## measure benchctl itself; prints each figure beside its bound
	$(BIN)/python bench

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(STAMP)-dev: $(STAMP) requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	touch $@

lock: $(STAMP)-dev  ## work the versions out again; needs uv
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url --extra build pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url --extra build --extra dev -c requirements.lock \
	    pyproject.toml -o requirements-dev.lock

clean:
	rm -rf .venv
