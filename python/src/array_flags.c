/* array_flags.c: what GPUArray.flags is: a few facts, by attribute and by NumPy's names. */
#include "array.h"
#include "numpy_bridge.h"

#include <structmember.h>

struct py_flags {
    PyObject_HEAD bool c, f, owndata, writeable, aligned;
};

static struct py_flags *flags_of(PyObject *self)
{
    return (struct py_flags *)self;
}

/* Each element is where the machine likes one of its type. */
static bool is_aligned(const struct py_array *array)
{
    const size_t mask = numpy_alignment(array->dtype) - 1;
    size_t bits = (size_t)(uintptr_t)gg_memory_pointer(array->memory) + array->offset;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] > 1)
            bits |= (size_t)array->strides[i];
    return !array->size || !(bits & mask);
}

PyObject *py_array_flags(PyObject *self, void *closure)
{
    const struct py_array *array = py_array_of(self);
    struct py_flags *flags = PyObject_New(struct py_flags, py_state_of(self)->flags_type);
    (void)closure;
    if (!flags)
        return NULL;
    flags->c = array->c;
    flags->f = array->f;
    flags->owndata = !array->base && !array->wrapped;
    flags->writeable = !array->readonly;
    flags->aligned = is_aligned(array);
    return (PyObject *)flags;
}

static bool get_forc(const struct py_flags *flags)
{
    return flags->f || flags->c;
}

static PyObject *flags_forc(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(get_forc(flags_of(self)));
}

static PyObject *flags_fnc(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(flags_of(self)->f && !flags_of(self)->c);
}

static const struct {
    const char *name, *letter;
    size_t offset;
    long number; /* as in NumPy */
} names[] = {
    {"C_CONTIGUOUS", "C", offsetof(struct py_flags, c), 1},
    {"F_CONTIGUOUS", "F", offsetof(struct py_flags, f), 2},
    {"OWNDATA", "O", offsetof(struct py_flags, owndata), 4},
    {"WRITEABLE", "W", offsetof(struct py_flags, writeable), 0x400},
    {"ALIGNED", "A", offsetof(struct py_flags, aligned), 0x100},
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

static bool value_of(PyObject *self, size_t i)
{
    return *((const bool *)(const void *)((const char *)self + names[i].offset));
}

static PyObject *flags_number(PyObject *self, void *closure)
{
    long number = 0;
    (void)closure;
    for (size_t i = 0; i < NAME_COUNT; i++)
        number |= value_of(self, i) ? names[i].number : 0;
    return PyLong_FromLong(number);
}

static PyObject *flags_subscript(PyObject *self, PyObject *key)
{
    if (PyUnicode_Check(key)) {
        for (size_t i = 0; i < NAME_COUNT; i++)
            if (!PyUnicode_CompareWithASCIIString(key, names[i].name) ||
                !PyUnicode_CompareWithASCIIString(key, names[i].letter))
                return PyBool_FromLong(value_of(self, i));
        if (!PyUnicode_CompareWithASCIIString(key, "CONTIGUOUS"))
            return PyBool_FromLong(flags_of(self)->c);
        if (!PyUnicode_CompareWithASCIIString(key, "FORTRAN"))
            return PyBool_FromLong(flags_of(self)->f);
        if (!PyUnicode_CompareWithASCIIString(key, "FORC"))
            return flags_forc(self, NULL);
        if (!PyUnicode_CompareWithASCIIString(key, "FNC"))
            return flags_fnc(self, NULL);
    }
    PyErr_Format(PyExc_KeyError, "Unknown flag %R", key);
    return NULL;
}

static PyObject *flags_repr(PyObject *self)
{
    PyObject *text = PyUnicode_FromString(""), *longer;
    for (size_t i = 0; text && i < NAME_COUNT; i++) {
        longer = PyUnicode_FromFormat("%U%s  %s : %s", text, i ? "\n" : "", names[i].name,
                                      value_of(self, i) ? "True" : "False");
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static void flags_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMemberDef flags_members[] = {
    {"c_contiguous", T_BOOL, offsetof(struct py_flags, c), READONLY, "In C order, without gaps."},
    {"f_contiguous", T_BOOL, offsetof(struct py_flags, f), READONLY,
     "In Fortran order, without gaps."},
    {"contiguous", T_BOOL, offsetof(struct py_flags, c), READONLY, "The same as c_contiguous."},
    {"fortran", T_BOOL, offsetof(struct py_flags, f), READONLY, "The same as f_contiguous."},
    {"owndata", T_BOOL, offsetof(struct py_flags, owndata), READONLY,
     "It is no view, and gpuglue made its memory."},
    {"writeable", T_BOOL, offsetof(struct py_flags, writeable), READONLY, "It may be written."},
    {"aligned", T_BOOL, offsetof(struct py_flags, aligned), READONLY,
     "Its elements are where the machine likes them."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef flags_attributes[] = {
    {"forc", flags_forc, NULL, "In Fortran or C order.", NULL},
    {"fnc", flags_fnc, NULL, "In Fortran order and not in C order.", NULL},
    {"num", flags_number, NULL, "All of them, as NumPy's number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot flags_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "What GPUArray.flags is: numpy.ndarray.flags, for reading."},
    {Py_tp_dealloc, PY_SLOT(flags_dealloc)},
    {Py_tp_repr, PY_SLOT(flags_repr)},
    {Py_tp_members, flags_members},
    {Py_tp_getset, flags_attributes},
    {Py_mp_subscript, PY_SLOT(flags_subscript)},
    {0, NULL},
};

static PyType_Spec flags_spec = {
    .name = "gpuglue.ArrayFlags",
    .basicsize = sizeof(struct py_flags),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = flags_slots,
};

int py_flags_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &flags_spec, &state->flags_type);
}
