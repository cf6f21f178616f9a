/* counts.h: what the simulated drivers have counted. Included once by each suite. */
#ifndef GPUGLUE_TESTS_COUNTS_H
#define GPUGLUE_TESTS_COUNTS_H

#include "conformance.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "../sim/sim_control.h"

#define NAMES 512
#define DRIVERS 8

typedef void each_call(void (*visit)(const char *name, int calls, void *data), void *data);

static struct {
    each_call *each[DRIVERS]; /* a process may have several simulated drivers */
    size_t drivers;
} simulated;

struct counts {
    const char *name[NAMES];
    int calls[NAMES];
    size_t count;
};

/* HIP's calls may be passed on to another simulated driver (tests/shim), whose calls are not those of the backend. */
static bool is_called_by(const char *backend, void *library, void *each)
{
    Dl_info counter, called;
    void *init = strcmp(backend, "hip") == 0 ? dlsym(library, "hipInit") : each;
    return init && dladdr(each, &counter) && dladdr(init, &called) &&
           counter.dli_fbase == called.dli_fbase;
}

static int add_driver(struct dl_phdr_info *object, size_t size, void *backend)
{
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    each_call *each = NULL;
    size_t i = 0;
    (void)size;
    if (!library)
        return 0;
    *(void **)&each = dlsym(library, "sim_each_call");
    if (each && !is_called_by(backend, library, *(void **)&each))
        each = NULL;
    while (i < simulated.drivers && simulated.each[i] != each)
        i++;
    if (each && i == simulated.drivers && i < DRIVERS)
        simulated.each[simulated.drivers++] = each;
    dlclose(library);
    return 0;
}

static void count(const char *name, int calls, void *data)
{
    struct counts *counts = data;
    assert_true(counts->count < NAMES);
    counts->name[counts->count] = name;
    counts->calls[counts->count++] = calls;
}

static struct counts counts_now(void)
{
    struct counts counts = {.count = 0};
    for (size_t i = 0; i < simulated.drivers; i++)
        simulated.each[i](count, &counts);
    return counts;
}

static int calls_before(const struct counts *before, const char *name)
{
    for (size_t i = 0; i < before->count; i++)
        if (before->name[i] == name)
            return before->calls[i];
    return 0;
}

struct made {
    char names[512];
    int commands, others;
    int marks; /* of these, the ones that let an event happen after the work of a stream */
};

static bool has_one_of(const char *name, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static bool is_command(const char *name)
{
    static const char *const others[] = {
        "IsCapturing",  "CtxGetCurrent", "CtxSetCurrent",          "hipGetDevice",
        "hipSetDevice", "AppendBarrier", "KernelSetArgumentValue", "KernelSetGroupSize"};
    return !has_one_of(name, others, COUNT_OF(others));
}

static bool is_mark(const char *name)
{
    static const char *const marks[] = {"EventRecord", "AppendBarrier", "AppendSignalEvent"};
    return has_one_of(name, marks, COUNT_OF(marks));
}

static struct made made_since(const struct counts *before)
{
    const struct counts now = counts_now();
    struct made made = {.commands = 0};
    for (size_t i = 0; i < now.count; i++) {
        const int calls = now.calls[i] - calls_before(before, now.name[i]);
        const size_t used = strlen(made.names);
        if (calls)
            snprintf(made.names + used, sizeof made.names - used, " %s %d", now.name[i], calls);
        *(is_command(now.name[i]) ? &made.commands : &made.others) += calls;
        made.marks += is_mark(now.name[i]) ? calls : 0;
    }
    return made;
}

static void need_counts(struct fixture *f)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!simulated.drivers)
        dl_iterate_phdr(add_driver, (void *)gg_device_backend(f->device));
    if (!simulated.drivers)
        skip_because("the backend's driver is not one that counts its calls");
}

#endif
