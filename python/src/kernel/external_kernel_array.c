/* external_kernel_array.c: an array of another library as an argument of a launch. */
#include "copy/array_object.h"
#include "interop/asarray.h"
#include "kernel/launch_args.h"

/* The launch must wait for the producer's pending work also on a given stream: a producer makes the current stream
 * wait, or only names its own. */
PyObject *py_kernel_external_array(struct py_state *state, gg_device *device, gg_stream *stream,
                                   PyObject *object)
{
    gg_scope *scope;
    if (!stream)
        return py_wrap_array(state, object, false);
    if (py_check(state, gg_scope_enter(device, stream, &scope)))
        return NULL;
    PyObject *array = py_wrap_array(state, object, false);
    gg_memory *memory = array ? py_array_of(array)->memory : NULL;
    gg_status status = gg_scope_leave(scope);
    if (!status && memory && gg_memory_device(memory) == device)
        status = gg_stream_wait_memory(stream, memory);
    if (memory && py_check(state, status))
        Py_CLEAR(array);
    return array;
}
