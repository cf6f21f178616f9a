/* dynlib.c: calls of the dynamic loader, and why a library could not be opened. */
#include "base/text.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE /* not compared */
#endif

static int dynlib_flags(enum ggi_dynlib_mode mode)
{
    switch (mode) {
    case GGI_DYNLIB_PLUGIN:
        return RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    case GGI_DYNLIB_MAPPED: /* dlopen requires LAZY or NOW */
        return RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD;
    case GGI_DYNLIB_VENDOR:
        break;
    }
    return RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
}

void *ggi_dynlib_open(const char *path, enum ggi_dynlib_mode mode, char *error, size_t size)
{
    struct ggi_text text = ggi_text_begin(error, size);
    if (!*path) { /* dlopen would return the program itself */
        ggi_text_add(&text, "the name is empty");
        return NULL;
    }
    void *handle = dlopen(path, dynlib_flags(mode));
    if (!handle) {
        const char *message = dlerror();
        ggi_text_add(&text, "%s", message ? message : "not mapped in this process");
    }
    return handle;
}

static const char *dynlib_name(void *handle)
{
    struct link_map *map;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? "" : map->l_name;
}

void ggi_dynlib_path(void *handle, char path[PATH_MAX])
{
    const char *name = dynlib_name(handle);
    if (realpath(name, path))
        return;
    struct ggi_text text = ggi_text_begin(path, PATH_MAX);
    ggi_text_add(&text, "%s", name);
}

bool ggi_dynlib_holds(void *handle, const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && !strcmp(info.dli_fname, dynlib_name(handle));
}

/* ---- what is mapped ---- */

bool ggi_dynlib_file_at(const void *address, char path[PATH_MAX])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (maps && !found && getline(&line, &room, maps) > 0) {
        uintptr_t begin = 0, end = 0;
        const char *name = strchr(line, '/');
        if (!name || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2 ||
            (uintptr_t)address < begin || (uintptr_t)address >= end)
            continue;
        struct ggi_text text = ggi_text_begin(path, PATH_MAX);
        ggi_text_add(&text, "%.*s", (int)strcspn(name, "\n"), name);
        found = true;
    }
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

struct mapped {
    const char *stem;
    char **paths;
    size_t count, room;
};

static bool dynlib_has_stem(const char *path, const char *stem)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(stem);
    if (strncmp(name, stem, length))
        return false;
    return (name[length] == '.' || name[length] == '-') && strstr(name + length, ".so");
}

/* The loader holds its lock during this call, so it only copies. */
static int dynlib_add_mapped(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct mapped *found = argument;
    (void)size;
    if (found->count < found->room && info->dlpi_name &&
        dynlib_has_stem(info->dlpi_name, found->stem)) {
        found->paths[found->count] = strdup(info->dlpi_name);
        found->count += found->paths[found->count] != NULL;
    }
    return 0;
}

size_t ggi_dynlib_mapped(const char *stem, char **paths, size_t room)
{
    struct mapped found = {stem, paths, 0, room};
    dl_iterate_phdr(dynlib_add_mapped, &found);
    return found.count;
}

/* ---- why a library cannot be opened ---- */

static void dynlib_explain_unreadable(const char *path, int code, struct ggi_text *why)
{
    struct stat info;
    if (code == EACCES && !stat(path, &info))
        ggi_text_add(why, "%s may not be read by this user (mode %04o, owner %u)", path,
                     (unsigned)info.st_mode & 07777u, (unsigned)info.st_uid);
    else
        ggi_text_add(why, "%s cannot be read: %s", path, strerror(code));
}

/* Errors that dlerror describes poorly, or in the language of the locale. */
static bool dynlib_explain_content(const char *path, const unsigned char *head, ssize_t size,
                                   struct ggi_text *why)
{
    bool wide = sizeof(void *) == 8;
    if (size < 20 || memcmp(head, ELFMAG, SELFMAG) != 0) {
        ggi_text_add(why, "%s is not a shared library (a text file, or a truncated copy?)", path);
        return true;
    }
    if ((head[EI_CLASS] == ELFCLASS64) != wide) {
        ggi_text_add(why, "%s is a %s-bit library, but this process is %s-bit", path,
                     wide ? "32" : "64", wide ? "64" : "32");
        return true;
    }
    if (OWN_MACHINE != EM_NONE && (head[18] | head[19] << 8) != OWN_MACHINE) {
        ggi_text_add(why, "%s was built for another processor architecture", path);
        return true;
    }
    return false;
}

static bool dynlib_explain_file(const char *path, struct ggi_text *why)
{
    unsigned char head[20] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd < 0 ? -1 : read(fd, head, sizeof head);
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (size < 0) {
        dynlib_explain_unreadable(path, code, why);
        return true;
    }
    return dynlib_explain_content(path, head, size, why);
}

static bool dynlib_exists(const char *path)
{
    struct stat info;
    return !stat(path, &info) || (errno != ENOENT && errno != ENOTDIR);
}

/* In every locale, dlerror's message begins with the name of the file and ends with strerror's text. */
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
    if (absolute ? !dynlib_exists(path) : !strcmp(subject, path) && strstr(error, strerror(ENOENT))) {
        ggi_text_add(why, "there is no %s%s", path,
                     absolute ? "" : " in the dynamic loader's search path");
        return false;
    }
    if (absolute && dynlib_explain_file(path, why))
        return true;
    if (length && subject[0] == '/' && strcmp(subject, path) && dynlib_explain_file(subject, why))
        return true;
    if (length && subject[0] != '/' && strcmp(subject, path) && !strchr(subject, ' '))
        ggi_text_add(why, "%s needs %s, which cannot be loaded: %s", path, subject, colon + 2);
    else
        ggi_text_add(why, "%s", error);
    return true;
}
