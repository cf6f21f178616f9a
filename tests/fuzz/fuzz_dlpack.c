/* fuzz_dlpack.c: DLPack tensors of other libraries: versioned ones through the exchange table, unversioned ones through
 * from_dlpack. What is imported is compared with the same geometry in 128 bits.
 *
 * The memory of a tensor is the producer's promise, so only elements inside `memory` are read. */
#include "python.h"

#include <gpuglue/gpuglue.h>

#include "copy/array_object.h"

#include <dlfcn.h>
#include <dlpack/dlpack.h>
#include <stdbool.h>

#define DIMS_MAX 70

static _Alignas(64) char memory[4096];
static const DLPackExchangeAPI *exchange;
static PyObject *from_dlpack, *producer, *next_capsule;
static size_t (*memory_size)(const gg_memory *memory);
static void *(*memory_pointer)(const gg_memory *memory);
static int alive; /* tensors whose deleter has not run */

/* ---- a producer in C ---- */

static PyObject *producer_tensor(PyObject *self, PyObject *args, PyObject *names)
{
    (void)self;
    (void)args;
    (void)names;
    return Py_NewRef(next_capsule);
}

static PyObject *producer_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", kDLCPU, 0);
}

static PyMethodDef producer_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))producer_tensor, METH_VARARGS | METH_KEYWORDS, ""},
    {"__dlpack_device__", producer_device, METH_NOARGS, ""},
    {NULL, NULL, 0, NULL},
};

static PyObject *producer_new(void)
{
    static PyType_Slot slots[] = {{Py_tp_methods, producer_methods}, {0, NULL}};
    static PyType_Spec spec = {"producer", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *type = PyType_FromSpec(&spec);
    FUZZ_PYTHON(type);
    PyObject *made = PyObject_CallNoArgs(type);
    FUZZ_PYTHON(made);
    Py_DECREF(type);
    return made;
}

/* The fuzzer is not linked to the library: the package refuses another copy than its own. */
static void find_functions(void)
{
    void *library = dlopen("libgpuglue.so", RTLD_NOW | RTLD_NOLOAD);
    FUZZ_CHECK(library);
    *(void **)&memory_size = dlsym(library, "gg_memory_size");
    *(void **)&memory_pointer = dlsym(library, "gg_memory_pointer");
    FUZZ_CHECK(memory_size && memory_pointer);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    fuzz_start_python();
    PyObject *module = PyImport_ImportModule("gpuglue");
    FUZZ_PYTHON(module);
    find_functions();
    from_dlpack = PyObject_GetAttrString(module, "from_dlpack");
    FUZZ_PYTHON(from_dlpack);
    PyObject *type = PyObject_GetAttrString(module, "GPUArray");
    FUZZ_PYTHON(type);
    PyObject *table = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    FUZZ_PYTHON(table);
    exchange = PyCapsule_GetPointer(table, "dlpack_exchange_api");
    FUZZ_PYTHON(exchange);
    producer = producer_new();
    return 0; /* the references are kept */
}

/* ---- a tensor of an input ---- */

/* The lengths and strides have exactly ndim elements, or none: the address sanitizer detects further reads. */
static void delete_sizes(DLTensor *tensor)
{
    free(tensor->shape);
    free(tensor->strides);
    alive--;
}

static void delete_legacy(DLManagedTensor *self)
{
    delete_sizes(&self->dl_tensor);
    free(self);
}

static void delete_versioned(DLManagedTensorVersioned *self)
{
    delete_sizes(&self->dl_tensor);
    free(self);
}

struct input {
    uint8_t what; /* 1: versioned; 2: no shape; 4: no strides; 8: data is NULL; 16: another device; 32: another version;
                     64: offset and data anywhere; 128: readonly */
    uint8_t ndim, code, bits, lanes, shift;
    uint16_t offset;
};

static int64_t *take_sizes(int ndim, const uint8_t **data, size_t *size)
{
    const size_t count = ndim < 0 ? 0 : ndim > DIMS_MAX ? DIMS_MAX : (size_t)ndim;
    int64_t *sizes = malloc(count ? count * sizeof *sizes : 1);
    FUZZ_CHECK(sizes);
    for (size_t i = 0; i < count; i++) {
        int8_t small = *size ? (int8_t) * *data : 1;
        sizes[i] = small;
        const size_t step = small == -128 && *size > 8 ? 9 : *size ? 1 : 0;
        if (step == 9) /* all 64 bits; else a small number */
            memcpy(&sizes[i], *data + 1, 8);
        *data += step;
        *size -= step;
    }
    return sizes;
}

static void fill(DLTensor *tensor, const struct input *input, const uint8_t *data, size_t size)
{
    tensor->ndim = input->ndim > 250 ? input->ndim - 256 : input->ndim;
    tensor->device = (DLDevice){input->what & 16 ? input->shift : kDLCPU, 0};
    tensor->dtype = (DLDataType){input->code, input->bits, input->lanes};
    tensor->data = input->what & 8 ? NULL : memory + sizeof memory / 2;
    tensor->byte_offset = input->offset % 256;
    if (input->what & 64) {
        tensor->byte_offset = (uint64_t)input->offset << (input->shift & 63);
        tensor->data = (void *)(uintptr_t)((uint64_t)input->code << (input->shift & 63));
    }
    tensor->shape = input->what & 2 ? NULL : take_sizes(tensor->ndim, &data, &size);
    tensor->strides = input->what & 4 ? NULL : take_sizes(tensor->ndim, &data, &size);
    alive++;
}

/* ---- what was imported ---- */

static void check_strides(const DLTensor *tensor, const struct py_array *array)
{
    __int128 run = array->itemsize, low = 0, high = array->itemsize;
    bool empty = false;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        const __int128 stride =
            tensor->strides ? (__int128)tensor->strides[i] * array->itemsize : run;
        FUZZ_CHECK(array->shape[i] == tensor->shape[i] && array->strides[i] == stride);
        run *= tensor->shape[i] ? tensor->shape[i] : 1;
        *(stride < 0 ? &low : &high) += (tensor->shape[i] - 1) * stride;
        empty = empty || !tensor->shape[i];
    }
    if (empty)
        return;
    const __int128 first = (__int128)(uintptr_t)tensor->data + tensor->byte_offset;
    FUZZ_CHECK(memory_size(array->memory) == high - low);
    FUZZ_CHECK((__int128)(uintptr_t)memory_pointer(array->memory) == first + low);
    FUZZ_CHECK(array->offset == -low);
    FUZZ_CHECK(first + low >= 0 && first + high <= (__int128)UINTPTR_MAX + 1);
    FUZZ_CHECK(array->nbytes == run);
}

