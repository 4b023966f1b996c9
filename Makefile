# Start with `make demo` or `make test`: both first set up .venv from requirements.lock, and `make test` adds the
# developers' tools of requirements-dev.lock.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS_READY := $(VENV)/.ready-dev
# Makes an environment, step by step.
ENVIRONMENT := setup/environment.py
# C++ headers of packages, of which nothing here is compiled against.
HEADERS := tensorflow/include pyarrow/include
# pachyderm-sdk cannot be installed beside python-pachyderm.
SDK := .venv-sdk
SDK_READY := $(SDK)/.ready
SDK_TESTS := tests/parity/sdk
# The tests that `make soak` also runs on servers as late as a cluster. Those of the command always do so.
LATE_TESTS := tests/e2e tests/examples tests/parity
# The generator of type stubs needs a newer protobuf than python-pachyderm allows.
GENERATOR := .venv-stubs
GENERATOR_READY := $(GENERATOR)/.ready
STUBS := build/stubs
STUBS_READY := $(STUBS)/.ready
SCHEMA := localpachd/api/schema
# KerasHub also needs a newer protobuf.
TOWERS := .venv-towers
TOWERS_READY := $(TOWERS)/.ready
# pip-audit, and the advisories whose reach is limited here: protobuf's, see SECURITY.md.
AUDIT := .venv-audit
AUDITOR := pip-audit==2.10.1
LIMITED := CVE-2025-4565 CVE-2026-0994
# atheris, the fuzzer, beside the packages of .venv. CORPUS is what it has found to be worth changing.
FUZZ := .venv-fuzz
FUZZER := atheris==3.0.0
CORPUS := .fuzz
# The tests start thousands of processes: without bytecode on disk each of these would compile our modules again.
CACHING := env -u PYTHONDONTWRITEBYTECODE
# The number of test processes: N=4, or by default what tests/file_schedule.py says.
PYTEST := $(CACHING) $(BIN)/python -m pytest --processes $(or $(N),auto)
# Names and full rooms: a part of lint as well as of the tests.
HOUSE := tests/test_house.py
# The library of the original experiment.
EXPERIMENT ?= experiment
# DVC and Snakemake have their own environment, imagededup another one, and labelled pictures their own directory: the
# studies create them.
SETUPS := studies/setups
# The first Python on the PATH that the dependencies support and that can create an environment.
FIND_PYTHON := for each in python3.12 python3.11 python3 python; do \
	"$$each" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && { echo "$$each"; break; }; done

# The container images, one for each environment in the specifications.
ENVIRONMENTS := cpu tensorflow rapids rapids-cuda13 serve

.DEFAULT_GOAL := help
.PHONY: help environments setup demo classify-demo test test-all soak sdk bench stages pipeline serving study experiment towers fuzz lint audit stubs format lock wheel images clean

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

environments: $(TOOLS_READY) $(STUBS_READY) $(SDK_READY) ## Create all that lint and test need; make -j3 makes them side by side.

setup: $(READY) ## Create .venv with the packages pinned in requirements.lock.

$(READY): requirements.lock pyproject.toml
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "lookalike needs Python 3.11 or 3.12 with venv, and none is on the PATH: install python3.11 (on Debian and Ubuntu also python3.11-venv) and run make again; docs/install.md has the commands for each system" >&2; \
		exit 1; \
	fi; \
	"$$python" $(ENVIRONMENT) $(VENV) --lock requirements.lock --without $(HEADERS) --project .
	@touch $@

# The tools of developers, beside the packages that lookalike needs.
$(TOOLS_READY): requirements-dev.lock $(READY)
	@$(BIN)/python $(ENVIRONMENT) $(VENV) --lock requirements-dev.lock --add
	@touch $@

demo: $(READY) ## Run everything on the sample pictures, or on IMAGES=dir [QUERIES=dir]; PORT=n if 30650 is in use.
	@$(BIN)/lookalike demo $(if $(IMAGES),--images "$(IMAGES)") $(if $(QUERIES),--queries "$(QUERIES)") \
		$(if $(PORT),--port "$(PORT)")

classify-demo: $(READY) ## Train, compare and use classifiers on the sample pictures; PORT=n if 30650 is in use.
	@$(BIN)/lookalike classify demo $(if $(PORT),--port "$(PORT)")

# Several processes share each core, and threads of BLAS would only wait for one another; `make test-all` has them.
test: export OMP_NUM_THREADS := 1
test: $(TOOLS_READY) ## Run the tests that a change is likely to fail; N=4 uses 4 processes.
	@$(PYTEST)

