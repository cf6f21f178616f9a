# From a clone to a green test, in any shell (the first `make` installs what is missing):
#
#   git clone URL gpuglue && cd gpuglue
#   make try                                                    the suite `event` on the host backend
#   make try BACKEND=cuda-sim TESTS="event stream"              suites on the simulated NVIDIA driver
#   make try BACKEND=cuda-sim TESTS=event/recording_again_moves_an_event   one test, by the name that a run prints
#   make try-python BACKEND=cuda-sim TESTS=tests/python/test_event.py      the same from Python
#
# make check        three minutes: core, conformance and Python tests on host and cuda-sim, lint
# make test         twelve minutes: every backend that can be simulated, the address sanitizer, wheel, examples, documents, stubs
# make test-full    make test and all other tests: thread sanitizer, fault sweeps, old versions, plugins, other libraries;
#                   LONG=1 runs the random tests at length and injects every fault, which takes hours
# make test-vendors tests the wheel in several Debian releases, on the vendors' own libraries (root only)
# make test-hip-model  tests on AMD's own HIP runtime, with a model in place of the GPU (root only; NAMES="…" selects;
#                   GFX=gfx1100 models a GPU of that architecture)
# make test-aarch64 builds the wheel for AArch64 in dist/aarch64 with a cross compiler, and tests it in qemu (FILES="…" selects
#                   Python files); make wheel-aarch64 only builds and checks it
# make fuzz         runs every parser on 10^7 generated inputs (FUZZ_RUNS, NAMES="elf ptx")
# make fuzz-merge   adds the inputs that reach more code to tests/fuzz/corpus
# make soak         random operations in 16 threads, for an hour on each backend and version that can be simulated, and for 15
#                   minutes on a GPU of NVIDIA
#                   (SOAK_SECONDS, SOAK_SEED, RUNS="host cuda-sim")
# make mutants      breaks the rules one at a time, and names the test that detects each (long)
# make demo         lists the backends of this machine, and copies arrays to the device and back
# make wheel        builds and checks dist/gpuglue-….whl
# make release URL=https://…  prepares a release for that address of the repository: packaging/README.md
# make bench        compares gpuglue with C code that calls the driver directly
# make docs         builds the site in build/docs, from README.md, docs/, the docstrings and the comments of the C headers
# make docs-links   checks the links of the site to other sites (needs the network; not part of the tests)
# make fmt          formats the C code with clang-format
# make lint         checks format, lengths, names, layers, variables, recipes, mutants, the stub, and that documented tests exist
# make carry        fills dist/carry with the files that a machine without a network needs
# make clean        deletes build, dist and .venv-run
#
# The first run installs missing system packages (as root only) and .venv (scripts/setup.sh); PYTHON=… chooses the
# interpreter. On a machine without a network, copy this tree with dist/carry and run
#     make test WHEEL=… WHEELHOUSE=… TESTS=… PYTHON=python3 RUNS="host cuda-sim cuda hip-shim"
#     make demo WHEEL=… WHEELHOUSE=… PYTHON=python3
# (see scripts/carried.sh). These commands build and install nothing.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help try try-python check demo test test-full test-vendors test-hip-model wheel-aarch64 test-aarch64 fuzz fuzz-merge soak mutants wheel release bench docs docs-links fmt lint carry clean
help:
	@sed -n '/^SHELL/q; s/^# \?//p' Makefile

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
.venv/ready-test: scripts/requirements-test.txt scripts/requirements-alone.txt scripts/requirements-run.txt .venv/ready-build
	scripts/setup.sh test && touch $@
.venv/ready-full: scripts/requirements-full.txt .venv/ready-test
	scripts/setup.sh full && touch $@
.venv/ready-fuzz: scripts/setup.sh .venv/ready-test
	scripts/setup.sh fuzz && touch $@

# ---- builds: plain (gcc), clang (compiled only), asan, tsan, fuzz (clang, with libFuzzer) ------------------------------------------
# Reports need lines and names only.
SANITIZE := -Dc_args="-fno-sanitize-recover=all -g1"
options-plain := --werror
# For warnings, which clang has without optimization.
options-clang := --werror -Doptimization=0 -Ddebug=false
# With sanitizers gcc prints false warnings: only in the two builds above are warnings errors.
# -Og compiles faster than -O1, and the tests take as long.
options-asan := -Db_sanitize=address,undefined -Doptimization=g $(SANITIZE)
options-tsan := -Db_sanitize=thread -Doptimization=1 $(SANITIZE)
# host alone: the parsers are in the core and in the Python package.
options-fuzz := -Dfuzz=true -Dbackends=[] -Db_lundef=false -Db_sanitize=address,undefined -Doptimization=2 -Dc_args=-fno-sanitize-recover=all
build/fuzz/build.ninja: .venv/ready-fuzz
compilers-clang := CC=clang CXX=clang++
compilers-fuzz := $(compilers-clang)
# cuda.h of CUDA 13 and of CUDA 12.
NVIDIA_INCLUDE = $$(echo $(CURDIR)/.venv/lib/python3*/site-packages/nvidia/{cu13,cuda_runtime}/include | tr ' ' :)

# hip_runtime_api.h of HIP 5.2, and of 5.7, 6.4 and 7.2 as far as they could be downloaded. Empty if setup.sh could not download that of 5.2; .venv/no-hip then has the reason.
HIP_INCLUDE = $$(cat $(CURDIR)/.venv/hip-include 2>/dev/null)
NCCL_INCLUDE = $$(cat $(CURDIR)/.venv/nccl-include 2>/dev/null)
RCCL_INCLUDE = $$(cat $(CURDIR)/.venv/rccl-include 2>/dev/null)

