/* plugin.c: opens one plugin file and checks its descriptor before any operation is called. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/processors.h"
#include "base/sized.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/small.h"

#define PREFIX "gpuglue_"
#define SUFFIX ".so"
#define FIRST_SLOT offsetof(struct gg_backend_ops, probe)

/* The rows of ops.def are the slots of the table, in its order: the order is ABI. */
#define OP(slot, need)                                                     \
    _Static_assert(offsetof(struct gg_backend_ops, slot) ==                \
                       FIRST_SLOT + (size_t)GG_OP_##slot * sizeof(void *), \
                   #slot " is not where ops.def says");
#include <gpuglue/ops.def>
#undef OP
_Static_assert(sizeof(struct gg_backend_ops) == FIRST_SLOT + GG_OP_COUNT * sizeof(void *),
               "a slot has no row in ops.def");

bool ggi_backend_name_is_valid(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return name[0] >= 'a' && name[0] <= 'z' && length < GGI_NAME_SIZE && !name[length];
}

bool ggi_plugin_name(const char *path, char name[GGI_NAME_SIZE])
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t length = strlen(file), around = strlen(PREFIX SUFFIX);
    if (length <= around || length - around >= GGI_NAME_SIZE)
        return false;
    if (strncmp(file, PREFIX, strlen(PREFIX)) || strcmp(file + length - strlen(SUFFIX), SUFFIX))
        return false;
    memcpy(name, file + strlen(PREFIX), length - around);
    name[length - around] = 0;
    return ggi_backend_name_is_valid(name);
}

/* ---- the functions of the core that a plugin may call: it links to none of its symbols ---- */

static const char *host_get_env(const char *name)
{
    return ggi_env_get(name);
}

const struct gg_host_api *ggi_host_api(void)
{
    static const struct gg_host_api api = {
        .struct_size = sizeof api,
        .core_abi = (uint32_t)GG_ABI_MAJOR << 16 | GG_ABI_MINOR,
        .log = ggi_log,
        .fail = ggi_host_fail,
        .get_env = host_get_env,
        .library_open = ggi_library_open,
        .library_resolve = ggi_library_resolve,
        .note = ggi_probe_log_note,
        .processor_count = ggi_processor_count,
    };
    return &api;
}

/* ---- the descriptor ---- */

/* Copy the slots that the plugin has; newer ones stay NULL. */
static void plugin_copy_ops(struct gg_backend_ops *ops, const struct gg_backend_ops *theirs)
{
    size_t size = theirs->struct_size < sizeof *ops ? theirs->struct_size : sizeof *ops;
    size -= size % sizeof(void *);
    memset(ops, 0, sizeof *ops);
    memcpy(ops, theirs, size);
    ops->struct_size = sizeof *ops;
}

/* The same for collective operations, none of which is optional in the first version of their table. */
static void plugin_copy_comm_ops(struct ggi_plugin *plugin, const struct gg_comm_ops *theirs)
{
    if (!ggi_sized_fits(theirs, GGI_SIZE_TO(struct gg_comm_ops, native)))
        return;
    memcpy(&plugin->comm_ops, theirs,
           theirs->struct_size < sizeof *theirs ? theirs->struct_size : sizeof *theirs);
    plugin->comm_ops.struct_size = sizeof *theirs;
    plugin->backend.comm_ops = &plugin->comm_ops;
}

static const char *plugin_missing_op(const struct gg_backend_ops *ops)
{
#define OP(slot, need) {#slot, need},
    static const struct {
        const char *name;
        enum gg_need need;
    } rows[] = {
#include <gpuglue/ops.def>
    };
#undef OP
    for (size_t i = 0; i < GG_OP_COUNT; i++) {
        static const char none[sizeof(void *)];
        const char *slot = (const char *)ops + FIRST_SLOT + i * sizeof(void *);
        if (rows[i].need == GG_REQUIRED && !memcmp(slot, none, sizeof none))
            return rows[i].name;
    }
    return NULL;
}

