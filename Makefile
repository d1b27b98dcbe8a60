# Every target does its own set-up from nothing; what is already there is not done again.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup versions run clinic test check bench results clean test-programs

# The first Python that can make a virtual environment.
PYTHON = for python in python3.11 python3.12 /usr/bin/python3.11; do \
  $$python -c 'import ensurepip, venv' 2>/dev/null && echo $$python && break; done
BIN := .venv/bin
INSTALLED := .venv/.installed
TORCH := $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
TEST_PACKAGES := chromium fonts-noto-cjk postgresql
APT := DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=30
BENCHMARKS := approval kill_resume prepare retrieval rgat store_kills tampering
CLINIC_DIALOGUES := 2000
CLINIC_SEED := 1
SEGMENTER_zh := rjieba
SEGMENTER_en := spaces
CLINIC_SOURCES := $(wildcard $(foreach part,clinic dialogue knowledge,src/vrbot/$(part)/*.*) \
  src/vrbot/cli/simulate.py src/vrbot/cli/prepare.py)

# Two threads that spin while they wait slow each other down.
export OMP_WAIT_POLICY := PASSIVE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help:  ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

setup: $(INSTALLED)  ## Make .venv with everything in it

# torch comes first and alone, so that no other package asks for another one. PyPI's wheel brings GPU libraries along:
# name an index of wheels without them in PIP_EXTRA_INDEX_URL to have none.
$(INSTALLED): pyproject.toml versions.txt
	@python="$$($(PYTHON) || true)"; \
	if [ -z "$$python" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  $(APT) update -qq && $(APT) install -y -qq --no-install-recommends python3.11 python3.11-venv >/dev/null; \
	  python="$$($(PYTHON) || true)"; fi; \
	[ -n "$$python" ] || { echo "Python 3.11 or 3.12 with venv is needed, as Debian's python3.11-venv" >&2; exit 1; }; \
	[ -x $(BIN)/python ] || $$python -m venv .venv
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --constraint versions.txt --editable ".[dev]"
	@touch $@

# A version nobody has tested must not come in by itself: today's newest checker may refuse yesterday's code.
versions:  ## Write versions.txt anew, with the newest of everything (then: make check test)
	rm -rf build/newest && $$($(PYTHON)) -m venv build/newest
	build/newest/bin/python -m pip install --quiet "$(TORCH)"
	build/newest/bin/python -m pip install --quiet ".[dev]"
	{ head -1 versions.txt; build/newest/bin/python -m pip freeze | grep -vE '^(torch==|torch @|vrbot @)'; } > build/versions.txt
	mv build/versions.txt versions.txt && rm -rf build/newest

run: $(INSTALLED)  ## Simulate the clinic, train a small model on it (once), print its scores, open the console
	$(BIN)/vrbot demo $$([ -t 1 ] || echo --no-serve)

clinic: build/clinic-zh/report.txt build/clinic-en/report.txt  ## Simulate the clinic whole, prepare it, print the corpus report
	@for language in zh en; do echo "== clinic, $$language"; cat build/clinic-$$language/report.txt; echo; done

build/clinic-%/report.txt: $(INSTALLED) $(CLINIC_SOURCES)
	@mkdir -p $(@D)
	$(BIN)/vrbot simulate --out $(@D)/dialogues --dialogues $(CLINIC_DIALOGUES) --seed $(CLINIC_SEED) --language $* --overwrite
	$(BIN)/vrbot prepare $(@D)/dialogues --out $(@D)/corpus --graph $(@D)/dialogues/graph.csv \
	  --lexicon $(@D)/dialogues/lexicon.json --entities $(@D)/dialogues/entities.csv \
	  --segmenter $(SEGMENTER_$*) --overwrite > $@

test: $(INSTALLED) test-programs  ## Run all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

check: $(INSTALLED)  ## Check format, lint, types and architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/architecture

bench: $(INSTALLED)  ## Run the benchmarks that need no trained model (benchmarks.load and .out_of_domain take a RUN)
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; done

# Begun again it goes on. VRBOT_DATA names the folder of the real dialogues; their tables are left out without it.
results: $(INSTALLED)  ## Make the tables of docs/results that are kept up to date again, and the README's (about fifteen hours on two fast cores)
	$(BIN)/vrbot experiment tables --out runs/tables --jobs 2 --publish docs/results
	$(BIN)/vrbot experiment readme README.md

# Without these packages the tests that need them are skipped; under CI=true they fail instead.
test-programs:  ## Install the Debian packages some tests use (as root)
	@missing=""; for package in $(TEST_PACKAGES); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
	  [ -n "$$missing" ] || exit 0; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing$$missing"; \
	    { $(APT) update -qq && $(APT) install -y -qq --no-install-recommends $$missing >/dev/null; } \
	      || echo "could not install$$missing: tests that need them will say so" >&2; \
	  else echo "not installed:$$missing (tests that need them will say so)" >&2; fi

clean:  ## Remove .venv, build (with the demo's model) and caches; runs/ stays
	rm -rf .venv build .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
