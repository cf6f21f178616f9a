# make demo         what gpuglue finds on this machine, and round trips through it
# make test         everything that runs without a GPU, and what runs on the one that is there
# make test-full    the same with all the random tests
# make test-vendors the wheel in Debian roots of several generations, on vendors' own libraries (root only)
# make mutants      breaks many of the rules, one at a time, and shows the test that notices (long)
# make wheel        dist/gpuglue-….whl, checked
# make bench        the driver alone against gpuglue
# make fmt, lint    clang-format; the limits on length; vendors' names out of place; tests that documents name
# make carry        dist/carry: all that a machine without network needs
# make clean
#
# The first run sets up: system packages and .venv (scripts/setup.sh); PYTHON=… chooses the interpreter.
# Without network, copy this tree with dist/carry and run
#     make test WHEEL=… WHEELHOUSE=… TESTS=… PYTHON=python3 RUNS="host cuda-sim cuda hip-shim"
#     make demo WHEEL=… WHEELHOUSE=… PYTHON=python3
# (see scripts/carried.sh): nothing is built or installed then.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help demo test test-full test-vendors mutants wheel bench fmt lint carry clean
help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

ifdef WHEEL
PYTHON ?= python3
RUNS ?= host $(if $(TESTS),cuda-sim) $(if $(wildcard /dev/nvidia0),cuda)
export PYTHON WHEEL WHEELHOUSE TESTS RUNS
test demo bench:
	scripts/carried.sh $@
else

export PYTHONNOUSERSITE := 1
export PATH := $(CURDIR)/.venv/bin:$(PATH)
STEP := scripts/step.sh

# ---- set-up ---------------------------------------------------------------------------------------
.venv/ready-build: scripts/setup.sh scripts/requirements-build.txt
	scripts/setup.sh build && touch $@
.venv/ready-test: scripts/requirements-test.txt scripts/requirements-run.txt .venv/ready-build
	scripts/setup.sh test && touch $@

# ---- builds: plain (gcc), clang (compiled only), asan, tsan ------------------------------------------
SANITIZE := -Doptimization=1 -Dc_args=-fno-sanitize-recover=all
options-plain := --werror
options-clang := --werror
# Sanitizers make gcc warn of what is not so; the two builds above judge.
options-asan := -Db_sanitize=address,undefined $(SANITIZE)
options-tsan := -Db_sanitize=thread $(SANITIZE)
compilers-clang := CC=clang CXX=clang++
# cuda.h of CUDA 13 and of CUDA 12.
NVIDIA_INCLUDE = $$(echo $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/{cu13,cuda_runtime}/include | tr ' ' :)

# hip_runtime_api.h of HIP 5.2; empty where setup.sh could not get it, and says why.
HIP_INCLUDE = $$(cat $(CURDIR)/.venv/hip-include 2>/dev/null)

# `meson install` puts the package into root/site, where the Python tests of sanitized builds find it.
build/%/build.ninja: Makefile meson.options .venv/ready-test
	$(STEP) "configure: $*" env $(compilers-$*) meson setup --reconfigure -Dtests=true -Dnvidia_include=$(NVIDIA_INCLUDE) -Dhip_include="$(HIP_INCLUDE)" $(options-$*) \
	    --prefix=$(CURDIR)/build/$*/root -Dpython.platlibdir=site -Dpython.purelibdir=site build/$* && touch $@

BUILDS := $(addprefix build-,plain clang asan tsan)
.PHONY: $(BUILDS)
$(BUILDS): build-%: build/%/build.ninja
	$(STEP) "build: $*" meson compile -C build/$*

