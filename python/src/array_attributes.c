/* array_attributes.c: what a GPUArray says of itself. Nothing here touches the device. */
#include "array.h"

static void *pointer(PyObject *self)
{
    char *first = gg_memory_pointer(py_array_of(self)->memory);
    return first ? first + py_array_of(self)->offset : NULL;
}

static PyObject *array_ptr(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(pointer(self));
}

static PyObject *array_as_parameter(PyObject *self, void *closure)
{
    (void)closure;
    return py_as_parameter((uintptr_t)pointer(self));
}

static PyObject *array_shape(PyObject *self, void *closure)
{
    (void)closure;
    return py_sizes(py_array_of(self)->shape, py_array_of(self)->ndim);
}

static PyObject *array_strides(PyObject *self, void *closure)
{
    (void)closure;
    return py_sizes(py_array_of(self)->strides, py_array_of(self)->ndim);
}

static PyObject *array_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(py_array_of(self)->dtype);
}

static PyObject *array_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(py_array_of(self)->size);
}

static PyObject *array_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(py_array_of(self)->nbytes);
}

static PyObject *array_itemsize(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(py_array_of(self)->itemsize);
}

static PyObject *array_ndim(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(py_array_of(self)->ndim);
}

static PyObject *array_device(PyObject *self, void *closure)
{
    (void)closure;
    return py_device_wrap(py_state_of(self), gg_memory_device(py_array_of(self)->memory));
}

static PyObject *array_base(PyObject *self, void *closure)
{
    PyObject *base = py_array_of(self)->base;
    (void)closure;
    return Py_NewRef(base ? base : Py_None);
}

PyGetSetDef py_array_attributes[] = {
    {"ptr", array_ptr, NULL, "Address of the first element; 0 where there are none.", NULL},
    {"gpudata", array_ptr, NULL, "The same as ptr.", NULL},
    {"_as_parameter_", array_as_parameter, NULL, "The address as ctypes wants it.", NULL},
    {"shape", array_shape, NULL, "Length of each dimension.", NULL},
    {"strides", array_strides, NULL, "Bytes from one element to the next, per dimension.", NULL},
    {"dtype", array_dtype, NULL, "The numpy.dtype of the elements.", NULL},
    {"size", array_size, NULL, "Number of elements.", NULL},
    {"nbytes", array_nbytes, NULL, "Size of all elements in bytes.", NULL},
    {"itemsize", array_itemsize, NULL, "Size of one element in bytes.", NULL},
    {"ndim", array_ndim, NULL, "Number of dimensions.", NULL},
    {"device", array_device, NULL, "The Device whose memory this is.", NULL},
    {"base", array_base, NULL, "The object whose memory this is a view of, or None.", NULL},
    {"flags", py_array_flags, NULL, "Contiguity and the like, as in NumPy.", NULL},
    {"T", py_array_transposed, NULL, "A view with its axes reversed.", NULL},
    {"__array_interface__", py_array_interface, NULL,
     "NumPy's description of memory that the host reaches; AttributeError for other.", NULL},
    {"__cuda_array_interface__", py_array_cuda_interface, NULL,
     "Version 3, on cuda and hip; AttributeError elsewhere.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
