# Two targets are all most people need: `make demo` and `make test`. Both set everything up in
# .venv and build/, and need python3 (3.11 or newer) with venv, a C compiler and make.

PYTHON ?= python3
BIN := .venv/bin
# Kept bytecode: without it each start of locktop would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Users do not set it, and it hides what fails at the last flush.
unexport PYTHONUNBUFFERED
JOBS := $(shell nproc 2>/dev/null || echo 2)

C_FILES = $(shell find native tests/targets -name '*.[ch]' -o -name '*.cc')
NATIVE := $(shell find native -type f) CMakeLists.txt

.PHONY: setup demo test lint format unit-c unit-c-sanitized pytest bench bench-table programs \
  pytest-system-python programs-bench symbols-bench readers-bench stacks-bench outside-bench scan-bench \
  soak false-alarms fuzz fuzz-recordings fuzz-streams \
  glibc-tests sizes clean

setup: .venv/.built

# pip says nothing for minutes, or a page.
PIP_INSTALL = $(PYTHON) release/pip_progress.py
PIP_OPTIONS = --disable-pip-version-check --progress-bar off

# The interpreter and what pyproject.toml asks for to build.
.venv/.requirements: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "locktop needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	       "Try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up .venv and build: some minutes the first time, later none"
	@$(PYTHON) -m venv .venv
	@mkdir -p build
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > build/requirements.txt
	@$(PIP_INSTALL) "tools that build" $(BIN)/pip install $(PIP_OPTIONS) -r build/requirements.txt
	@touch $@

# The editable install maps each module to its file, so a new or moved module needs a new install.
MODULES := build/modules.txt
.PHONY: list-modules
list-modules:
	@mkdir -p build
	@new=$(MODULES).$$$$; \
	find collector tui themes -type f -not -name '*.pyc' | LC_ALL=C sort > $$new; \
	cmp -s $$new $(MODULES) && rm $$new || mv $$new $(MODULES)
$(MODULES): list-modules

# An editable install: Python files are used where they lie. The compiled parts are built again
# when one of their files changed. Where nobody may keep bytecode, each start would take half as long
# again.
.venv/.built: .venv/.requirements $(NATIVE) $(MODULES)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP_INSTALL) "locktop and its tools" $(BIN)/pip install \
	  $(PIP_OPTIONS) --no-build-isolation -e '.[dev]'
	@$(BIN)/python -m compileall -q collector tui
	@touch $@

demo: setup
	$(BIN)/locktop demo

# The table of real programs in docs/overhead.md.
ROUNDS ?= 20
programs-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/programs.py $(ROUNDS)

# The tests include a short run.
MINUTES ?= 10
soak: setup
	LOCKTOP_SOAK_MINUTES=$(MINUTES) $(BIN)/pytest tests/soak -s

# Healthy programs under load: every finding about them is a false alarm. The tests run a few of them.
# SEED repeats the choice of a run; snapshots of false alarms go to build/false-alarms.
RUNS ?= 1000
false-alarms: setup
	PYTHONPATH=tests $(BIN)/python -m false_alarms --runs $(RUNS) $(if $(SEED),--seed $(SEED))

# Who holds the locks that name no holder, by library and level of optimisation (docs/sampling.md), the
# time to find deadlocks over them, and CHECKS of healthy programs with such locks: a deadlock there is a
# false alarm. The tests run a few.
CHECKS ?= 1000
.PHONY: probable
probable: setup
	PYTHONPATH=tests $(BIN)/python -m probable
	PYTHONPATH=tests $(BIN)/python -m probable.deadlocks
	PYTHONPATH=tests $(BIN)/python -m probable.healthy --checks $(CHECKS)

# Random changes to the code, one at a time: the unit tests must notice 90 of 100 (tests/mutants). PART is
# a part of tests/README.md; SEED repeats a choice.
MUTANTS ?= 100
.PHONY: mutants
mutants: setup
	PYTHONPATH=tests $(BIN)/python -m mutants --mutants $(MUTANTS) $(if $(PART),--part $(PART)) \
	  $(if $(SEED),--seed $(SEED))

