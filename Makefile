# `make demo` and `make test` need Python >= 3.11 and make; everything else is installed into this folder.
PYTHON ?= python3
STAGE ?= local
BIN := .venv/bin
CACHE := $(CURDIR)/.cache

export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
export PIP_CACHE_DIR ?= $(CACHE)/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export npm_config_cache ?= $(CACHE)/npm
export NODE_COMPILE_CACHE ?= $(CACHE)/node
export CDK_HOME ?= $(CACHE)/cdk
export JSII_RUNTIME_PACKAGE_CACHE_ROOT ?= $(CACHE)/jsii
export PYTHONPYCACHEPREFIX ?= $(CACHE)/pycache

# Half of an installation would be the compilation of modules that nothing imports; the others are compiled when they are.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile
INSTALL := $(PIP_INSTALL) --require-hashes
RUN_LOCKS := requirements/app.txt requirements/jobs.txt requirements/local.txt
# lightning.gpu with its CUDA libraries is 2 GB, so only where a GPU is.
RUN_LOCKS += $(if $(wildcard /proc/driver/nvidia/gpus/*),requirements/gpu.txt)

.PHONY: demo demo-containers demo-training test test-images lint format synth deploy setup setup-dev lock clean

demo: setup
	@hybridjobs demo

# The same with jobs in containers, in the project's own images: needs a container engine with BuildKit that reaches the
# images' bases, or those that the file named by HYBRIDJOBS_IMAGE_BUILD puts in their place.
demo-containers: setup
	@HYBRIDJOBS_RUNNER=docker hybridjobs demo --stage containers

# The same with the trainings on the Sonar data, which need PyTorch.
demo-training: setup .venv/torch.stamp
	@hybridjobs demo --stage training

# A third of the time tests wait for processes, so that two cores have work for three workers.
test: setup-dev
	@$(BIN)/python -m pytest -n $${PYTEST_WORKERS:-3} --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# Builds the container images on stand-in bases, looks into them and runs their jobs, from cdk deploy to the records:
# installs Debian systems, takes many minutes.
test-images: setup-dev .venv/images.stamp
	@HYBRIDJOBS_BUILD_IMAGES=1 $(BIN)/python -m pytest tests/containers/test_images_built.py tests/containers/test_build_secrets.py $(PYTEST_ARGS)

# The last step synthesises with the CDK's own template validation, which every other synthesis leaves out.
lint: setup-dev
	@ruff check .
	@ruff format --check .
	@$(BIN)/python -m mypy
	@CDK_OUTDIR="$(CACHE)/lint-assembly" $(BIN)/python app.py

format: setup-dev
	@ruff check --fix .
	@ruff format .

synth: setup
	@cdk synth --quiet --no-lookups --context stage=$(STAGE)

# The prebuild of image assets looks for the repository before the Registry stack has made it, so it is off.
deploy: setup
	@CDK_ASSET_PREBUILD=false cdk deploy --all --context stage=$(STAGE)

setup: .venv/run.stamp node_modules/cli.stamp

setup-dev: setup .venv/dev.stamp .venv/torch.stamp

.venv/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(f"Python {sys.version.split()[0]} is too old: 3.11 or newer is needed; name one with make PYTHON=...") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/run.stamp: .venv/python.stamp $(RUN_LOCKS) pyproject.toml
	@echo "installing the locked Python packages into .venv"
	@$(INSTALL) $(RUN_LOCKS:%=--requirement %)
	@$(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements/dev.txt
	@echo "installing the locked test tools into .venv"
	@$(INSTALL) --requirement requirements/dev.txt
	@touch $@

.venv/torch.stamp: .venv/run.stamp requirements/torch.txt
	@echo "installing PyTorch into .venv"
	@$(PIP_INSTALL) --requirement requirements/torch.txt
	@touch $@

.venv/images.stamp: .venv/dev.stamp requirements/images.txt
	@$(INSTALL) --requirement requirements/images.txt
	@touch $@

node_modules/cli.stamp: package.json package-lock.json .venv/run.stamp
	@echo "installing the CDK CLI into node_modules"
	@npm ci --ignore-scripts --silent
	@touch $@

# Every group is resolved together first, so that one environment can hold them all.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate pyproject.toml
lock: setup-dev
	@$(COMPILE) --group app --group jobs --group local --group dev --output-file requirements/dev.txt
	@for group in app jobs local gpu images; do \
		$(COMPILE) --group $$group --constraint requirements/dev.txt --output-file requirements/$$group.txt || exit 1; done
	@npm install --package-lock-only --ignore-scripts

clean:
	@if [ -x $(BIN)/hybridjobs ]; then $(BIN)/hybridjobs local down; fi
	rm -rf .venv node_modules .cache .hybridjobs cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
