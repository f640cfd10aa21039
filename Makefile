# Needs Python 3.11 or newer with venv, and nothing else. PYTHON names another interpreter, VENV
# another place for what is installed, JOBS how many tests run at a time: more than there are
# processors, since tests of measurements wait for half of their time.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= $(shell expr $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 2)
LOCK ?= requirements.lock
DEV_LOCK ?= requirements-dev.lock
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Goes before the command of the tests that run alone: it may stop what else runs.
ALONE ?=
# Otherwise one process is left alone with the slow tests that it was given at first.
PARALLEL := -n $(JOBS) --dist worksteal
# Containers often set it. Then each of the thousands of processes that the tests start would compile
# benchctl anew, and each pytest all tests: a fourth of all the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run setup collect test test-together test-again test-pythons collect-lowest \
    test-dependents test-lowest test-newest test-core test-kernel test-kernel-order explore check fix cov bench archive-demo fleet-demo \
    docs dist deb lock clean

run: $(STAMP)  ## set everything up and run the quickstart profile
	$(BIN)/benchctl run quickstart

setup: $(STAMP)-dev  ## install what the tests need

collect: $(STAMP)-dev  ## compile the tests once; otherwise each of the first processes does it
	@$(BIN)/pytest --collect-only -qq >$(VENV)/.collected || { cat $(VENV)/.collected; exit 1; }

# Only the files of those that run alone: to find them among all tests takes longer than some take.
test: test-together  ## set everything up and run all tests; those that time a network run alone
	$(ALONE) $(BIN)/pytest -m quiet $$(grep -rl --include='test_*.py' 'mark\.quiet' tests)

test-together: $(STAMP)-dev  ## all tests but those that time a network
	$(BIN)/pytest $(PARALLEL) -m "not quiet"

# What documents say and what packets mean needs neither.
test-again: $(STAMP)-dev  ## those of test-together that another Python or other versions may break
	$(BIN)/pytest $(PARALLEL) -m "not (quiet or once)" --ignore tests/docs --ignore tests/packets

test-pythons:  ## the tests with every Python that is here
	set -e; for python in $$(.ci/pythons); do \
	    $(MAKE) test PYTHON=$$python VENV=.venvs/$${python##*/}; done

LOWEST := VENV=.venvs/lowest LOCK=requirements-lowest.lock DEV_LOCK=requirements-lowest.lock
collect-lowest:  ## install what the tests need, in the lowest versions, and compile them
	$(MAKE) collect $(LOWEST)

# What versions of dependencies may break: what is read (pydantic), typed (typer), kept (msgspec), drawn
# (textual, rich, jinja2, matplotlib), exported (pyarrow), archived (psycopg) or encrypted (cryptography).
# The engine and the hosts are here for the newest Python, which has another event loop. What needs
# other programs or a network is left out, and so is what is pure.
DEPENDENTS := archive/test_push_and_pull.py archive/test_views.py backends cli/commands cli/shared \
    engine hosts imports profile report run schedule store tui owamp/test_owamp_control.py \
    owamp/test_twamp_replay.py test_settings.py
PARAMETERS := $(wildcard tests/*/test_*_contract.py tests/*/test_*_commands.py tests/*/test_*_backend.py)
test-dependents: $(STAMP)-dev  ## those of test-together that versions of dependencies may break
	$(BIN)/pytest $(PARALLEL) -m "not (quiet or once or tool or netns)" \
	    $(sort $(DEPENDENTS:%=tests/%) $(PARAMETERS))

test-lowest:  ## test-dependents with the lowest versions that pyproject.toml allows
	$(MAKE) test-dependents $(LOWEST)

test-newest:  ## the tests with the newest versions that there are
	$(PYTHON) -m venv --clear .venvs/newest
	.venvs/newest/bin/python -m pip install --quiet --editable .[build,dev]
	touch .venvs/newest/.installed .venvs/newest/.installed-dev
	$(MAKE) test VENV=.venvs/newest

CORE := analysis backends hosts iperf3 owping ping profile profiles report run store traceroute \
    test_units.py test_visible.py
test-core: $(STAMP)-dev  ## the tests that need neither Linux nor another program
	$(BIN)/pytest $(PARALLEL) -m "not (tool or netns or ipv6 or quiet)" $(CORE:%=tests/%)

KERNELS ?= 6.12 newest
KERNEL_TESTS ?= tests/guest tests/lab
test-kernel: $(STAMP)-dev  ## the lab's tests and promises on Debian's own kernels, in a virtual machine
	set -e; for kernel in $(KERNELS); do \
	    $(BIN)/python tests/guest $$kernel -- "pytest -m netns $(KERNEL_TESTS)"; done

test-kernel-order: $(STAMP)-dev  ## the order of frames on those kernels, with two processors
	set -e; for kernel in $(KERNELS); do \
	    $(BIN)/python tests/guest $$kernel --host-clock -- pytest tests/guest/test_order.py; done

explore: $(STAMP)-dev  ## the property tests with new random examples; what fails becomes a patch
	$(BIN)/pytest -m hypothesis --hypothesis-profile explore

check: $(STAMP)-dev  ## style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(STAMP)-dev  ## format the code, and mend what can be mended safely
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

cov: $(STAMP)-dev  ## the tests, or those of TESTS; prints the lines and branches that none reaches
	$(BIN)/coverage erase
	failed=0; \
	$(BIN)/coverage run -m pytest $(PARALLEL) -m "not quiet" $(TESTS) || failed=$$?; \
	$(BIN)/coverage run -m pytest -m quiet $(TESTS) || [ $$? = 5 ] || failed=$$?; \
	$(BIN)/coverage combine --quiet; \
	$(BIN)/coverage report; \
	exit $$failed

bench: $(STAMP)-dev  ## measure benchctl itself; prints each figure beside its bound
	$(BIN)/python bench

archive-demo: $(STAMP)-dev  ## a schedule, an archive and a page of a mesh in which a link becomes worse
	$(BIN)/python tests/demo/archive.py

fleet-demo: $(STAMP)-dev  ## a fleet of twenty hosts in a lab, of which one is killed, and its server
	$(BIN)/python tests/demo/fleet.py

docs: $(STAMP)-release  ## build the site of the documents in build/docs; a dead link is an error
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --conf-dir docs --doctree-dir build/doctrees \
	    . build/docs

dist: $(STAMP)-release  ## build what a release consists of, look at it, and install it as users do
	$(BIN)/python .ci/dist.py

deb: dist  ## build a package for Debian and its relatives, with an environment of its own in /opt
	$(BIN)/python .ci/deb.py

$(STAMP): $(LOCK) pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Most modules of these packages are never imported: to compile them all takes half of the time.
$(STAMP)-dev: $(STAMP) $(DEV_LOCK)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r $(DEV_LOCK)
	touch $@

$(STAMP)-release: $(STAMP) requirements-release.lock
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements-release.lock
	touch $@

COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --no-emit-index-url --extra build pyproject.toml
lock: $(STAMP)-release  ## work the versions out again
	$(COMPILE) -o requirements.lock
	$(COMPILE) --extra dev -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --extra dev --resolution lowest-direct -o requirements-lowest.lock
	$(COMPILE) --extra release -c requirements-dev.lock -o requirements-release.lock

clean:
	rm -rf .venv .venvs build dist