# Names in a large program, made for it in MEGABYTES of build/big, and in Node.js (docs/overhead.md).
MEGABYTES ?= 200
symbols-bench: setup
	@mkdir -p build/big
	$(BIN)/python bench/symbols.py $(MEGABYTES) 10 build/big
	$(BIN)/python bench/node_names.py 10

# Our own readers beside pyelftools (docs/internals/adr).
readers-bench: setup
	$(BIN)/python bench/own_readers.py

# Stacks of threads that sleep, taken from outside (docs/overhead.md).
stacks-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/stacks.py 10

# What the tool takes for a process without the library, and what that loses (docs/overhead.md): in so many
# rounds of one and a half seconds for each of three programs.
TURNS ?= 100
outside-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/sampling.py $(TURNS)

# What a busy crowd of threads costs the tool (docs/overhead.md): by the numbers of its threads, and a
# snapshot of one more crowd. Some three minutes.
CROWDS ?= 300 500 2000
SNAPSHOT_OF ?= 10000
scan-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/crowd.py "$(CROWDS)" $(SNAPSHOT_OF)

# What `locktop stacks` costs at such crowds. Some minute.
.PHONY: all-stacks-bench
all-stacks-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/all_stacks.py "$(CROWDS)"

# What the memory of a live screen costs at such a crowd. Some two minutes.
.PHONY: memory-bench
memory-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/memory.py "$(CROWDS)"

# How the memory of a screen, of `listen` and of `watch` grows: half an hour to an hour and more.
GROWTH_MINUTES ?= 70
.PHONY: growth-bench
growth-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/growth.py --minutes $(GROWTH_MINUTES)

# What recording costs the tool and the program, and how large and how quick to read a recording is
# (docs/overhead.md). Some two minutes, on a machine that has nothing else to do.
.PHONY: record-bench record-kills
record-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/recording.py

# A recording killed with SIGKILL at random moments; the tests include ten.
KILLS ?= 100
record-kills: setup
	LOCKTOP_KILLS=$(KILLS) $(BIN)/pytest tests/integration/recording -k killed_at_any_moment

# The time to the first text and to a key, and the bytes for the terminal (docs/overhead.md).
TERMINAL_ROUNDS ?= 10
.PHONY: terminal-bench
terminal-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/terminal.py $(TERMINAL_ROUNDS)

# Programs that hang as real services did, each checked ten times; the tests check each twice.
.PHONY: incidents
incidents: setup
	LOCKTOP_INCIDENT_CHECKS=10 $(BIN)/pytest tests/integration/commands/test_incidents.py \
	  tests/terminal/test_screens_of_hangs.py

# Random keys and sizes on a live process; the tests include 400. SEED repeats a choice.
KEYS ?= 10000
.PHONY: random-keys
random-keys: setup
	LOCKTOP_RANDOM_KEYS=$(KEYS):$(SEED) $(BIN)/pytest -s tests/terminal/test_random_keys.py

# What samples inside locks cost the program and the tool (docs/overhead.md), in so many rounds of
# eight seconds.
INSIDE_ROUNDS ?= 11
.PHONY: inside-bench
inside-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/inside.py $(INSIDE_ROUNDS)

# Predictions of `locktop whatif` beside the changes really made (docs/whatif.md): some 15 minutes for
# 40 generated programs, 10 for the real ones, 4 for the rest. REAL_PROGRAMS names some of them.
PROGRAMS ?= 40
REAL_PROGRAMS ?=
.PHONY: whatif-bench
whatif-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/whatif.py $(PROGRAMS)
	PYTHONPATH=tests $(BIN)/python bench/whatif_real.py $(REAL_PROGRAMS)
	PYTHONPATH=tests $(BIN)/python bench/whatif_joins.py
	PYTHONPATH=tests $(BIN)/python bench/whatif_cpus.py

# False alarms of `locktop gate`, and changes that it finds (docs/overhead.md): some five minutes for
# 20 gates, six times. LOADS are busy processes beside the gates, CHANGES percentages.
GATES ?= 20
LOADS ?= 0,8
CHANGES ?= 0,20,10
.PHONY: gate-bench
gate-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/gate.py $(GATES) $(LOADS) $(CHANGES)

