/* nodes.c: an LD_PRELOAD library that simulates device nodes. GPUGLUE_TEST_NODES is a
 * comma-separated list of path=absent, path=there and path=refused:GROUP; a refused node belongs to
 * that group and cannot be opened. A glob() pattern that matches a path of the list finds only the
 * paths of the list that are not absent. Other paths are unchanged.
 *
 * GPUGLUE_TEST_SYSFS is a directory whose files replace those of /sys/devices/system/node, /sys/bus/pci and /sys/fs/cgroup,
 * and /proc/self/cgroup. GPUGLUE_TEST_PROCESSORS is the number of processors of the affinity. Memory policies
 * are not set, but written to the file GPUGLUE_TEST_POLICIES: a line with the mode and the first nodes, behind the word
 * "range" if it is of a range of memory. The policy that is read is the mode GPUGLUE_TEST_POLICY. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The state of the path in the list; NULL if it is not in the list. */
static const char *node_state(const char *path)
{
    const char *entry = getenv("GPUGLUE_TEST_NODES");
    const size_t length = strlen(path);
    for (; entry; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (!strncmp(entry, path, length) && entry[length] == '=')
            return entry + length + 1;
    }
    return NULL;
}

static int begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

int access(const char *path, int mode)
{
    const char *what = node_state(path);
    if (!what)
        return faccessat(AT_FDCWD, path, mode, 0);
    if (begins(what, "there") || (begins(what, "refused") && mode == F_OK))
        return 0;
    errno = begins(what, "refused") ? EACCES : ENOENT;
    return -1;
}

static int node_stat(const char *path, struct stat *out)
{
    const char *what = node_state(path);
    if (!what)
        return fstatat(AT_FDCWD, path, out, 0);
    if (begins(what, "absent")) {
        errno = ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;
    out->st_gid = begins(what, "refused:") ? (gid_t)strtoul(what + 8, NULL, 10) : 0;
    return 0;
}

int stat(const char *restrict path, struct stat *restrict out)
{
    return node_stat(path, out);
}

/* stat() before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *out);
int __xstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return node_stat(path, out);
}

/* Returns the number of paths in the list that match the pattern. Unless @p out is NULL, writes
 * those that are not absent to it. */
static size_t matching_nodes(const char *pattern, char **out, size_t *there)
{
    size_t count = 0;
    const char *entry = getenv("GPUGLUE_TEST_NODES");
    for (; entry; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        const char *end = strchr(entry, '=');
        char *path = end ? strndup(entry, (size_t)(end - entry)) : NULL;
        const bool matches = path && !fnmatch(pattern, path, FNM_PATHNAME);
        count += matches;
        if (matches && out && !begins(end + 1, "absent"))
            out[(*there)++] = path;
        else
            free(path);
    }
    return count;
}

/* ---- processors and NUMA nodes */

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *mask)
{
    const char *count = getenv("GPUGLUE_TEST_PROCESSORS");
    int (*real)(pid_t, size_t, cpu_set_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "sched_getaffinity");
    if (!count)
        return real(process, size, mask);
    CPU_ZERO_S(size, mask);
    for (size_t i = 0; i < strtoul(count, NULL, 10); i++)
        CPU_SET_S(i, size, mask);
    return 0;
}

static FILE *open_file(const char *path, const char *mode)
{
    static const char *const replaced[] = {"/sys/devices/system/node/", "/sys/bus/pci/",
                                           "/sys/fs/cgroup/", "/proc/self/cgroup"};
    FILE *(*real)(const char *, const char *);
    const char *root = getenv("GPUGLUE_TEST_SYSFS");
    char other[4096];
    bool is_replaced = false;
    for (size_t i = 0; root && i < sizeof replaced / sizeof replaced[0]; i++)
        is_replaced |= begins(path, replaced[i]);
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    snprintf(other, sizeof other, "%s%s", root ? root : "", path);
    return real(is_replaced ? other : path, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return open_file(path, mode);
}

/* Containers may not read it. */
static long read_policy(int *mode)
{
    const char *text = getenv("GPUGLUE_TEST_POLICY");
    *mode = text ? atoi(text) : 0; /* MPOL_DEFAULT */
    return 0;
}

static long write_policy(const char *of, long mode, const unsigned long *nodes)
{
    FILE *file = open_file(getenv("GPUGLUE_TEST_POLICIES"), "ae");
    if (file) {
        fprintf(file, "%s%ld %lx\n", of, mode, nodes ? nodes[0] : 0);
        fclose(file);
    }
    return 0;
}

/* It reads six values, as the C library's does, also where a caller passes fewer. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long (*real)(long, ...);
    long values[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_get_mempolicy && getenv("GPUGLUE_TEST_POLICIES"))
        return read_policy((int *)values[0]);
    if (number == SYS_set_mempolicy && getenv("GPUGLUE_TEST_POLICIES"))
        return write_policy("", values[0], (const unsigned long *)values[1]);
    if (number == SYS_mbind && getenv("GPUGLUE_TEST_POLICIES"))
        return write_policy("range ", values[2], (const unsigned long *)values[3]);
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int),
         glob_t *restrict found)
{
    int (*real)(const char *, int, int (*)(const char *, int), glob_t *);
    const size_t count = matching_nodes(pattern, NULL, NULL);
    if (!count) {
        *(void **)&real = dlsym(RTLD_NEXT, "glob");
        return real(pattern, flags, failed, found);
    }
    memset(found, 0, sizeof *found);
    found->gl_pathv = calloc(count + 1, sizeof *found->gl_pathv);
    if (!found->gl_pathv)
        return GLOB_NOSPACE;
    matching_nodes(pattern, found->gl_pathv, &found->gl_pathc);
    return found->gl_pathc ? 0 : GLOB_NOMATCH;
}
