/* floor.c: the driver calls of raw.c from functions that Python calls, with nothing else: a lower bound for a Python package.
 * Each function but the queries releases the GIL for its driver call, since the driver may wait in it; launch_held, record_held and wait_held
 * hold it, for gil.py. to_gpu also takes a block from a list under a lock, and makes an object that returns it. set() and get() copy through
 * the pinned memory of the large copies, set_in_threads() and get_in_threads() with several threads (floor_threads.c).
 *
 * bench.py passes the addresses of raw.c's state, so that both use one stream. */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "floor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct raw *raw;
static const struct raw_driver *driver;
static PyTypeObject *array_type;
static PyObject *option_names[3]; /* grid, block, stream */

/* ---- a list of blocks, as short as a pool can be ---- */

struct block {
    struct block *next;
    uint64_t memory;
};

static struct block *free_blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *block_take(void)
{
    pthread_mutex_lock(&lock);
    struct block *block = free_blocks;
    if (block)
        free_blocks = block->next;
    pthread_mutex_unlock(&lock);
    if (!block && (block = malloc(sizeof *block)))
        block->memory = raw->memory;
    return block;
}

static void block_return(struct block *block)
{
    pthread_mutex_lock(&lock);
    block->next = free_blocks;
    free_blocks = block;
    pthread_mutex_unlock(&lock);
}

/* ---- an array of 1 KiB ---- */

struct array {
    PyObject_HEAD struct block *block;
};

static PyObject *finish(int code, PyObject *result)
{
    if (!code)
        return result;
    Py_XDECREF(result);
    return PyErr_Format(PyExc_RuntimeError, "the driver returned %d", code);
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct block *block = ((struct array *)(void *)self)->block;
    if (block)
        block_return(block);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* What kind of memory it is: what gpuglue asks before an upload. The driver does not know pageable memory. */
static void ask(const void *host)
{
    unsigned type = 0;
    int wanted = 2; /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
    void *result = &type;
    (void)driver->pointer_attributes(1, &wanted, &result, (uintptr_t)host);
}

static int upload(struct block *block, const void *host, bool asks)
{
    int code;
    if (asks)
        ask(host);
    Py_BEGIN_ALLOW_THREADS memcpy(raw->pinned, host, RAW_KIB);
    code = driver->h2d(block->memory, raw->pinned, RAW_KIB, raw->stream);
    Py_END_ALLOW_THREADS return code;
}

static PyObject *array_from(PyObject *host, bool asks)
{
    Py_buffer view;
    if (PyObject_GetBuffer(host, &view, PyBUF_SIMPLE))
        return NULL;
    struct array *array = PyObject_New(struct array, array_type);
    int code = 0;
    if (array) {
        array->block = block_take();
        code = array->block ? upload(array->block, view.buf, asks) : -1;
    }
    PyBuffer_Release(&view);
    return finish(code, (PyObject *)array);
}

static PyObject *to_gpu(PyObject *self, PyObject *host)
{
    (void)self;
    return array_from(host, false);
}

/* The same, and whether other code has pinned the memory. */
static PyObject *to_gpu_asking(PyObject *self, PyObject *host)
{
    (void)self;
    return array_from(host, true);
}

static PyObject *array_get(PyObject *self, PyObject *unused)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, RAW_KIB);
    int code;
    (void)unused;
    if (!bytes)
        return NULL;
    const struct block *block = ((struct array *)(void *)self)->block;
    char *out = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS code = driver->d2h(raw->pinned, block->memory, RAW_KIB, raw->stream);
    if (!code)
        code = driver->stream_sync(raw->stream);
    memcpy(out, raw->pinned, RAW_KIB);
    Py_END_ALLOW_THREADS return finish(code, bytes);
}

/* ---- launch, record, wait ---- */

static int launch_shape(unsigned grid, unsigned block)
{
    int code;
    Py_BEGIN_ALLOW_THREADS code =
        driver->launch(raw->nothing, grid, 1, 1, block, 1, 1, 0, raw->stream, NULL, NULL);
    Py_END_ALLOW_THREADS return code;
}

static PyObject *launch(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return finish(launch_shape(1, 32), Py_NewRef(Py_None));
}

/* grid=, block= and stream=, of which the stream is ignored. */
static PyObject *launch_with(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names)
{
    unsigned shape[3] = {1, 1, 0};
    (void)self;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        int which = 0;
        while (which < 2 && PyTuple_GetItem(names, i) != option_names[which])
            which++;
        if (which < 2)
            shape[which] = (unsigned)PyLong_AsUnsignedLong(args[nargs + i]);
    }
    if (PyErr_Occurred())
        return NULL;
    return finish(launch_shape(shape[0], shape[1]), Py_NewRef(Py_None));
}

#define MOST_ARGUMENTS 16

