# Needs Python 3.11 or newer with venv, and nothing else. PYTHON names another interpreter, VENV
# another place for what is installed, JOBS how many tests run at a time.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
LOCK ?= requirements.lock
DEV_LOCK ?= requirements-dev.lock
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test test-pythons test-lowest test-newest explore check bench lock clean

run: $(STAMP)  ## set everything up and run the quickstart profile
	$(BIN)/benchctl run quickstart

test: $(STAMP)-dev  ## set everything up and run all tests; those that time a network run alone
	$(BIN)/pytest -n $(JOBS) -m "not quiet"
	$(BIN)/pytest -m quiet

test-pythons:  ## the tests with every Python that is here
	set -e; for python in $$(.ci/pythons); do \
	    $(MAKE) test PYTHON=$$python VENV=.venvs/$${python##*/}; done

test-lowest:  ## the tests with the lowest versions that pyproject.toml allows
	$(MAKE) test VENV=.venvs/lowest LOCK=requirements-lowest.lock DEV_LOCK=requirements-lowest.lock

test-newest:  ## the tests with the newest versions that there are
	$(PYTHON) -m venv --clear .venvs/newest
	.venvs/newest/bin/python -m pip install --quiet --editable .[build,dev]
	touch .venvs/newest/.installed .venvs/newest/.installed-dev
	$(MAKE) test VENV=.venvs/newest

explore: $(STAMP)-dev  ## the property tests with new random examples; what fails becomes a patch
	$(BIN)/pytest -m hypothesis --hypothesis-profile explore

check: $(STAMP)-dev  ## style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)-dev  ## measure benchctl itself; prints each figure beside its bound
	$(BIN)/python bench

$(STAMP): $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(STAMP)-dev: $(STAMP) $(DEV_LOCK)
	$(BIN)/python -m pip install --quiet --require-hashes -r $(DEV_LOCK)
	touch $@

COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --no-emit-index-url --extra build pyproject.toml
lock:  ## work the versions out again; needs uv
	$(COMPILE) -o requirements.lock
	$(COMPILE) --extra dev -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --extra dev --resolution lowest-direct -o requirements-lowest.lock

clean:
	rm -rf .venv .venvs
