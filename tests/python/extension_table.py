"""The function table of gpuglue/python.h through ctypes, as an extension uses it."""

import ctypes

import gpuglue as gg

WRITABLE, C_ORDER, F_ORDER, HOST, NATIVE_STREAM = 1, 2, 4, 8, 16  # enum gg_array_flag


class Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("device", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("native_stream", ctypes.c_uint64),
    ]


class View(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("ndim", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("itemsize", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("readonly", ctypes.c_uint16),
        ("host", ctypes.c_uint32),
        ("device", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("offset", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("stream_handle", ctypes.c_uint64),
        ("internal", ctypes.c_void_p),
    ]


assert (ctypes.sizeof(Request), ctypes.sizeof(View)) == (32, 104)


class Table(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("abi_major", ctypes.c_uint32),
        ("abi_minor", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("array_from_object", ctypes.c_void_p),
        ("array_view_release", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
    ]


FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Request), ctypes.POINTER(View))
RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(View))
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)


def table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Table.from_address(pointer(gg._core._C_API, b"gpuglue._core._C_API"))


def request(flags=0, **more):
    return Request(ctypes.sizeof(Request), flags, **more)


def view_of(array, requested=None):
    """A view, which the caller must release; in memory that outlives the interpreter."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    view = View.from_address(malloc(ctypes.sizeof(View)))
    ctypes.memset(ctypes.addressof(view), 0, ctypes.sizeof(view))
    view.struct_size = ctypes.sizeof(view)
    FROM_OBJECT(table().array_from_object)(array, requested or request(HOST), view)
    return view


def release(view):
    RELEASE(table().array_view_release)(view)


def function(name):
    """The address of a function of gpuglue.h, or None."""
    return FUNCTION(table().function)(name.encode())