# `meson install` puts the package into root/site, where the Python tests of sanitized builds find it.
build/%/build.ninja: Makefile meson.options .venv/ready-test
	$(STEP) "configure: $*" env $(compilers-$*) meson setup --reconfigure -Dtests=true -Dnvidia_include=$(NVIDIA_INCLUDE) -Dhip_include="$(HIP_INCLUDE)" -Dnccl_include="$(NCCL_INCLUDE)" -Drccl_include="$(RCCL_INCLUDE)" $(options-$*) \
	    --prefix=$(CURDIR)/build/$*/root -Dpython.platlibdir=site -Dpython.purelibdir=site build/$* && touch $@

# A tier builds the targets that it needs, see tests/meson.build. The full tier builds all.
TIER ?= full
targets-check := for-check
targets-test := for-test
targets-test-asan := for-check
BUILDS := $(addprefix build-,plain clang asan tsan)
.PHONY: $(BUILDS)
$(BUILDS): build-%: build/%/build.ninja
	$(STEP) "build: $*" meson compile -C build/$* $(or $(targets-$(TIER)-$*),$(targets-$(TIER)))

# The fuzzers, and the package that two of them load.
.PHONY: build-fuzz
build-fuzz: build/fuzz/build.ninja
	$(STEP) "build: fuzz" meson compile -C build/fuzz for-fuzz
	$(STEP) "install: fuzz" meson install -C build/fuzz --no-rebuild --quiet

# ---- one backend, a few tests -----------------------------------------------------------------------
BACKEND ?= host
TESTS ?= event
# Builds only what these tests need. TESTS may contain options of the program, such as --suite and -j.
try: build/plain/build.ninja
	meson test -C build/plain --verbose conformance-$(BACKEND) --test-args='$(TESTS)'
try-python: build/plain/build.ninja
	meson compile -C build/plain for-test
	meson install -C build/plain --no-rebuild --quiet
	$(PLAIN) $(call tests-of,plain) $(PYTEST) --backend $(BACKEND) $(if $(filter-out event,$(TESTS)),$(TESTS),tests/python/test_event.py)

# ---- runs: a backend by name; for a simulated one, the library that it loads -----------------------------
SIM = $(CURDIR)/build/$(1)/tests/sim/cuda
HIP_SIM = $(CURDIR)/build/$(1)/tests/sim/hip$(2)
# With a simulated driver goes the vendor's management library, for Device.stats().
monitor = GPUGLUE_SIM_MONITOR=1 GPUGLUE_$(2)_LIBRARY=$(CURDIR)/build/$(1)/tests/sim/monitor/$(3)
# … and its library of collective operations, for communicators.
collectives = GPUGLUE_$(2)_LIBRARY=$(CURDIR)/build/$(1)/tests/sim/nccl/$(3)
NVML = $(call monitor,$(1),NVML,libnvidia-ml.so.1) $(call collectives,$(1),NCCL,libnccl.so.2)
ROCM_SMI = $(call monitor,$(1),ROCM_SMI,librocm_smi64.so.5) $(call collectives,$(1),RCCL,librccl.so.1)
# That of ROCm 7, if setup.sh could download its header.
AMD_SMI = $(if $(wildcard .venv/hip/usr/include/amd_smi/amdsmi.h),$(call monitor,$(1),AMD_SMI,libamd_smi.so.27) $(call collectives,$(1),RCCL,librccl.so.1),$(ROCM_SMI))
ZES = $(call monitor,$(1),ZES,libzes.so.1)
# GPUGLUE_TEST_LIBRARIES: where tests find simulated and broken drivers, plugin fixtures and libgate.so.
tests-of = GPUGLUE_TEST_LIBRARIES=$(CURDIR)/build/$(1)/tests
run-host = $(tests-of) GPUGLUE_BACKEND=host GPUGLUE_REQUIRE=host
run-cuda-sim = $(tests-of) GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda GPUGLUE_CUDA_LIBRARY=$(SIM)/libcuda.so.1 $(NVML)
# Level Zero: a simulated driver, old or new, with this machine's real loader.
HAVE_ZE := $(and $(wildcard /usr/include/level_zero/ze_ddi.h),$(shell PATH=$$PATH:/sbin:/usr/sbin ldconfig -p | grep -o 'libze_loader.so.1 ' | head -1))
run-ze-sim-old = $(tests-of) GPUGLUE_BACKEND=ze GPUGLUE_REQUIRE=ze ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_old/libze_sim_old.so.1 $(ZES)
run-ze-sim-new = $(tests-of) GPUGLUE_BACKEND=ze GPUGLUE_REQUIRE=ze ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_new/libze_sim_new.so.1 $(ZES)
PYTHON_RUNS := host cuda-sim $(if $(HAVE_ZE),ze-sim-old ze-sim-new)
# The whole Python suite runs on HIP 7. The C suites, test_hip.py and these files cover what differs in 5 and 6.
# No test depends on whether AMD's compiler is installed: an older one ends its process for the simulated architecture.
NO_HIPRTC := GPUGLUE_HIPRTC_LIBRARY=/nonexistent/libhiprtc.so
run-hip-sim-5 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),5)/libamdhip64.so.5 $(ROCM_SMI) $(NO_HIPRTC)
run-hip-sim-5.7 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),5.7)/libamdhip64.so.5 $(ROCM_SMI) $(NO_HIPRTC)
run-hip-sim-6 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),6)/libamdhip64.so.6 $(ROCM_SMI) $(NO_HIPRTC)
run-hip-sim-7 = $(tests-of) GPUGLUE_BACKEND=hip GPUGLUE_REQUIRE=hip GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),7)/libamdhip64.so.7 $(AMD_SMI) $(NO_HIPRTC)
HIP_FEW := tests/python/test_device.py tests/python/test_stream.py tests/python/test_event.py tests/python/test_memory.py tests/python/test_process.py
HAVE_HIP = $(shell test -s .venv/hip-include && echo yes)
# All backends that can be simulated here, open in one process.
run-together = $(call run-cuda-sim,$(1)) $(if $(HAVE_HIP),GPUGLUE_HIP_LIBRARY=$(call HIP_SIM,$(1),7)/libamdhip64.so.7) $(NO_HIPRTC) \
    $(if $(HAVE_ZE),ZE_ENABLE_ALT_DRIVERS=$(CURDIR)/build/$(1)/tests/sim/ze_new/libze_sim_new.so.1) \
    GPUGLUE_TOGETHER=cuda,$(if $(HAVE_HIP),hip$(comma))$(if $(HAVE_ZE),ze$(comma))host
