"""One way in which each rule can be broken, and who could notice: Mutant(name, rule, file, old, new, runs).

Not here, because nobody can see them: a released event that is reused before it is done (recording it again
moves it, and waits that were queued keep what they saw); the drain's own look at the shutdown (every way to
it has looked before); a stream's wait without its fence (the core's ticket ends the wait a slice later).

`old` stands exactly once in the file. A run is `suite-run` as meson names its tests, tried in order until
one fails; `fault-sweep-<run>:<function>` for the failures of one vendor function; or `python:<run>:<file>`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    rule: str
    file: str
    old: str
    new: str
    runs: tuple


def on(suites, *runs):
    """Every suite on every run."""
    return tuple(f"{suite}-{run}" for run in runs for suite in suites.split())


CUDA, HIP, OLD, NEW, HOST = "cuda-sim", "hip-sim-7", "ze-sim-old", "ze-sim-new", "host"

MUTANTS = [
    # ---- core: where work goes
    Mutant("no wait for the source", "implicit is safe: reads wait for writes", "core/copy.c",
           "status = ggi_memory_order(job->src.memory, job->stream);", "status = GG_OK;", on("order", CUDA, HOST)),
    Mutant("no wait for the destination", "implicit is safe: writes wait for reads", "core/copy.c",
           "status = ggi_memory_order(job->dst.memory, job->stream);", "status = GG_OK;", on("order", CUDA, HOST)),
    Mutant("a fill does not wait", "implicit is safe: fills too", "core/fill.c",
           "status = ggi_memory_order(memory, fill.stream);", "status = GG_OK;", on("order fill", CUDA, HOST)),
    Mutant("an explicit stream waits as well", "explicit is yours", "core/current.c",
           "*implicit = !*stream;", "*implicit = true;", on("order", CUDA, HOST)),
    Mutant("a copy is not complete", "work without a stream is complete where the default is not shared",
           "core/copy.c", "if (!status && job->complete)\n", "if (!status && job->complete && !job->nbytes)\n",
           on("order copy", HOST, NEW)),
    Mutant("a fill is not complete", "work without a stream is complete where the default is not shared",
           "core/fill.c", "if (!status && complete)\n", "if (!status && complete && !count)\n",
           on("order fill", HOST, NEW)),
    Mutant("every stream is ordered with the default one", "nonblocking streams are not", "core/progress.c",
           "(stream->is_default && !(other->flags & GG_STREAM_NONBLOCKING))", "stream->is_default",
           on("order", CUDA)),
    Mutant("the entered stream is forgotten", "work runs on the current stream", "core/current.c",
           "*out = stream ? stream : device->default_stream;", "*out = device->default_stream;",
           on("current order", CUDA, HOST)),
    Mutant("a stream of another device is taken", "it is refused", "core/current.c",
           "if ((*stream)->device == device)", "if (stream)", on("order", CUDA)),
    Mutant("announced work is forgotten", "work that gpuglue did not submit is announced", "core/uses.c",
           "ggi_memory_used(memory, stream, ggi_stream_submitted(stream));", "(void)ggi_stream_submitted(stream);",
           on("order memory", CUDA, HOST)),
    # ---- core: copies
    Mutant("owners are released early", "both ends are kept until the work has run", "core/progress.c",
           "if (all || keep->ticket <= passed) {", "if (all || keep) {", on("owners", CUDA, HOST)),
    Mutant("owners of an early copy are not kept", "both ends are kept until the work has run", "core/copy.c",
           "if (early || status) /*", "if (status) /*", on("owners", CUDA, HOST)),
    Mutant("after a failed wait owners go", "a failed wait keeps what the copy needs", "core/copy.c",
           "if (early || status) /*", "if (early) /*", on("faults owners", CUDA, "hip-sim-7")),
    Mutant("a slot is reused early", "the pinned ring waits for its slots", "core/ring.c",
           "if (!slot->stream || ggi_stream_passed(slot->stream, slot->ticket, look)) {",
           "if (slot || ggi_stream_passed(slot->stream, slot->ticket, look)) {", on("copy", CUDA, NEW, HOST)),
    Mutant("a pageable copy is not settled", "a pageable copy returns when its host side is finished",
           "core/copy.c", "gg_status finished = ggi_stream_settle(job->stream);", "gg_status finished = GG_OK;",
           on("copy faults", CUDA, HOST)),
    Mutant("require_async is ignored", "require_async refuses where a call would wait", "core/copy.c",
           "if (job->flags & GG_COPY_REQUIRE_ASYNC && (!queued || job->complete))",
           "if (job->flags & GG_COPY_REQUIRE_ASYNC && !job)", on("copy", CUDA, HOST)),
    Mutant("overlapping ends are taken", "they are refused", "core/copy.c",
           "if (dst + job->nbytes <= src || src + job->nbytes <= dst)", "if (job)", on("copy", CUDA)),
    Mutant("ranges are not checked", "copies past an end are refused", "core/memory.c",
           "if (offset <= memory->nbytes && nbytes <= memory->nbytes - offset)", "if (memory)",
           on("copy fill", HOST)),
    Mutant("pinned memory is not recognised", "a pointer into pinned memory counts as pinned", "core/pinned.c",
           "if (try_retain(memory)) {",
           "if (inside > memory->nbytes && try_retain(memory)) {", on("copy", CUDA, HOST)),
    # ---- core: life
    Mutant("memory is freed in use", "close frees nothing that queued work uses", "core/memory.c",
           "return home_orders ? ggi_pool_only_home(memory, false) : ggi_memory_prune(memory, false);",
           "return home_orders || memory;", on("memory owners life", CUDA, NEW, HOST)),
    Mutant("a busy stream is destroyed", "close never destroys what is busy", "core/stream_end.c",
           "if (stream->gone)\n        return true;", "if (stream)\n        return true;",
           on("stream life borrowed order", CUDA, NEW, HOST)),
    Mutant("no fork check", "a child of a fork is told so", "core/life.c",
           "if (ggi_backend_adopt(device->backend))", "if (ggi_backend_adopt(device->backend) || device)",
           on("life", HOST, CUDA)),
    Mutant("calls after shutdown", "after the shutdown no vendor call is made", "core/current.c",
           "else if (ggi_usable(device))", "else if (device)", on("life shutdown", CUDA, HIP)),
    Mutant("work after shutdown", "new work is refused after the shutdown", "core/internal.h",
           "return ggi_usable(device) ? GG_OK : ggi_refuse(device);",
           "return ggi_usable(device) || device ? GG_OK : ggi_refuse(device);", on("life", HOST, CUDA)),
    Mutant("the shutdown does not wait for results", "copies to the host are waited for", "core/life.c",
           "    wait_for_results(device, deadline);\n", "    if (!device)\n        wait_for_results(device, deadline);\n",
           on("life", CUDA, HOST)),
    Mutant("alone at the shutdown", "what other threads may be using is left to the process", "core/life.c",
           "bool alone = !atomic_load(&device->shared) && pthread_equal(device->opener, pthread_self());",
           "bool alone = true;", on("shutdown", CUDA, NEW, HOST)),
    Mutant("nothing is waited for when memory is out", "out of memory waits for what was released",
           "core/pool_grow.c", "bool last = hopeless(pool, nbytes);", "bool last = hopeless(pool, nbytes) || pool;",
           on("faults memory pool_size", CUDA, HOST)),
    # ---- core: the pool
    Mutant("no wait for the hand-out", "the first use on another stream waits for the hand-out", "core/pool.c",
           "own ? point_of(stream) : 0", "own ? 0 * point_of(stream) : 0", on("pool pool_model", CUDA)),
    Mutant("uses of other streams are ignored", "a block comes back when no other stream uses it", "core/pool.c",
           "only = only && use.stream == memory->home;", "(void)use;", on("pool pool_model", CUDA)),
    Mutant("one list for all streams", "a free block belongs to its stream", "core/pool.c",
           "bool busy = home && !home->parted;", "bool busy = home && !home;", on("pool pool_model", CUDA)),
    Mutant("blocks are given away unasked", "a stream's blocks are anybody's once it was seen idle",
           "core/pool_grow.c", "bool idle = seen_idle(stream);", "bool idle = seen_idle(stream) || stream;",
           on("pool pool_model", CUDA)),
    Mutant("a busy block is taken without a wait", "where memory is out, the new user waits for the old",
           "core/pool_steal.c", "gg_status status = order(memory, stream);",
           "gg_status status = memory ? GG_OK : order(memory, stream);", on("pool_size", CUDA)),
    Mutant("unknown streams are ignored", "what unknown streams use waits for the device", "core/quarantine.c",
           "return atomic_load(&memory->device->quarantine.done) >= atomic_load(&memory->unknown);",
           "return memory;", on("pool", CUDA)),
    Mutant("a closed stream is not asked again", "work that nobody counted keeps a closed stream",
           "core/stream_end.c", "if (!stream->sealed && !ggi_stream_ownerless(stream))", "if (!stream)",
           on("pool", CUDA)),
    Mutant("no interrupts", "a wait looks at its hook", "core/life.c",
           "return hook ? hook() : 0;", "return hook ? 0 : 0;", on("stream event threads copy", HOST, CUDA)),
    Mutant("capture is not relaxed", "housekeeping leaves captures alone", "core/device.c",
           "own->relaxed = !device->ops->capture_mode(atomic_load(&device->impl), 1, &own->mode);",
           "own->relaxed = false;", ("python:cuda-sim:tests/python/test_with_cuda_driver.py",)),
    # ---- core: errors
    Mutant("housekeeping writes the record", "releases never touch the error record", "core/status.c",
           "ggi_thread()->quiet += delta;", "(void)delta;", on("errors faults", HOST, CUDA)),
    Mutant("the first site is forgotten", "a lost device says where it was first seen", "core/status.c",
           "if (device->lost.status)\n", "if (!device)\n", ("fault-sweep-cuda-sim:cuMemcpyHtoDAsync_v2",)),
    Mutant("a lost device is waited for", "on a lost device nothing runs any more", "core/progress.c",
           "if (atomic_load(&stream->device->gone)) {", "if (!stream->device) {", ("fault-sweep-ze-sim-new:zeEventHostSynchronize", "fault-sweep-ze-sim-new:zeCommandListAppendSignalEvent")),
    # ---- cuda and hip
    Mutant("the context is not restored", "what is current is restored", "backends/cuda_hip/device.c",
           'twin_forget(twin.context_set(guard->saved), "restoring the caller\'s context");', "(void)guard;",
           on("current faults", CUDA, HIP)),
    Mutant("the context is restored on success only", "what is current is restored on error too",
           "backends/cuda_hip/copy.c",
           "code = start_fill(dst, pattern, pattern_size, count, stream->native);\n    twin_leave(&guard);",
           "code = start_fill(dst, pattern, pattern_size, count, stream->native);\n    if (!code)\n        twin_leave(&guard);",
           on("faults current", CUDA, HIP)),
    Mutant("all streams are nonblocking", "a stream is ordered with the default one", "backends/cuda_hip/stream.c",
           "flags ? twin.stream_nonblocking : 0", "twin.stream_nonblocking", on("order stream", CUDA, HIP)),
    Mutant("out of memory is any error", "error classes are mapped", "backends/cuda/cuda_errors.def",
           "ERROR(CUDA_ERROR_OUT_OF_MEMORY, 2, GG_ERR_OUT_OF_MEMORY, NULL)",
           "ERROR(CUDA_ERROR_OUT_OF_MEMORY, 2, GG_ERR_DEVICE, NULL)", on("memory", CUDA)),
    Mutant("outputs are written on failure", "outputs are written on success only", "backends/cuda_hip/device.c",
           '    if (code)\n        return twin_fail(code, "free and total memory");\n    *free = now_free;\n    *total = now_total;\n',
           '    *free = now_free;\n    *total = now_total;\n    if (code)\n        return twin_fail(code, "free and total memory");\n',
           ("fault-sweep-cuda-sim:cuMemGetInfo_v2",)),
    Mutant("the context is not given back", "the shutdown destroys what the engine made", "backends/cuda_hip/device.c",
           '    twin_forget(twin.context_release(device->device), "releasing a device\'s context");\n', "",
           ("fault-sweep-cuda-sim:cuInit",)),
    # ---- Level Zero
    Mutant("no barriers on the old API", "a list below 1.7 has a barrier behind each append", "backends/ze/list.c",
           "    if (stream->in_order)\n        return 0;\n", "    if (stream)\n        return 0;\n",
           on("stream order copy", OLD)),
    Mutant("an event is not reset", "an event is reset when it is recycled", "backends/ze/point.c",
           "const int code = ze.event_reset(point->event);", "const int code = 0;", on("event order stream", NEW, OLD)),
    Mutant("an event is reset too soon", "it is recycled only when it was signalled", "backends/ze/point.c",
           "        if (!code)\n            recycle(pool, point);", "        if (code || !code)\n            recycle(pool, point);",
           on("event order stream threads", NEW, OLD)),
    Mutant("a waiter does not hold its event", "waiters hold what they wait for", "backends/ze/list.c",
           "receipt->before = ze_point_retain(point);", "receipt->before = NULL;",
           on("event order stream threads", NEW, OLD)),
    Mutant("a shared list's mark is reused", "what others appended counts", "backends/ze/list.c",
           "mark(stream, atomic_load(&stream->shared), out)", "mark(stream, false, out)", on("borrowed", NEW, OLD)),
    Mutant("the clock does not wrap", "elapsed is a difference modulo the valid bits", "backends/ze/event.c",
           "(int64_t)(ticks << unused) >> unused", "(int64_t)ticks + 0 * (int64_t)unused", on("event", NEW, OLD)),
    Mutant("no relaxed limits", "more than the driver's limit at once", "backends/ze/memory.c",
           ".stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,\n                                               .next = large ? &relaxed : NULL};",
           ".stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,\n                                               .next = large ? NULL : NULL};",
           on("memory", NEW, OLD)),
    # ---- host
    Mutant("host: a wait for an event waits for nothing", "a stream waits for an event", "backends/host/event.c",
           "    host_point_wait(command->point, GG_FOREVER);\n", "", on("event order stream", HOST)),
    Mutant("host: a query says done", "a query tells whether work is done", "backends/host/stream.c",
           "idle = stream->completed == stream->submitted;", "idle = stream != NULL;", on("stream", HOST)),
    Mutant("host: recording again moves the waiters", "who waits for a record still does", "backends/host/event.c",
           "if (point && passed(point) && atomic_load_explicit(&point->refs, memory_order_acquire) == 1)",
           "if (point)", on("event order", HOST)),
]
