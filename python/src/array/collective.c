/* collective.c: operations of a communicator: on arrays in device memory they are queued on a stream, on ndarrays they run at once. */
#include "array/array.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "runtime/registry.h"
#include "runtime/stream.h"

/* What an operation needs of its arrays: the number of blocks in each, or 0 if this rank does not use it. */
struct collective_shape {
    int x, out;
};

struct collective_call {
    struct py_state *state;
    gg_comm *comm;
    struct py_array *x, *out; /* NULL: None */
    struct gg_comm_work work;
    gg_stream *stream;
};

static struct collective_shape collective_shape_of(const struct gg_comm_work *work, int rank,
                                                   int size)
{
    const bool root = rank == work->root;
    switch (work->operation) {
    case GG_COMM_ALL_GATHER:
        return (struct collective_shape){1, size};
    case GG_COMM_GATHER:
        return (struct collective_shape){1, root ? size : 0};
    case GG_COMM_SCATTER:
        return (struct collective_shape){root ? size : 0, 1};
    case GG_COMM_REDUCE:
        return (struct collective_shape){1, root};
    case GG_COMM_REDUCE_SCATTER:
        return (struct collective_shape){size, 1};
    case GG_COMM_ALL_TO_ALL:
        return (struct collective_shape){size, size};
    case GG_COMM_BROADCAST:
    case GG_COMM_SEND:
        return (struct collective_shape){1, 0};
    case GG_COMM_RECV:
        return (struct collective_shape){0, 1};
    case GG_COMM_ALL_REDUCE:
    case GG_COMM_SEND_RECV:
        break;
    }
    return (struct collective_shape){1, 1};
}

/* ---- checks ---- */

/* Whether the operation does not divide arrays into blocks, so that they may be in Fortran order. */
static bool collective_is_whole(gg_comm_operation operation)
{
    return operation == GG_COMM_BROADCAST || operation == GG_COMM_ALL_REDUCE ||
           operation == GG_COMM_REDUCE || operation >= GG_COMM_SEND;
}

static int collective_check_array(const struct collective_call *call, const struct py_array *array,
                                  const char *name, bool writes)
{
    struct py_state *state = call->state;
    if (!array->c && !(array->f && collective_is_whole(call->work.operation)))
        return PY_FAIL(state->invalid_argument,
                       "%s is not C-contiguous, expected a C-contiguous array: copy it first", name);
    if (writes && array->readonly)
        return PY_FAIL(state->invalid_argument, "%s is read-only, but the operation writes to it",
                       name);
    return 0;
}

static int collective_check_pair(const struct collective_call *call, struct collective_shape shape)
{
    const struct py_array *x = call->x, *out = call->out;
    if (out->dtype != x->dtype) {
        const int equal = PyObject_RichCompareBool(out->dtype, x->dtype, Py_EQ);
        if (equal <= 0)
            return equal < 0
                       ? -1
                       : PY_FAIL(call->state->invalid_argument,
                                 "out has dtype %S, expected that of x: %S", out->dtype, x->dtype);
    }
    if (!(x->c && out->c) && !(x->f && out->f && x->ndim == out->ndim &&
                               !memcmp(x->shape, out->shape, (size_t)x->ndim * sizeof *x->shape)))
        return PY_FAIL(call->state->invalid_argument, "x and out have different orders or shapes");
    if (call->work.operation == GG_COMM_SEND_RECV)
        return 0;
    if (x->size % shape.x)
        return PY_FAIL(call->state->invalid_argument,
                       "x has %zd elements, expected a multiple of %d, the number of ranks",
                       x->size, shape.x);
    if (out->size != x->size / shape.x * shape.out)
        return PY_FAIL(call->state->invalid_argument,
                       "x has %zd elements and out has %zd, expected %zd: there are %d ranks",
                       x->size, out->size, x->size / shape.x * shape.out, gg_comm_size(call->comm));
    return 0;
}

static int collective_check(const struct collective_call *call, struct collective_shape shape)
{
    const bool broadcast = call->work.operation == GG_COMM_BROADCAST;
    if (shape.x && !call->x)
        return PY_FAIL(call->state->invalid_argument, "x is None, expected an array on this rank");
    if (shape.out && !call->out)
        return PY_FAIL(call->state->invalid_argument,
                       "out is None, expected an array on this rank");
    if (shape.x &&
        collective_check_array(call, call->x, "x",
                               call->x == call->out ||
                                   (broadcast && gg_comm_rank(call->comm) != call->work.root)))
        return -1;
    if (shape.out && collective_check_array(call, call->out, "out", true))
        return -1;
    if (broadcast || !shape.x || !shape.out)
        return 0;
    return collective_check_pair(call, shape);
}