# ---- runs: a backend by name; simulated ones with the library they load -----------------------------
SIM = $(CURDIR)/build/$(1)/tests/sim/cuda
HIP_SIM = $(CURDIR)/build/$(1)/tests/sim/hip$(2)
# GPUGLUE_TEST_LIBRARIES: where tests find simulated and broken drivers, plugin fixtures and libgate.so.
tests-of = GPUGLUE_TEST_LIBRARIES=$(CURDIR)/build/$(1)/tests
run-host = $(tests-of) GPUGLUE_BACKEND=host GPUGLUE_REQUIRE=host
run-cuda-sim = $(tests-of) GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda GPUGLUE_CUDA_LIBRARY=$(SIM)/libcuda.so.1
# Level Zero: a simulated driver, old or new, behind this machine's real loader.
HAVE_ZE := $(and $(wildcard /usr/include/level_zero/ze_ddi.h),$(shell PATH=$$PATH:/sbin:/usr/sbin ldconfig -p | grep -o 'libze_loader.so.1 ' | head -1))
run-ze-sim-old = $(tests-of) GPUGLUE_BACKEND=ze GPUGLUE_REQUIRE=ze ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_old/libze_sim_old.so.1
run-ze-sim-new = $(tests-of) GPUGLUE_BACKEND=ze GPUGLUE_REQUIRE=ze ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_new/libze_sim_new.so.1
PYTHON_RUNS := host cuda-sim $(if $(HAVE_ZE),ze-sim-old ze-sim-new)
# All of it on HIP 7; what differs in 5 and 6 shows in the C suites, in test_hip.py and in these.
run-hip-sim-5 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),5)/libamdhip64.so.5
run-hip-sim-6 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),6)/libamdhip64.so.6
run-hip-sim-7 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),7)/libamdhip64.so.7
HIP_FEW := tests/python/test_device.py tests/python/test_stream.py tests/python/test_event.py tests/python/test_memory.py tests/python/test_life.py
HAVE_HIP = $(shell test -s .venv/hip-include && echo yes)
# All that can be simulated here, open in one process.
run-together = $(call run-cuda-sim,$(1)) $(if $(HAVE_HIP),GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),7)/libamdhip64.so.7) \
    $(if $(HAVE_ZE),ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_new/libze_sim_new.so.1) \
    GPUGLUE_TOGETHER=cuda,$(if $(HAVE_HIP),hip$(comma))$(if $(HAVE_ZE),ze$(comma))host
comma := ,
# The real device, where /dev has one.
run-cuda = $(tests-of) GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda
PYTHON_RUNS += $(if $(wildcard /dev/nvidia0),cuda)

# Forks of a process with threads are tested. Python itself is not instrumented, so it loads the
# sanitizer first, and its leaks are not ours.
export ASAN_OPTIONS := detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS := halt_on_error=1:print_stacktrace=1
# The thread sanitizer waits for a second at the end of each process; tests start many.
export TSAN_OPTIONS := halt_on_error=1:atexit_sleep_ms=50:die_after_fork=0:ignore_noninstrumented_modules=1
preload = LD_PRELOAD="$$(gcc -print-file-name=$(1)) $$(gcc -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc
python-asan = $(call preload,libasan.so) ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0
python-tsan = $(call preload,libtsan.so)
# TSan needs its place in the address space, which a kernel with much randomisation does not leave free.
fixed-tsan = $(shell setarch -R true 2>/dev/null && echo setarch -R)
# In sanitized runs a report goes to the real stderr, not lost with the process, and faults are the sanitizer's
# to report, which knows the stacks of threads without Python.
reporting := --capture=sys -p no:faulthandler
PYTEST := python -m pytest -q -p no:cacheprovider

