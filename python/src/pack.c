/* pack.c: Python objects to the bytes that a kernel takes. What is not exactly told is refused: an
 * argument of the wrong type would be garbage on the device. */
#include "kernel.h"
#include "memory.h"
#include "numpy_bridge.h"

#include <math.h>
#include <stdio.h>

/* ---- room ---- */

static int take_room(struct py_pack *pack, Py_ssize_t count)
{
    const size_t each = sizeof *pack->slots + sizeof *pack->arguments + sizeof *pack->sizes +
                        sizeof *pack->memories + sizeof *pack->held;
    char *at;
    struct gg_launch *launch = &pack->launch;
    pack->slots = pack->few_slots;
    launch->arguments = pack->arguments = pack->few_arguments;
    launch->sizes = pack->sizes = pack->few_sizes;
    launch->memories = pack->memories = pack->few_memories;
    launch->memory_count = 0;
    launch->argument_count = (uint32_t)count;
    pack->held = pack->few_held;
    pack->held_count = pack->view_count = pack->owned_count = 0;
    pack->views = NULL;
    pack->owned = NULL;
    pack->block = NULL;
    pack->count = count;
    if (count <= PY_PACK_FEW)
        return 0;
    at = pack->block = PyMem_Malloc((size_t)count * each);
    if (!at) {
        PyErr_NoMemory();
        return -1;
    }
    pack->slots = (void *)at;
    launch->arguments = pack->arguments = (void *)(at + (size_t)count * sizeof *pack->slots);
    launch->sizes = pack->sizes = (void *)(pack->arguments + count);
    launch->memories = pack->memories = (void *)(pack->sizes + count);
    pack->held = pack->memories + count;
    return 0;
}

void py_pack_release(struct py_pack *pack)
{
    for (size_t i = 0; i < pack->held_count; i++)
        gg_memory_release(pack->held[i]);
    if (!pack->views && !pack->owned && !pack->block)
        return;
    for (size_t i = 0; i < pack->view_count; i++)
        PyBuffer_Release(&pack->views[i]);
    for (size_t i = 0; i < pack->owned_count; i++)
        Py_DECREF(pack->owned[i]);
    PyMem_Free(pack->views);
    PyMem_Free((void *)pack->owned);
    PyMem_Free(pack->block);
}

/* ---- one argument ---- */

struct place {
    struct py_pack *pack;
    const struct py_kernel *kernel;
    Py_ssize_t index;
    const struct gg_parameter *told; /* or NULL */
};

static void put(const struct place *at, const void *value, size_t size)
{
    memcpy(at->pack->slots[at->index].bytes, value, size);
    at->pack->arguments[at->index] = &at->pack->slots[at->index];
    at->pack->sizes[at->index] = size;
}

static int say(const struct place *at, const char *format, PyObject *object)
{
    char what[96];
    snprintf(what, sizeof what, "%.64s: argument %d", gg_kernel_name(at->kernel->kernel),
             (int)at->index);
    PyErr_Format(PyExc_TypeError, format, what, object);
    return -1;
}

static bool takes_float(const struct place *at)
{
    return at->told && at->told->kind == GG_PARAMETER_FLOAT;
}

/* An integer may be an address: images of some formats tell pointers so. A float is none. The memory
 * belongs to an object that stays, with it, until the launch is over. */
static int put_memory(const struct place *at, PyObject *object, gg_memory *memory, size_t offset)
{
    struct py_pack *pack = at->pack;
    if (takes_float(at))
        return say(at, "%s is an array or a buffer, %R, where the kernel takes a float",
                   (PyObject *)Py_TYPE(object));
    pack->slots[at->index].pointer = (char *)gg_memory_pointer(memory) + offset;
    pack->arguments[at->index] = &pack->slots[at->index];
    pack->sizes[at->index] = sizeof(void *);
    pack->memories[pack->launch.memory_count++] = memory;
    return 0;
}

/* Bytes that stay where they are: a struct, raw(). */
static int put_view(const struct place *at, PyObject *object)
{
    struct py_pack *pack = at->pack;
    if (!pack->views) {
        pack->views = PyMem_Malloc((size_t)pack->count * sizeof *pack->views);
        if (!pack->views) {
            PyErr_NoMemory();
            return -1;
        }
    }
    Py_buffer *view = &pack->views[pack->view_count];
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE))
        return -1;
    pack->view_count++;
    pack->arguments[at->index] = view->buf;
    pack->sizes[at->index] = (size_t)view->len;
    return 0;
}

/* ---- bare numbers: only where the type is told ---- */

static int refuse_bare(const struct place *at, PyObject *object)
{
    if (PyFloat_Check(object))
        return say(at,
                   "%s is a bare float %R, and the kernel's image does not tell the type: write "
                   "numpy.float32(...) or numpy.float64(...), or bind the types with kernel.bind()",
                   object);
    return say(at,
               "%s is a bare int %R, and the kernel's image does not tell the type: write "
               "numpy.int32(...) or another NumPy scalar, or bind the types with kernel.bind()",
               object);
}