/* ---- the call ---- */

static bool collective_reduces(gg_comm_operation operation)
{
    return operation == GG_COMM_ALL_REDUCE || operation == GG_COMM_REDUCE ||
           operation == GG_COMM_REDUCE_SCATTER;
}

static void collective_fill(struct collective_call *call, struct collective_shape shape)
{
    struct gg_comm_work *work = &call->work;
    const struct py_array *x = shape.x ? call->x : NULL, *out = shape.out ? call->out : NULL;
    const bool reduces = collective_reduces(work->operation);
    if (x) {
        work->src = x->memory;
        work->src_offset = x->offset;
        work->count = (reduces ? (size_t)x->size : x->nbytes) / (size_t)shape.x;
    } else if (out) {
        work->count = out->nbytes / (size_t)shape.out;
    }
    if (out) {
        work->dst = out->memory;
        work->dst_offset = out->offset;
        work->dst_count = out->nbytes;
    }
    if (work->operation == GG_COMM_BROADCAST) {
        work->dst = x->memory;
        work->dst_offset = x->offset;
    }
}

/* 1: an array that the device reaches as its own; 0: another object; None counts as the first. */
static int collective_takes(struct py_state *state, PyObject *object, struct py_array **out)
{
    *out = NULL;
    if (object == Py_None)
        return 1;
    if (!Py_IS_TYPE(object, state->array_type))
        return 0;
    *out = py_array_of(object);
    return gg_memory_get_kind((*out)->memory) != GG_MEMORY_PINNED;
}

/* The type of a dtype of NumPy's own that most programs combine; -1: another one. */
static int collective_type(PyObject *dtype)
{
    const struct numpy_dtype_info info = numpy_dtype_info(dtype);
    const int log = info.itemsize == 1 ? 0 : info.itemsize == 2 ? 1 : info.itemsize == 4 ? 2 : 3;
    if (!info.builtin || !info.native || info.itemsize > 8)
        return -1;
    if (info.letter == 'i' || info.letter == 'u')
        return 2 * log + (info.letter == 'u');
    if (info.letter != 'f' || log < 1)
        return -1;
    return log == 1 ? GG_COMM_FLOAT16 : log == 2 ? GG_COMM_FLOAT32 : GG_COMM_FLOAT64;
}

/* False: only _communicator_device.py knows the type, or the operator is wrong. */
static bool collective_name_op(struct collective_call *call, PyObject *op)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "avg"};
    const int type = call->x ? collective_type(call->x->dtype) : -1;
    if (type < 0)
        return false;
    for (int i = 0; i <= GG_COMM_AVG; i++)
        if (PyUnicode_CompareWithASCIIString(op, names[i]) == 0) {
            call->work.type = (gg_comm_type)type;
            call->work.reduction = (gg_comm_reduction)i;
            return i != GG_COMM_AVG || type >= GG_COMM_FLOAT16;
        }
    return false;
}

/* 1; 0: it has to be given by its numbers, or is none; -1: an exception. */
static int collective_parse_op(struct collective_call *call, PyObject *op)
{
    if (op == Py_None)
        return !collective_reduces(call->work.operation);
    if (PyUnicode_Check(op))
        return collective_name_op(call, op);
    const long numbers = PyLong_AsLong(op); /* 16 * type + reduction */
    if (numbers == -1 && PyErr_Occurred())
        return -1;
    call->work.type = (gg_comm_type)(numbers / 16);
    call->work.reduction = (gg_comm_reduction)(numbers % 16);
    return 1;
}

static int collective_parse(struct collective_call *call, PyObject *const *args)
{
    struct gg_comm_work *work = &call->work;
    const long numbers[] = {PyLong_AsLong(args[0]), PyLong_AsLong(args[4]), PyLong_AsLong(args[5])};
    if (PyErr_Occurred())
        return -1;
    work->struct_size = sizeof *work;
    work->operation = (gg_comm_operation)numbers[0];
    work->root = (int32_t)numbers[1];
    work->from = (int32_t)numbers[2];
    return 0;
}

static gg_device *collective_device(const struct collective_call *call)
{
    return gg_memory_device((call->x ? call->x : call->out)->memory);
}