comma := ,
# The host backend as a plugin whose operations fail on request.
run-faulty = $(tests-of) GPUGLUE_BACKEND=faulty GPUGLUE_REQUIRE=faulty GPUGLUE_PLUGIN_PATH=$(CURDIR)/build/$(1)/tests/soak/gpuglue_faulty.so
# The real device, if there is one in /dev.
run-cuda = $(tests-of) GPUGLUE_BACKEND=cuda GPUGLUE_REQUIRE=cuda
PYTHON_RUNS += $(if $(wildcard /dev/nvidia0),cuda)

# Tests fork processes that have threads. Python itself is not instrumented: it preloads the sanitizer, and its
# leaks are ignored.
export ASAN_OPTIONS := detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS := halt_on_error=1:print_stacktrace=1
# The thread sanitizer waits for a second at the end of each process; tests start many.
export TSAN_OPTIONS := halt_on_error=1:atexit_sleep_ms=50:die_after_fork=0:ignore_noninstrumented_modules=1
preload = LD_PRELOAD="$$(gcc -print-file-name=$(1)) $$(gcc -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc
python-asan = $(call preload,libasan.so) ASAN_OPTIONS=$(ASAN_OPTIONS):detect_leaks=0
python-tsan = $(call preload,libtsan.so)
# TSan needs a fixed address range, which a kernel with strong address space randomisation may have used.
fixed-tsan = $(shell setarch -R true 2>/dev/null && echo setarch -R)
# In sanitized runs a report goes to the real stderr, so that it is not lost with the process. The sanitizer reports
# faults, because it has the stacks of threads without Python.
reporting := --capture=sys -p no:faulthandler
PYTEST := python -m pytest -q
# Tests mostly wait, so several processes run them; on a real device, which they would share, one process does.
PROCESSES ?= $(shell cores=$$(nproc); echo $$((cores < 8 ? cores : 8)))
SIDE_BY_SIDE = $(PYTEST) -n $(PROCESSES) --dist worksteal
pytest-cuda = $(PYTEST)
pytest-on = $(or $(pytest-$(1)),$(SIDE_BY_SIDE))