/* A floor.Array, or a word. */
static int argument_take(PyObject *given, uint64_t *value)
{
    if (Py_TYPE(given) == array_type)
        *value = ((struct array *)(void *)given)->block->memory;
    else
        *value = PyLong_AsUnsignedLong(given);
    return PyErr_Occurred() ? -1 : 0;
}

/* Sixteen arguments and stream=, which is ignored. */
static PyObject *launch_16(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    uint64_t values[MOST_ARGUMENTS];
    void *arguments[MOST_ARGUMENTS];
    int code;
    (void)self, (void)names;
    if (nargs != MOST_ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "16 arguments are expected, not %zd", nargs);
    for (Py_ssize_t i = 0; i < nargs; i++) {
        arguments[i] = &values[i];
        if (argument_take(args[i], &values[i]))
            return NULL;
    }
    Py_BEGIN_ALLOW_THREADS code =
        driver->launch(raw->sixteen, 1, 1, 1, 32, 1, 1, 0, raw->stream, arguments, NULL);
    Py_END_ALLOW_THREADS return finish(code, Py_NewRef(Py_None));
}

static PyObject *record(PyObject *self, PyObject *unused)
{
    int code;
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS code = driver->event_record(raw->event, raw->stream);
    Py_END_ALLOW_THREADS return finish(code, Py_NewRef(Py_None));
}

static PyObject *wait_event(PyObject *self, PyObject *unused)
{
    int code;
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS code = driver->stream_wait(raw->stream, raw->event, 0);
    Py_END_ALLOW_THREADS return finish(code, Py_NewRef(Py_None));
}

/* ---- the same with the GIL held: beside a host function that needs the GIL, each can wait for ever ---- */

static PyObject *launch_held(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return finish(driver->launch(raw->nothing, 1, 1, 1, 32, 1, 1, 0, raw->stream, NULL, NULL),
                  Py_NewRef(Py_None));
}

static PyObject *record_held(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return finish(driver->event_record(raw->event, raw->stream), Py_NewRef(Py_None));
}

static PyObject *wait_held(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return finish(driver->stream_wait(raw->stream, raw->event, 0), Py_NewRef(Py_None));
}

/* ---- queries, which never wait: they hold the GIL ---- */

static PyObject *query(int code)
{
    const bool pending = code == RAW_NOT_READY;
    return finish(pending ? 0 : code, Py_NewRef(pending ? Py_False : Py_True));
}

static PyObject *event_done(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return query(driver->event_query(raw->event));
}

static PyObject *stream_done(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return query(driver->stream_query(raw->stream));
}

/* ---- copies of pageable memory, as large as the buffer that is given, in the calling thread ---- */

#define PIECE ((size_t)128 << 10)

/* `threads`: what the copy is called with. */
static PyObject *copy_with(PyObject *host, int flags,
                           int (*copy)(const Py_buffer *view, int threads), int threads)
{
    Py_buffer view;
    int code;
    if (PyObject_GetBuffer(host, &view, flags))
        return NULL;
    if ((size_t)view.len > raw->bulk.nbytes) {
        PyBuffer_Release(&view);
        return PyErr_Format(PyExc_ValueError, "the buffer is larger than the pinned memory");
    }
    Py_BEGIN_ALLOW_THREADS code = copy(&view, threads);
    Py_END_ALLOW_THREADS PyBuffer_Release(&view);
    return finish(code, Py_NewRef(Py_None));
}

/* In pieces, so that the device copies one while the host fills the next. */
static int copy_up(const Py_buffer *view, int threads)
{
    (void)threads;
    const size_t nbytes = (size_t)view->len;
    int code = 0;
    for (size_t at = 0, part; at < nbytes && !code; at += part) {
        part = nbytes - at < PIECE ? nbytes - at : PIECE;
        memcpy((char *)raw->bulk.pinned + at, (const char *)view->buf + at, part);
        code = driver->h2d(raw->bulk.memory + at, (char *)raw->bulk.pinned + at, part, raw->stream);
    }
    return code;
}

static int copy_down(const Py_buffer *view, int threads)
{
    (void)threads;
    const size_t nbytes = (size_t)view->len;
    int code = driver->d2h(raw->bulk.pinned, raw->bulk.memory, nbytes, raw->stream);
    if (!code)
        code = driver->stream_sync(raw->stream);
    memcpy(view->buf, raw->bulk.pinned, nbytes);
    return code;
}

/* set(host, stream) and get(host, stream): the stream is ignored. */
static PyObject *set(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    return nargs == 2 ? copy_with(args[0], PyBUF_SIMPLE, copy_up, 1)
                      : PyErr_Format(PyExc_TypeError, "set(host, stream)");
}

static PyObject *get(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    return nargs == 2 ? copy_with(args[0], PyBUF_WRITABLE, copy_down, 1)
                      : PyErr_Format(PyExc_TypeError, "get(host, stream)");
}

static PyObject *synchronize(PyObject *self, PyObject *unused)
{
    int code;
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS code = driver->stream_sync(raw->stream);
    Py_END_ALLOW_THREADS return finish(code, Py_NewRef(Py_None));
}