/* operation, x, out, op, root, source, stream. False if an array is not a GPUArray in device memory, or op must be given as
 * 16 * type + reduction. */
static PyObject *collective_run(PyObject *module, PyObject *capsule, PyObject *const *args)
{
    struct collective_call call = {.state = PyModule_GetState(module)};
    gg_status status;
    call.comm = PyCapsule_GetPointer(capsule, "gpuglue.communicator");
    if (!call.comm || collective_parse(&call, args))
        return NULL;
    if (!collective_takes(call.state, args[1], &call.x) ||
        !collective_takes(call.state, args[2], &call.out) || (!call.x && !call.out))
        Py_RETURN_FALSE;
    const int named = collective_parse_op(&call, args[3]);
    if (named < 1)
        return named ? NULL : Py_NewRef(Py_False);
    const struct collective_shape shape =
        collective_shape_of(&call.work, gg_comm_rank(call.comm), gg_comm_size(call.comm));
    if (collective_check(&call, shape))
        return NULL;
    collective_fill(&call, shape);
    if (py_stream_arg(call.state, args[6], collective_device(&call), &call.stream))
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_queue(call.comm, &call.work, call.stream));
    gg_stream_release(call.stream);
    if (status)
        return py_raise(call.state, status);
    Py_RETURN_TRUE;
}

/* _comm_queue(capsule, operation, x, out, op, root, source, stream) */
static PyObject *collective_queue(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 8)
        return PyErr_Format(PyExc_TypeError, "_comm_queue takes 8 arguments, got %zd", nargs);
    return collective_run(module, args[0], args + 1);
}

/* What _comm_queue_of returns. What it does not take is for the other function. */
static PyObject *collective_queue_bound(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "queue takes 7 arguments, got %zd", nargs);
    if (args[3] == Py_None || PyUnicode_Check(args[3])) { /* numbers are not for users */
        PyObject *taken = collective_run(PyTuple_GetItem(self, 0), PyTuple_GetItem(self, 1), args);
        if (taken != Py_False)
            return taken;
        Py_DECREF(taken);
    }
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 2), args[0], args[1], args[2],
                                        args[3], args[4], args[5], args[6], NULL);
}

static PyMethodDef collective_bound_def = {"queue", PY_METHOD(collective_queue_bound),
                                           METH_FASTCALL, NULL};

/* ---- without a library: arrays of a device, or addresses of what the processor can access ---- */

struct collective_side {
    gg_memory *memory;
    size_t offset;
    void *host;
};

/* Returns 0, or -1 with an exception. */
static int collective_parse_side(struct py_state *state, PyObject *given,
                                 struct collective_side *side)
{
    *side = (struct collective_side){NULL, 0, NULL};
    if (Py_IS_TYPE(given, state->array_type)) {
        side->memory = py_array_of(given)->memory;
        side->offset = py_array_of(given)->offset;
        return 0;
    }
    side->host = PyLong_AsVoidPtr(given);
    return PyErr_Occurred() ? -1 : 0;
}

/* _comm_staged(capsule, operation, dst, src, count, dst_count, type, reduction, root, source, type_name) */
static PyObject *collective_staged(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_comm_work work = {.struct_size = sizeof work};
    struct collective_side dst, src;
    PyObject *capsule, *given_dst, *given_src;
    unsigned long long count, dst_count;
    int operation, type, reduction;
    const char *type_name;
    gg_status status;
    if (!PyArg_ParseTuple(args, "OiOOKKiiiis", &capsule, &operation, &given_dst, &given_src, &count,
                          &dst_count, &type, &reduction, &work.root, &work.from, &type_name))
        return NULL;
    gg_comm *comm = PyCapsule_GetPointer(capsule, "gpuglue.communicator");
    if (!comm || collective_parse_side(state, given_dst, &dst) ||
        collective_parse_side(state, given_src, &src))
        return NULL;
    work.operation = (gg_comm_operation)operation;
    work.dst = dst.memory;
    work.dst_offset = dst.offset;
    work.dst_host = dst.host;
    work.src = src.memory;
    work.src_offset = src.offset;
    work.src_host = src.host;
    work.count = (size_t)count;
    work.dst_count = (size_t)dst_count;
    work.type = (gg_comm_type)type;
    work.reduction = (gg_comm_reduction)reduction;
    gg_comm_set_type_name(comm, type_name); /* it fails as the operation does */
    PY_WITHOUT_GIL(status = gg_comm_queue(comm, &work, NULL));
    return py_none(state, status);
}

