/* dynlib.c: what the core asks of the dynamic loader, and why a library could not be opened. */
#include "dynlib.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE /* not compared */
#endif

static int flags_of(enum ggi_dynlib_mode mode)
{
    switch (mode) {
    case GGI_DYNLIB_PLUGIN:
        return RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    case GGI_DYNLIB_MAPPED: /* without LAZY or NOW the loader refuses */
        return RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD;
    case GGI_DYNLIB_VENDOR:
        break;
    }
    return RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
}

void *ggi_dynlib_open(const char *path, enum ggi_dynlib_mode mode, char *error, size_t size)
{
    struct ggi_text text;
    ggi_text_begin(&text, error, size);
    if (!*path) { /* to the loader that is the program itself */
        ggi_text_add(&text, "an empty name");
        return NULL;
    }
    void *handle = dlopen(path, flags_of(mode));
    if (!handle) {
        const char *said = dlerror();
        ggi_text_add(&text, "%s", said ? said : "not mapped in this process");
    }
    return handle;
}

void *ggi_dynlib_symbol(void *handle, const char *name)
{
    return dlsym(handle, name);
}

static const char *loaded_name(void *handle)
{
    struct link_map *map;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? "" : map->l_name;
}

void ggi_dynlib_path(void *handle, char path[PATH_MAX])
{
    struct ggi_text text;
    const char *name = loaded_name(handle);
    if (realpath(name, path))
        return;
    ggi_text_begin(&text, path, PATH_MAX);
    ggi_text_add(&text, "%s", name);
}

bool ggi_dynlib_holds(void *handle, const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && !strcmp(info.dli_fname, loaded_name(handle));
}

/* ---- what is mapped ---- */

struct mapped {
    const char *stem;
    char **paths;
    size_t count, room;
};

static bool is_called(const char *path, const char *stem)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(stem);
    if (strncmp(name, stem, length))
        return false;
    return (name[length] == '.' || name[length] == '-') && strstr(name + length, ".so");
}

/* The loader holds its lock here: only copy. */
static int add_mapped(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct mapped *found = argument;
    (void)size;
    if (found->count < found->room && info->dlpi_name && is_called(info->dlpi_name, found->stem)) {
        found->paths[found->count] = strdup(info->dlpi_name);
        found->count += found->paths[found->count] != NULL;
    }
    return 0;
}

size_t ggi_dynlib_mapped(const char *stem, char **paths, size_t room)
{
    struct mapped found = {stem, paths, 0, room};
    dl_iterate_phdr(add_mapped, &found);
    return found.count;
}

/* ---- why not ---- */

static void explain_unreadable(const char *path, int code, struct ggi_text *why)
{
    struct stat info;
    if (code == EACCES && !stat(path, &info))
        ggi_text_add(why, "%s may not be read by this user (mode %04o, owner %u)", path,
                     (unsigned)info.st_mode & 07777u, (unsigned)info.st_uid);
    else
        ggi_text_add(why, "%s cannot be read: %s", path, strerror(code));
}

/* Faults that the loader words poorly, or differently in each language. */
static bool explain_content(const char *path, const unsigned char *head, ssize_t size,
                            struct ggi_text *why)
{
    bool wide = sizeof(void *) == 8;
    if (size < 20 || memcmp(head, ELFMAG, SELFMAG) != 0) {
        ggi_text_add(why, "%s is not a library (a text file or a cut-off copy?)", path);
        return true;
    }
    if ((head[EI_CLASS] == ELFCLASS64) != wide) {
        ggi_text_add(why, "%s is a %s-bit library, but this process is %s-bit", path,
                     wide ? "32" : "64", wide ? "64" : "32");
        return true;
    }
    if (OWN_MACHINE != EM_NONE && (head[18] | head[19] << 8) != OWN_MACHINE) {
        ggi_text_add(why, "%s was built for another kind of processor", path);
        return true;
    }
    return false;
}

static bool explain_file(const char *path, struct ggi_text *why)
{
    unsigned char head[20] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : read(fd, head, sizeof head);
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0) {
        explain_unreadable(path, code, why);
        return true;
    }
    return explain_content(path, head, size, why);
}

static bool exists(const char *path)
{
    struct stat info;
    return !stat(path, &info) || (errno != ENOENT && errno != ENOTDIR);
}

/* The loader's sentence begins with the file it is about and ends in the system's word for the error:
 * that holds in every language. */
bool ggi_dynlib_explain(const char *path, const char *error, struct ggi_text *why)
{
    char subject[PATH_MAX];
    const char *colon = strstr(error, ": ");
    size_t length = colon ? (size_t)(colon - error) : 0;
    bool absolute = path[0] == '/';
    if (length >= sizeof subject)
        length = 0;
    memcpy(subject, error, length);
    subject[length] = 0;
    if (absolute ? !exists(path) : !strcmp(subject, path) && strstr(error, strerror(ENOENT))) {
        ggi_text_add(why, "there is no %s%s", path, absolute ? "" : " where the loader looks");
        return false;
    }
    if (absolute && explain_file(path, why))
        return true;
    if (length && subject[0] == '/' && strcmp(subject, path) && explain_file(subject, why))
        return true;
    if (length && subject[0] != '/' && strcmp(subject, path) && !strchr(subject, ' '))
        ggi_text_add(why, "%s needs %s, which cannot be loaded: %s", path, subject, colon + 2);
    else
        ggi_text_add(why, "%s", error);
    return true;
}
