/* sim_module.c: modules and launches. A module is an image of any format that contains the kernels'
 * names. A launch is recorded; where sim_kernels.c has a host function of that name, it runs in stream
 * order in place of the kernel. A module with a program (sim_opencl.c) runs its own code. */
#include "sim_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE_SIZE = 16 };

/* A kernel of this name is never found: as one whose calls are not linked, which a real driver does not load. */
#define UNLINKED "unlinked"

struct sim_table sim_modules = {.kind = "module", .stride = sizeof(struct sim_module)};
struct sim_table sim_functions = {.kind = "function", .stride = sizeof(struct sim_function)};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether the image contains the name as a whole word. */
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

void sim_module_use(struct sim_module *module, struct sim_program *program)
{
    module->program = program;
}

static void free_values(struct sim_value *values, unsigned count)
{
    for (unsigned i = 0; values && i < count; i++)
        free(values[i].bytes);
    free(values);
}

static void drop_function(struct sim_function *function)
{
    if (function->code)
        free_values(function->values_set, sim_code_count(function->code));
    sim_code_release(function->code);
    free(function->name);
    sim_table_drop(&sim_functions, function);
}

void sim_module_unload(struct sim_module *module)
{
    struct sim_function *function, *next;
    struct sim_alloc *alloc;
    sim_wait_context(module->context);
    alloc = module->variable ? sim_memory_find(module->variable) : NULL; /* may move */
    for (function = sim_table_next(&sim_functions, NULL); function; function = next) {
        next = sim_table_next(&sim_functions, function);
        if (function->module == module)
            drop_function(function);
    }
    if (alloc)
        sim_memory_release(alloc);
    sim_opencl_release(module->program);
    free(module->image);
    sim_table_drop(&sim_modules, module);
}

int sim_module_function(struct sim_module *module, const char *name, struct sim_function **out)
{
    struct sim_function *function;
    struct sim_code *code = NULL;
    int status = holds(module, name) && strcmp(name, UNLINKED) ? SIM_OK : SIM_NOT_FOUND;
    if (!status && module->program)
        status = sim_opencl_code(module->program, name, &code);
    if (status)
        return status;
    function = sim_table_take(&sim_functions);
    if (!function) {
        sim_code_release(code);
        return SIM_NO_MEMORY;
    }
    function->module = module;
    function->name = strdup(name);
    function->code = code;
    function->kernel = code ? NULL : sim_kernel_find(name);
    function->values_set =
        code ? calloc(sim_code_count(code) + 1, sizeof *function->values_set) : NULL;
    function->shared_most = SIM_MAX_SHARED;
    function->slot.internal = true; /* destroyed with its module */
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

/* The program's own memory, as a block that copies find. */
static int program_global(struct sim_module *module, const char *name, uint64_t *address,
                          size_t *size)
{
    struct sim_block block = {.context = module->context};
    int status = sim_opencl_variable(module->program, name, address, size);
    block.size = *size;
    if (!status && !sim_memory_find(*address))
        status = sim_memory_register(*address, &block);
    if (!status) {
        sim_memory_find(*address)->attempted = true; /* the module frees it, not the client */
        module->variable = *address;
    }
    return status;
}

/* Test images have one variable. */
int sim_module_global(struct sim_module *module, const char *name, uint64_t *address, size_t *size)
{
    const struct sim_block block = {.context = module->context, .size = VARIABLE_SIZE};
    int status = SIM_OK;
    if (module->program && holds(module, name))
        return program_global(module, name, address, size);
    if (strcmp(name, "table") != 0 || !holds(module, name))
        return SIM_NOT_FOUND;
    if (!module->variable)
        status = sim_memory_device(module->context->device, &block, &module->variable);
    if (status)
        return status;
    sim_memory_find(module->variable)->attempted = true; /* the module frees it, not the client */
    *address = module->variable;
    *size = VARIABLE_SIZE;
    return SIM_OK;
}

/* ---- launches ---- */

/* Local memory has no bytes. */
static void record_argument(FILE *file, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; bytes && i < size; i++)
        fprintf(file, "%02x", bytes[i]);
    if (!bytes)
        fprintf(file, "local:%zu", size);
    fprintf(file, " ");
}

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
        record_argument(file, launch->values[i], launch->kernel->sizes[i]);
    for (unsigned i = 0; launch->code && i < sim_code_count(launch->code); i++)
        record_argument(file, launch->values_set[i].bytes, launch->values_set[i].size);
    fprintf(file, "\n");
    fclose(file);
}

static int run_code(const struct sim_launch *launch)
{
    struct sim_shape shape = {.values = launch->values_set};
    memcpy(shape.grid, launch->grid, sizeof shape.grid);
    memcpy(shape.block, launch->block, sizeof shape.block);
    return sim_code_run(launch->code, &shape);
}

static void run(void *data)
{
    struct sim_launch *launch = data;
    int status = SIM_OK;
    if (launch->code)
        status = run_code(launch);
    else if (launch->kernel)
        status = launch->kernel->run(launch);
    if (status) {
        pthread_mutex_lock(&sim.lock);
        sim_context_lose(launch->context, status);
        pthread_mutex_unlock(&sim.lock);
    }
}

/* NULL if an argument was never set, or without memory. */
static struct sim_value *copy_values(const struct sim_function *function)
{
    const unsigned count = sim_code_count(function->code);
    struct sim_value *copies = calloc(count + 1, sizeof *copies);
    for (unsigned i = 0; copies && i < count; i++) {
        const struct sim_value *value = &function->values_set[i];
        copies[i].size = value->size;
        copies[i].bytes = value->bytes ? malloc(value->size) : NULL;
        if (!value->size || (value->bytes && !copies[i].bytes)) {
            free_values(copies, i + 1);
            return NULL;
        }
        if (value->bytes)
            memcpy(copies[i].bytes, value->bytes, value->size);
    }
    return copies;
}

/* All launches, kept until exit: a graph may run one again, and a lost device drops some. */
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
    launch->constant_count = function->module->constant_count;
    memcpy(launch->constants, function->module->constants, sizeof launch->constants);
    launch->code = function->code;
    if (launch->code && !(launch->values_set = copy_values(function))) {
        free(launch);
        return SIM_INVALID;
    }
    for (unsigned i = 0; launch->kernel && i < launch->kernel->count; i++)
        memcpy(launch->values[i], arguments[i], launch->kernel->sizes[i]);
    record(launch, function->name);
    launch->next = kept;
    kept = launch;
    *work = (struct sim_work){.kind = SIM_HOST,
                              .unit = SIM_COMPUTE_UNIT,
                              .host = {.run = run, .data = launch, .kernel = true}};
    return SIM_OK;
}

int sim_module_launch(struct sim_queue *queue, const struct sim_function *function,
                      const struct sim_launch *shape, void **arguments)
{
    struct sim_work work;
    int status = sim_module_prepare(queue, function, shape, arguments, &work);
    return status ? status : sim_queue_submit(queue, &work);
}
