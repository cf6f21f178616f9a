/* launch_args.c: from Python objects to the bytes that a kernel takes. An argument whose type is not known exactly
 * is an error: the kernel would read garbage. */
#include "kernel/launch_args.h"
#include "numpy/bridge.h"
#include "memory/buffer.h"
#include "copy/array_object.h"

#include <math.h>
#include <stdio.h>

/* ---- room ---- */

static int args_alloc(struct py_launch_args *launch_args, Py_ssize_t count)
{
    const size_t each = sizeof *launch_args->slots + sizeof *launch_args->arguments +
                        sizeof *launch_args->sizes + sizeof *launch_args->memories +
                        sizeof *launch_args->retained;
    char *at;
    struct gg_launch *launch = &launch_args->launch;
    launch_args->slots = launch_args->inline_slots;
    launch->arguments = launch_args->arguments = launch_args->inline_arguments;
    launch->sizes = launch_args->sizes = launch_args->inline_sizes;
    launch->memories = launch_args->memories = launch_args->inline_memories;
    launch->memory_count = 0;
    launch->argument_count = (uint32_t)count;
    launch_args->retained = launch_args->inline_retained;
    launch_args->retained_count = launch_args->view_count = launch_args->external_count = 0;
    launch_args->views = NULL;
    launch_args->external = NULL;
    launch_args->block = NULL;
    launch_args->count = count;
    if (count <= PY_INLINE_ARGS)
        return 0;
    at = launch_args->block = PyMem_Malloc((size_t)count * each);
    if (!at)
        return PY_NO_MEMORY();
    launch_args->slots = (void *)at;
    launch->arguments = launch_args->arguments =
        (void *)(at + (size_t)count * sizeof *launch_args->slots);
    launch->sizes = launch_args->sizes = (void *)(launch_args->arguments + count);
    launch->memories = launch_args->memories = (void *)(launch_args->sizes + count);
    launch_args->retained = launch_args->memories + count;
    return 0;
}

void py_launch_args_release(struct py_launch_args *launch_args)
{
    for (size_t i = 0; i < launch_args->retained_count; i++)
        gg_memory_release(launch_args->retained[i]);
    if (!launch_args->views && !launch_args->external && !launch_args->block)
        return;
    for (size_t i = 0; i < launch_args->view_count; i++)
        PyBuffer_Release(&launch_args->views[i]);
    for (size_t i = 0; i < launch_args->external_count; i++)
        Py_DECREF(launch_args->external[i]);
    PyMem_Free(launch_args->views);
    PyMem_Free((void *)launch_args->external);
    PyMem_Free(launch_args->block);
}

/* ---- one argument ---- */

struct argument {
    struct py_launch_args *launch_args;
    const struct py_kernel *kernel;
    Py_ssize_t index;
    const struct gg_parameter *declared; /* or NULL */
};

static void arg_put(const struct argument *at, const void *value, size_t size)
{
    memcpy(at->launch_args->slots[at->index].bytes, value, size);
    at->launch_args->arguments[at->index] = &at->launch_args->slots[at->index];
    at->launch_args->sizes[at->index] = size;
}

static int arg_raise(const struct argument *at, const char *format, PyObject *object)
{
    char what[96];
    snprintf(what, sizeof what, "%.64s: argument %d", gg_kernel_name(at->kernel->kernel),
             (int)at->index);
    return PY_FAIL(PyExc_TypeError, format, what, object);
}

static bool arg_is_float(const struct argument *at)
{
    return at->declared && at->declared->kind == GG_PARAMETER_FLOAT;
}

/* An integer parameter may be an address: some image formats declare pointers so. A float is not. The memory belongs
 * to an object that outlives the launch call. */
