/* steps_staged.c: communicators of one process, and operations on device memory without a library, through memory of the host. */
#include "program.h"

#include <string.h>

#define STAGED (2 * LARGE) /* both buffers of a direction are filled */

static struct {
    gg_comm *local, *staged, *two[2];
    gg_memory *memory;
} have;

static int create_local(struct program *p, union output *out)
{
    gg_device *devices[] = {p->device};
    const struct gg_comm_all_options options = {
        .struct_size = sizeof options, .size = 1, .devices = devices, .timeout_ns = GG_FOREVER};
    if (!p->device)
        return SKIPPED;
    const int status = (int)gg_comm_create_all(&options, &out->comm);
    if (!status)
        have.local = out->comm;
    return status;
}

/* The second rank is without a device. */
static int create_two(struct program *p, union output *out)
{
    gg_device *devices[] = {p->device, NULL};
    const struct gg_comm_all_options options = {
        .struct_size = sizeof options, .size = 2, .devices = devices, .timeout_ns = GG_FOREVER};
    (void)out;
    if (!p->device)
        return SKIPPED;
    const int status = (int)gg_comm_create_all(&options, have.two);
    if (!status && strcmp(gg_comm_transport(have.two[1]), "staged") != 0)
        p->wrong = "ranks of which one has no device have a library";
    return status;
}

static int create_staged(struct program *p, union output *out)
{
    const struct gg_comm_options options = {
        .struct_size = sizeof options, .size = 1, .timeout_ns = GG_FOREVER};
    const struct gg_comm_device_options how = {
        .struct_size = sizeof how, .device = p->device, .transport = "staged"};
    (void)out;
    if (!p->device)
        return SKIPPED;
    int status = (int)gg_comm_create(&options, &have.staged);
    if (!status)
        status = (int)gg_comm_open_device(have.staged, &how);
    return status;
}

static int create_memory(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    const int status = (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, STAGED, NULL, &out->memory);
    if (!status)
        have.memory = out->memory;
    return status;
}

static int fill(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.memory ? (int)gg_fill(have.memory, 0, "\5", 1, STAGED, NULL) : SKIPPED;
}

static int queue(gg_comm *comm, gg_comm_operation operation)
{
    const struct gg_comm_work work = {.struct_size = sizeof work,
                                      .operation = operation,
                                      .dst = have.memory,
                                      .src = have.memory,
                                      .count = STAGED,
                                      .type = GG_COMM_UINT8,
                                      .reduction = GG_COMM_MAX};
    return comm && have.memory ? (int)gg_comm_queue(comm, &work, NULL) : SKIPPED;
}

static int combine_local(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(have.local, GG_COMM_ALL_REDUCE);
}

static int combine_staged(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(have.staged, GG_COMM_ALL_REDUCE);
}

/* What the device copies itself, if it has locked the chunks. */
static int gather_staged(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return queue(have.staged, GG_COMM_ALL_GATHER);
}

/* The last bytes: of the second buffer. */
static int check_values(struct program *p, union output *out)
{
    unsigned char got[SMALL] = {0};
    (void)out;
    if (!have.memory)
        return SKIPPED;
    const struct gg_copy_operand src = {.memory = have.memory, .offset = STAGED - SMALL};
    const struct gg_copy_operand dst = {.host = got};
    const int status = (int)gg_copy(&dst, &src, sizeof got, NULL, 0);
    if (!status)
        check_bytes(p, got, SMALL, 5, "the values of an exchange through the host are wrong");
    return status;
}

static int close_local(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.local ? (int)gg_comm_close_device(have.local) : SKIPPED;
}

static int release(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    gg_comm_release(have.local);
    gg_comm_release(have.staged);
    gg_comm_release(have.two[0]);
    gg_comm_release(have.two[1]);
    gg_memory_release(have.memory);
    return GG_OK;
}

static const struct step steps[] = {
    {"create the communicator of one process", create_local, GG_OK},
    {"create communicators of which one has no device", create_two, GG_OK},
    {"create a communicator without a library", create_staged, GG_OK},
    {"allocate what passes through the host", create_memory, GG_OK},
    {"fill what passes through the host", fill, GG_OK},
    {"combine in one process", combine_local, GG_OK},
    {"combine through the host", combine_staged, GG_OK},
    {"gather through the host", gather_staged, GG_OK},
    {"check what passed through the host", check_values, GG_OK},
    {"close the communicator of one process", close_local, GG_OK},
    {"release these communicators", release, GG_OK},
};
const struct steps staged_steps = {steps, sizeof steps / sizeof steps[0]};