# `locktop whatif` beside the profiler coz (docs/whatif.md): 10 minutes, with the package coz-profiler.
.PHONY: whatif-coz
whatif-coz: setup
	PYTHONPATH=tests $(BIN)/python bench/whatif_coz.py

# What a stream of a busy crowd costs both ends (docs/overhead.md): some 40 seconds.
CROWD ?= 500
.PHONY: stream-bench
stream-bench: setup
	PYTHONPATH=tests $(BIN)/python bench/stream.py $(CROWD)

# The pictures of README.md and docs/guide/, from the real screen over real programs. That of a
# report needs chromium, that of speedscope npm too.
.PHONY: pictures
pictures: setup
	$(BIN)/python bench/screen_svg.py docs/screen.svg
	PYTHONPATH=tests $(BIN)/python bench/incident_svg.py docs
	PYTHONPATH=tests $(BIN)/python bench/report_png.py docs/report.png
	PYTHONPATH=tests $(BIN)/python bench/speedscope_png.py docs/speedscope.png

bench: setup
	$(BIN)/locktop bench

# The table of docs/overhead.md; some minutes, on a machine that has nothing else to do.
bench-table: setup
	$(BIN)/python bench/overhead_table.py docs/overhead.md

# What does not depend on each other runs side by side: mypy has one thread, and a compiler waits.
SIDE_BY_SIDE = $(MAKE) --no-print-directory --jobs=$(JOBS) --keep-going --output-sync=target
LINTS = lint-types lint-style lint-text
.PHONY: $(LINTS) test-quick pytest-quick pytest-quick-real
test: setup
	@$(SIDE_BY_SIDE) $(LINTS) unit-c unit-c-sanitized
	@$(MAKE) --no-print-directory pytest

lint: setup
	@$(SIDE_BY_SIDE) $(LINTS)

lint-types:
	$(BIN)/mypy -p locktop
	$(BIN)/mypy tests/conftest.py tests/support tests/unit/builders tests/integration tests/glibc \
	  tests/programs tests/soak tests/fuzz tests/false_alarms tests/probable tests/mutants tests/lint tests/install

lint-style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	$(BIN)/lint-imports --no-logo

# Prose, names and the source tree.
lint-text:
	PYTHONPATH=tests $(BIN)/python -m lint

format: setup
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

# ninja configures again what changed later.
build/unit/build.ninja build/sanitized/build.ninja: Makefile | setup
	$(BIN)/cmake -S . -B $(@D) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DLOCKTOP_TESTS=ON \
	  $(if $(findstring sanitized,$@),-DLOCKTOP_SANITIZE=address$(comma)undefined)
	@touch $@

comma := ,
UNIT_C = $(BIN)/ctest --test-dir $(1) --output-on-failure -j $(JOBS) $(if $(REPEAT),--repeat until-pass:2)
unit-c: build/unit/build.ninja
	$(BIN)/cmake --build build/unit
	$(call UNIT_C,build/unit)

unit-c-sanitized: build/sanitized/build.ninja
	$(BIN)/cmake --build build/sanitized
	$(call UNIT_C,build/sanitized)

# More parts run side by side than there are CPUs, for most tests wait for an event. No test may mind a
# busy neighbour. The longest parts begin first, so that all end at about the same time. With REPEAT=1
# what failed runs once more, alone. The last line names the packages whose absence made tests skip.
INTEGRATION = $(addprefix tests/integration/,$(1))
PARTS_AT_A_TIME ?= $(shell expr 3 \* $(JOBS))
PART_terminal-to-r = $(wildcard tests/terminal/test_[a-r]*.py)
PART_terminal-from-s = $(wildcard tests/terminal/test_[!a-r]*.py)
PART_commands-to-o = $(wildcard tests/integration/commands/test_[a-o]*.py)
PART_commands-from-p = $(wildcard tests/integration/commands/test_[!a-o]*.py)
PART_deadlock = $(call INTEGRATION,deadlock)
PART_unit = tests/unit tests/snapshot
PART_safety = $(call INTEGRATION,safety)
PART_preload = $(call INTEGRATION,preload)
PART_recording = $(call INTEGRATION,recording stream)
PART_python = $(call INTEGRATION,python watch)
PART_probes = $(call INTEGRATION,probes profiling)
PART_sampling = $(call INTEGRATION,sampling symbols)
PART_calls = tests/fuzz $(call INTEGRATION,analysis calls core)
NAMED_PARTS = terminal-from-s commands-from-p terminal-to-r unit safety probes commands-to-o deadlock \
  preload recording python sampling calls