static int arg_put_memory(const struct argument *at, PyObject *object, gg_memory *memory,
                          size_t offset)
{
    struct py_launch_args *launch_args = at->launch_args;
    if (arg_is_float(at))
        return arg_raise(at, "%s is an array or a buffer, %R, where the kernel takes a float",
                         (PyObject *)Py_TYPE(object));
    launch_args->slots[at->index].pointer = (char *)gg_memory_pointer(memory) + offset;
    launch_args->arguments[at->index] = &launch_args->slots[at->index];
    launch_args->sizes[at->index] = sizeof(void *);
    launch_args->memories[launch_args->launch.memory_count++] = memory;
    return 0;
}

/* Bytes passed in place: a struct, a RawArgument. */
static int arg_put_view(const struct argument *at, PyObject *object)
{
    struct py_launch_args *launch_args = at->launch_args;
    if (!launch_args->views) {
        launch_args->views = PyMem_Malloc((size_t)launch_args->count * sizeof *launch_args->views);
        if (!launch_args->views)
            return PY_NO_MEMORY();
    }
    Py_buffer *view = &launch_args->views[launch_args->view_count];
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE))
        return -1;
    launch_args->view_count++;
    launch_args->arguments[at->index] = view->buf;
    launch_args->sizes[at->index] = (size_t)view->len;
    return 0;
}

/* ---- bare numbers: only where the type is declared ---- */

static int arg_raise_untyped(const struct argument *at, PyObject *object)
{
    if (PyFloat_Check(object))
        return arg_raise(
            at,
            "%s is a bare float %R, and the kernel's image does not declare the type: write "
            "numpy.float32(...) or numpy.float64(...), or bind the types with kernel.bind()",
            object);
    return arg_raise(
        at,
        "%s is a bare int %R, and the kernel's image does not declare the type: write "
        "numpy.int32(...) or another NumPy scalar, or bind the types with kernel.bind()",
        object);
}

static int arg_put_float(const struct argument *at, PyObject *object)
{
    const double value = PyFloat_AsDouble(object);
    const float narrow = (float)value;
    if (value == -1.0 && PyErr_Occurred())
        return -1;
    if (at->declared->size == sizeof value) {
        arg_put(at, &value, sizeof value);
    } else if (at->declared->size == sizeof narrow) {
        if (isinf(narrow) && !isinf(value))
            return arg_raise(at, "%s, %R, does not fit a float of 4 bytes", object);
        arg_put(at, &narrow, sizeof narrow);
    } else {
        return arg_raise(
            at, "%s, %R: write a NumPy scalar of that size, such as numpy.float16(...)", object);
    }
    return 0;
}

/* Where the sign is not declared, the ranges of both are accepted. */
static bool integer_fits(long long value, bool negative, unsigned long long magnitude,
                         const struct gg_parameter *declared)
{
    const unsigned bits = declared->size * 8;
    const unsigned long long top = bits == 64 ? ~0ull : (1ull << bits) - 1;
    if (declared->kind == GG_PARAMETER_UNSIGNED || declared->kind == GG_PARAMETER_POINTER)
        return !negative && magnitude <= top;
    if (negative)
        return bits == 64 || value >= -(long long)(top / 2) - 1;
    return magnitude <= (declared->kind == GG_PARAMETER_SIGNED ? top / 2 : top);
}

static int arg_put_integer(const struct argument *at, PyObject *object)
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
    if (at->declared->size > 8 || !at->declared->size)
        return arg_raise_untyped(at, object);
    if (overflow < 0 || !integer_fits(value, !overflow && value < 0, magnitude, at->declared))
        return PY_FAIL(at->kernel->state->invalid_argument,
                       "%.64s: argument %d, %R, does not fit the %d bytes that the kernel takes",
                       gg_kernel_name(at->kernel->kernel), (int)at->index, object,
                       (int)at->declared->size);
    at->launch_args->slots[at->index].word = magnitude; /* little-endian */
    at->launch_args->arguments[at->index] = &at->launch_args->slots[at->index];
    at->launch_args->sizes[at->index] = at->declared->size;
    return 0;
}