test-all: $(TOOLS_READY) $(SDK_READY) ## Run all tests that need no accelerator, container engine or cluster.
	@$(call beside,$(MAKE) --no-print-directory sdk,$(PYTEST) --all)

soak: $(TOOLS_READY) $(SDK_READY) ## Run the tests of `make test-all`, the longer ones, and ten times as many examples; HOURS=2 kills servers instead.
ifdef HOURS
	@$(CACHING) $(BIN)/python -m tests.endurance --hours $(HOURS)
else
	@$(call beside,$(MAKE) --no-print-directory sdk,$(PYTEST) --soak --timeout 1800)
	@$(PYTEST) --all --faithful --timeout 600 $(LATE_TESTS)
endif

sdk: $(TOOLS_READY) $(SDK_READY) ## Run the tests that use pachyderm-sdk; `make test-all` runs them, too.
	@$(CACHING) $(SDK)/bin/python -m pytest -c $(SDK_TESTS)/pytest.ini $(SDK_TESTS)

# Runs a second command and, in parallel, a first one, whose output follows. Fails if either fails.
define beside
said=$$(mktemp); $(1) > "$$said" 2>&1 & other=$$!; \
	trap 'kill $$other 2> /dev/null; rm -f "$$said"' EXIT; trap 'exit 130' INT TERM; \
	$(2); failed=$$?; wait $$other || failed=1; cat "$$said"; exit $$failed
endef

$(SDK_READY): $(SDK_TESTS)/requirements.lock | $(READY)
	@$(BIN)/python $(ENVIRONMENT) $(SDK) --lock $(SDK_TESTS)/requirements.lock
	@touch $@

bench: $(READY) ## Measure localpachd, then the stages; ARGS="put --rounds 5" selects, ARGS=--short compares with committed figures.
ifneq (,$(filter --short,$(ARGS)))
	@$(BIN)/python -m benchmarks.short $(filter-out --short,$(ARGS))
else
	@$(BIN)/python -m benchmarks.localpachd $(ARGS)
	@$(if $(ARGS),,$(BIN)/python -m benchmarks.stages)
endif

stages: $(READY) ## Compare the stages with other programs; ARGS="knn --pictures 100000" selects.
	@$(BIN)/python -m benchmarks.stages $(ARGS)

pipeline: $(READY) ## Measure the whole pipeline on localpachd; ARGS="--pictures 1000 10000" selects sizes.
	@$(BIN)/python -m benchmarks.pipeline $(ARGS)

serving: $(READY) ## Measure the service over HTTP beside FAISS; two minutes; ARGS="--pictures 10000" selects the size.
	@$(BIN)/python -m benchmarks.serving $(ARGS)

study: $(READY) ## Repeat a study of studies/README.md: NAME=quality ARGS="framing --sets emoji".
	@$(BIN)/python -m studies.$(or $(NAME),$(error make study needs NAME=, see studies/README.md)) $(ARGS)

experiment: $(READY) ## The original experiment with STL-10, in a library of its own; DATA_DIR=, MODEL=, EXPERIMENT=dir, PORT=n.
	@unset PACHD_ADDRESS PACH_CONTEXT; export LOOKALIKE_ROOT="$(EXPERIMENT)/.lookalike"; \
	$(BIN)/lookalike up --port $(or $(PORT),30651) && \
	$(BIN)/lookalike deploy --overlay stl10 && \
	$(BIN)/lookalike model push "$(or $(MODEL),resnet50)" --image-size 96 && \
	$(BIN)/lookalike add stl10 $(if $(DATA_DIR),--data-dir "$(DATA_DIR)") && \
	$(BIN)/lookalike results stl10 --output "$(EXPERIMENT)/results"

towers: $(TOWERS_READY) ## Create .venv-towers with KerasHub, whose towers towers/README.md exports.

$(TOWERS_READY): towers/requirements.lock | $(READY)
	@$(BIN)/python $(ENVIRONMENT) $(TOWERS) --lock towers/requirements.lock
	@touch $@

fuzz: $(TOOLS_READY) ## Fuzz the readers of files and requests with atheris, 10 s each; TARGET=name, RUNS=n or SECONDS=n of each, JOBS=n.
	@test -e $(FUZZ)/.ready || { $(BIN)/python -m venv $(FUZZ) && $(FUZZ)/bin/pip install --quiet "$(FUZZER)" && touch $(FUZZ)/.ready; }
	@PYTHONPATH=$$(echo $(FUZZ)/lib/python3*/site-packages) $(BIN)/python -m tests.fuzz $(TARGET) --into $(CORPUS) \
		$(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(JOBS),--jobs $(JOBS))

