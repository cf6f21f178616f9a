/* graph.c: the type Graph, and the ends of the block of gpuglue.capture. */
#include "runtime/device.h"
#include "runtime/stream.h"

struct py_graph {
    PyObject_HEAD gg_graph *graph; /* NULL: closed, or being captured */
    gg_stream *capturing;          /* a reference to the stream that is captured; or NULL */
    PyObject *weakrefs;
};

static struct py_graph *as_graph(PyObject *self)
{
    return (struct py_graph *)(void *)self;
}

/* The handle, borrowed, or NULL with an exception. */
static gg_graph *graph_handle(PyObject *self)
{
    struct py_state *state = py_state_of(self);
    if (as_graph(self)->graph)
        return as_graph(self)->graph;
    if (as_graph(self)->capturing)
        py_invalid(state, "the graph is still being captured: use it after the with-block");
    else
        py_closed(state, "Graph");
    return NULL;
}

/* ---- captures: called by gpuglue/_graph.py ---- */

static PyObject *capture_begin(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    gg_stream *stream;
    gg_status status;
    if (py_stream_borrow(state, object, NULL, &stream))
        return NULL;
    struct py_graph *self = PyObject_New(struct py_graph, state->graph_type);
    if (!self) {
        gg_stream_release(stream);
        return NULL;
    }
    self->graph = NULL;
    self->capturing = stream; /* takes over the reference */
    self->weakrefs = NULL;
    PY_WITHOUT_GIL(status = gg_graph_begin_capture(stream));
    if (!status) {
        state->captures++;
        return (PyObject *)self;
    }
    self->capturing = NULL;
    gg_stream_release(stream);
    py_raise(state, status);
    Py_DECREF(self);
    return NULL;
}

static PyObject *capture_end(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    gg_stream *stream = as_graph(object)->capturing;
    gg_graph *graph = NULL;
    gg_status status;
    if (!stream) { /* closed in its own block, which dropped the capture */
        graph_handle(object);
        return NULL;
    }
    as_graph(object)->capturing = NULL;
    state->captures--;
    PY_WITHOUT_GIL(status = gg_graph_end_capture(stream, &graph));
    gg_stream_release(stream);
    as_graph(object)->graph = graph;
    return py_none(state, status);
}

/* References; each may be NULL. */
static void graph_drop(gg_graph *graph, gg_stream *capturing)
{
    gg_graph_release(graph);
    if (capturing)
        gg_graph_end_capture(capturing, NULL);
    gg_stream_release(capturing);
}

/* _is_capturing(device): whether the current stream is in a capture of gpuglue. */
static PyObject *capture_is_open(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    gg_device *device;
    gg_stream *stream, *none;
    if (!state->captures)
        Py_RETURN_FALSE;
    if (py_device_arg(state, object == Py_None ? NULL : object, &device) ||
        py_check(state, gg_current_stream(device, &stream)) ||
        py_check(state, gg_device_default_stream(device, &none)))
        return NULL;
    return PyBool_FromLong(stream != none && gg_stream_query(stream) == GG_ERR_UNSUPPORTED);
}

/* ---- methods ---- */

static PY_FASTCALL(graph_launch)
{
    static const char *const names[] = {"stream"};
    struct py_state *state = py_state_of(self);
    PyObject *value;
    gg_stream *stream;
    gg_status status;
    gg_graph *graph = graph_handle(self);
    if (!graph || py_parse("launch", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    gg_graph_retain(graph); /* Python code of the argument may close the graph */
    if (py_stream_arg(state, value, gg_graph_device(graph), &stream)) {
        gg_graph_release(graph);
        return NULL;
    }
    PY_WITHOUT_GIL(status = gg_graph_launch(graph, stream));
    gg_stream_release(stream);
    gg_graph_release(graph);
    return py_none(state, status);
}

static PyObject *graph_update(PyObject *self, PyObject *object)
{
    struct py_state *state = py_state_of(self);
    gg_status status;
    if (!Py_IS_TYPE(object, state->graph_type))
        return PyErr_Format(PyExc_TypeError, "other must be a Graph, got %.200R", object);
    gg_graph *graph = graph_handle(self), *other = graph ? graph_handle(object) : NULL;
    if (!other)
        return NULL;
    gg_graph_retain(graph);
    gg_graph_retain(other);
    PY_WITHOUT_GIL(status = gg_graph_update(graph, other));
    gg_graph_release(graph);
    gg_graph_release(other);
    return py_none(state, status);
}

static PyObject *graph_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_graph *graph = as_graph(self);
    gg_graph *released = graph->graph;
    gg_stream *capturing = graph->capturing;
    graph->graph = NULL;
    graph->capturing = NULL;
    py_state_of(self)->captures -= capturing != NULL;
    /* The driver may wait for earlier work of the captured stream. */
    PY_WITHOUT_GIL(graph_drop(released, capturing));
    Py_RETURN_NONE;
}

static PyObject *graph_device(PyObject *self, void *Py_UNUSED(unused))
{
    const struct py_graph *graph = as_graph(self);
    if (graph->capturing)
        return py_device_wrap(py_state_of(self), gg_stream_device(graph->capturing));
    return graph_handle(self) ? py_device_wrap(py_state_of(self), gg_graph_device(graph->graph))
                              : NULL;
}

static PyObject *graph_repr(PyObject *self)
{
    const struct py_graph *graph = as_graph(self);
    if (!graph->graph && !graph->capturing)
        return PyUnicode_FromString("<gpuglue.Graph closed>");
    const gg_device *device =
        graph->graph ? gg_graph_device(graph->graph) : gg_stream_device(graph->capturing);
    return PyUnicode_FromFormat("<gpuglue.Graph on %s:%d%s>", gg_device_backend(device),
                                (int)gg_device_ordinal(device),
                                graph->graph ? "" : ", being captured");
}

static void graph_dealloc(PyObject *self)
{
    if (as_graph(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    py_state_of(self)->captures -= as_graph(self)->capturing != NULL;
    graph_drop(as_graph(self)->graph, as_graph(self)->capturing);
    py_object_free(self);
}

static PyMethodDef methods[] = {
    {"launch", PY_METHOD(graph_launch), METH_FASTCALL | METH_KEYWORDS, py_doc_Graph_launch},
    {"update", graph_update, METH_O, py_doc_Graph_update},
    {"close", graph_close, METH_NOARGS, py_doc_Graph_close},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"device", graph_device, NULL, py_doc_Graph_device, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, PY_SLOT(graph_dealloc)},
    {Py_tp_repr, PY_SLOT(graph_repr)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Graph},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_graph)},
    {0, NULL},
};

static PyMethodDef functions[] = {
    {"_capture_begin", capture_begin, METH_O, NULL},
    {"_capture_end", capture_end, METH_O, NULL},
    {"_is_capturing", capture_is_open, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int py_graph_add(PyObject *module, struct py_state *state)
{
    const unsigned long flags = Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    if (py_type_add(module, "gpuglue.Graph", sizeof(struct py_graph), flags, slots,
                    &state->graph_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
