# Every target sets up what it needs, system packages included; a second call does only what changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)

FUZZ_SECONDS ?= 60
# Many tests wait for something rather than work, so one process more than there are processors.
PARALLEL := --numprocesses $(shell expr $(shell nproc) + 1) --dist worksteal
# What reaches the core; the rest of the Python tests would only run slower under a sanitizer.
NATIVE_PYTESTS := tests/contract tests/model tests/concurrency tests/e2e/hostile tests/e2e/protocol \
  tests/e2e/test_native_connection.py
NATIVE_FOLDERS := transport/native tiering/native store/native
NATIVE_SOURCES := $(shell find $(NATIVE_FOLDERS) -name '*.cc' -o -name '*.h' -o -name CMakeLists.txt)
NATIVE_FORMATTED = $$(find $(NATIVE_FOLDERS) tests/native -name '*.cc' -o -name '*.h')
PACKAGING := pyproject.toml CMakeLists.txt store/limits.py \
  $(wildcard store/native/*.py store/resp_commands/*.py)
# Shared by the editable install and the wheel, so that the kernel is compiled once.
BUILD_SETTINGS := --no-build-isolation --config-settings build-dir=build/release \
  --config-settings cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON
DOOR := store/_door.py store/_kernel.pyi
TYPED_FOLDERS := build/ns/kvstrata tests bench examples

# ---- set-up ----

build/stamps/system-build build/stamps/system-test: build/stamps/system-%: .ci/setup
	@mkdir -p $(@D)
	.ci/setup $*
	@touch $@

build/stamps/venv: pyproject.toml | build/stamps/system-build
	@echo "setup: making .venv with the tools of a build"
	$$(.ci/python) -m venv .venv
	pip install --quiet --upgrade 'pip>=25.1'
	pip install --quiet --group build
	@touch $@

# The package itself, editable: Python files are used where they lie, the kernel is compiled.
build/stamps/install: build/stamps/venv $(PACKAGING) $(DOOR) $(NATIVE_SOURCES)
	@echo "setup: compiling the core, which takes minutes the first time, and installing kvstrata"
	pip install --quiet $(BUILD_SETTINGS) --editable '.[test]'
	@touch $@

build/stamps/check: build/stamps/install
	pip install --quiet --group check
	@touch $@

build/stamps/bench: build/stamps/install
	pip install --quiet --group bench
	@touch $@

.PHONY: setup
setup: build/stamps/install build/stamps/check build/stamps/system-test ## Set up everything

# ---- use ----

.PHONY: run
run: build/stamps/install ## Start a store, put and get real files and tensors, show what happened
	kvstrata demo

.PHONY: wheel
wheel: build/stamps/venv ## Build the wheel into dist/
	pip wheel --quiet --no-deps $(BUILD_SETTINGS) --wheel-dir dist .

# ---- check ----

.PHONY: check
check: build/stamps/check ## Formatters, linters, types, and the rules of the tree
	ruff check
	ruff format --check
	.ci/namespace build/ns
	mypy $(TYPED_FOLDERS)
	clang-format --dry-run -Werror $(NATIVE_FORMATTED)
	pytest --quiet tests/tidy

.PHONY: format
format: build/stamps/check ## Format all sources in place
	ruff check --fix --exit-zero
	ruff format
	clang-format -i $(NATIVE_FORMATTED)

# ---- test ----

.PHONY: test
test: fuzz tsan asan examples pytest ## All tests but the soak runs, ends with pytest's

.PHONY: pytest
pytest: build/stamps/install build/stamps/system-test ## The Python tests; `make pytest only=tests/unit`
	pytest -m "not soak" $(PARALLEL) $(only)

.PHONY: native
native: build/stamps/venv build/stamps/system-test ## The core's own tests, unsanitized (asan runs them too)
	cmake --preset native >build/native.log
	cmake --build build/native
	ctest --test-dir build/native --output-on-failure

.PHONY: asan
asan: build/stamps/install build/stamps/system-test ## Core tests, and pytest's that reach it, under ASan and UBSan
	cmake --preset asan -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python >build/asan.log
	cmake --build build/asan
	ctest --test-dir build/asan --output-on-failure
	.ci/sanitized-pytest build/asan --quiet --numprocesses $(shell nproc) --dist worksteal \
	  $(NATIVE_PYTESTS)

# The tests with threads in them; without address space randomisation, which gcc 12's
# ThreadSanitizer cannot follow on new kernels.
THREADED := *test_segment_pool*,*test_node*,*test_pools*,*test_quota*,*test_loop*,*test_initiator*,*test_greeting*
.PHONY: tsan
tsan: build/stamps/venv build/stamps/system-test ## Core tests under ThreadSanitizer
	cmake --preset tsan >build/tsan.log
	cmake --build build/tsan
	setarch --addr-no-randomize timeout 300 build/tsan/tests/native/kvcore_tests \
	  --source-file='$(THREADED)'

.PHONY: fuzz
fuzz: build/stamps/venv build/stamps/system-test ## The fuzz targets for FUZZ_SECONDS in all
	cmake --preset fuzz -DCMAKE_CXX_COMPILER=$$(.ci/clang) >build/fuzz.log
	cmake --build build/fuzz
	.ci/fuzz build/fuzz $(FUZZ_SECONDS)

.PHONY: examples
examples: build/stamps/install ## Run every example
	for example in examples/*.py; do echo "$$example"; timeout 60 python "$$example"; done

.PHONY: soak
soak: build/stamps/install ## The long runs that CI has no time for
	pytest -m soak --timeout 7200

# ---- measure ----

.PHONY: bench
bench: build/stamps/bench ## All bars at full length against their peers, with a picture
	python -m bench bars --full

.PHONY: bars
bars: build/stamps/bench ## Short forms of all bars, at most 15 minutes
	python -m bench bars

# ---- help ----

.PHONY: clean
clean: ## Remove what was built, the virtual environment included
	rm -rf build dist .venv

.PHONY: help
help: ## Say what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
