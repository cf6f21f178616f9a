/* steps_graph.c: captures, and launches and updates of graphs. */
#include "program.h"

#include <string.h>

static struct {
    gg_stream *stream;
    gg_memory *memory;
    gg_graph *graph, *other;
    bool capturing;
} have;

static int create_stream(struct program *p, union output *out)
{
    int status = p->device ? (int)gg_stream_create(p->device, GG_STREAM_NONBLOCKING, 0, &out->stream)
                           : SKIPPED;
    if (!status)
        have.stream = out->stream;
    return status;
}

static int create_memory(struct program *p, union output *out)
{
    int status = have.stream ? (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, SMALL, have.stream,
                                                    &out->memory)
                             : SKIPPED;
    if (!status)
        have.memory = out->memory;
    return status;
}

static int begin(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    int status = have.memory ? (int)gg_graph_begin_capture(have.stream) : SKIPPED;
    have.capturing = !status;
    return status;
}

/* Twice, since a graph of one operation is not recorded by the driver. */
static int fill(unsigned char value)
{
    int status =
        have.capturing ? (int)gg_fill(have.memory, 0, &value, 1, SMALL, have.stream) : SKIPPED;
    return status ? status : (int)gg_fill(have.memory, 0, &value, 1, SMALL, have.stream);
}

static int fill_with_5(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return fill(5);
}

static int fill_with_6(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return fill(6);
}

static int end(union output *out, gg_graph **graph)
{
    int status = have.capturing ? (int)gg_graph_end_capture(have.stream, &out->graph) : SKIPPED;
    have.capturing = false;
    if (!status)
        *graph = out->graph;
    return status;
}

static int end_graph(struct program *p, union output *out)
{
    (void)p;
    return end(out, &have.graph);
}

static int end_other(struct program *p, union output *out)
{
    (void)p;
    return end(out, &have.other);
}

static int drop(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    int status = have.capturing ? (int)gg_graph_end_capture(have.stream, NULL) : SKIPPED;
    have.capturing = false;
    return status;
}

/* If a fill failed, the graphs differ: then the update is an error of the program. */
static int update(struct program *p, union output *out)
{
    (void)out;
    return have.graph && have.other && !p->failed ? (int)gg_graph_update(have.graph, have.other)
                                                  : SKIPPED;
}

static int launch_explicit(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.graph ? (int)gg_graph_launch(have.graph, have.stream) : SKIPPED;
}

static int launch_implicit(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.graph ? (int)gg_graph_launch(have.graph, NULL) : SKIPPED;
}

static int check_values(struct program *p, union output *out)
{
    unsigned char got[SMALL] = {0};
    (void)out;
    if (!have.memory)
        return SKIPPED;
    const struct gg_copy_operand src = {.memory = have.memory}, dst = {.host = got};
    const int status = (int)gg_copy(&dst, &src, sizeof got, NULL, 0);
    if (!status && have.graph)
        check_bytes(p, got, SMALL, 6, "the graph's values are wrong");
    return status;
}

static int release(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    gg_graph_release(have.graph);
    gg_graph_release(have.other);
    gg_memory_release(have.memory);
    gg_stream_release(have.stream);
    return GG_OK;
}

static const struct step steps[] = {
    {"create a stream for captures", create_stream, GG_OK},
    {"allocate memory for a graph", create_memory, GG_OK},
    {"begin a capture", begin, GG_OK},
    {"fill in the capture", fill_with_5, GG_OK},
    {"end the capture", end_graph, GG_OK},
    {"begin a second capture", begin, GG_OK},
    {"fill in the second capture", fill_with_6, GG_OK},
    {"end the second capture", end_other, GG_OK},
    {"launch the graph", launch_explicit, GG_OK},
    {"update the graph", update, GG_OK},
    {"launch the graph without a stream", launch_implicit, GG_OK},
    {"launch the graph again", launch_explicit, GG_OK}, /* this may let the driver record it */
    {"check the graph's values", check_values, GG_OK},
    {"begin a capture to drop", begin, GG_OK},
    {"fill in that capture", fill_with_5, GG_OK},
    {"drop the capture", drop, GG_OK},
    {"release graphs", release, GG_OK},
};
const struct steps graph_steps = {steps, sizeof steps / sizeof steps[0]};