static int put_float(const struct place *at, PyObject *object)
{
    const double value = PyFloat_AsDouble(object);
    const float narrow = (float)value;
    if (value == -1.0 && PyErr_Occurred())
        return -1;
    if (at->told->size == sizeof value) {
        put(at, &value, sizeof value);
    } else if (at->told->size == sizeof narrow) {
        if (isinf(narrow) && !isinf(value))
            return say(at, "%s, %R, does not fit a float of 4 bytes", object);
        put(at, &narrow, sizeof narrow);
    } else {
        return say(at, "%s, %R: write a NumPy scalar of that size, such as numpy.float16(...)",
                   object);
    }
    return 0;
}

/* The range of both signs is taken where the sign is not told. */
static bool fits(long long value, bool negative, unsigned long long magnitude,
                 const struct gg_parameter *told)
{
    const unsigned bits = told->size * 8;
    const unsigned long long top = bits == 64 ? ~0ull : (1ull << bits) - 1;
    if (told->kind == GG_PARAMETER_UNSIGNED || told->kind == GG_PARAMETER_POINTER)
        return !negative && magnitude <= top;
    if (negative)
        return bits == 64 || value >= -(long long)(top / 2) - 1;
    return magnitude <= (told->kind == GG_PARAMETER_SIGNED ? top / 2 : top);
}

static int put_integer(const struct place *at, PyObject *object)
{
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    unsigned long long magnitude = (unsigned long long)value;
    if (value == -1 && !overflow && PyErr_Occurred())
        return -1;
    if (overflow > 0) {
        magnitude = PyLong_AsUnsignedLongLong(object);
        if (magnitude == ~0ull && PyErr_Occurred()) {
            PyErr_Clear();
            overflow = -1;
        }
    }
    if (at->told->size > 8 || !at->told->size)
        return refuse_bare(at, object);
    if (overflow < 0 || !fits(value, !overflow && value < 0, magnitude, at->told)) {
        py_invalid(at->kernel->state,
                   "%.64s: argument %d, %R, does not fit the %d bytes that the kernel takes",
                   gg_kernel_name(at->kernel->kernel), (int)at->index, object, (int)at->told->size);
        return -1;
    }
    at->pack->slots[at->index].word = magnitude; /* little-endian */
    at->pack->arguments[at->index] = &at->pack->slots[at->index];
    at->pack->sizes[at->index] = at->told->size;
    return 0;
}

static int put_number(const struct place *at, PyObject *object)
{
    const uint32_t kind = at->told ? at->told->kind : GG_PARAMETER_UNKNOWN;
    if (kind == GG_PARAMETER_FLOAT)
        return put_float(at, object);
    if (kind == GG_PARAMETER_LOCAL)
        return say(at,
                   "%s is %R where the kernel takes memory of the block's own: pass "
                   "gpuglue.local(bytes)",
                   object);
    if (kind == GG_PARAMETER_UNKNOWN || kind == GG_PARAMETER_BYTES)
        return refuse_bare(at, object);
    if (!PyLong_CheckExact(object) && PyFloat_Check(object))
        return say(at, "%s is a float, %R, where the kernel takes an integer", object);
    return put_integer(at, object);
}

/* None is a null pointer, where a pointer may be. */
static int put_null(const struct place *at, PyObject *object)
{
    void *const null = NULL;
    if (at->told && ((at->told->size && at->told->size != sizeof null) ||
                     at->told->kind == GG_PARAMETER_FLOAT || at->told->kind == GG_PARAMETER_BYTES))
        return say(at, "%s is %R, a null pointer, where the kernel takes no pointer", object);
    put(at, &null, sizeof null);
    return 0;
}

/* ---- others ---- */

/* A scalar of another type than the parameter's is one only by mistake; kinds are NumPy's. */
static int check_scalar(const struct place *at, char kind, PyObject *object)
{
    const uint32_t told = at->told ? at->told->kind : GG_PARAMETER_UNKNOWN;
    const bool is_integer = kind == 'i' || kind == 'u' || kind == 'b';
    if (told == GG_PARAMETER_FLOAT && kind != 'f')
        return say(at,
                   is_integer ? "%s is an integer scalar, %R, where the kernel takes a float"
                              : "%s is no float, %R, where the kernel takes a float",
                   object);
    if (told == GG_PARAMETER_POINTER && !is_integer && kind != 'V')
        return say(at, "%s is no address, %R, where the kernel takes a pointer", object);
    if ((kind == 'f' || kind == 'c') &&
        (told == GG_PARAMETER_SIGNED || told == GG_PARAMETER_UNSIGNED ||
         told == GG_PARAMETER_INTEGER))
        return say(at, "%s is a floating-point scalar, %R, where the kernel takes an integer",
                   object);
    return 0;
}

/* A NumPy scalar: 1 done, 0 not one, -1. */
static int put_numpy(const struct place *at, PyObject *object)
{
    char kind;
    size_t size;
    union py_slot value;
    const int found = numpy_scalar(object, &value, sizeof value, &size, &kind);
    if (found < 1 || kind == 'U' || kind == 'S' || kind == 'O')
        return found < 0 ? -1 : 0; /* text and objects are no values of a kernel */
    if (check_scalar(at, kind, object))
        return -1;
    if (size > sizeof value || kind == 'V')
        return put_view(at, object) ? -1 : 1;
    put(at, &value, size);
    return 1;
}

