# The two commands of this project are `make run` and `make test`. Each works from a fresh clone:
# it installs the Debian packages that are missing, builds what it needs, and can be repeated.
BERTH_HOME ?= $(CURDIR)/build/home
LISTEN ?= 127.0.0.1:3100
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help run build test check bench fuzz format hooks clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build  ## build, then serve on http://127.0.0.1:3100 (LISTEN=HOST:PORT, BERTH_HOME=DIR)
	@tools/run "$(BERTH_HOME)" "$(LISTEN)"

build:  ## install what is missing and build build/release/berth
	@tools/install build
	@cmake --preset release && cmake --build --preset release

test:  ## install, build and run every test; the last line has the counts
	@tools/install test || { echo "0 passed, 1 failed"; exit 1; }
	@tools/test

check:  ## what must pass before a review: format, house rules, headers, clang-tidy, tests
	@tools/install check
	@tools/check

bench:  ## measure against the bounds of docs/bench.md, one line per number
	@tools/install bench
	@cmake --preset bench && cmake --build --preset bench
	@tools/with-postgres bench/run

fuzz:  ## run the fuzz targets (FUZZ_SECONDS=60)
	@tools/install test
	@tools/test --only fuzz --fuzz-seconds $(FUZZ_SECONDS)

format:  ## format every source file
	@tools/install check
	@tools/check --fix-format

hooks:  ## let git run tools/check --fast before each commit
	@git config core.hooksPath tools/hooks

clean:  ## remove build/, and with it the default home of `make run`
	@rm -rf build