# ---- the wheel, and an environment that holds nothing but it -------------------------------------------
wheel: .venv/ready-build
	rm -rf dist/*.whl build/wheel-raw
	$(STEP) "build the wheel" python -m build --wheel --no-isolation --outdir build/wheel-raw -Cbuild-dir=build/wheel .
	$(STEP) "check and tag the wheel" python tests/wheel/check_wheel.py --retag dist build/wheel-raw/*.whl

.PHONY: run-environment
run-environment: wheel
	test -x .venv-run/bin/python || python -m venv .venv-run
	.venv-run/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-run.txt
	.venv-run/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall dist/*.whl

# ---- tests: each a line, run through scripts/step.sh ------------------------------------------------------
C_TESTS := c-plain c-asan c-tsan
INSTALLS := install-plain install-asan install-tsan
PY_PLAIN := $(PYTHON_RUNS:%=py-%)
PY_HIP := py-hip-sim-7 py-few-hip-sim-5 py-few-hip-sim-6
PLUGIN := test-plugin c-plugin py-plugin
PY_TOGETHER := py-together py-asan-together py-tsan-together
PY_ASAN := py-asan-host py-asan-cuda-sim $(if $(HAVE_ZE),py-asan-ze-sim-old)
PY_TSAN := py-tsan-host py-tsan-cuda-sim $(if $(HAVE_ZE),py-tsan-ze-sim-old)
# Under sanitizers the files that work on a device, where starting many processes is not what they show; all of
# the suite once under each: the address sanitizer on cuda-sim, the thread sanitizer on host.
ON_DEVICE := $(patsubst %,tests/python/test_%.py,allocators array asarray async_copies bad_days between close_races closed copy current \
    device dialect dlpack errors event foreign_memory gil ipc kernel life memory pool results stream strided views)
suite-asan-cuda-sim := tests/python
suite-tsan-host := tests/python
suite-of = $(or $(suite-$(1)-$(2)),$(ON_DEVICE))
# A part: its probes start many processes, which is slow under sanitizers.
PY_HIP_SANITIZED := py-asan-few-hip-sim-7 py-tsan-few-hip-sim-7
files-asan := tests/python/test_hip.py
OTHERS := test-wheel test-sim-clients test-hip-client test-examples test-libraries test-sdk test-stubs lint-step
# The long ones first, so that no core is idle at the end.
ALL_TESTS := $(if $(HAVE_ZE),,without-ze) build-clang $(C_TESTS) $(PY_ASAN) $(PY_TSAN) $(PY_HIP_SANITIZED) $(PY_PLAIN) $(PY_HIP) $(PY_TOGETHER) $(PLUGIN) $(OTHERS)
.PHONY: all-tests without-ze $(ALL_TESTS) $(INSTALLS)

# Of a plain build without the fault sweeps that the address sanitizer's build runs.
rest-plain := --no-suite faults-usual
$(C_TESTS): c-%: build-%
	$(STEP) "C tests: $*" $(fixed-$*) meson test -C build/$* --no-rebuild $(rest-$*) --timeout-multiplier 3 --print-errorlogs
$(INSTALLS): install-%: build-%
	$(STEP) "install: $*" meson install -C build/$* --no-rebuild --quiet
$(PY_PLAIN): py-%: run-environment build-plain
	$(STEP) "Python on $*" env $(call run-$*,plain) .venv-run/bin/$(PYTEST) tests/python
# Without HIP's headers there is no simulated HIP; setup.sh has said why.
$(PY_HIP): py-%: run-environment build-plain
	$(if $(HAVE_HIP),$(STEP) "Python on $*" env $(call run-$(*:few-%=%),plain) .venv-run/bin/$(PYTEST) $(if $(filter few-%,$*),$(HIP_FEW),tests/python),\
	    $(STEP) --skip "Python on $*" "$$(cat .venv/no-hip)")
$(PY_ASAN): py-asan-%: install-asan
	$(STEP) "Python on $*, asan" env $(python-asan) $(call run-$*,asan) PYTHONPATH=$(CURDIR)/build/asan/root/site $(PYTEST) $(reporting) $(call suite-of,asan,$*)
$(PY_TSAN): py-tsan-%: install-tsan
	$(STEP) "Python on $*, tsan" env $(python-tsan) $(call run-$*,tsan) PYTHONPATH=$(CURDIR)/build/tsan/root/site $(fixed-tsan) $(PYTEST) $(reporting) $(call suite-of,tsan,$*)
$(PY_HIP_SANITIZED): py-%-few-hip-sim-7: install-%
	$(if $(HAVE_HIP),$(STEP) "Python on hip-sim-7 ($*)" env $(python-$*) $(call run-hip-sim-7,$*) PYTHONPATH=$(CURDIR)/build/$*/root/site \
	    $(fixed-$*) $(PYTEST) $(reporting) $(HIP_FEW) $(files-$*),\
	    $(STEP) --skip "Python on hip-sim-7 ($*)" "$$(cat .venv/no-hip)")