static int arg_put_number(const struct argument *at, PyObject *object)
{
    const uint32_t kind = at->declared ? at->declared->kind : GG_PARAMETER_UNKNOWN;
    if (kind == GG_PARAMETER_FLOAT)
        return arg_put_float(at, object);
    if (kind == GG_PARAMETER_LOCAL)
        return arg_raise(at,
                         "%s is %R where the kernel takes block-local memory: pass "
                         "gpuglue.LocalMemory(bytes)",
                         object);
    if (kind == GG_PARAMETER_UNKNOWN || kind == GG_PARAMETER_BYTES)
        return arg_raise_untyped(at, object);
    if (!PyLong_CheckExact(object) && PyFloat_Check(object))
        return arg_raise(at, "%s is a float, %R, where the kernel takes an integer", object);
    return arg_put_integer(at, object);
}

/* None is a null pointer, where a pointer may be. */
static int arg_put_null(const struct argument *at, PyObject *object)
{
    void *const null = NULL;
    if (at->declared &&
        ((at->declared->size && at->declared->size != sizeof null) ||
         at->declared->kind == GG_PARAMETER_FLOAT || at->declared->kind == GG_PARAMETER_BYTES))
        return arg_raise(at, "%s is %R, a null pointer, where the kernel takes no pointer", object);
    arg_put(at, &null, sizeof null);
    return 0;
}

/* ---- others ---- */

/* A scalar of another type than the parameter's is a mistake; kinds are NumPy's letters. */
static int arg_check_scalar(const struct argument *at, char kind, PyObject *object)
{
    const uint32_t declared = at->declared ? at->declared->kind : GG_PARAMETER_UNKNOWN;
    const bool is_integer = kind == 'i' || kind == 'u' || kind == 'b';
    if (declared == GG_PARAMETER_FLOAT && kind != 'f')
        return arg_raise(at,
                         is_integer ? "%s is an integer scalar, %R, where the kernel takes a float"
                                    : "%s is not a float, %R, where the kernel takes a float",
                         object);
    if (declared == GG_PARAMETER_POINTER && !is_integer && kind != 'V')
        return arg_raise(at, "%s is not an address, %R, where the kernel takes a pointer", object);
    if ((kind == 'f' || kind == 'c') &&
        (declared == GG_PARAMETER_SIGNED || declared == GG_PARAMETER_UNSIGNED ||
         declared == GG_PARAMETER_INTEGER))
        return arg_raise(at, "%s is a floating-point scalar, %R, where the kernel takes an integer",
                         object);
    return 0;
}

/* A NumPy scalar: 1 done, 0 not one, -1. */
static int arg_put_numpy(const struct argument *at, PyObject *object)
{
    char kind;
    size_t size;
    union py_slot value;
    const int found = numpy_scalar(object, &value, sizeof value, &size, &kind);
    if (found < 1 || kind == 'U' || kind == 'S' || kind == 'O')
        return found < 0 ? -1 : 0; /* kernels take neither strings nor objects */
    if (arg_check_scalar(at, kind, object))
        return -1;
    if (size > sizeof value || kind == 'V')
        return arg_put_view(at, object) ? -1 : 1;
    arg_put(at, &value, size);
    return 1;
}

/* An array of another library: as a GPUArray over the same memory. */
static int arg_put_external(const struct argument *at, PyObject *object)
{
    struct py_launch_args *launch_args = at->launch_args;
    PyObject *external = py_kernel_external_array(
        at->kernel->state, gg_kernel_device(at->kernel->kernel), launch_args->stream, object);
    if (!external)
        return -1;
    if (!launch_args->external) {
        launch_args->external =
            (PyObject **)PyMem_Malloc((size_t)launch_args->count * sizeof *launch_args->external);
        if (!launch_args->external) {
            Py_DECREF(external);
            return PY_NO_MEMORY();
        }
    }
    launch_args->external[launch_args->external_count++] = external;
    return arg_put_memory(at, object, ((struct py_array *)external)->memory,
                          ((struct py_array *)external)->offset);
}

