/* plugin.c: opens one plugin file and checks all that can be checked before it is called. */
#include "backends.h"
#include "dynlib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

bool ggi_name_is_valid(const char *name)
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
    return ggi_name_is_valid(name);
}

bool ggi_writable_by_others(const char *path, struct ggi_text *why)
{
    struct stat info;
    if (stat(path, &info) || !(info.st_mode & S_IWOTH))
        return false;
    ggi_text_add(why,
                 "%s is writable by others (mode %04o), so anyone on this machine could put code "
                 "there: run chmod o-w %s",
                 path, (unsigned)info.st_mode & 07777u, path);
    return true;
}

/* ---- the descriptor ---- */

/* What the plugin has of our table; whole slots only, the rest stays NULL. */
static void copy_ops(struct gg_backend_ops *ops, const struct gg_backend_ops *theirs)
{
    size_t size = theirs->struct_size < sizeof *ops ? theirs->struct_size : sizeof *ops;
    size -= size % sizeof(void *);
    memset(ops, 0, sizeof *ops);
    memcpy(ops, theirs, size);
    ops->struct_size = sizeof *ops;
}

static const char *missing_op(const struct gg_backend_ops *ops)
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

/* Only the magic, the size and the major are where every version has them. */
static bool is_ours(const struct gg_backend_desc *desc, struct ggi_text *why)
{
    if (desc->magic != GG_BACKEND_MAGIC)
        ggi_text_add(why, "its descriptor has magic 0x%08x where 0x%08x is expected: not a plugin",
                     desc->magic, GG_BACKEND_MAGIC);
    else if (desc->abi_major != GG_BACKEND_ABI_MAJOR)
        ggi_text_add(why,
                     "it was built for plugin ABI %d.%d, this gpuglue has %d.%d: install a plugin "
                     "of the same major version",
                     desc->abi_major, desc->abi_minor, GG_BACKEND_ABI_MAJOR, GG_BACKEND_ABI_MINOR);
    else if (desc->struct_size < sizeof *desc)
        ggi_text_add(why, "its descriptor has %u bytes where %zu are expected", desc->struct_size,
                     sizeof *desc);
    else
        return true;
    return false;
}

static bool is_complete(const struct gg_backend *backend, const struct gg_backend_desc *desc,
                        struct ggi_text *why)
{
    if (!desc->name || strcmp(desc->name, backend->name) != 0)
        ggi_text_add(why, "it calls itself \"%.32s\", its file says \"%s\"",
                     desc->name ? desc->name : "", backend->name);
    else if (!desc->ops || desc->ops->struct_size < FIRST_SLOT)
        ggi_text_add(why, "it has no table of operations");
    else
        return true;
    return false;
}

gg_probe_status ggi_plugin_accept(struct gg_backend *backend, const struct gg_backend_desc *desc,
                                  struct ggi_text *why)
{
    struct gg_backend_ops ops;
    if (!is_ours(desc, why) || !is_complete(backend, desc, why))
        return GG_PROBE_PLUGIN_ABI_MISMATCH;
    copy_ops(&ops, desc->ops);
    const char *missing = missing_op(&ops);
    if (missing) {
        ggi_text_add(why, "its table lacks the operation %s, which is required", missing);
        return GG_PROBE_PLUGIN_ABI_MISMATCH;
    }
    backend->ops = ops;
    backend->priority = desc->priority;
    backend->plugin_version = strdup(desc->version ? desc->version : "");
    return GG_PROBE_AVAILABLE;
}

/* ---- the file ---- */

static bool is_private(const char *path, struct ggi_text *why)
{
    char directory[PATH_MAX];
    size_t length = (size_t)(strrchr(path, '/') - path);
    memcpy(directory, path, length);
    strcpy(directory + length, length ? "" : "/");
    return !ggi_writable_by_others(path, why) && !ggi_writable_by_others(directory, why);
}

static gg_backend_query_fn *query_of(void *handle, struct ggi_text *why)
{
    gg_backend_query_fn *query = NULL;
    void *symbol = ggi_dynlib_symbol(handle, "gg_backend_query");
    if (!symbol)
        ggi_text_add(why, "it has no symbol gg_backend_query: not a gpuglue plugin");
    else if (!ggi_dynlib_holds(handle, symbol))
        ggi_text_add(why, "gg_backend_query is not its own but that of a library it is linked to");
    else
        memcpy(&query, &symbol, sizeof query); /* ISO C has no cast for this */
    return query;
}

gg_probe_status ggi_plugin_load(struct gg_backend *backend, const char *path, struct ggi_text *why)
{
    char error[1024];
    const struct gg_backend_desc *desc = NULL;
    if (!is_private(path, why))
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    void *handle = ggi_dynlib_open(path, GGI_DYNLIB_PLUGIN, error, sizeof error);
    if (!handle) {
        ggi_dynlib_explain(path, error, why);
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    }
    gg_backend_query_fn *query = query_of(handle, why);
    if (!query)
        return GG_PROBE_PLUGIN_LOAD_FAILED;
    int refusal = query(gg_abi(), ggi_host_api(), &desc);
    if (!refusal && desc)
        return ggi_plugin_accept(backend, desc, why);
    ggi_text_add(why, "it refuses to serve this gpuglue, version %s with ABI %d.%d (its answer: %d)",
                 gg_version(), GG_BACKEND_ABI_MAJOR, GG_BACKEND_ABI_MINOR, refusal);
    return GG_PROBE_PLUGIN_ABI_MISMATCH;
}
