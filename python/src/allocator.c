/* allocator.c: device memory from a Python callable in place of the pool. */
#include "allocator.h"
#include "memory.h"
#include "place.h"

/* ---- one block of it ---- */

static PyObject *call(struct py_state *state, const struct py_place *place, gg_stream *stream,
                      size_t nbytes)
{
    gg_stream_retain(stream);
    PyObject *stream_object = py_stream_wrap(state, stream), *result = NULL;
    PyObject *device = stream_object ? py_device_wrap(state, place->device) : NULL;
    PyObject *allocator = Py_NewRef(state->allocator); /* it may be replaced by its own call */
    if (device)
        result = PyObject_CallFunction(allocator, "nOO", (Py_ssize_t)nbytes, device, stream_object);
    Py_DECREF(allocator);
    Py_XDECREF(device);
    Py_XDECREF(stream_object);
    return result;
}

static int read_number(struct py_state *state, PyObject *value, const char *what, uint64_t *out)
{
    if (PyIndex_Check(value))
        return py_uint64(state, value, what, out);
    PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", what, value);
    return -1;
}

/* 1: it says how large it is, 0: it does not, -1 with an exception. */
static int told_size(struct py_state *state, PyObject *block, uint64_t *out)
{
    PyObject *value;
    int found = py_optional_attribute(block, "nbytes", &value);
    if (!found)
        found = py_optional_attribute(block, "size", &value);
    if (found <= 0)
        return found;
    int failed = read_number(state, value, "the allocator's size", out);
    Py_DECREF(value);
    return failed ? -1 : 1;
}

static int read_address(struct py_state *state, PyObject *block, uint64_t *out)
{
    PyObject *value;
    int found = py_optional_attribute(block, "ptr", &value);
    if (found < 0)
        return -1;
    if (!found) {
        PyErr_Format(PyExc_TypeError,
                     "the allocator must return an object with the address in its ptr, not %R",
                     block);
        return -1;
    }
    int failed = read_number(state, value, "the allocator's ptr", out);
    Py_DECREF(value);
    return failed;
}

static int check(struct py_state *state, PyObject *block, const struct py_place *place,
                 size_t nbytes, uint64_t *address)
{
    uint64_t size = 0;
    if (read_address(state, block, address))
        return -1;
    int told = told_size(state, block, &size);
    if (told < 0)
        return -1;
    if (told && size < nbytes) {
        py_invalid(state, "the allocator gave %llu bytes, %zu were asked for",
                   (unsigned long long)size, nbytes);
        return -1;
    }
    return py_pointer_check(state, place->device, (void *)(uintptr_t)*address, nbytes);
}

static gg_memory *alloc_on(struct py_state *state, const struct py_place *place, gg_stream *stream,
                           size_t nbytes)
{
    uint64_t address = 0;
    gg_memory *memory = NULL;
    PyObject *block = call(state, place, stream, nbytes);
    if (!block)
        return NULL;
    if (check(state, block, place, nbytes, &address) ||
        py_check(state, gg_memory_wrap(place->device, GG_MEMORY_DEVICE, (void *)(uintptr_t)address,
                                       nbytes, py_owner_release, block, &memory))) {
        Py_DECREF(block);
        return NULL;
    }
    if (py_check(state, gg_memory_hand_out(memory, stream))) {
        gg_memory_release(memory);
        return NULL;
    }
    return memory;
}

gg_memory *py_allocator_alloc(struct py_state *state, const struct py_place *place, size_t nbytes)
{
    gg_stream *stream = place->stream;
    if (!stream && py_check(state, gg_current_stream(place->device, &stream)))
        return NULL;
    gg_stream_retain(stream); /* the callable may leave or close it */
    gg_memory *memory = alloc_on(state, place, stream, nbytes);
    gg_stream_release(stream);
    return memory;
}

/* ---- which one ---- */

static PyObject *by_name(PyObject *name)
{
    PyObject *module = PyImport_ImportModule("gpuglue._allocators");
    PyObject *allocator = module ? PyObject_CallMethod(module, "by_name", "O", name) : NULL;
    Py_XDECREF(module);
    return allocator;
}

static PyObject *use_allocator(PyObject *module, PyObject *what)
{
    struct py_state *state = PyModule_GetState(module);
    PyObject *allocator = PyCallable_Check(what) ? Py_NewRef(what) : NULL;
    if (!allocator && what != Py_None) {
        allocator = by_name(what);
        if (!allocator)
            return NULL;
    }
    PyObject *before = state->allocator;
    state->allocator = allocator;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    use_allocator_doc,
    "use_allocator(allocator, /)\n--\n\n"
    "Where device memory comes from, from now on: 'torch', 'cupy' or 'rmm' for those packages'\n"
    "pools, None for gpuglue's own, or a callable. It is called as allocator(nbytes, device,\n"
    "stream) and returns an object that owns at least so many bytes on that device, ready for use\n"
    "on that stream, with the address in `ptr` (and the size in `nbytes` or `size`, if it has\n"
    "such an attribute). The object is dropped when the memory was closed and all work of\n"
    "gpuglue's on it is done. Memory that exists stays with the allocator that made it.");

static PyMethodDef functions[] = {
    {"use_allocator", use_allocator, METH_O, use_allocator_doc},
    {NULL, NULL, 0, NULL},
};

int py_allocator_add(PyObject *module, struct py_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