/* ---- on the host: ndarrays ---- */

/* False: an object that _communicator_data.py describes. None has no array. */
static bool collective_takes_host(PyObject *object, struct py_array *room, struct py_array **out,
                                  void **data)
{
    struct numpy_desc desc;
    *out = NULL;
    *data = NULL;
    if (object == Py_None)
        return true;
    if (numpy_is_array(object) <= 0 || !numpy_is_exact(object))
        return false;
    numpy_describe(object, &desc);
    const struct numpy_dtype_info info = numpy_dtype_info(desc.dtype);
    if (!info.builtin || !info.native || !strchr("biufc", info.letter) ||
        (uintptr_t)desc.data % (size_t)info.itemsize)
        return false;
    room->memory = NULL;
    room->offset = 0;
    room->dtype = desc.dtype;
    room->nbytes = desc.nbytes;
    room->size = (Py_ssize_t)desc.nbytes / info.itemsize;
    room->c = desc.c;
    room->f = false; /* of such arrays ranks compare the order, too */
    room->readonly = !desc.writeable;
    *out = room;
    *data = desc.data;
    return true;
}

static bool collective_prepare_host(struct collective_call *call, PyObject *op)
{
    const struct collective_shape shape =
        collective_shape_of(&call->work, gg_comm_rank(call->comm), gg_comm_size(call->comm));
    const bool named = !collective_reduces(call->work.operation) ||
                       (PyUnicode_Check(op) && collective_name_op(call, op));
    if (!named || (!call->x && !call->out) || collective_check(call, shape))
        return false;
    collective_fill(call, shape);
    return true;
}

/* What ranks compare. */
static bool collective_name_type(const struct collective_call *call)
{
    PyObject *name = numpy_typestr((call->x ? call->x : call->out)->dtype);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const bool good = text && gg_comm_set_type_name(call->comm, text) == GG_OK;
    Py_XDECREF(name);
    return good;
}

/* As collective_queue_bound, of a communicator without a library: False, with nothing done, unless all arguments are as in most
 * programs, and nothing is captured. */
static PyObject *collective_host_bound(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    struct collective_call call = {.state = PyModule_GetState(PyTuple_GetItem(self, 0))};
    struct py_array x, out;
    void *src, *dst;
    gg_status status;
    if (nargs != 7)
        return PyErr_Format(PyExc_TypeError, "queue takes 7 arguments, got %zd", nargs);
    call.comm = PyCapsule_GetPointer(PyTuple_GetItem(self, 1), "gpuglue.communicator");
    if (args[6] != Py_None || call.state->captures || !call.comm || collective_parse(&call, args) ||
        !collective_takes_host(args[1], &x, &call.x, &src) ||
        !collective_takes_host(args[2], &out, &call.out, &dst) ||
        !collective_prepare_host(&call, args[3]) || !collective_name_type(&call)) {
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
            return NULL; /* KeyboardInterrupt */
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    call.work.src_host = src;
    call.work.dst_host = call.work.operation == GG_COMM_BROADCAST ? src : dst;
    PY_WITHOUT_GIL(status = gg_comm_queue(call.comm, &call.work, NULL));
    if (status)
        return py_raise(call.state, status);
    Py_RETURN_TRUE;
}

static PyMethodDef collective_host_def = {"queue", PY_METHOD(collective_host_bound), METH_FASTCALL,
                                          NULL};

/* _comm_queue_of(capsule, otherwise): _comm_queue of one communicator, which calls otherwise instead of returning False. None: of
 * one without a library. */
static PyObject *collective_queue_of(PyObject *module, PyObject *args)
{
    PyObject *capsule, *otherwise;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &otherwise))
        return NULL;
    PyObject *self = PyTuple_Pack(3, module, capsule, otherwise);
    PyObject *bound =
        self ? PyCFunction_New(otherwise == Py_None ? &collective_host_def : &collective_bound_def,
                               self)
             : NULL;
    Py_XDECREF(self);
    return bound;
}

PyMethodDef py_collective_functions[] = {
    {"_comm_staged", collective_staged, METH_VARARGS, NULL},
    {"_comm_queue", PY_METHOD(collective_queue), METH_FASTCALL, NULL},
    {"_comm_queue_of", collective_queue_of, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