py-together: run-environment build-plain
	$(STEP) "Python on several backends at once" env $(call run-together,plain) .venv-run/bin/$(PYTEST) tests/python/test_between.py
py-asan-together py-tsan-together: py-%-together: install-%
	$(STEP) "Python on several backends at once, $*" env $(python-$*) $(call run-together,$*) PYTHONPATH=$(CURDIR)/build/$*/root/site \
	    $(fixed-$*) $(PYTEST) $(reporting) tests/python/test_between.py
# The example plugin, built with the headers of the wheel and nothing else of this tree.
.PHONY: build-plugin
build-plugin: run-environment
	$(STEP) "the example plugin: build" $(MAKE) -B -C examples/plugin PYTHON=$(CURDIR)/.venv-run/bin/python OUT=$(CURDIR)/build/plugin
run-plugin = $(call tests-of,plain) GPUGLUE_BACKEND=mine GPUGLUE_REQUIRE=mine GPUGLUE_PLUGIN_PATH=$(CURDIR)/build/plugin
test-plugin: build-plugin
	$(STEP) "the example plugin as a package" env $(run-plugin) GPUGLUE_PYTHON=$(CURDIR)/.venv-run/bin/python $(PYTEST) tests/plugin
c-plugin: build-plugin build-plain
	$(STEP) "C tests on the example plugin" env $(run-plugin) tests/plugin/conformance.sh build/plain/tests mine
py-plugin: build-plugin build-plain
	$(STEP) "Python on the example plugin" env $(run-plugin) .venv-run/bin/$(PYTEST) tests/python
test-wheel: wheel
	$(STEP) "the wheel" env GPUGLUE_WHEEL="$$(echo dist/*.whl)" $(PYTEST) tests/wheel
test-sim-clients: install-plain
	$(STEP) "NVIDIA's own Python clients on cuda-sim" $(PLAIN) $(call run-cuda-sim,plain) LD_LIBRARY_PATH=$(call SIM,plain) $(PYTEST) tests/sim/clients/test_cuda_*.py
test-hip-client: build-plain
	$(if $(HAVE_HIP),$(STEP) "AMD's own Python client on hip-sim-6" env LD_LIBRARY_PATH=$(call HIP_SIM,plain,6) $(PYTEST) tests/sim/clients/test_hip_python.py,\
	    $(STEP) --skip "AMD's own Python client on hip-sim-6" "$$(cat .venv/no-hip)")
# What `meson install` made of the plain build, for tests that need packages which the wheel's environment lacks.
PLAIN := env PYTHONPATH=$(CURDIR)/build/plain/root/site
test-libraries: install-plain
	$(STEP) "others' libraries on host" $(PLAIN) $(PYTEST) tests/libraries
test-sdk: install-plain
	$(STEP) "extensions and programs on host" $(PLAIN) $(call run-host,plain) $(PYTEST) tests/sdk
	$(STEP) "extensions and programs on cuda-sim" $(PLAIN) $(call run-cuda-sim,plain) $(PYTEST) tests/sdk
