/* allocator.c: device memory from a Python callable in place of the pool. */
#include "memory/allocator.h"
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/pointer.h"

/* ---- one block ---- */

/* Drops released blocks whose work is finished. The pool, whose own blocks stay, examines all that was released. */
static void allocator_return_blocks(gg_device *device)
{
    PY_WITHOUT_GIL(gg_pool_trim(device, GG_MEMORY_DEVICE, UINT64_MAX));
    py_owners_drain();
}

static PyObject *allocator_call(struct py_state *state, PyObject *allocator,
                                const struct py_alloc_target *target, gg_stream *stream,
                                size_t nbytes)
{
    gg_stream_retain(stream);
    PyObject *stream_object = py_stream_wrap(state, stream), *result = NULL;
    PyObject *device = stream_object ? py_device_wrap(state, target->device) : NULL;
    if (device)
        result = PyObject_CallFunction(allocator, "nOO", (Py_ssize_t)nbytes, device, stream_object);
    Py_XDECREF(device);
    Py_XDECREF(stream_object);
    return result;
}

/* As the exception may refer to blocks, it is dropped before the second attempt. */
static PyObject *allocator_call_twice(struct py_state *state, PyObject *allocator,
                                      const struct py_alloc_target *target, gg_stream *stream,
                                      size_t nbytes)
{
    allocator_return_blocks(target->device);
    PyObject *block = allocator_call(state, allocator, target, stream, nbytes);
    if (block || !PyErr_ExceptionMatches(PyExc_MemoryError))
        return block;
    PyErr_Clear();
    PY_WITHOUT_GIL(gg_device_trim(target->device));
    py_owners_drain();
    return allocator_call(state, allocator, target, stream, nbytes);
}

static int allocator_read_number(struct py_state *state, PyObject *value, const char *what,
                                 uint64_t *out)
{
    if (PyIndex_Check(value))
        return py_uint64(state, value, what, out);
    return PY_FAIL(PyExc_TypeError, "%s must be an int, got %R", what, value);
}

/* Its nbytes or size attribute: 1, 0 without one, -1 with an exception. */
static int allocator_declared_size(struct py_state *state, PyObject *block, uint64_t *out)
{
    PyObject *value;
    int found = py_optional_attribute(block, "nbytes", &value);
    if (!found)
        found = py_optional_attribute(block, "size", &value);
    if (found <= 0)
        return found;
    int failed = allocator_read_number(state, value, "the allocator's size", out);
    Py_DECREF(value);
    return failed ? -1 : 1;
}

static int allocator_read_address(struct py_state *state, PyObject *block, uint64_t *out)
{
    PyObject *value;
    int found = py_optional_attribute(block, "ptr", &value);
    if (found < 0)
        return -1;
    if (!found)
        return PY_FAIL(PyExc_TypeError,
                       "the allocator must return an object with the address in its ptr, got %R",
                       block);
    int failed = allocator_read_number(state, value, "the allocator's ptr", out);
    Py_DECREF(value);
    return failed;
}

static int allocator_check_block(struct py_state *state, PyObject *block,
                                 const struct py_alloc_target *target, size_t nbytes,
                                 uint64_t *address)
{
    uint64_t size = 0;
    if (allocator_read_address(state, block, address))
        return -1;
    int declared = allocator_declared_size(state, block, &size);
    if (declared < 0)
        return -1;
    if (declared && size < nbytes)
        return PY_FAIL(state->invalid_argument,
                       "the allocator returned %llu bytes, %zu were requested",
                       (unsigned long long)size, nbytes);
    return py_pointer_check(state, target->device, (void *)(uintptr_t)*address, nbytes);
}

static gg_memory *allocator_alloc_on(struct py_state *state, const struct py_alloc_target *target,
                                     gg_stream *stream, size_t nbytes)
{
    uint64_t address = 0;
    gg_memory *memory = NULL;
    /* Its own call, other threads meanwhile, and what is released before may replace it. */
    PyObject *allocator = Py_NewRef(state->allocator);
    PyObject *block = allocator_call_twice(state, allocator, target, stream, nbytes);
    Py_DECREF(allocator);
    if (!block)
        return NULL;
    if (allocator_check_block(state, block, target, nbytes, &address) ||
        py_check(state, gg_memory_wrap(target->device, GG_MEMORY_DEVICE, (void *)(uintptr_t)address,
                                       nbytes, py_owner_release, block, &memory))) {
        Py_DECREF(block);
        return NULL;
    }
    if (py_check(state, gg_memory_ready_after(memory, stream))) {
        gg_memory_release(memory);
        return NULL;
    }
    return memory;
}

gg_memory *py_allocator_alloc(struct py_state *state, const struct py_alloc_target *target,
                              size_t nbytes)
{
    gg_stream *stream = target->stream;
    if (!stream && py_check(state, gg_current_stream(target->device, &stream)))
        return NULL;
    gg_stream_retain(stream); /* the callable may leave or close it */
    gg_memory *memory = allocator_alloc_on(state, target, stream, nbytes);
    gg_stream_release(stream);
    return memory;
}

/* ---- set_allocator ---- */

static PyObject *allocator_by_name(PyObject *name)
{
    PyObject *module = PyImport_ImportModule("gpuglue._allocators");
    PyObject *allocator = module ? PyObject_CallMethod(module, "by_name", "O", name) : NULL;
    Py_XDECREF(module);
    return allocator;
}

static PyObject *set_allocator(PyObject *module, PyObject *what)
{
    struct py_state *state = PyModule_GetState(module);
    PyObject *allocator = PyCallable_Check(what) ? Py_NewRef(what) : NULL;
    if (!allocator && what != Py_None) {
        allocator = allocator_by_name(what);
        if (!allocator)
            return NULL;
    }
    PyObject *before = state->allocator;
    state->allocator = allocator;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyMethodDef py_allocator_functions[] = {
    {"set_allocator", set_allocator, METH_O, py_doc_set_allocator},
    {NULL, NULL, 0, NULL},
};