/* Only the magic, the size and the major version are at the same offset in every version. */
static bool plugin_check_abi(const struct gg_backend_desc *desc, struct ggi_text *why)
{
    if (desc->magic != GG_BACKEND_MAGIC)
        ggi_text_add(why,
                     "its descriptor has magic 0x%08x, expected 0x%08x: it is not a gpuglue plugin",
                     desc->magic, GG_BACKEND_MAGIC);
    else if (desc->abi_major != GG_BACKEND_ABI_MAJOR)
        ggi_text_add(
            why,
            "it was built for plugin ABI %d.%d, but this gpuglue has %d.%d: install a plugin "
            "of the same major version",
            desc->abi_major, desc->abi_minor, GG_BACKEND_ABI_MAJOR, GG_BACKEND_ABI_MINOR);
    else if (desc->struct_size < offsetof(struct gg_backend_desc, aliases))
        ggi_text_add(why, "its descriptor has %u bytes, expected at least %zu", desc->struct_size,
                     offsetof(struct gg_backend_desc, aliases));
    else
        return true;
    return false;
}

static bool plugin_check_name(const struct ggi_plugin *plugin, const struct gg_backend_desc *desc,
                              struct ggi_text *why)
{
    if (!desc->name || strcmp(desc->name, plugin->backend.name) != 0)
        ggi_text_add(
            why, "its descriptor has the name \"%.32s\", expected \"%s\" from the name of its file",
            desc->name ? desc->name : "", plugin->backend.name);
    else if (!desc->ops || desc->ops->struct_size < FIRST_SLOT)
        ggi_text_add(why, "it has no operation table");
    else
        return true;
    return false;
}

gg_probe_status ggi_plugin_accept(struct ggi_plugin *plugin, const struct gg_backend_desc *desc,
                                  struct ggi_text *why)
{
    struct gg_backend_ops ops;
    const bool has_aliases = desc->struct_size >= GGI_SIZE_TO(struct gg_backend_desc, aliases);
    const bool has_comm_ops = desc->struct_size >= GGI_SIZE_TO(struct gg_backend_desc, comm_ops);
    if (!plugin_check_abi(desc, why) || !plugin_check_name(plugin, desc, why))
        return GG_PROBE_PLUGIN_ABI_MISMATCH;
    plugin_copy_ops(&ops, desc->ops);
    const char *missing = plugin_missing_op(&ops);
    if (missing) {
        ggi_text_add(why, "its operation table lacks %s, which is required", missing);
        return GG_PROBE_PLUGIN_ABI_MISMATCH;
    }
    plugin->backend.ops = ops;
    if (has_comm_ops && desc->comm_ops)
        plugin_copy_comm_ops(plugin, desc->comm_ops);
    plugin->priority = desc->priority;
    plugin->version = strdup(desc->version ? desc->version : "");
    plugin->aliases = ggi_intern(has_aliases ? desc->aliases : NULL);
    return GG_PROBE_AVAILABLE;
}

/* ---- the file ---- */

static bool plugin_is_private(const char *path, struct ggi_text *why)
{
    char directory[PATH_MAX];
    size_t length = (size_t)(strrchr(path, '/') - path);
    memcpy(directory, path, length);
    strcpy(directory + length, length ? "" : "/");
    return !ggi_writable_by_others(path, why) && !ggi_writable_by_others(directory, why);
}

static gg_backend_query_fn *plugin_query_function(void *handle, struct ggi_text *why)
{
    gg_backend_query_fn *query = NULL;
    void *symbol = dlsym(handle, "gg_backend_query");
    if (!symbol)
        ggi_text_add(why, "it has no symbol gg_backend_query: it is not a gpuglue plugin");
    else if (!ggi_dynlib_holds(handle, symbol))
        ggi_text_add(
            why, "it does not define gg_backend_query itself; a library that it is linked to does");
    else
        memcpy(&query, &symbol, sizeof query); /* ISO C cannot cast to a function pointer */
    return query;
}

gg_probe_status ggi_plugin_load(struct ggi_plugin *plugin, const char *path, struct ggi_text *why)
{
    char error[1024];
    const struct gg_backend_desc *desc = NULL;
    if (!plugin_is_private(path, why))
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    void *handle = ggi_dynlib_open(path, GGI_DYNLIB_PLUGIN, error, sizeof error);
    if (!handle) {
        ggi_dynlib_explain(path, error, why);
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    }
    gg_backend_query_fn *query = plugin_query_function(handle, why);
    if (!query)
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    int refusal = query(gg_abi(), ggi_host_api(), &desc);
    if (!refusal && desc)
        return ggi_plugin_accept(plugin, desc, why);
    ggi_text_add(why, "it does not support this gpuglue, version %s with ABI %d.%d (it returned %d)",
                 gg_version(), GG_BACKEND_ABI_MAJOR, GG_BACKEND_ABI_MINOR, refusal);
    return GG_PROBE_PLUGIN_ABI_MISMATCH;
}
