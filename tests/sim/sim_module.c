/* Modules: no device code runs here. A module is an image in which the kernels' names are found, whatever
 * its format; a launch is recorded, and a host function of the same name, if there is one in
 * sim_kernels.c, does a kernel's work when its turn comes. */
#include "sim_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE_SIZE = 16 };

struct sim_table sim_modules = {.kind = "module", .stride = sizeof(struct sim_module)};
struct sim_table sim_functions = {.kind = "function", .stride = sizeof(struct sim_function)};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The name stands in the image as a word of its own. */
static bool holds(const struct sim_module *module, const char *name)
{
    const size_t length = strlen(name);
    const char *from = module->image, *end = from + module->size, *at;
    if (!length)
        return false;
    while ((at = memmem(from, (size_t)(end - from), name, length))) {
        const bool begins = at == module->image || !is_letter(at[-1]);
        if (begins && (at + length == end || !is_letter(at[length])))
            return true;
        from = at + 1;
    }
    return false;
}

int sim_module_load(struct sim_context *context, const void *image, size_t size,
                    struct sim_module **out)
{
    struct sim_module *module;
    char *copy = size ? malloc(size) : NULL;
    if (!copy)
        return size ? SIM_NO_MEMORY : SIM_INVALID_IMAGE;
    module = sim_table_take(&sim_modules);
    if (!module) {
        free(copy);
        return SIM_NO_MEMORY;
    }
    memcpy(copy, image, size);
    module->image = copy;
    module->size = size;
    module->context = context;
    *out = module;
    return SIM_OK;
}

void sim_module_unload(struct sim_module *module)
{
    struct sim_function *function, *next;
    struct sim_alloc *alloc;
    sim_wait_context(module->context);
    alloc = module->variable ? sim_memory_find(module->variable) : NULL; /* a wait moves the table */
    for (function = sim_table_next(&sim_functions, NULL); function; function = next) {
        next = sim_table_next(&sim_functions, function);
        if (function->module != module)
            continue;
        free(function->name);
        sim_table_drop(&sim_functions, function);
    }
    if (alloc)
        sim_memory_release(alloc);
    free(module->image);
    sim_table_drop(&sim_modules, module);
}

int sim_module_function(struct sim_module *module, const char *name, struct sim_function **out)
{
    struct sim_function *function;
    if (!holds(module, name))
        return SIM_NOT_FOUND;
    function = sim_table_take(&sim_functions);
    if (!function)
        return SIM_NO_MEMORY;
    function->module = module;
    function->name = strdup(name);
    function->kernel = sim_kernel_find(name);
    function->shared_most = SIM_MAX_SHARED;
    function->slot.internal = true; /* it goes with its module */
    *out = function;
    return SIM_OK;
}

int sim_module_one_function(struct sim_module *module, const char *name, unsigned shared_most,
                            struct sim_function **out)
{
    struct sim_function *function = NULL;
    while ((function = sim_table_next(&sim_functions, function)))
        if (function->module == module && !strcmp(function->name, name)) {
            *out = function;
            return SIM_OK;
        }
    int status = sim_module_function(module, name, out);
    if (!status)
        (*out)->shared_most = shared_most;
    return status;
}

/* The one variable that test images have. */
int sim_module_global(struct sim_module *module, const char *name, uint64_t *address, size_t *size)
{
    const struct sim_block block = {.context = module->context, .size = VARIABLE_SIZE};
    int status = SIM_OK;
    if (strcmp(name, "table") != 0 || !holds(module, name))
        return SIM_NOT_FOUND;
    if (!module->variable)
        status = sim_memory_device(module->context->device, &block, &module->variable);
    if (status)
        return status;
    sim_memory_find(module->variable)->attempted = true; /* the module's, not the client's to free */
    *address = module->variable;
    *size = VARIABLE_SIZE;
    return SIM_OK;
}

/* ---- launches ---- */

static void record(const struct sim_launch *launch, const char *name)
{
    const char *path = getenv("GPUGLUE_SIM_LAUNCHES");
    FILE *file = path && *path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%s grid %u %u %u block %u %u %u shared %u arguments ", name, launch->grid[0],
            launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
            launch->shared);
    for (unsigned i = 0; launch->kernel && i < launch->kernel->count; i++)
        for (unsigned b = 0; b < launch->kernel->sizes[i]; b++)
            fprintf(file, "%02x%s", launch->values[i][b],
                    b + 1 == launch->kernel->sizes[i] ? " " : "");
    fprintf(file, "\n");
    fclose(file);
}

static void run(void *data)
{
    struct sim_launch *launch = data;
    int status = SIM_OK;
    if (launch->kernel)
        status = launch->kernel->run(launch);
    if (status) {
        pthread_mutex_lock(&sim.lock);
        sim_context_lose(launch->context, status);
        pthread_mutex_unlock(&sim.lock);
    }
}

/* All are kept: what a graph holds may run again, and what is queued on a lost device never runs. */
static struct sim_launch *kept;

int sim_module_prepare(struct sim_queue *queue, const struct sim_function *function,
                       const struct sim_launch *shape, void **arguments, struct sim_work *work)
{
    struct sim_launch *launch;
    const uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    const uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    if (!threads || threads > SIM_MAX_THREADS || !blocks || shape->shared > function->shared_most)
        return SIM_INVALID;
    launch = calloc(1, sizeof *launch);
    if (!launch)
        return SIM_NO_MEMORY;
    *launch = *shape;
    launch->kernel = function->kernel;
    launch->context = queue->context;
    launch->variable = function->module->variable;
    for (unsigned i = 0; launch->kernel && i < launch->kernel->count; i++)
        memcpy(launch->values[i], arguments[i], launch->kernel->sizes[i]);
    record(launch, function->name);
    launch->next = kept;
    kept = launch;
    *work = (struct sim_work){.kind = SIM_HOST, .host = {.run = run, .data = launch}};
    return SIM_OK;
}

int sim_module_launch(struct sim_queue *queue, const struct sim_function *function,
                      const struct sim_launch *shape, void **arguments)
{
    struct sim_work work;
    int status = sim_module_prepare(queue, function, shape, arguments, &work);
    return status ? status : sim_queue_submit(queue, &work);
}