static int has_attribute(PyObject *object, const char *name)
{
    PyObject *value;
    const int found = py_optional_attribute(object, name, &value);
    if (found > 0)
        Py_DECREF(value);
    return found;
}

static int arg_put_other(const struct argument *at, PyObject *object)
{
    int found = numpy_is_array(object);
    char kind;
    if (found < 0)
        return -1;
    if (found)
        return arg_raise(at,
                         "%s is a NumPy array (%R), which is host memory: a launch takes device "
                         "arrays; upload it with gpuglue.to_gpu(...)",
                         (PyObject *)Py_TYPE(object));
    found = arg_put_numpy(at, object);
    if (found)
        return found < 0 ? -1 : 0;
    found = py_ctypes_kind(object, &kind);
    if (found)
        return found < 0 || (kind && arg_check_scalar(at, kind, object)) ? -1
                                                                         : arg_put_view(at, object);
    found = has_attribute(object, "__cuda_array_interface__");
    if (!found)
        found = has_attribute(object, "__dlpack__");
    if (found)
        return found < 0 ? -1 : arg_put_external(at, object);
    return arg_raise(
        at,
        "%s is %R: a kernel takes a GPUArray, a Buffer, an array of another library, a NumPy "
        "or ctypes scalar or struct, or gpuglue.RawArgument(bytes)",
        (PyObject *)Py_TYPE(object));
}

static int arg_put_array(const struct argument *at, PyObject *object)
{
    struct py_array *array = (struct py_array *)object;
    if (!array->memory) {
        py_closed(at->kernel->state, "GPUArray");
        return -1;
    }
    return arg_put_memory(at, object, array->memory, array->offset);
}

static int arg_put_buffer(const struct argument *at, PyObject *object)
{
    gg_memory *memory = py_buffer_memory(object);
    if (!memory)
        return -1;
    py_buffer_touch(object);
    gg_memory_retain(memory);
    at->launch_args->retained[at->launch_args->retained_count++] = memory;
    return arg_put_memory(at, object, memory, 0);
}

static int arg_put_object(const struct argument *at, PyObject *object)
{
    const struct py_state *state = at->kernel->state;
    if (Py_IS_TYPE(object, state->array_type))
        return arg_put_array(at, object);
    if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object))
        return arg_put_number(at, object);
    if (Py_IS_TYPE(object, state->buffer_type))
        return arg_put_buffer(at, object);
    if (object == Py_None)
        return arg_put_null(at, object);
    if (Py_IS_TYPE(object, state->local_memory_type)) {
        at->launch_args->arguments[at->index] = NULL;
        at->launch_args->sizes[at->index] = ((struct py_local_memory *)object)->nbytes;
        return 0;
    }
    if (Py_IS_TYPE(object, state->raw_argument_type))
        return arg_put_view(at, ((struct py_raw_argument *)object)->bytes);
    if (PyObject_TypeCheck(object, state->array_type))
        return arg_put_array(at, object);
    return arg_put_other(at, object);
}

/* ---- all arguments ---- */

/* Store a number of the usual type. False: it takes the general way. */
static inline bool arg_put_plain_number(const struct py_plan *plan, union py_slot *slot,
                                        PyObject *object)
{
    if (plan->number == PY_PLAN_INTEGER && PyLong_CheckExact(object)) {
        int overflow;
        const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        slot->word = (unsigned long long)value; /* little-endian */
        if (overflow)
            return false;
        return (unsigned long long)value - (unsigned long long)plan->least <= plan->more;
    }
    if (plan->number < PY_PLAN_FLOAT32 || !PyFloat_CheckExact(object))
        return false;
    slot->number = PyFloat_AsDouble(object);
    if (plan->number == PY_PLAN_FLOAT64)
        return true;
    const float narrow = (float)slot->number;
    const bool fits = !isinf(narrow) || isinf(slot->number);
    memcpy(slot->bytes, &narrow, sizeof narrow);
    return fits;
}