# ---- the wheel, and an environment that contains only the wheel -------------------------------------------
# After `make test` (AFTER=test) those that it has left are used.
ifdef AFTER
.PHONY: run-environment
wheel run-environment: .venv/ready-build
	ls dist/*.whl .venv-run/bin/python
else
wheel: .venv/ready-build
	rm -rf dist/*.whl build/wheel-raw
	$(STEP) "build the wheel" python -m build --wheel --no-isolation --outdir build/wheel-raw -Cbuild-dir=build/wheel .
	$(STEP) "check, tag and compress the wheel" python tests/wheel/check_wheel.py --retag dist build/wheel-raw/*.whl

release: .venv/ready-build
	python packaging/release.py $(or $(URL),$(error URL is missing: the address of the repository, as in make release URL=https://example.org/gpuglue)) dist/release \
	    $(if $(ARCHIVE),--archive $(ARCHIVE))

.PHONY: run-environment
run-environment: wheel
	test -x .venv-run/bin/python || python -m venv .venv-run
	.venv-run/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-run.txt
	.venv-run/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
endif

# ---- tests: each step is one line, run by scripts/step.sh ------------------------------------------------------
# The files that use a device. The others start many processes or compilers; the backend makes little difference there.
ON_DEVICE := $(patsubst %,tests/python/test_%.py,allocators array asarray async_copies between close_races closed copy current \
    device dlpack errors event foreign_memory gil ipc kernel memory pool process ranges readback robustness stream strided sycl trace views)
# The files that take longest, which `make check` leaves out.
SLOW := $(patsubst %,tests/python/test_%.py,after_exit cache communicator_staged compat_compile compat_members compile convert dialect doctor driver_errors drivers \
    environment errors fault_sweep fragmentation hip host_compiler host_threads isolated_probe level_zero level_zero_graphs level_zero_kernels level_zero_lists registry robustness warps)
# Each of their tests chooses its backend itself, so one run is enough, and one of the second under the address sanitizer.
ONCE := tests/python/test_doctor.py tests/python/test_driver_errors.py
# Those that mostly wait for compilers and a type checker.
COMPILING := $(patsubst %,tests/python/test_%.py,compat_compile compile convert host_compiler host_threads names pycuda_command warps)
ALL_FILES := $(wildcard tests/python/test_*.py)
OFF_DEVICE := $(filter-out $(ON_DEVICE) $(ONCE),$(ALL_FILES))
# Those that mostly start compilers and commands, whose memory and threads a sanitizer does not see.
PROGRAMS := $(patsubst %,tests/python/test_%.py,bench_before bench_command bench_floor bench_gil bench_programs cache compat_arithmetic compat_compile compat_generated compat_names compile \
    dialect docs_command doctor environment fragmentation host_compiler main pycuda_command)
# Those of Level Zero, which choose their driver themselves.
OF_LEVEL_ZERO := $(patsubst %,tests/python/test_%.py,level_zero level_zero_graphs level_zero_kernels level_zero_lists)
# Those whose tests choose their backend themselves, start commands, or use memory of the host only: they run on host only.
ALIKE := $(OF_LEVEL_ZERO) $(patsubst %,tests/python/test_%.py,bench_command communicator dialect docs_command drivers environment isolated_probe names numpy_absent \
    offers pycuda_command registry)
# Those about the core and what backends/cuda_hip has for both vendors, which run on cuda-sim; C sweeps inject failures on each backend.
SHARED := $(patsubst %,tests/python/test_%.py,communicator_device_behind communicator_device_end communicator_device_hang communicator_device_timeout \
    communicator_machines communicator_staged fault_sweep)
# The full tier runs these on host, not `make test`.
LATER := $(sort $(COMPILING) $(SHARED) tests/python/test_doctor.py $(filter-out %/test_communicator.py,$(ALIKE)))
COMPAT := $(wildcard tests/python/test_compat_*.py)
# Of these, the files that pass addresses of memory.
COMPAT_MEMORY := $(patsubst %,tests/python/test_compat_%.py,arrays driver host_memory regions)

# Files of these lists that do not exist, for scripts/check_makefile.sh.
.PHONY: absent-files
absent-files:
	@echo $(filter-out $(ALL_FILES),$(sort $(ON_DEVICE) $(SLOW) $(ONCE) $(PROGRAMS) $(ALIKE) $(SHARED) $(COMPAT_MEMORY) $(COMPILING) $(HIP_FEW) $(RANDOM) $(OPENCL_FILES) $(not-on-hip-sim-7) $(not-in-asan)))

# The tiers. `make test` runs what `make check` does and more; `make test-full` runs all tests.
PY_CHECK := py-check-host py-check-cuda-sim
PY_SIM := py-cuda-sim $(if $(HAVE_ZE),py-ze-sim-old py-ze-sim-new) py-hip-sim-7
# Both drivers of Level Zero have one backend: Python runs on the older in the full tier, where C has more of it in both.
PY_LATER := py-ze-sim-old
PY_TEST := py-host $(filter-out $(PY_LATER),$(PY_SIM)) $(if $(wildcard /dev/nvidia0),py-cuda) py-together py-asan-cuda-sim
PY_REST := py-host-rest $(filter $(PY_LATER),$(PY_SIM)) $(PY_SIM:%=%-rest) py-few-hip-sim-5 py-few-hip-sim-6
PY_ASAN := py-asan-host py-asan-cuda-sim-rest
PY_TSAN := py-tsan-host py-tsan-cuda-sim
PY_HIP_SANITIZED := py-asan-few-hip-sim-7 py-tsan-few-hip-sim-7
PLUGIN := test-plugin c-plugin py-plugin
SOAK := soak-host soak-faulty soak-cuda-sim
OPENCL := test-opencl-ze-sim-old test-opencl-ze-sim-new
OPENCL_FILES := $(patsubst %,tests/python/test_%.py,kernel kernel_errors opencl)
# The long ones first, so that no core is idle at the end.
steps-check := c-check-plain $(PY_CHECK) lint-step
steps-test := $(if $(HAVE_ZE),,without-ze) $(if $(wildcard .venv/no-later-hip),without-later-hip) c-test-asan c-test-plain \
    $(filter py-host,$(PY_TEST)) test-docs $(filter-out py-host,$(PY_TEST)) test-wheel lint-step test-stubs test-examples
# Those that first install something come before the shorter ones, and at the end what needs no more than seconds or, as a build does, uses all cores.
rest-first := c-full-plain c-full-tsan py-asan-cuda-sim-rest py-cuda-sim-rest py-host-rest $(PY_TSAN) test-libraries c-full-asan test-sdist test-site test-fuzz test-ray test-openmpi test-sdk
steps-rest := $(rest-first) $(filter-out $(rest-first),$(PY_ASAN) $(PY_REST) $(PY_HIP_SANITIZED) $(PLUGIN) $(OPENCL) \
    py-asan-together py-tsan-together test-sim-clients test-hip-client test-abi) build-clang $(SOAK)
# LONG=1: the random tests at length, and every fault of the sweeps. Takes hours.
ifdef LONG
steps-rest += c-random py-random
endif
steps-full = $(steps-test) $(steps-rest)
INSTALLS := install-plain install-asan install-tsan
.PHONY: all-tests all-rest without-ze without-later-hip c-random py-random $(INSTALLS) $(sort $(steps-check) $(steps-full))
# For the summary.
$(filter-out build-%,$(steps-check)): export STEP_TIER := check
$(filter-out $(steps-check) build-%,$(steps-test)): export STEP_TIER := test
$(filter-out build-%,$(steps-rest)): export STEP_TIER := full
ifdef LONG
$(filter-out build-%,$(steps-rest)): export GPUGLUE_TEST_FULL := 1
endif

c-suites-check-plain := --suite check
c-suites-test-plain := --suite check --suite test
c-suites-test-asan := --suite check
c-suites-full-plain := --suite full $(if $(LONG),--suite long)
c-suites-full-asan := --suite test --suite full
C_TESTS := c-check-plain c-test-plain c-test-asan c-full-plain c-full-asan c-full-tsan
c-check-plain c-test-plain c-full-plain: build-plain
c-test-asan c-full-asan: build-asan
c-full-tsan: build-tsan
$(C_TESTS): c-%:
	$(STEP) "C tests: $*" $(fixed-$(lastword $(subst -, ,$*))) \
	    python scripts/c_tests.py build/$(lastword $(subst -, ,$*)) $(c-suites-$*) --timeout-multiplier 3 --print-errorlogs
# The random tests at length, which the earlier tiers ran short.
c-random: build-plain
	$(STEP) "random C tests at length" meson test -C build/plain --no-rebuild --suite conformance --no-suite full --no-suite long --timeout-multiplier 3 \
	    --print-errorlogs --test-args='pool_model threads copy_nd'
	$(STEP) "random core tests at length" meson test -C build/plain --no-rebuild core --print-errorlogs --test-args=image
RANDOM := $(patsubst %,tests/python/test_%.py,device array_dtypes strided random_chains)
py-random: run-environment build-plain
	$(STEP) "random Python tests at length on host" env $(call run-host,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(RANDOM)
	$(STEP) "random Python tests at length on cuda-sim" env $(call run-cuda-sim,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(RANDOM)
$(INSTALLS): install-%: build-%
	$(STEP) "install: $*" meson install -C build/$* --no-rebuild --quiet
# `make check` tests the package of the plain build, the other tiers test the finished wheel.
check-files-host := $(filter-out $(SLOW) $(LATER),$(ALL_FILES))
check-files-cuda-sim := $(filter-out $(SLOW),$(ON_DEVICE))
$(PY_CHECK): py-check-%: install-plain
	$(STEP) "Python on $*, the quick files" $(PLAIN) $(call run-$*,plain) $(SIDE_BY_SIDE) $(check-files-$*)
py-cuda: run-environment build-plain
	$(STEP) "Python on cuda" env $(call run-cuda,plain) .venv-run/bin/$(call pytest-on,cuda) tests/python
py-host: run-environment build-plain
	$(STEP) "Python on host" env $(call run-host,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(filter-out $(LATER),$(ALL_FILES))
py-host-rest: run-environment build-plain
	$(STEP) "Python on host: the other files" env $(call run-host,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(LATER)
# Without HIP's headers there is no simulated HIP; setup.sh has printed the reason.
no-hip = $(if $(findstring hip,$(1)),$(if $(HAVE_HIP),,no))
$(PY_SIM): py-%: run-environment build-plain
	$(if $(call no-hip,$*),$(STEP) --skip "Python on $*" "$$(cat .venv/no-hip)",\
	    $(STEP) "Python on $*, the files that work on a device" env $(call run-$*,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(ON_DEVICE) $(own-$(word 1,$(subst -, ,$*))))
# The test file of each backend.
own-cuda := tests/python/test_drivers.py
own-ze := tests/python/test_spirv.py
own-hip := tests/python/test_hip.py
$(PY_SIM:%=%-rest): py-%-rest: run-environment build-plain
	$(if $(call no-hip,$*),$(STEP) --skip "Python on $*: the other files" "$$(cat .venv/no-hip)",\
	    $(STEP) "Python on $*: the other files" env $(call run-$*,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(filter-out $(own-$(word 1,$(subst -, ,$*))) $(not-on-$*),$(OFF_DEVICE)) $(tests-on-$*))
# On cuda-sim these run under the address sanitizer, without it only with LONG=1; tests that it would disturb run without it.
IN_ASAN = $(filter-out $(not-in-asan) $(patsubst %,tests/python/test_%.py,communicator_local host_threads import stats),$(OFF_DEVICE))
not-on-cuda-sim = $(ALIKE) $(if $(LONG),,$(IN_ASAN))
not-on-ze-sim-old := $(ALIKE) $(filter-out %/test_communicator_staged.py,$(SHARED))
# What an exchange through the host sends to which rank depends on their number and on the sizes, not on the backend.
FEW_RANKS := -k "not many_ranks and not arrays_of_several_buffers"
tests-on-ze-sim-old := $(FEW_RANKS)
# The compatibility layers are Python, and use of a driver what the other files use of it. These of their files have no case of HIP.
not-on-hip-sim-7 := $(ALIKE) $(SHARED) $(patsubst %,tests/python/test_compat_%.py,bad_calls compile generated names pycuda sobol)
not-on-ze-sim-new := $(ALIKE) $(SHARED) $(COMPAT)
py-few-hip-sim-5 py-few-hip-sim-6: py-few-%: run-environment build-plain
	$(if $(HAVE_HIP),$(STEP) "Python on $*" env $(call run-$*,plain) .venv-run/bin/$(SIDE_BY_SIDE) $(HIP_FEW),\
	    $(STEP) --skip "Python on $*" "$$(cat .venv/no-hip)")
# Under sanitizers the files that work on a device. The other files run once: under the address sanitizer on cuda-sim but for
# those that mostly start programs, some whose ranks are many processes, the compatibility layers' that pass no addresses, and two that count
# calls or inject failures as C does under it; under the thread sanitizer on host as far as the package has threads there, of ranks in
# processes only the first file.
suite-tsan-host := $(filter-out $(COMPAT) $(PROGRAMS) $(COMPILING) $(ONCE) $(SHARED) $(filter-out %/test_communicator.py,$(ALIKE)) \
    tests/python/test_driver_calls.py,$(ALL_FILES)) \
    tests/python/test_host_threads.py
# The threads of communicators of one process, with a library.
suite-tsan-cuda-sim := $(ON_DEVICE) tests/python/test_communicator_local.py
# Large arrays are moved between processes, whose races a sanitizer does not see.
tests-tsan := -k "not large_moves"
suite-of = $(or $(suite-$(1)-$(2)),$(ON_DEVICE))
not-in-asan := $(PROGRAMS) $(filter-out $(COMPAT_MEMORY),$(COMPAT)) $(patsubst %,tests/python/test_%.py,communicator communicator_device_behind communicator_device_hang communicator_device_timeout \
    communicator_machines communicator_staged driver_calls fault_sweep isolated_probe names)
py-asan-cuda-sim-rest: install-asan
	$(STEP) "Python on cuda-sim, asan, the other files" env $(python-asan) $(call run-cuda-sim,asan) PYTHONPATH=$(CURDIR)/build/asan/root/site \
	    $(SIDE_BY_SIDE) $(reporting) $(filter-out $(not-in-asan),$(OFF_DEVICE) $(ONCE))
py-asan-cuda-sim $(filter-out %-rest,$(PY_ASAN)): py-asan-%: install-asan
	$(STEP) "Python on $*, asan" env $(python-asan) $(call run-$*,asan) PYTHONPATH=$(CURDIR)/build/asan/root/site $(SIDE_BY_SIDE) $(reporting) $(call suite-of,asan,$*)
$(PY_TSAN): py-tsan-%: install-tsan
	$(STEP) "Python on $*, tsan" env $(python-tsan) $(call run-$*,tsan) PYTHONPATH=$(CURDIR)/build/tsan/root/site $(fixed-tsan) $(SIDE_BY_SIDE) $(reporting) $(call suite-of,tsan,$*) $(tests-tsan)
# Only under the address sanitizer: its probes start many processes, which is slow.
files-asan := tests/python/test_hip.py
$(PY_HIP_SANITIZED): py-%-few-hip-sim-7: install-%
	$(if $(HAVE_HIP),$(STEP) "Python on hip-sim-7 ($*)" env $(python-$*) $(call run-hip-sim-7,$*) PYTHONPATH=$(CURDIR)/build/$*/root/site \
	    $(fixed-$*) $(SIDE_BY_SIDE) $(reporting) $(HIP_FEW) $(files-$*),\
	    $(STEP) --skip "Python on hip-sim-7 ($*)" "$$(cat .venv/no-hip)")
