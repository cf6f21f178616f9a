/* range_tool.c: a profiler as gpuglue and other clients see it: an NVTX tool and the library roctx in one file. Each range
 * is a line of the file that GPUGLUE_TEST_RANGES names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_line(const char *what, const char *name)
{
    const char *path = getenv("GPUGLUE_TEST_RANGES");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return -1;
    fprintf(file, "%s%s\n", what, name);
    return fclose(file);
}

/* ---- roctx ---- */

int roctxRangePushA(const char *name);
int roctxRangePop(void);

int roctxRangePushA(const char *name)
{
    return write_line("push ", name);
}

int roctxRangePop(void)
{
    return write_line("pop", "");
}

/* ---- NVTX: the layout of its event attributes, and the places of the functions that are used here ---- */

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message; /* text, or what register_string has returned */
};
_Static_assert(sizeof(struct attributes) == 48, "as in version 2 of NVTX and later");

static int domain_push(void *domain, const struct attributes *attributes)
{
    (void)domain;
    return write_line("push ", attributes->message ? attributes->message : "");
}

static int domain_pop(void *domain)
{
    (void)domain;
    return write_line("pop", "");
}

static void *domain_create(const char *name)
{
    return strdup(name);
}

static void *register_string(void *domain, const char *text)
{
    (void)domain;
    return strdup(text);
}

typedef void (*function)(void);
struct callbacks {
    size_t size;
    int (*module)(int module, function ***places, unsigned *size);
};

struct replaced {
    int module;
    unsigned at;
    function function;
};

static void replace(const struct callbacks *callbacks, const struct replaced *row)
{
    function **places = NULL;
    unsigned size = 0;
    if (callbacks->module(row->module, &places, &size) && row->at < size && places[row->at])
        *places[row->at] = row->function;
}

int InitializeInjectionNvtx2(const void *(*table)(uint32_t number));

int InitializeInjectionNvtx2(const void *(*table)(uint32_t number))
{
    static const struct replaced rows[] = {
        {1, 9, (function)roctxRangePushA},  {1, 11, (function)roctxRangePop},
        {5, 4, (function)domain_push},      {5, 5, (function)domain_pop},
        {5, 10, (function)register_string}, {5, 12, (function)domain_create},
    };
    const struct callbacks *callbacks = table(1);
    if (!callbacks || callbacks->size < sizeof *callbacks || getenv("GPUGLUE_TEST_RANGES_REFUSED"))
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        replace(callbacks, &rows[i]);
    return 1;
}
