/* array_type.c: the type GPUArray: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "base/owners.h"
#include "runtime/device.h"
#include "memory/buffer.h"
#include "interop/asarray.h"
#include "interop/cuda_interface.h"
#include "interop/sycl_interface.h"
#include "interop/dlpack.h"
#include "module/parts.h"

/* ---- attributes: none of them touches the device ---- */

static void *array_pointer(PyObject *self)
{
    char *first = gg_memory_pointer(py_array_of(self)->memory);
    return first ? first + py_array_of(self)->offset : NULL;
}

static PyObject *array_ptr(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(array_pointer(self));
}

static PyObject *array_as_parameter(PyObject *self, void *Py_UNUSED(closure))
{
    return py_c_void_p((uintptr_t)array_pointer(self));
}

static PyObject *array_shape(PyObject *self, void *Py_UNUSED(closure))
{
    return py_ssize_tuple(py_array_of(self)->shape, py_array_of(self)->ndim);
}

static PyObject *array_strides(PyObject *self, void *Py_UNUSED(closure))
{
    return py_ssize_tuple(py_array_of(self)->strides, py_array_of(self)->ndim);
}

static PyObject *array_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(py_array_of(self)->dtype);
}

static PyObject *array_size(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(py_array_of(self)->size);
}

static PyObject *array_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(py_array_of(self)->nbytes);
}

static PyObject *array_itemsize(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(py_array_of(self)->itemsize);
}

static PyObject *array_ndim(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(py_array_of(self)->ndim);
}

static PyObject *array_device(PyObject *self, void *Py_UNUSED(closure))
{
    return py_device_wrap(py_state_of(self), gg_memory_device(py_array_of(self)->memory));
}

static PyObject *array_base(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *base = py_array_of(self)->base;
    return Py_NewRef(base ? base : Py_None);
}