py-together: run-environment build-plain
	$(STEP) "Python on several backends at once" env $(call run-together,plain) .venv-run/bin/$(PYTEST) tests/python/test_between.py
py-asan-together py-tsan-together: py-%-together: install-%
	$(STEP) "Python on several backends at once, $*" env $(python-$*) $(call run-together,$*) PYTHONPATH=$(CURDIR)/build/$*/root/site \
	    $(fixed-$*) $(PYTEST) $(reporting) tests/python/test_between.py
# Two plugins named `mine`, built with the headers of the wheel and nothing else of this tree: the example, and a
# copy of the host backend, which has nearly all operations.
.PHONY: build-plugin build-plugin-host
build-plugin: run-environment
	$(STEP) "the example plugin: build" $(MAKE) -B -C examples/plugin PYTHON=$(CURDIR)/.venv-run/bin/python OUT=$(CURDIR)/build/plugin
build-plugin-host: run-environment
	python tests/plugin/copy_host.py build/plugin-host/src
	$(STEP) "host as a plugin: build" $(MAKE) -B -C examples/plugin PYTHON=$(CURDIR)/.venv-run/bin/python OUT=$(CURDIR)/build/plugin-host \
	    SOURCES='$(CURDIR)/build/plugin-host/src/*.c'
run-plugin = $(call tests-of,plain) GPUGLUE_BACKEND=mine GPUGLUE_REQUIRE=mine GPUGLUE_PLUGIN_PATH=$(CURDIR)/build/$(1)
test-plugin: build-plugin
	$(STEP) "the example plugin as a package" env $(call run-plugin,plugin) GPUGLUE_PYTHON=$(CURDIR)/.venv-run/bin/python $(PYTEST) tests/plugin