PART_others = $(foreach part,$(NAMED_PARTS),$(addprefix --ignore=,$(PART_$(part))))
PARTS = others $(NAMED_PARTS)
RUNS_OF_PYTEST = $(addprefix build/pytest/,$(PARTS) system-python)
.PHONY: $(PARTS:%=pytest-%)
pytest: setup
	@rm -rf build/pytest
	@mkdir -p $(RUNS_OF_PYTEST)
	@$(MAKE) --no-print-directory --jobs=$(PARTS_AT_A_TIME) --keep-going --output-sync=target \
	  $(addprefix pytest-,$(PARTS) system-python) \
	  || $(if $(REPEAT),$(BIN)/python tests/repeat.py $(RUNS_OF_PYTEST),exit 1)
	@missing=$$(sort -u build/pytest/*/missing-packages | tr '\n' ' '); [ -z "$$missing" ] || \
	  echo "Some tests were skipped. What they need: apt-get install $$missing"

# $(1): the name of a run; $(2): what it runs; $(3): variables
define run-pytest
	@echo $(3) > build/pytest/$(1)/environment
	@LOCKTOP_MISSING_PACKAGES=build/pytest/$(1)/missing-packages $(3) \
	  $(BIN)/pytest --durations=12 -o cache_dir=build/pytest/$(1) $(2); \
	  status=$$?; echo $$status > build/pytest/$(1)/status; exit $$status
endef

$(PARTS:%=pytest-%): pytest-%:
	$(call run-pytest,$*,$(PART_$*))

# Some three minutes, while one works: the unit tests that find most in a second, and each command on a
# real process.
test-quick: setup
	@mkdir -p build/pytest/quick build/pytest/quick-real
	@$(SIDE_BY_SIDE) pytest-quick pytest-quick-real

pytest-quick:
	$(call run-pytest,quick,$(addprefix tests/unit/,analysis config render linux model shm sources) \
	  --ignore=tests/unit/analysis/whatif)

pytest-quick-real:
	$(call run-pytest,quick-real,tests/integration/commands/test_each_command.py \
	  tests/integration/deadlock/test_detection.py tests/integration/preload/test_primitives.py \
	  tests/unit/lint tests/unit/support tests/unit/tui/commands)

# Programs of the system's Python, which has no symbols inside. The other tests use the Python of .venv.
pytest-system-python:
	$(call run-pytest,system-python,tests/integration/python/test_frames.py \
	  tests/integration/python/test_holders.py tests/integration/probes/test_thread_activity.py \
	  'tests/terminal/test_incidents.py::test_a_user_with_few_keys_sees_the_answer[python]', \
	  LOCKTOP_TEST_PYTHON=/usr/bin/python3)

# glibc's own thread tests (package glibc-source), with the library at LEVEL and without, LOCKTOP_ORDER as
# ORDER says: the same must come of each. Takes some minutes.
LEVEL ?= contended
ORDER ?= 1
glibc-tests: setup
	PYTHONPATH=tests $(BIN)/python -m glibc --level $(LEVEL) --order $(ORDER)

# Also those that take a large package or much time; a program that is missing is told and left out.
programs: setup
	$(BIN)/pytest tests/programs tests/integration/preload/test_unobserved_waits.py tests/integration/sampling/test_languages.py \
	  tests/terminal/test_ssh_incidents.py \
	  -m "big or not big"

# The largest sizes that are promised, and what they take (docs/overhead.md).
sizes: setup
	LOCKTOP_SIZES=full $(BIN)/pytest tests/integration/preload/test_large_tables.py
	$(BIN)/python bench/sizes.py

# Damaged ELF files and DWARF by the thousand; a few are among the tests. FROM continues. Then all cases
# of tests that try some of very many.
ROUNDS_OF_FUZZ ?= 5000
FROM ?= 1000
fuzz: setup
	LOCKTOP_FUZZ=$(ROUNDS_OF_FUZZ):$(FROM) $(BIN)/pytest tests/fuzz
	LOCKTOP_THOROUGH=1 $(BIN)/pytest tests/unit/shm tests/unit/recording tests/unit/symbols/unwind \
	  tests/integration/deadlock/test_semaphore_holders.py tests/integration/safety/test_limits.py

# A coverage-guided search for recordings or streams that break the reader. Faults and new inputs go to
# build/.
SECONDS_OF_FUZZ ?= 600
define search
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check \
	  --no-build-isolation -e '.[dev,fuzz]'
	mkdir -p build/fuzz-$(1)
	PYTHONPATH=tests:tests/unit $(BIN)/python -m fuzz.$(1)_atheris \
	  -max_total_time=$(SECONDS_OF_FUZZ) -timeout=20 -rss_limit_mb=2048 -max_len=8192 \
	  -artifact_prefix=build/fuzz-fault- build/fuzz-$(1) tests/fuzz/corpus/$(1)
endef
fuzz-recordings: setup
	$(call search,recordings)
fuzz-streams: setup
	$(call search,streams)

# What others install, in dist/: a wheel for each machine, the sources, and one file with all
# dependencies for the Python that runs `make`. Without a cross compiler there is no wheel for
# aarch64, and the last line says so. auditwheel names a wheel by the oldest glibc that it can do
# with; more than 2.17 is an error.
WHEEL_OPTIONS = --quiet --disable-pip-version-check --no-build-isolation --no-deps -w build/wheels
define wheel
	rm -rf build/wheels
	PATH="$(CURDIR)/$(BIN):$$PATH" $(2) $(BIN)/pip wheel $(WHEEL_OPTIONS) $(3) .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --only-plat -w dist build/wheels/*.whl
	ls dist/locktop-*manylinux_2_17_$(1)*.whl
endef
CROSS_COMPILES = echo '\#include <stdio.h>' | aarch64-linux-gnu-gcc -E - >/dev/null 2>&1
.PHONY: dist dist-aarch64 dist-test
.venv/.dist: .venv/.built pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --disable-pip-version-check \
	  --no-build-isolation -e '.[dist]'
	@touch $@
dist: setup .venv/.dist
	rm -rf dist build/wheel build/wheel-aarch64
	$(call wheel,x86_64)
	@if $(CROSS_COMPILES); then $(MAKE) --no-print-directory dist-aarch64; fi
	$(BIN)/python release/single_file.py dist/locktop-*x86_64.whl dist/locktop.pyz
	$(BIN)/python -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'
	@$(CROSS_COMPILES) || echo "dist/ has no wheel for aarch64. What it needs:" \
	  "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"

dist-aarch64:
	$(call wheel,aarch64,_PYTHON_HOST_PLATFORM=linux-aarch64,--config-settings=build-dir=build/wheel-aarch64 \
	  --config-settings=cmake.args=-DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/release/aarch64-linux-gnu.cmake)

# Each of them in a root file system of its own, with python3 and nothing else. Needs root and the
# packages debootstrap and qemu-user-static; takes some five minutes.
dist-test: dist
	$(BIN)/pytest tests/install -m "big or not big"

# The README's commands in new systems of Debian 12, 13 and sid, as root and as a user: some hours. Needs
# root and the package debootstrap. FRESH chooses, as in FRESH="--releases trixie --parts demo".
.PHONY: fresh-machines
fresh-machines: setup
	PYTHONPATH=tests $(BIN)/python -m install.fresh_machines $(FRESH)

clean:
	rm -rf build dist .venv

# docs/snapshot.md, from the types of the document.
.PHONY: snapshot-reference
snapshot-reference: setup
	$(BIN)/python -m locktop.collector.render.documents.snapshot_reference > docs/snapshot.md
