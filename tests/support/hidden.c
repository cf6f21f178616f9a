/* hidden.c: an LD_PRELOAD library that hides functions from dlsym, as if the vendor's library were older.
 * GPUGLUE_TEST_HIDDEN is a comma-separated list of their names. */
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

void *dlsym(void *restrict handle, const char *restrict name)
{
    pthread_once(&found, find_real);
    return is_hidden(name) ? NULL : real(handle, name);
}