c-plugin: build-plugin build-plugin-host build-plain
	$(STEP) "C tests on the example plugin" env $(call run-plugin,plugin) python tests/plugin/conformance.py build/plain/tests/conformance mine examples/plugin/src/mine.c
	$(STEP) "C tests on host as a plugin" env $(call run-plugin,plugin-host) python tests/plugin/conformance.py build/plain/tests/conformance mine
py-plugin: build-plugin-host build-plain
	$(STEP) "Python on host as a plugin" env $(call run-plugin,plugin-host) .venv-run/bin/$(SIDE_BY_SIDE) $(filter-out $(ALIKE) $(SHARED) $(ONCE) $(COMPAT) $(PROGRAMS),$(ALL_FILES)) tests/python/test_communicator_staged.py $(FEW_RANKS)
test-wheel: wheel
	$(STEP) "the wheel" env GPUGLUE_WHEEL="$$(echo dist/*.whl)" $(PYTEST) tests/wheel -k "not editable"
test-sdist: wheel install-plain
	$(STEP) "an editable install" env GPUGLUE_WHEEL="$$(echo dist/*.whl)" $(PYTEST) tests/wheel -k editable
	$(STEP) "the source distribution" env GPUGLUE_WHEEL="$$(echo dist/*.whl)" $(PYTEST) tests/sdist
	$(STEP) "a release and its recipes" $(PLAIN) $(PYTEST) tests/packaging
test-abi: build-plain
	$(STEP) "the ABI" env GPUGLUE_LIBRARY=build/plain/libgpuglue.so $(PYTEST) tests/abi
test-sim-clients: install-plain
	$(STEP) "NVIDIA's own Python clients on cuda-sim" $(PLAIN) $(call run-cuda-sim,plain) LD_LIBRARY_PATH=$(call SIM,plain) $(PYTEST) tests/sim/clients/test_cuda_*.py
test-hip-client: build-plain
	$(if $(HAVE_HIP),$(STEP) "AMD's own Python client on hip-sim-6" env LD_LIBRARY_PATH=$(call HIP_SIM,plain,6) $(PYTEST) tests/sim/clients/test_hip_python.py,\
	    $(STEP) --skip "AMD's own Python client on hip-sim-6" "$$(cat .venv/no-hip)")
# The installed plain build, for tests that need packages which the wheel's environment lacks.
PLAIN := env PYTHONPATH=$(CURDIR)/build/plain/root/site
# Compiled kernels, which an OpenCL driver for the CPU runs for the simulated Level Zero drivers.
WITH_OPENCL := GPUGLUE_SIM_OPENCL=libOpenCL.so.1 POCL_CACHE_DIR=$(CURDIR)/build/pocl
opencl-missing = $(if $(HAVE_ZE),$(shell $(WITH_OPENCL) python tests/sim/opencl_missing.py build/plain/tests/sim/ze_new/libze_sim_new.so.1),libze1 or libze-dev is not installed)
$(OPENCL): test-opencl-%: install-plain
	$(if $(opencl-missing),$(STEP) --skip "compiled kernels on $*" "$(opencl-missing)",\
	    $(STEP) "C tests of compiled kernels on $*" env $(WITH_OPENCL) $(call run-$*,plain) build/plain/tests/conformance ze module launch)
	$(if $(opencl-missing),,\
	    $(STEP) "Python tests of compiled kernels on $*" $(PLAIN) $(WITH_OPENCL) $(call run-$*,plain) $(PYTEST) $(OPENCL_FILES))
	$(if $(opencl-missing),,\
	    $(STEP) "Python tests of generated kernels on $*" $(PLAIN) $(WITH_OPENCL) GPUGLUE_OCLOC=$(CURDIR)/tests/sim/ocloc.sh $(call run-$*,plain) \
	    $(SIDE_BY_SIDE) tests/python/test_compat_arithmetic.py tests/python/test_compat_generated.py)
