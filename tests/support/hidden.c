/* hidden.c: an LD_PRELOAD library that hides functions from the dlsym of libgpuglue and its plugins, as if the vendor's library were older.
 * GPUGLUE_TEST_HIDDEN is a comma-separated list of their names. Vendors' libraries find their own functions. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef void *search(void *restrict handle, const char *restrict name);

static search *real;
static pthread_once_t found = PTHREAD_ONCE_INIT;

/* dlsym itself would return the function below. Its version depends on the glibc and on the architecture. */
static void find_real(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *symbol = NULL;
    for (int i = 0; i < 3 && !symbol; i++)
        symbol = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!symbol)
        abort();
    *(void **)&real = symbol;
}

static bool is_hidden(const char *name)
{
    const char *list = getenv("GPUGLUE_TEST_HIDDEN");
    const size_t length = strlen(name);
    while (list && *list) {
        const size_t item = strcspn(list, ",");
        if (item == length && !strncmp(list, name, length))
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

/* In a file libgpuglue… or gpuglue_…. */
static bool is_of_gpuglue(const void *caller)
{
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash ? slash + 1 : info.dli_fname;
    return !strncmp(file, "libgpuglue", 10) || !strncmp(file, "gpuglue_", 8);
}

/* In place of a hidden function another one is searched for that no library has, so that dlerror has a message. */
void *dlsym(void *restrict handle, const char *restrict name)
{
    pthread_once(&found, find_real);
    const bool hides = is_hidden(name) && is_of_gpuglue(__builtin_return_address(0));
    return real(handle, hides ? "gpuglue_hidden_symbol" : name);
}
