/* trust.c: whether another user could put a file in the place of one that is to be loaded. */
#include "loader/loader.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small.h"

#define LINKS_MAX 40 /* as the kernel follows in one path */

/* In a sticky directory others can add files, but not replace those of another owner: such a parent is allowed. */
static bool path_is_open(const char *path, bool parent, struct ggi_text *why)
{
    struct stat info;
    if (stat(path, &info) || !(info.st_mode & S_IWOTH) || (parent && info.st_mode & S_ISVTX))
        return false;
    ggi_text_add(
        why,
        "%s is writable by others (mode %04o), so anyone on this machine could put code there: ",
        path, (unsigned)info.st_mode & 07777u);
    if (info.st_mode & S_ISVTX) /* such as /tmp, which must stay so */
        ggi_text_add(why, "use a directory that only you can write to");
    else
        ggi_text_add(why, "run chmod o-w %s", path);
    return true;
}

static bool path_has_open_parent(const char *path, struct ggi_text *why)
{
    char parent[PATH_MAX];
    struct ggi_text text = ggi_text_begin(parent, sizeof parent);
    ggi_text_add(&text, "%s", path);
    for (char *slash; (slash = strrchr(parent, '/')) && slash != parent;) {
        *slash = 0;
        if (path_is_open(parent, true, why))
            return true;
    }
    return false;
}

/* Copy an absolute path, with its first symbolic link replaced by what that names. Returns the length of @p next, which
 * was cut off if that is PATH_MAX or more; 0 if there is no link. */
static size_t path_follow_link(const char *path, char next[PATH_MAX])
{
    char head[PATH_MAX], target[PATH_MAX];
    for (const char *end = path; *end;) {
        end += 1 + strcspn(end + 1, "/");
        snprintf(head, sizeof head, "%.*s", (int)(end - path), path);
        const ssize_t size = readlink(head, target, sizeof target - 1);
        if (size <= 0)
            continue;
        target[size] = 0;
        head[*target == '/' ? 0 : (size_t)(strrchr(head, '/') + 1 - head)] = 0;
        return (size_t)snprintf(next, PATH_MAX, "%s%s%s", head, target, end);
    }
    return 0;
}

bool ggi_writable_by_others(const char *path, struct ggi_text *why)
{
    char here[PATH_MAX], next[PATH_MAX];
    if (path_is_open(path, false, why))
        return true;
    size_t length = (size_t)snprintf(here, sizeof here, "%s", path);
    for (int links = 0; length && length < PATH_MAX && links <= LINKS_MAX; links++) {
        if (path_has_open_parent(here, why)) /* who can write there can change the link */
            return true;
        length = path_follow_link(here, next);
        if (length && length < PATH_MAX)
            memcpy(here, next, length + 1);
    }
    if (length)
        ggi_text_add(why, "%s is too long, or has more than %d symbolic links", path, LINKS_MAX);
    return length != 0;
}