/* Read every element, if all are inside the memory. */
static void read_array(PyObject *object)
{
    const struct py_array *array = (struct py_array *)object;
    const char *first = memory_pointer(array->memory);
    if (array->nbytes > 4096 || first < memory ||
        first + memory_size(array->memory) > memory + sizeof memory)
        return;
    PyObject *values = PyObject_CallMethod(object, "get", NULL);
    FUZZ_PYTHON(values);
    Py_DECREF(values);
}

static PyObject *import_versioned(const struct input *input, const uint8_t *data, size_t size,
                                  const DLTensor **tensor)
{
    DLManagedTensorVersioned *managed = calloc(1, sizeof *managed);
    void *array = NULL;
    FUZZ_CHECK(managed);
    fill(&managed->dl_tensor, input, data, size);
    managed->version = (DLPackVersion){input->what & 32 ? input->shift : DLPACK_MAJOR_VERSION, 0};
    managed->flags = input->what & 128 ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    managed->deleter = delete_versioned;
    *tensor = &managed->dl_tensor;
    return exchange->managed_tensor_to_py_object_no_sync(managed, &array) ? NULL : array;
}

static PyObject *import_legacy(const struct input *input, const uint8_t *data, size_t size,
                               const DLTensor **tensor)
{
    DLManagedTensor *managed = calloc(1, sizeof *managed);
    FUZZ_CHECK(managed);
    fill(&managed->dl_tensor, input, data, size);
    managed->deleter = delete_legacy;
    *tensor = &managed->dl_tensor;
    next_capsule = PyCapsule_New(managed, "dltensor", NULL);
    FUZZ_PYTHON(next_capsule);
    PyObject *array = PyObject_CallOneArg(from_dlpack, producer);
    Py_CLEAR(next_capsule);
    return array;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input;
    const DLTensor *tensor;
    if (size < sizeof input)
        return 0;
    memcpy(&input, data, sizeof input);
    PyObject *array = (input.what & 1 ? import_versioned : import_legacy)(
        &input, data + sizeof input, size - sizeof input, &tensor);
    FUZZ_CHECK(!array == !!PyErr_Occurred());
    if (array) {
        check_strides(tensor, (struct py_array *)array);
        read_array(array);
    }
    PyErr_Clear();
    Py_XDECREF(array);
    FUZZ_CHECK(!alive); /* the deleter has run once */
    return 0;
}