lint: $(TOOLS_READY) $(STUBS_READY) ## Check style, types, the layers of the packages, and the names in them.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(call beside,$(BIN)/lint-imports --no-cache,$(BIN)/mypy)
	@$(BIN)/hadolint docker/Dockerfile
	@$(CACHING) $(BIN)/python -m pytest -q --no-header $(HOUSE)

# Not a part of lint: the package indices of machines without the internet have no list of vulnerabilities. There
# pip-audit finds nothing of any package, which --strict makes a failure.
audit: $(READY) ## Look up all pinned packages in PyPI's list of known vulnerabilities; needs the internet.
	@test -x $(AUDIT)/bin/pip-audit || { $(BIN)/python -m venv $(AUDIT) && $(AUDIT)/bin/pip install --quiet "$(AUDITOR)"; }
	@failed=0; for lock in requirements.lock requirements-dev.lock $(SDK_TESTS)/requirements.lock towers/requirements.lock docker/*.lock; do \
		echo "$$lock:"; $(AUDIT)/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
			$(LIMITED:%=--ignore-vuln %) -r "$$lock" || failed=1; done; exit $$failed

stubs: $(STUBS_READY) ## Generate the types of Pachyderm's messages for mypy; part of `make lint`.

$(STUBS_READY): $(SCHEMA)/schema.py $(SCHEMA)/schema_additions.py $(SCHEMA)/stubs.py $(GENERATOR_READY) | $(READY)
	@rm -rf $(STUBS)
	@$(BIN)/python -m localpachd.api.schema.stubs $(GENERATOR)/bin/protoc-gen-mypy $(STUBS)
	@touch $@

$(GENERATOR_READY): $(SCHEMA)/stubs.lock | $(READY)
	@$(BIN)/python $(ENVIRONMENT) $(GENERATOR) --lock $(SCHEMA)/stubs.lock
	@touch $@

format: $(TOOLS_READY) ## Format the code as lint requires.
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(READY) ## Pin the dependencies in pyproject.toml again; needs uv.
	@uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements.lock
	@uv pip compile --group pyproject.toml:dev --constraints requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-header -q -o requirements-dev.lock
	@uv pip compile $(SDK_TESTS)/requirements.in --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o $(SDK_TESTS)/requirements.lock
	@uv pip compile $(SCHEMA)/stubs.in --universal --python-version 3.11 --generate-hashes --no-header -q -o $(SCHEMA)/stubs.lock
	@uv pip compile towers/requirements.in --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o towers/requirements.lock
	@uv pip compile $(SETUPS)/requirements.in --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o $(SETUPS)/requirements.lock
	@uv pip compile $(SETUPS)/copies.in --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o $(SETUPS)/copies.lock
	@uv pip compile $(SETUPS)/url_lists.in --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o $(SETUPS)/url_lists.lock
	@uv pip compile $(SETUPS)/pictures.in --no-deps --universal --python-version 3.11 --generate-hashes --no-header -q \
		-o $(SETUPS)/pictures.lock
	@for image in $(ENVIRONMENTS); do \
		uv pip compile --group pyproject.toml:$$image --constraints requirements.lock --python-version 3.11 \
			--python-platform x86_64-manylinux_2_28 --only-binary :all: --generate-hashes --no-header -q \
			-o docker/$$image.lock || exit 1; done

wheel: $(READY) ## Build the wheel, and the versions for it, into dist/.
	@rm -rf build/lib
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@rm -rf build/lib build/bdist.*
	@sed -n 's/ \\$$//; s/^[a-z][a-z0-9-]*==.*/&/p' requirements.lock > dist/constraints.txt
	@ls dist/*.whl dist/constraints.txt

images: ## Build the container images; PUSH=registry/prefix pushes them; also ONLY=cpu, ENGINE=podman, BASE=, FLAGS=.
	@python=$$($(FIND_PYTHON)); "$${python:-python3}" docker/images.py --engine "$(or $(ENGINE),docker)" \
		--only "$(ONLY)" --push "$(PUSH)" $(if $(BASE),--base "$(BASE)") --flags="$(FLAGS)"

clean: ## Remove the environments and caches; keep the local server's state and the results.
	@rm -rf $(VENV) $(SDK) $(GENERATOR) $(TOWERS) $(AUDIT) $(FUZZ) $(CORPUS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
