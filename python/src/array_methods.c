/* array_methods.c: the table of GPUArray's methods, and those that are a line long. */
#include "array.h"
#include "memory.h"

static PyObject *array_record_use(PyObject *self, PyObject *stream)
{
    return py_record_use(py_state_of(self), py_array_of(self)->memory, stream);
}

static PyObject *array_release_captured(PyObject *self, PyObject *unused)
{
    (void)unused;
    gg_memory_release_captured(py_array_of(self)->memory);
    Py_RETURN_NONE;
}

#define METHOD(name, function, doc)                                        \
    {                                                                      \
        name, PY_METHOD(function), METH_FASTCALL | METH_KEYWORDS, name doc \
    }

PyMethodDef py_array_methods[] = {
    METHOD(
        "get", py_array_get,
        "($self, out=None, stream=None)\n--\n\n"
        "The array's elements as a numpy.ndarray of the same order, or in out, which is returned.\n"
        "Finished on return; stream only says where it is ordered."),
    METHOD("set", py_array_set,
           "($self, a, stream=None)\n--\n\n"
           "Copy from an array of equal shape and dtype. Its memory has been read on return."),
    METHOD("get_async", py_array_get_async,
           "($self, out=None, stream=None)\n--\n\n"
           "Like get, but may return before the data is there if out is page-locked, as the array "
           "made\nwithout out is: synchronise the stream before looking."),
    METHOD("set_async", py_array_set_async,
           "($self, a, stream=None)\n--\n\n"
           "Like set, but may return before a was read if it is page-locked: do not write to it "
           "before the\nstream has passed this point."),
    {"item", PY_METHOD(py_array_item), METH_FASTCALL,
     "item($self, *index)\n--\n\n"
     "One element as a Python scalar: the only one, or that at a flat index or one index per\n"
     "dimension. Only that element is copied."},
    {"tolist", py_array_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe elements as nested lists of Python scalars."},
    METHOD("fill", py_array_fill,
           "($self, value, stream=None)\n--\n\nSet every element to value, cast as NumPy assigns "
           "it."),
    METHOD(
        "copy", py_array_copy,
        "($self, stream=None)\n--\n\n"
        "A new array with the same elements, on the same device and without gaps. Its axes lie in\n"
        "memory as they do here, as with NumPy's order='K'."),
    METHOD(
        "astype", py_array_astype,
        "($self, dtype, order='K', copy=True)\n--\n\n"
        "A new array of another dtype. Converted by NumPy: the elements go to the host and back.\n"
        "copy=False gives the array itself where nothing is to be done."),
    METHOD("to_device", py_array_to_device,
           "($self, device, /, *, stream=None)\n--\n\n"
           "The array itself if it is there, else a copy on that Device; 'cpu' gives a "
           "numpy.ndarray."),
    METHOD("reshape", py_array_reshape,
           "($self, /, *shape, order='C', copy=None)\n--\n\n"
           "Another shape for the same elements: a view where NumPy gives one, else a copy on the\n"
           "device. copy=False raises ValueError instead, copy=True copies always."),
    METHOD(
        "ravel", py_array_ravel,
        "($self, order='C')\n--\n\n"
        "One dimension: a view where the elements lie in that order, else a copy on the device."),
    METHOD("flatten", py_array_flatten,
           "($self, order='C')\n--\n\nA copy of one dimension, on the device."),
    METHOD("squeeze", py_array_squeeze,
           "($self, axis=None)\n--\n\nA view without axes of length one: those given, or all."),
    METHOD("transpose", py_array_transpose,
           "($self, *axes)\n--\n\nA view with its axes in another order, by default reversed."),
    METHOD("view", py_array_view_as,
           "($self, dtype=None)\n--\n\nThe same bytes, as elements of another dtype."),
    {"record_use", array_record_use, METH_O,
     "record_use($self, stream, /)\n--\n\n"
     "Announce work on this memory that gpuglue did not submit: all that stream has now."},
    {"release_captured", array_release_captured, METH_NOARGS,
     "release_captured($self)\n--\n\n"
     "Say that no captured graph that used this memory will run again, so that it may be freed."},
    {"__reduce__", py_array_reduce, METH_NOARGS,
     "__reduce__($self)\n--\n\nFor pickle: the elements, by way of the host, and the device's "
     "name."},
    {"__copy__", py_array_copy_copy, METH_NOARGS, "__copy__($self)\n--\n\ncopy()."},
    {"__deepcopy__", py_array_deepcopy, METH_O, "__deepcopy__($self, memo, /)\n--\n\ncopy()."},
    METHOD("__array__", py_array_array,
           "($self, dtype=None, copy=None)\n--\n\n"
           "Raises TypeError for memory that the host does not reach: get() copies."),
    METHOD("__dlpack__", py_array_dlpack,
           "($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
           "A DLPack capsule. stream is the consumer's, made to wait on the device for what is "
           "pending."),
    {"__dlpack_device__", py_array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nDLPack's device type and id."},
    {NULL, NULL, 0, NULL},
};
