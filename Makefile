# The front door: `make` lists what there is. CI goes through the same targets (.ci/run).
#   JOBS=n        compilers at once (default: one a core)
#   TEST_JOBS=n   test programs at once
#   FUZZ_S=n      seconds of fuzzing in all; FUZZ=name for one target
#   SHARED=dir    where `make test-shared` finds the public logs and test vectors

JOBS      ?= $(shell nproc)
TEST_JOBS ?= 2
FUZZ_S    ?= 60
FUZZ      ?=
SHARED    ?= ../shared
export JOBS
export PYTHONDONTWRITEBYTECODE = 1

# Folders whose unit tests run again under a sanitizer: all that parses, decides, keeps or publishes
# under asan and ubsan; under tsan what several threads share.
ASAN = (sluice/|tests/)
TSAN = (sluice/(base|store|limiter|telemetry)|tests/conformance)

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-servers test-sanitizers test-shared fuzz check format tidy bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: ## install the packages that building, testing and measuring need (Debian 12 and the like)
	@tools/setup

build: ## build sluice and orders_api as users run them
	@tools/setup build
	@tools/build release sluice orders_api

run: build ## build and start the demo: a gateway on :8080 in front of a small API
	@exec build/release/bin/sluice serve

test: ## checks and unit tests; needs nothing beside this folder
	@tools/setup build check test
	@$(MAKE) --no-print-directory check
	@tools/run_tests dev unit --jobs $(TEST_JOBS) --also headers programs

test-servers: ## tests with real servers and clients: nginx, wrk, curl
	@tools/setup build test servers
	@tools/run_tests dev server --jobs 1 --also programs

test-sanitizers: ## unit tests under asan and ubsan; what threads share under tsan
	@tools/setup build test
	@tools/run_tests asan unit --folders '$(ASAN)' --jobs $(TEST_JOBS) --also programs
	@tools/run_tests tsan unit --folders '$(TSAN)' --jobs $(TEST_JOBS)

test-shared: ## tests on public logs and vectors in SHARED, which are not part of the project
	@test -d '$(SHARED)' || { echo 'make test-shared: no folder $(SHARED); say SHARED=dir' >&2; exit 1; }
	@tools/setup build test
	@SLUICE_SHARED="$$(realpath '$(SHARED)')" tools/run_tests dev shared --jobs $(TEST_JOBS) --also programs

fuzz: ## fuzz every parser, FUZZ_S seconds in all (FUZZ=name: one)
	@tools/setup build test fuzz
	@tools/fuzz $(FUZZ_S) $(FUZZ)

check: ## format, layers, sizes, words, bug cases, and the checks' own tests; all are told at once
	@tools/setup check
	@tools/check

format: ## rewrite the C++ files as .clang-format says
	@tools/setup check
	@tools/check_format --fix

tidy: ## clang-tidy over all C++ files (slow)
	@tools/setup build test tidy
	@tools/tidy

bench: ## benchmarks, with what they are compared to: a table with ratios
	@tools/setup build test bench
	@tools/build release benchmarks sluice orders_api
	@bench/run

clean: ## remove all that was built
	rm -rf build