/* Store the usual objects, whose sizes are the kernel's, from argument @p begin on. Returns the first that takes the general way; or the count. Not inlined, so
 * that the loop has the registers. */
__attribute__((noinline)) static Py_ssize_t args_put_plain(struct py_launch_args *launch_args,
                                                           const struct py_kernel *kernel,
                                                           PyObject *const *args, Py_ssize_t begin)
{
    PyTypeObject *const array_type = kernel->state->array_type;
    const struct py_plan *const plan = kernel->plan;
    union py_slot *const slots = launch_args->slots;
    const void **const arguments = launch_args->arguments;
    gg_memory **memory = launch_args->memories + launch_args->launch.memory_count;
    const Py_ssize_t count = launch_args->count;
    Py_ssize_t end = begin;
    for (; end < count; end++) {
        const struct py_array *array = (const struct py_array *)args[end];
        if (!Py_IS_TYPE(args[end], array_type)) {
            if (!arg_put_plain_number(&plan[end], &slots[end], args[end]))
                break;
        } else if (plan[end].address && array->memory) {
            slots[end].pointer = array->address;
            *memory++ = array->memory;
        } else {
            break;
        }
        arguments[end] = &slots[end];
    }
    launch_args->launch.memory_count = (size_t)(memory - launch_args->memories);
    return end;
}

/* By the general way: any object that a kernel takes. */
static int arg_put_any(struct py_launch_args *launch_args, const struct py_kernel *kernel,
                       Py_ssize_t index, PyObject *object)
{
    const struct gg_parameter *declared = index < kernel->count ? &kernel->parameters[index] : NULL;
    const struct argument at = {launch_args, kernel, index, declared};
    if (arg_put_object(&at, object))
        return -1;
    if (!declared || !declared->size || declared->size == launch_args->sizes[index])
        return 0;
    py_invalid(kernel->state, "%.64s: argument %d, %R, has %zu bytes where the kernel takes %d",
               gg_kernel_name(kernel->kernel), (int)index, object, launch_args->sizes[index],
               (int)declared->size);
    return -1;
}

static int args_check_count(const struct py_kernel *kernel, Py_ssize_t count)
{
    if (kernel->count < 0 || count == kernel->count)
        return 0;
    return PY_FAIL(PyExc_TypeError, "%.64s() takes %d argument%s, got %zd",
                   gg_kernel_name(kernel->kernel), (int)kernel->count,
                   kernel->count == 1 ? "" : "s", count);
}

/* From argument @p at on, the first that takes the general way. */
static int args_put_others(struct py_launch_args *launch_args, const struct py_kernel *kernel,
                           PyObject *const *args, Py_ssize_t at)
{
    const Py_ssize_t count = launch_args->count;
    if (kernel->plan)
        memcpy(launch_args->sizes, kernel->sizes, (size_t)count * sizeof *kernel->sizes);
    while (at < count) {
        if (arg_put_any(launch_args, kernel, at, args[at])) {
            py_launch_args_release(launch_args);
            return -1;
        }
        at++;
        if (kernel->plan)
            at = args_put_plain(launch_args, kernel, args, at);
    }
    return 0;
}

int py_launch_args_fill(struct py_launch_args *launch_args, const struct py_kernel *kernel,
                        PyObject *const *args, Py_ssize_t count, gg_stream *stream)
{
    if (args_check_count(kernel, count) || args_alloc(launch_args, count))
        return -1;
    launch_args->stream = stream;
    const Py_ssize_t plain = kernel->plan ? args_put_plain(launch_args, kernel, args, 0) : 0;
    if (plain < count)
        return args_put_others(launch_args, kernel, args, plain);
    if (plain)
        launch_args->launch.sizes = kernel->sizes;
    return 0;
}
