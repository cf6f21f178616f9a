/* flags.c: ArrayFlags, the type of GPUArray.flags: flags by attribute and by NumPy's names. */
#include "numpy/bridge.h"
#include "array/array.h"

struct py_flags {
    PyObject_HEAD bool c, f, owndata, writeable, aligned;
};

static struct py_flags *py_flags_of(PyObject *self)
{
    return (struct py_flags *)self;
}

/* Whether each element is aligned for its type. */
static bool flags_aligned(const struct py_array *array)
{
    const size_t mask = numpy_alignment(array->dtype) - 1;
    size_t bits = (size_t)(uintptr_t)gg_memory_pointer(array->memory) + array->offset;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] > 1)
            bits |= (size_t)array->strides[i];
    return !array->size || !(bits & mask);
}

PyObject *py_array_flags(PyObject *self, void *Py_UNUSED(closure))
{
    const struct py_array *array = py_array_of(self);
    struct py_flags *flags = PyObject_New(struct py_flags, py_state_of(self)->flags_type);
    if (!flags)
        return NULL;
    flags->c = array->c;
    flags->f = array->f;
    flags->owndata = !array->base && !array->wrapped;
    flags->writeable = !array->readonly;
    flags->aligned = flags_aligned(array);
    return (PyObject *)flags;
}

static bool flags_is_forc(const struct py_flags *flags)
{
    return flags->f || flags->c;
}

static PyObject *flags_forc(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(flags_is_forc(py_flags_of(self)));
}

static PyObject *flags_fnc(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(py_flags_of(self)->f && !py_flags_of(self)->c);
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

static bool flags_value(PyObject *self, size_t i)
{
    return *((const bool *)(const void *)((const char *)self + names[i].offset));
}

static PyObject *flags_number(PyObject *self, void *Py_UNUSED(closure))
{
    long number = 0;
    for (size_t i = 0; i < NAME_COUNT; i++)
        number |= flags_value(self, i) ? names[i].number : 0;
    return PyLong_FromLong(number);
}

static PyObject *flags_subscript(PyObject *self, PyObject *key)
{
    if (PyUnicode_Check(key)) {
        for (size_t i = 0; i < NAME_COUNT; i++)
            if (!PyUnicode_CompareWithASCIIString(key, names[i].name) ||
                !PyUnicode_CompareWithASCIIString(key, names[i].letter))
                return PyBool_FromLong(flags_value(self, i));
        if (!PyUnicode_CompareWithASCIIString(key, "CONTIGUOUS"))
            return PyBool_FromLong(py_flags_of(self)->c);
        if (!PyUnicode_CompareWithASCIIString(key, "FORTRAN"))
            return PyBool_FromLong(py_flags_of(self)->f);
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
                                      flags_value(self, i) ? "True" : "False");
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static PyMemberDef flags_members[] = {
    {"c_contiguous", T_BOOL, offsetof(struct py_flags, c), READONLY, py_doc_ArrayFlags_c_contiguous},
    {"f_contiguous", T_BOOL, offsetof(struct py_flags, f), READONLY, py_doc_ArrayFlags_f_contiguous},
    {"contiguous", T_BOOL, offsetof(struct py_flags, c), READONLY, py_doc_ArrayFlags_contiguous},
    {"fortran", T_BOOL, offsetof(struct py_flags, f), READONLY, py_doc_ArrayFlags_fortran},
    {"owndata", T_BOOL, offsetof(struct py_flags, owndata), READONLY, py_doc_ArrayFlags_owndata},
    {"writeable", T_BOOL, offsetof(struct py_flags, writeable), READONLY,
     py_doc_ArrayFlags_writeable},
    {"aligned", T_BOOL, offsetof(struct py_flags, aligned), READONLY, py_doc_ArrayFlags_aligned},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef flags_attributes[] = {
    {"forc", flags_forc, NULL, py_doc_ArrayFlags_forc, NULL},
    {"fnc", flags_fnc, NULL, py_doc_ArrayFlags_fnc, NULL},
    {"num", flags_number, NULL, py_doc_ArrayFlags_num, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot flags_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)py_doc_ArrayFlags},
    {Py_tp_dealloc, PY_SLOT(py_object_free)},
    {Py_tp_repr, PY_SLOT(flags_repr)},
    {Py_tp_members, flags_members},
    {Py_tp_getset, flags_attributes},
    {Py_mp_subscript, PY_SLOT(flags_subscript)},
    {0, NULL},
};

int py_flags_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.ArrayFlags", sizeof(struct py_flags),
                       Py_TPFLAGS_DISALLOW_INSTANTIATION, flags_slots, &state->flags_type);
}
