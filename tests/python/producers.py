"""DLPack producers and consumers built field by field with ctypes, so that a test can make any field wrong."""

import ctypes

import numpy as np

HEAP = ctypes.pythonapi
HEAP.PyCapsule_New.restype = ctypes.py_object
HEAP.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
HEAP.PyCapsule_GetPointer.restype = ctypes.c_void_p
HEAP.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
HEAP.PyCapsule_GetName.restype = ctypes.c_char_p
HEAP.PyCapsule_GetName.argtypes = [ctypes.py_object]
HEAP.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
READ_ONLY, COPIED = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


assert (ctypes.sizeof(Tensor), ctypes.sizeof(Managed), ctypes.sizeof(Versioned)) == (48, 64, 80)


def int64s(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


alive = []


class Producer:
    """An object with DLPack over memory with another owner. Fields of the tensor are given by name."""

    def __init__(self, shape=(2, 3), dtype="f4", *, where=(1, 0), versioned=True, **fields):
        self.where, self.versioned, self.deleted, self.asked = where, versioned, 0, []
        alive.append(self)  # as a library's memory lives until its deleter is called
        kind = np.dtype(dtype)
        self.host = np.arange(np.prod(shape, dtype=int), dtype=kind).reshape(shape)
        self.shape = int64s(shape)
        self.strides = int64s([stride // kind.itemsize for stride in self.host.strides])
        self.deleter = DELETER(self._deleted)
        self.struct = Versioned() if versioned else Managed()
        tensor = self.struct.tensor
        tensor.data, tensor.ndim = self.host.ctypes.data, len(shape)
        tensor.device_type, tensor.device_id = where
        tensor.code, tensor.bits, tensor.lanes = CODES[kind.kind], kind.itemsize * 8, 1
        tensor.shape, tensor.strides = self.shape, self.strides
        if versioned:
            self.struct.major, self.struct.minor, self.struct.flags = 1, 3, 0
        self.struct.deleter = self.deleter
        for name, value in fields.items():
            setattr(self.struct if hasattr(self.struct, name) else tensor, name, value)

    def _deleted(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, **names):
        self.asked.append(names)
        return self.capsule()

    def capsule(self):
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return HEAP.PyCapsule_New(ctypes.addressof(self.struct), self.name, None)


def look(capsule):
    """The struct in a capsule, versioned or not, which stays the capsule's."""
    name = HEAP.PyCapsule_GetName(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Managed
    return kind.from_address(HEAP.PyCapsule_GetPointer(capsule, name))


def take(capsule):
    """The same, consumed: the caller calls struct.deleter."""
    struct, name = look(capsule), HEAP.PyCapsule_GetName(capsule)
    take.used = b"used_" + name  # a capsule keeps no copy of its name
    HEAP.PyCapsule_SetName(capsule, take.used)
    return struct