TYPED := examples/roundtrip.py examples/demo.py examples/extensions/use_ctypes.py examples/existing_library/build.py
test-stubs: install-plain
	$(STEP) "the stubs and the module" $(PLAIN) GPUGLUE_BACKEND=host python -P -m mypy.stubtest gpuglue --allowlist tests/stubs/allowlist.txt
	$(STEP) "types of the examples" env MYPYPATH=$(CURDIR)/build/plain/root/site:$(CURDIR)/examples/existing_library python -P -m mypy --strict --follow-imports=silent --no-incremental $(TYPED)
test-examples: run-environment build-plain
	$(STEP) "round trip on host" env $(call run-host,plain) .venv-run/bin/python examples/roundtrip.py
	$(STEP) "round trip on cuda-sim" env $(call run-cuda-sim,plain) .venv-run/bin/python examples/roundtrip.py
	$(STEP) "doublify on host" env $(call run-host,plain) .venv-run/bin/python examples/doublify.py
	$(STEP) "an existing library: build" .venv-run/bin/python examples/existing_library/build.py --out build/example
	$(STEP) "an existing library: use" env $(call run-host,plain) .venv-run/bin/python examples/existing_library/use.py build/example
	$(STEP) "an existing library: use, by PyCUDA's names" env $(call run-host,plain) .venv-run/bin/python examples/existing_library/use_pycuda.py build/example
without-ze:
	$(STEP) --skip "Level Zero" "libze1 or libze-dev is not installed"
lint-step:
	$(STEP) "lint" $(MAKE) --no-print-directory lint

# By a make of its own, which sees what the set-up has installed.
all-tests: $(ALL_TESTS)
# Steps side by side, since most of them wait much; in turn where they would share one real device. What a
# step says comes when it has ended.
JOBS ?= $(if $(wildcard /dev/nvidia0),1,$(shell cores=$$(nproc); echo $$((cores < 7 ? cores + 1 : 8))))
# Goes on after a failure, so that one run tells all.
test: .venv/ready-test
	@mkdir -p build && rm -f build/summary.txt
	@$(MAKE) --no-print-directory -k -j$(JOBS) --output-sync=target all-tests; status=$$?; \
	    printf '\n== summary\n'; cat build/summary.txt; exit $$status
test-full: export GPUGLUE_TEST_FULL = 1
test-full: test

test-vendors: wheel build-plain
	$(if $(filter 0,$(shell id -u)),$(STEP) "vendors' own libraries" python tests/vendors/matrix.py "$$(echo dist/*.whl)" build/plain/tests,\
	    $(STEP) --skip "vendors' own libraries" "Debian roots are made as root: sudo make test-vendors")

# Not part of test: a build for each of tests/mutants/mutants.py. NAMES="…" takes those whose names have these words in them.
mutants: .venv/ready-test
	MESON_OPTIONS="-Dnvidia_include=$(NVIDIA_INCLUDE) -Dhip_include=$(HIP_INCLUDE)" python tests/mutants/run.py $(NAMES)

# ---- the rest ------------------------------------------------------------------------------------------
demo: run-environment
	.venv-run/bin/python -m gpuglue
	.venv-run/bin/python examples/demo.py

bench: run-environment
	$(MAKE) -C bench PYTHON=$(CURDIR)/.venv-run/bin/python
# All tables about memory, with the peers that are installed, and a picture of the bandwidths.
.PHONY: bench-memory
bench-memory: run-environment
	.venv-run/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-bench.txt
	$(MAKE) -C bench memory PYTHON=$(CURDIR)/.venv-run/bin/python

C_FILES = $(shell git ls-files '*.c' '*.h' '*.cpp')
fmt: .venv/ready-test
	clang-format -i $(C_FILES)
lint: .venv/ready-test
	@status=0; set -x; python scripts/check_lengths.py || status=1; \
	    python scripts/check_names.py || status=1; \
	    python scripts/check_named_tests.py || status=1; \
	    clang-format --dry-run --Werror $(C_FILES) || status=1; exit $$status

carry: wheel build-plain .venv/ready-test
	scripts/carry.sh

clean:
	rm -rf build dist .venv-run
endif
