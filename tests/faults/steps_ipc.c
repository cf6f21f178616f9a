/* steps_ipc.c: memory exported to and imported from another process. The other process is forked
 * before the first call; no fault is injected in it. */
#include "program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static int to_child, from_child;

/* Exports a block, writes the handle and ends when the reader closes the pipe. */
static int serve(const char *backend, int in, int out)
{
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    gg_device *device = NULL;
    gg_memory *memory = NULL;
    char byte;
    unsetenv("GPUGLUE_SIM_FAIL");
    unsetenv("GPUGLUE_SIM_REPORT");
    signal(SIGPIPE, SIG_IGN);
    if (!gg_device_get(backend, 0, &device) &&
        !gg_memory_alloc(device, GG_MEMORY_DEVICE, SMALL, NULL, &memory) &&
        !gg_fill(memory, 0, "i", 1, SMALL, NULL) && !gg_device_synchronize(device) &&
        !gg_ipc_export(memory, &handle))
        (void)!write(out, &handle, sizeof handle); /* the reader may have exited */
    close(out);
    while (read(in, &byte, 1) > 0) {
    }
    gg_memory_release(memory);
    gg_shutdown(2000000000u);
    return 0;
}

void start_exporter(const char *backend)
{
    int down[2], up[2];
    if (pipe(down) || pipe(up) || (child = fork()) < 0)
        exit(121);
    if (!child) {
        close(down[1]);
        close(up[0]);
        _exit(serve(backend, down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    to_child = down[1];
    from_child = up[0];
}

static int export_memory(struct program *p, union output *out)
{
    if (!p->small)
        return SKIPPED;
    out->handle.struct_size = sizeof out->handle;
    p->sized = true;
    return (int)gg_ipc_export(p->small, &out->handle);
}

static int open_memory(struct program *p, union output *out)
{
    struct gg_ipc_handle handle;
    if (!p->device || read(from_child, &handle, sizeof handle) != (ssize_t)sizeof handle)
        return SKIPPED;
    const gg_status status = gg_ipc_open(&handle, &out->memory);
    if (!status)
        p->imported = out->memory;
    return (int)status;
}

static int read_imported(struct program *p, union output *out)
{
    struct gg_copy_operand dst = {.host = p->host}, src = {.memory = p->imported};
    (void)out;
    if (!p->imported)
        return SKIPPED;
    memset(p->host, 0, SMALL);
    const int status = (int)gg_copy(&dst, &src, SMALL, NULL, 0);
    return status ? status : check_bytes(p, p->host, SMALL, 'i', "imported memory has wrong bytes");
}

static int close_imported(struct program *p, union output *out)
{
    (void)out;
    gg_memory_release(p->imported);
    p->imported = NULL;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

static int end_exporter(struct program *p, union output *out)
{
    int status = 0;
    (void)out;
    close(to_child);
    close(from_child);
    waitpid(child, &status, 0);
    if (status)
        p->wrong = "the exporting process failed";
    return GG_OK;
}

static const struct step steps[] = {
    {"export memory", export_memory, GG_OK},
    {"open memory of another process", open_memory, GG_OK},
    {"read imported memory", read_imported, GG_OK},
    {"close imported memory", close_imported, GG_OK},
    {"end the other process", end_exporter, GG_OK},
};
const struct steps ipc_steps = {steps, sizeof steps / sizeof steps[0]};
