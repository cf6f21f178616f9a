/* nodes.c: loaded with LD_PRELOAD, shows a process device nodes that this machine does not have.
 * GPUGLUE_TEST_NODES is a list of path=absent, path=there and path=refused:GROUP, separated by commas;
 * a refused node belongs to that group and may not be opened. A pattern that fits one of them (glob) finds those that are
 * not absent, and nothing else. All other paths are as they are. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is said of the path; NULL: nothing. */
static const char *said(const char *path)
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
    const char *what = said(path);
    if (!what)
        return faccessat(AT_FDCWD, path, mode, 0);
    if (begins(what, "there") || (begins(what, "refused") && mode == F_OK))
        return 0;
    errno = begins(what, "refused") ? EACCES : ENOENT;
    return -1;
}

static int look(const char *path, struct stat *out)
{
    const char *what = said(path);
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
    return look(path, out);
}

/* What stat() was before glibc 2.33. */
int __xstat(int version, const char *path, struct stat *out);
int __xstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return look(path, out);
}

/* The paths of the list that fit the pattern: how many, and in @p out, if not NULL, those that are not absent. */
static size_t fitting(const char *pattern, char **out, size_t *there)
{
    size_t count = 0;
    const char *entry = getenv("GPUGLUE_TEST_NODES");
    for (; entry; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        const char *end = strchr(entry, '=');
        char *path = end ? strndup(entry, (size_t)(end - entry)) : NULL;
        const bool fits = path && !fnmatch(pattern, path, FNM_PATHNAME);
        count += fits;
        if (fits && out && !begins(end + 1, "absent"))
            out[(*there)++] = path;
        else
            free(path);
    }
    return count;
}

int glob(const char *restrict pattern, int flags, int (*failed)(const char *, int),
         glob_t *restrict found)
{
    int (*real)(const char *, int, int (*)(const char *, int), glob_t *);
    const size_t count = fitting(pattern, NULL, NULL);
    if (!count) {
        *(void **)&real = dlsym(RTLD_NEXT, "glob");
        return real(pattern, flags, failed, found);
    }
    memset(found, 0, sizeof *found);
    found->gl_pathv = calloc(count + 1, sizeof *found->gl_pathv);
    if (!found->gl_pathv)
        return GLOB_NOSPACE;
    fitting(pattern, found->gl_pathv, &found->gl_pathc);
    return found->gl_pathc ? 0 : GLOB_NOMATCH;
}
