/* steps_comm.c: collective operations of a communicator with one rank, where the vendor's library was found. */
#include "program.h"

#include <string.h>

static struct {
    gg_comm *comm;
    gg_stream *stream;
    gg_memory *memory, *result;
    bool library;
} have;

static int create(struct program *p, union output *out)
{
    const struct gg_comm_options options = {
        .struct_size = sizeof options, .size = 1, .timeout_ns = GG_FOREVER};
    if (!p->device)
        return SKIPPED;
    const int status = (int)gg_comm_create(&options, &out->comm);
    if (!status)
        have.comm = out->comm;
    return status;
}

/* With a library that does not work the transport is "staged". */
static int open_device(struct program *p, union output *out)
{
    const struct gg_comm_device_options options = {.struct_size = sizeof options,
                                                   .device = p->device};
    (void)out;
    if (!have.comm)
        return SKIPPED;
    const int status = (int)gg_comm_open_device(have.comm, &options);
    have.library = !status && strcmp(gg_comm_transport(have.comm), "staged") != 0;
    return status;
}

static int create_stream(struct program *p, union output *out)
{
    int status = have.library
                     ? (int)gg_stream_create(p->device, GG_STREAM_NONBLOCKING, 0, &out->stream)
                     : SKIPPED;
    if (!status)
        have.stream = out->stream;
    return status;
}

static int allocate(struct program *p, union output *out, gg_memory **memory)
{
    int status = have.stream ? (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, SMALL, have.stream,
                                                    &out->memory)
                             : SKIPPED;
    if (!status)
        *memory = out->memory;
    return status;
}

static int create_memory(struct program *p, union output *out)
{
    return allocate(p, out, &have.memory);
}

static int create_result(struct program *p, union output *out)
{
    return allocate(p, out, &have.result);
}

static int fill(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.result ? (int)gg_fill(have.memory, 0, "\3", 1, SMALL, have.stream) : SKIPPED;
}

static int queue(gg_comm_operation operation, gg_stream *stream)
{
    const struct gg_comm_work work = {.struct_size = sizeof work,
                                      .operation = operation,
                                      .dst = have.result,
                                      .src = have.memory,
                                      .count = SMALL,
                                      .dst_count = SMALL,
                                      .type = GG_COMM_UINT8,
                                      .reduction = GG_COMM_MAX};
    return have.result && have.memory ? (int)gg_comm_queue(have.comm, &work, stream) : SKIPPED;
}

static int combine(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(GG_COMM_ALL_REDUCE, have.stream);
}

static int exchange(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(GG_COMM_SEND_RECV, NULL);
}

static int broadcast(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(GG_COMM_BROADCAST, have.stream);
}

static int check_values(struct program *p, union output *out)
{
    unsigned char got[SMALL] = {0};
    (void)out;
    if (!have.result)
        return SKIPPED;
    const struct gg_copy_operand src = {.memory = have.result}, dst = {.host = got};
    const int status = (int)gg_copy(&dst, &src, sizeof got, NULL, 0);
    if (!status)
        check_bytes(p, got, SMALL, 3, "the values of a collective operation are wrong");
    return status;
}

static int close_device(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.comm ? (int)gg_comm_close_device(have.comm) : SKIPPED;
}

static int release(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    gg_comm_release(have.comm);
    gg_memory_release(have.memory);
    gg_memory_release(have.result);
    gg_stream_release(have.stream);
    return GG_OK;
}

static const struct step steps[] = {
    {"create a communicator", create, GG_OK},
    {"open its device", open_device, GG_OK},
    {"create a stream for the communicator", create_stream, GG_OK},
    {"allocate what it sends", create_memory, GG_OK},
    {"allocate what it receives", create_result, GG_OK},
    {"fill what it sends", fill, GG_OK},
    {"combine", combine, GG_OK},
    {"exchange", exchange, GG_OK},
    {"check the communicator's values", check_values, GG_OK},
    {"broadcast", broadcast, GG_OK}, /* nothing but the close waits for it */
    {"close its device", close_device, GG_OK},
    {"release the communicator", release, GG_OK},
};
const struct steps comm_steps = {steps, sizeof steps / sizeof steps[0]};
