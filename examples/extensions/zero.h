/* zero.h: the common part of the extension examples: take an array of any library, and set it to zero on its own
 * device and stream. */
#ifndef ZERO_H
#define ZERO_H

#include <gpuglue/python.h>

typedef gg_status (*fill_function)(gg_memory *memory, size_t offset, const void *pattern,
                                   size_t pattern_size, size_t count, gg_stream *stream);

/* Accepts any contiguous, writable array. Without a stream in the request, the device's current stream is used. */
static inline int zero_open(PyObject *object, struct gg_array_view *view)
{
    struct gg_array_request request = GG_ARRAY_REQUEST;
    request.flags = GG_ARRAY_WRITABLE | GG_ARRAY_C_CONTIGUOUS | GG_ARRAY_HOST;
    return gg_python_import() ? -1 : gg_array_from_object(object, &request, view);
}

/* Your library would launch a kernel here, on view->stream_handle. Needs no GIL. */
static inline gg_status zero_run(struct gg_array_view *view)
{
    fill_function fill = (fill_function)gg_python_function("gg_fill");
    gg_status status =
        fill(view->memory, view->offset, "", 1, view->size * view->itemsize, view->stream);
    gg_array_view_release(view);
    return status;
}

#endif