test-libraries: install-plain
	$(STEP) "others' libraries on host" $(PLAIN) $(PYTEST) tests/libraries
# Open MPI has an environment of its own: its mpiexec has the name of MPICH's.
.venv-openmpi/ready .venv-ray/ready: .venv-%/ready: scripts/setup.sh scripts/requirements-%.txt .venv/ready-build
	scripts/setup.sh $* && touch $@
test-openmpi: install-plain .venv-openmpi/ready
	$(STEP) "mpi4py with Open MPI" $(PLAIN) .venv-openmpi/bin/$(PYTEST) tests/libraries/test_mpi4py.py tests/libraries/test_mpi_communicator.py
# So has Ray, which requires much that nothing else does.
test-ray: install-plain .venv-ray/ready
	$(STEP) "Ray" $(PLAIN) .venv-ray/bin/$(PYTEST) tests/libraries/test_ray.py
test-sdk: install-plain
	$(STEP) "extensions and programs on host" $(PLAIN) $(call run-host,plain) $(PYTEST) tests/sdk
	$(STEP) "extensions and programs on cuda-sim" $(PLAIN) $(call run-cuda-sim,plain) $(PYTEST) tests/sdk
TYPED := examples/roundtrip.py examples/demo.py examples/extensions/use_ctypes.py examples/existing_library/build.py
test-stubs: install-plain
	$(STEP) "the stubs and the module" $(PLAIN) GPUGLUE_BACKEND=host python -P -m mypy.stubtest gpuglue --mypy-config-file tests/stubs/mypy.ini --allowlist tests/stubs/allowlist.txt \
	    $$(python -c "import sys; sys.version_info < (3, 12) and print('--allowlist tests/stubs/allowlist_3.11.txt')")
	$(STEP) "types of the examples" env MYPYPATH=$(CURDIR)/build/plain/root/site:$(CURDIR)/examples/existing_library python -P -m mypy --strict --follow-imports=silent --no-incremental $(TYPED)
test-docs: install-plain
	$(STEP) "blocks of the documents, docstrings" $(PLAIN) $(call tests-of,plain) $(PYTEST) tests/docs
test-examples: run-environment build-plain
	$(STEP) "round trip on host" env $(call run-host,plain) .venv-run/bin/python examples/roundtrip.py
	$(STEP) "round trip on cuda-sim" env $(call run-cuda-sim,plain) .venv-run/bin/python examples/roundtrip.py
	$(STEP) "doublify on host" env $(call run-host,plain) .venv-run/bin/python examples/doublify.py
	$(STEP) "an existing library: build" .venv-run/bin/python examples/existing_library/build.py --out build/example
	$(STEP) "an existing library: use" env $(call run-host,plain) .venv-run/bin/python examples/existing_library/use.py build/example
	$(STEP) "an existing library: use, by PyCUDA's names" env $(call run-host,plain) .venv-run/bin/python examples/existing_library/use_pycuda.py build/example
	rm -rf build/example-cmake build/example-meson
	$(STEP) "a C++ program, by CMake: build" cmake --log-level=WARNING -S examples/cpp -B build/example-cmake -Dgpuglue_DIR=$$(.venv-run/bin/gpuglue config --cmake-dir)
	$(STEP) "a C++ program, by CMake" env $(call run-host,plain) bash -ec 'cmake --build build/example-cmake && build/example-cmake/roundtrip host:0'
	$(STEP) "a C++ program, by Meson: build" env PKG_CONFIG_PATH=$$(.venv-run/bin/gpuglue config --pkgconfigdir) meson setup build/example-meson examples/cpp
	$(STEP) "a C++ program, by Meson" env $(call run-host,plain) bash -ec 'ninja -C build/example-meson && build/example-meson/roundtrip host:0'
# Each kept input once, without fuzzing.
test-fuzz: build-fuzz
	$(STEP) "the parsers on the fuzzers' inputs" python tests/fuzz/run.py build/fuzz
without-ze:
	$(STEP) --skip "Level Zero" "libze1 or libze-dev is not installed"
# Then the simulators of HIP 6 and 7 run with the types of 5.2, and that of 5.7 is not built.
without-later-hip:
	$(STEP) --skip "HIP simulators with the headers of their version" "$$(cat .venv/no-later-hip)"
lint-step: build-plain
	$(STEP) "lint" scripts/lint.sh build/plain

# In a second make process, which finds what the set-up has installed.
all-tests: $(steps-$(TIER))
all-rest: $(steps-rest)
# Three steps at a time: each can use all cores, but most also wait at some point. One at a time if they would share a
# real device. The output of a step is printed when it has ended.
JOBS ?= $(if $(wildcard /dev/nvidia0),1,3)
# Continues after a failure, so that one run reports all failures.
define run-steps
	@mkdir -p build
	$(if $(AFTER),,@rm -f build/summary.txt build/failures.txt)
	@start=$$SECONDS; $(MAKE) --no-print-directory -k -j$(JOBS) --output-sync=target TIER=$(1) $(if $(AFTER),all-rest,all-tests); status=$$?; \
	    printf '\n== summary\n'; cat build/summary.txt; cat build/failures.txt 2>/dev/null; \
	    printf '%-7s %5d s  make $@, of %d processors\n' "$$([ $$status = 0 ] && echo ok || echo FAILED)" $$((SECONDS - start)) $$(nproc); exit $$status
endef
check: .venv/ready-test
	$(call run-steps,check)