/* ---- the same with several threads: a number of threads includes the calling one ---- */

/* The number, from 1 to most; -1 with an exception otherwise. */
static int threads_of(PyObject *given, int most)
{
    const long threads = PyLong_AsLong(given);
    if (threads == -1 && PyErr_Occurred())
        return -1;
    if (threads >= 1 && threads <= most)
        return (int)threads;
    PyErr_Format(PyExc_ValueError, "%ld threads: 1 to %d are possible", threads, most);
    return -1;
}

/* start_threads(threads, spin): start those that are missing; whether they spin until rest_threads(), or sleep. */
static PyObject *start_threads(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "start_threads(threads, spin)");
    const int threads = threads_of(args[0], FLOOR_THREADS), spin = PyObject_IsTrue(args[1]);
    if (threads < 0 || spin < 0)
        return NULL;
    const int code = floor_make_events(driver);
    if (!code && (errno = floor_start(threads, spin)))
        return PyErr_SetFromErrno(PyExc_OSError);
    return finish(code, Py_NewRef(Py_None));
}

static PyObject *rest_threads(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    floor_rest();
    Py_RETURN_NONE;
}

static PyObject *stop_threads(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    floor_stop();
    return finish(floor_destroy_events(driver), Py_NewRef(Py_None));
}

static int copy_up_in_threads(const Py_buffer *view, int threads)
{
    return floor_copy_up(raw, driver, view->buf, (size_t)view->len, threads);
}

static int copy_down_in_threads(const Py_buffer *view, int threads)
{
    return floor_copy_down(raw, driver, view->buf, (size_t)view->len, threads);
}

/* set_in_threads(host, stream, threads) and get_in_threads(host, stream, threads): the stream is ignored. So many threads must have been
 * started. */
static PyObject *set_in_threads(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "set_in_threads(host, stream, threads)");
    const int threads = threads_of(args[2], floor_started());
    return threads < 0 ? NULL : copy_with(args[0], PyBUF_SIMPLE, copy_up_in_threads, threads);
}

static PyObject *get_in_threads(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "get_in_threads(host, stream, threads)");
    const int threads = threads_of(args[2], floor_started());
    return threads < 0 ? NULL : copy_with(args[0], PyBUF_WRITABLE, copy_down_in_threads, threads);
}

/* ---- the module ---- */

/* use(state, functions): the addresses of a struct raw and of raw_cu. */
static PyObject *use(PyObject *self, PyObject *args)
{
    unsigned long long state, functions;
    (void)self;
    if (!PyArg_ParseTuple(args, "KK", &state, &functions))
        return NULL;
    raw = (struct raw *)(uintptr_t)state;
    driver = (const struct raw_driver *)(uintptr_t)functions;
    Py_RETURN_NONE;
}

static PyMethodDef array_methods[] = {{"get", array_get, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)array_dealloc}, {Py_tp_methods, array_methods}, {0, NULL}};
static PyType_Spec array_spec = {"floor.Array", sizeof(struct array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

static PyMethodDef functions[] = {
    {"use", use, METH_VARARGS, NULL},
    {"to_gpu", to_gpu, METH_O, NULL},
    {"to_gpu_asking", to_gpu_asking, METH_O, NULL},
    {"launch", launch, METH_NOARGS, NULL},
    {"launch_with", (PyCFunction)(void (*)(void))launch_with, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"launch_16", (PyCFunction)(void (*)(void))launch_16, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"set", (PyCFunction)(void (*)(void))set, METH_FASTCALL, NULL},
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, NULL},
    {"start_threads", (PyCFunction)(void (*)(void))start_threads, METH_FASTCALL, NULL},
    {"rest_threads", rest_threads, METH_NOARGS, NULL},
    {"stop_threads", stop_threads, METH_NOARGS, NULL},
    {"set_in_threads", (PyCFunction)(void (*)(void))set_in_threads, METH_FASTCALL, NULL},
    {"get_in_threads", (PyCFunction)(void (*)(void))get_in_threads, METH_FASTCALL, NULL},
    {"synchronize", synchronize, METH_NOARGS, NULL},
    {"record", record, METH_NOARGS, NULL},
    {"event_done", event_done, METH_NOARGS, NULL},
    {"stream_done", stream_done, METH_NOARGS, NULL},
    {"wait", wait_event, METH_NOARGS, NULL},
    {"launch_held", launch_held, METH_NOARGS, NULL},
    {"record_held", record_held, METH_NOARGS, NULL},
    {"wait_held", wait_held, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "floor", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void)
{
    static const char *const names[] = {"grid", "block", "stream"};
    for (int i = 0; i < 3; i++)
        if (!(option_names[i] = PyUnicode_InternFromString(names[i])))
            return NULL;
    array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    return array_type ? PyModule_Create(&definition) : NULL;
}