static PyGetSetDef array_attributes[] = {
    {"ptr", array_ptr, NULL, py_doc_GPUArray_ptr, NULL},
    {"gpudata", array_ptr, NULL, py_doc_GPUArray_gpudata, NULL},
    {"_as_parameter_", array_as_parameter, NULL, py_doc_GPUArray__as_parameter_, NULL},
    {"shape", array_shape, NULL, py_doc_GPUArray_shape, NULL},
    {"strides", array_strides, NULL, py_doc_GPUArray_strides, NULL},
    {"dtype", array_dtype, NULL, py_doc_GPUArray_dtype, NULL},
    {"size", array_size, NULL, py_doc_GPUArray_size, NULL},
    {"nbytes", array_nbytes, NULL, py_doc_GPUArray_nbytes, NULL},
    {"itemsize", array_itemsize, NULL, py_doc_GPUArray_itemsize, NULL},
    {"ndim", array_ndim, NULL, py_doc_GPUArray_ndim, NULL},
    {"device", array_device, NULL, py_doc_GPUArray_device, NULL},
    {"base", array_base, NULL, py_doc_GPUArray_base, NULL},
    {"flags", py_array_flags, NULL, py_doc_GPUArray_flags, NULL},
    {"T", py_array_transposed, NULL, py_doc_GPUArray_T, NULL},
    {"__array_interface__", py_array_interface, NULL, py_doc_GPUArray___array_interface__, NULL},
    {"__cuda_array_interface__", py_array_cuda_interface, NULL,
     py_doc_GPUArray___cuda_array_interface__, NULL},
    {"__sycl_usm_array_interface__", py_array_sycl_interface, NULL,
     py_doc_GPUArray___sycl_usm_array_interface__, NULL},
    PY_FOREIGN("sum", "get().sum(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("mean", "get().mean(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("std", "get().std(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("max", "get().max(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("min", "get().min(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("prod", "get().prod(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("dot", "get().dot(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("any", "get().any(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("all", "get().all(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("argmax", "get().argmax(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("argmin", "get().argmin(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("cumsum", "get().cumsum(), or from_dlpack(array) of a library with reductions"),
    PY_FOREIGN("cpu", "get()"),
    PY_FOREIGN("numpy", "get()"),
    PY_FOREIGN("asnumpy", "get()"),
    PY_FOREIGN("copy_to_host", "get()"),
    PY_FOREIGN("to_host", "get()"),
    PY_FOREIGN("data_ptr", "ptr"),
    PY_FOREIGN("data", "ptr"),
    PY_FOREIGN("device_data", "ptr"),
    PY_FOREIGN("to", "to_device(device)"),
    PY_FOREIGN("cuda", "to_device('cuda')"),
    PY_FOREIGN("clone", "copy()"),
    PY_FOREIGN("contiguous", "copy()"),
    PY_FOREIGN("copy_to_device", "set(array)"),
    PY_FOREIGN("free", "`del array`"),
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *array_record_use(PyObject *self, PyObject *stream)
{
    return py_record_use(py_state_of(self), py_array_of(self)->memory, stream);
}

static PyObject *array_release_captured(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_memory_release_captured(py_array_of(self)->memory);
    Py_RETURN_NONE;
}

static PyMethodDef array_methods[] = {
    PY_FASTCALL_DEF("get", py_array_get, py_doc_GPUArray_get),
    PY_FASTCALL_DEF("set", py_array_set, py_doc_GPUArray_set),
    PY_FASTCALL_DEF("get_async", py_array_get_async, py_doc_GPUArray_get_async),
    PY_FASTCALL_DEF("set_async", py_array_set_async, py_doc_GPUArray_set_async),
    {"item", PY_METHOD(py_array_item), METH_FASTCALL, py_doc_GPUArray_item},
    {"__complex__", py_array_complex, METH_NOARGS, py_doc_GPUArray___complex__},
    {"tolist", py_array_tolist, METH_NOARGS, py_doc_GPUArray_tolist},
    PY_FASTCALL_DEF("fill", py_array_fill, py_doc_GPUArray_fill),
    PY_FASTCALL_DEF("copy", py_array_copy, py_doc_GPUArray_copy),
    PY_FASTCALL_DEF("astype", py_array_astype, py_doc_GPUArray_astype),
    PY_FASTCALL_DEF("to_device", py_array_to_device, py_doc_GPUArray_to_device),
    PY_FASTCALL_DEF("reshape", py_array_reshape, py_doc_GPUArray_reshape),
    PY_FASTCALL_DEF("ravel", py_array_ravel, py_doc_GPUArray_ravel),
    PY_FASTCALL_DEF("flatten", py_array_flatten, py_doc_GPUArray_flatten),
    PY_FASTCALL_DEF("squeeze", py_array_squeeze, py_doc_GPUArray_squeeze),
    PY_FASTCALL_DEF("transpose", py_array_transpose, py_doc_GPUArray_transpose),
    PY_FASTCALL_DEF("view", py_array_view_as, py_doc_GPUArray_view),
    {"record_use", array_record_use, METH_O, py_doc_GPUArray_record_use},
    {"release_captured", array_release_captured, METH_NOARGS, py_doc_GPUArray_release_captured},
    {"__reduce__", py_array_reduce, METH_NOARGS, py_doc_GPUArray___reduce__},
    {"__copy__", py_array_copy_copy, METH_NOARGS, py_doc_GPUArray___copy__},
    {"__deepcopy__", py_array_deepcopy, METH_O, py_doc_GPUArray___deepcopy__},
    PY_FASTCALL_DEF("__array__", py_array_array, py_doc_GPUArray___array__),
    PY_FASTCALL_DEF("__dlpack__", py_array_dlpack, py_doc_GPUArray___dlpack__),
    {"__dlpack_device__", py_array_dlpack_device, METH_NOARGS, py_doc_GPUArray___dlpack_device__},
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

/* ---- the type ---- */

static void array_dealloc(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    if (array->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_memory_release(array->memory);
    gg_stream_release(array->exposed);
    if (array->shape != array->inline_shape)
        free(array->shape);
    Py_XDECREF(array->dtype);
    Py_XDECREF(array->base);
    py_object_free(self);
    py_owners_drain(); /* an owner without pending work is released now, as in NumPy */
}

/* Never raises and never waits: debuggers and tracebacks call it. gpuglue/_repr.py writes the text. */
static PyObject *array_repr(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("gpuglue._repr"), *text = NULL;
    if (module)
        text = PyObject_CallMethod(module, "text", "O", self);
    Py_XDECREF(module);
    if (text)
        return text;
    PyErr_Clear();
    return PyUnicode_FromString("<gpuglue.GPUArray>");
}

static Py_ssize_t array_length(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    if (array->ndim)
        return array->shape[0];
    return PY_FAIL(PyExc_TypeError, "len() of a 0-d GPUArray");
}

static PyObject *array_iter(PyObject *self)
{
    if (py_array_of(self)->ndim)
        return PySeqIter_New(self);
    return PyErr_Format(PyExc_TypeError, "iteration over a 0-d GPUArray");
}

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)py_doc_GPUArray},
    {Py_tp_new, PY_SLOT(py_array_new)},
    {Py_tp_dealloc, PY_SLOT(array_dealloc)},
    {Py_tp_repr, PY_SLOT(array_repr)},
    {Py_tp_hash, PY_SLOT(PyObject_HashNotImplemented)},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_attributes},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_array)},
    {Py_tp_iter, PY_SLOT(array_iter)},
    {Py_sq_length, PY_SLOT(array_length)},
    {Py_sq_item, PY_SLOT(py_array_getitem)},
    {Py_mp_length, PY_SLOT(array_length)},
    {Py_mp_subscript, PY_SLOT(py_array_subscript)},
    {Py_mp_ass_subscript, PY_SLOT(py_array_assign_subscript)},
    {Py_bf_getbuffer, PY_SLOT(py_array_export)},
    {Py_nb_bool, PY_SLOT(py_array_bool)},
    {Py_nb_int, PY_SLOT(py_array_int)},
    {Py_nb_float, PY_SLOT(py_array_float)},
    {Py_nb_add, PY_SLOT(py_array_binary_operator)},
    {Py_nb_subtract, PY_SLOT(py_array_binary_operator)},
    {Py_nb_multiply, PY_SLOT(py_array_binary_operator)},
    {Py_nb_remainder, PY_SLOT(py_array_binary_operator)},
    {Py_nb_divmod, PY_SLOT(py_array_binary_operator)},
    {Py_nb_lshift, PY_SLOT(py_array_binary_operator)},
    {Py_nb_rshift, PY_SLOT(py_array_binary_operator)},
    {Py_nb_and, PY_SLOT(py_array_binary_operator)},
    {Py_nb_xor, PY_SLOT(py_array_binary_operator)},
    {Py_nb_or, PY_SLOT(py_array_binary_operator)},
    {Py_nb_floor_divide, PY_SLOT(py_array_binary_operator)},
    {Py_nb_true_divide, PY_SLOT(py_array_binary_operator)},
    {Py_nb_matrix_multiply, PY_SLOT(py_array_binary_operator)},
    {Py_nb_power, PY_SLOT(py_array_power_operator)},
    {Py_nb_negative, PY_SLOT(py_array_unary_operator)},
    {Py_nb_positive, PY_SLOT(py_array_unary_operator)},
    {Py_nb_absolute, PY_SLOT(py_array_unary_operator)},
    {Py_nb_invert, PY_SLOT(py_array_unary_operator)},
    {Py_tp_richcompare, PY_SLOT(py_array_compare)},
    {0, NULL},
};

int py_array_add(PyObject *module, struct py_state *state)
{
    if (py_type_add(module, "gpuglue.GPUArray", sizeof(struct py_array), 0, array_slots,
                    &state->array_type) ||
        py_flags_add(module, state) || py_cuda_interface_add(state) || py_exchange_add(state))
        return -1;
    /* With None, NumPy's operators raise instead of treating the array as an object scalar. */
    return PyObject_SetAttrString((PyObject *)state->array_type, "__array_ufunc__", Py_None);
}