test: .venv/ready-test
	$(call run-steps,test)
# AFTER=test: only the steps that `make test` does not run, added to its summary, with its wheel.
test-full: .venv/ready-full
	$(call run-steps,full)

test-vendors: wheel build-plain
	$(if $(filter 0,$(shell id -u)),STEP_RERUN= $(STEP) "vendors' own libraries" env RERUN=$(STEP_RERUN) ON_DEVICE="$(ON_DEVICE)" python tests/vendors/matrix.py "$$(echo dist/*.whl)" build/plain/tests,\
	    $(STEP) --skip "vendors' own libraries" "Debian roots are made as root: sudo make test-vendors")

# Not part of the other tiers. NAMES: suites of tests/conformance, test files (test_copy), doublify.
test-hip-model: install-plain
	$(STEP) "AMD's own HIP runtime on a model of its GPU" python tests/model/hip/run.py build/plain $(if $(GFX),--arch $(GFX)) $(NAMES)

# Not part of the other tiers. FILES: files of tests/python.
AARCH64 = python tests/aarch64/run.py build/aarch64 dist/aarch64 --nvidia-include $(NVIDIA_INCLUDE)
wheel-aarch64: .venv/ready-test
	$(STEP) "the wheel for AArch64" $(AARCH64) --wheel-only
test-aarch64: .venv/ready-test
	$(STEP) "the wheel for AArch64, emulated" $(AARCH64) $(or $(FILES),$(ON_DEVICE) tests/python/test_dialect.py)

# Not part of the tests. NAMES: parsers (elf, ptx, dlpack). `make fuzz-merge` then keeps the inputs that reach more code.
FUZZ_RUNS ?= 10000000
fuzz: build-fuzz
	python tests/fuzz/run.py build/fuzz --runs $(FUZZ_RUNS) $(NAMES)
fuzz-merge: build-fuzz
	python tests/fuzz/run.py build/fuzz --merge $(NAMES)

# Not part of the tests, which run it for some seconds. One backend after another; continues after a failure.
soak-seconds = $(or $(SOAK_SECONDS),$(if $(filter cuda,$(1)),900,3600))
SOAK_SEED ?= $(shell echo $$RANDOM)
SOAK_HIP = hip-sim-5 $(if $(wildcard .venv/hip-5.7),hip-sim-5.7) hip-sim-6 hip-sim-7
SOAK_RUNS ?= $(or $(RUNS),$(if $(wildcard /dev/nvidia0),cuda) host faulty cuda-sim $(if $(HAVE_HIP),$(SOAK_HIP)) $(if $(HAVE_ZE),ze-sim-old ze-sim-new))
# Little memory, so that it runs out; few arenas, whose sizes vary.
soak-on = $(PLAIN) $(call run-$(1),plain) GPUGLUE_SIM_MEMORY=268435456 MALLOC_ARENA_MAX=2 python tests/soak/soak.py --seconds $(2) --seed $(3)
soak: install-plain
	@status=0; $(foreach run,$(SOAK_RUNS),echo "== $(run)"; $(call soak-on,$(run),$(call soak-seconds,$(run)),$(SOAK_SEED)) || status=1;) exit $$status
$(SOAK): soak-%: install-plain
	$(STEP) "random operations in many threads on $*" $(call soak-on,$*,4,1)

# Not part of the tests: one build per mutant in tests/mutants. NAMES="…" selects those whose names contain these words.
mutants: .venv/ready-test
	MESON_OPTIONS="-Dnvidia_include=$(NVIDIA_INCLUDE) -Dhip_include=$(HIP_INCLUDE) -Dnccl_include=$(NCCL_INCLUDE) -Drccl_include=$(RCCL_INCLUDE)" python tests/mutants/run.py $(NAMES)

# ---- the rest ------------------------------------------------------------------------------------------
demo: run-environment
	.venv-run/bin/python -m gpuglue
	.venv-run/bin/python examples/demo.py

bench: run-environment
	$(MAKE) -C bench PYTHON=$(CURDIR)/.venv-run/bin/python
# All tables of memory, with the other packages that are installed, and a plot of the bandwidths.
.PHONY: bench-memory
bench-memory: run-environment
	.venv-run/bin/python -m pip install -q --disable-pip-version-check -r scripts/requirements-bench.txt
	$(MAKE) -C bench memory PYTHON=$(CURDIR)/.venv-run/bin/python

# The site. Sphinx has an environment of its own: its many packages are not for the tests.
.venv-docs/ready: scripts/setup.sh scripts/requirements-docs.txt .venv/ready-build
	scripts/setup.sh docs && touch $@
.venv-docs/ready-site: scripts/requirements-site.txt .venv-docs/ready
	scripts/setup.sh site && touch $@
SPHINX = $(PLAIN) .venv-docs/bin/python -m sphinx
docs: TIER := check
docs: docs-step
# -E: a warning is printed only when its page is read.
docs-step: install-plain .venv-docs/ready
	mkdir -p build/doxygen
	$(STEP) "the comments of the C headers" doxygen docs/doxygen/Doxyfile
	$(STEP) "the site" $(SPHINX) -b html -q -W -E --keep-going -c docs . build/docs
# In a real browser. The screenshots are in build/site.
test-site: docs-step .venv-docs/ready-site
	$(STEP) "the site in a browser" .venv-docs/bin/$(PYTEST) tests/site
docs-links: TIER := check
docs-links: docs-step
	$(STEP) "links to other sites" $(SPHINX) -b linkcheck -q -c docs . build/docs-links

fmt: .venv/ready-test
	python scripts/sources.py .c .h .cpp .hpp | xargs -0 clang-format -i
lint: TIER := check
lint: build-plain
	scripts/lint.sh build/plain

carry: wheel build-plain .venv/ready-test
	scripts/carry.sh

clean:
	rm -rf build dist .venv-run .venv-docs .venv-openmpi
endif
