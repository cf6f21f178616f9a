/* kernel_foreign.c: an array of another library as the argument of a launch. */
#include "array.h"
#include "array_foreign.h"
#include "kernel.h"

/* What its producer has pending is the launch's to wait for, on a given stream as well: a producer makes
 * the current stream wait, or only tells of its own. */
PyObject *py_kernel_foreign(struct py_state *state, gg_device *device, gg_stream *stream,
                            PyObject *object)
{
    gg_scope *scope;
    if (!stream)
        return py_wrap_anything(state, object, false);
    if (py_check(state, gg_enter(device, stream, &scope)))
        return NULL;
    PyObject *ours = py_wrap_anything(state, object, false);
    gg_memory *memory = ours ? py_array_of(ours)->memory : NULL;
    gg_status status = gg_leave(scope);
    if (!status && memory && gg_memory_device(memory) == device)
        status = gg_memory_order(memory, stream);
    if (memory && py_check(state, status))
        Py_CLEAR(ours);
    return ours;
}