/* An array of another library becomes one of ours over the same memory, where its device is. */
static int put_foreign(const struct place *at, PyObject *object)
{
    struct py_pack *pack = at->pack;
    PyObject *ours = py_kernel_foreign(at->kernel->state, gg_kernel_device(at->kernel->kernel),
                                       pack->stream, object);
    if (!ours)
        return -1;
    if (!pack->owned) {
        pack->owned = (PyObject **)PyMem_Malloc((size_t)pack->count * sizeof *pack->owned);
        if (!pack->owned) {
            Py_DECREF(ours);
            PyErr_NoMemory();
            return -1;
        }
    }
    pack->owned[pack->owned_count++] = ours;
    return put_memory(at, object, ((struct py_array *)ours)->memory,
                      ((struct py_array *)ours)->offset);
}

static int has_attribute(PyObject *object, const char *name)
{
    PyObject *value;
    const int found = py_optional_attribute(object, name, &value);
    if (found > 0)
        Py_DECREF(value);
    return found;
}

static int put_other(const struct place *at, PyObject *object)
{
    int found = numpy_is_array(object);
    char kind;
    if (found < 0)
        return -1;
    if (found)
        return say(at,
                   "%s is a NumPy array (%R), which is host memory: a launch takes arrays of its "
                   "device; upload it with gpuglue.to_gpu(...)",
                   (PyObject *)Py_TYPE(object));
    found = put_numpy(at, object);
    if (found)
        return found < 0 ? -1 : 0;
    found = py_ctypes_kind(object, &kind);
    if (found)
        return found < 0 || (kind && check_scalar(at, kind, object)) ? -1 : put_view(at, object);
    found = has_attribute(object, "__cuda_array_interface__");
    if (!found)
        found = has_attribute(object, "__dlpack__");
    if (found)
        return found < 0 ? -1 : put_foreign(at, object);
    return say(
        at,
        "%s is %R: a kernel takes a GPUArray, a Buffer, an array of another library, a NumPy "
        "or ctypes scalar or struct, or gpuglue.raw(bytes)",
        (PyObject *)Py_TYPE(object));
}

static int put_array(const struct place *at, PyObject *object)
{
    struct py_array *array = (struct py_array *)object;
    if (!array->memory) {
        py_closed(at->kernel->state, "GPUArray");
        return -1;
    }
    return put_memory(at, object, array->memory, array->offset);
}

static int put_buffer(const struct place *at, PyObject *object)
{
    gg_memory *memory = py_buffer_memory(object);
    if (!memory)
        return -1;
    py_buffer_touch(object);
    gg_memory_retain(memory);
    at->pack->held[at->pack->held_count++] = memory;
    return put_memory(at, object, memory, 0);
}

static int put_object(const struct place *at, PyObject *object)
{
    const struct py_state *state = at->kernel->state;
    if (Py_IS_TYPE(object, state->array_type))
        return put_array(at, object);
    if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object))
        return put_number(at, object);
    if (Py_IS_TYPE(object, state->buffer_type))
        return put_buffer(at, object);
    if (object == Py_None)
        return put_null(at, object);
    if (Py_IS_TYPE(object, state->local_type)) {
        at->pack->arguments[at->index] = NULL;
        at->pack->sizes[at->index] = ((struct py_local *)object)->nbytes;
        return 0;
    }
    if (Py_IS_TYPE(object, state->raw_type))
        return put_view(at, ((struct py_raw *)object)->bytes);
    if (PyObject_TypeCheck(object, state->array_type))
        return put_array(at, object);
    return put_other(at, object);
}

int py_pack(struct py_pack *pack, const struct py_kernel *kernel, PyObject *const *args,
            Py_ssize_t count, gg_stream *stream)
{
    struct place at = {pack, kernel, 0, NULL};
    pack->stream = stream;
    if (take_room(pack, count))
        return -1;
    if (kernel->count >= 0 && count != kernel->count) {
        PyErr_Format(PyExc_TypeError, "%.64s() takes %d argument%s, got %zd",
                     gg_kernel_name(kernel->kernel), (int)kernel->count,
                     kernel->count == 1 ? "" : "s", count);
        goto release;
    }
    for (; at.index < count; at.index++) {
        at.told = at.index < kernel->count ? &kernel->parameters[at.index] : NULL;
        if (put_object(&at, args[at.index]))
            goto release;
        if (at.told && at.told->size && at.told->size != pack->sizes[at.index]) {
            py_invalid(kernel->state,
                       "%.64s: argument %d, %R, has %zu bytes where the kernel takes %d",
                       gg_kernel_name(kernel->kernel), (int)at.index, args[at.index],
                       pack->sizes[at.index], (int)at.told->size);
            goto release;
        }
    }
    return 0;

release:
    py_pack_release(pack);
    return -1;
}
