/* range_tool.c: a profiler as gpuglue and other clients see it: an NVTX tool, the library roctx and an ITT collector in one file. Each range
 * is a line of the file that GPUGLUE_TEST_RANGES names. */
#include <pthread.h>
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

/* ---- ITT: the client's list of names and places, and what the collector stores there ---- */

struct itt_id {
    unsigned long long d1, d2, d3;
};
struct itt_domain {
    int flags;
    const char *name;
    void *wide;
    int extra1;
    void *extra2, *next;
};
struct itt_string {
    const char *text;
    void *wide;
    int extra1;
    void *extra2, *next;
};
struct itt_row {
    const char *name;
    function *place;
    function before, none;
    int group;
};
struct itt_global {
    unsigned char magic[8];
    unsigned long version[3];
    long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    struct itt_row *rows;
};

static struct itt_domain *itt_domain_create(const char *name)
{
    static struct itt_domain domain;
    domain.name = name;
    domain.flags = getenv("GPUGLUE_TEST_RANGES_REFUSED") == NULL; /* as a collector that is paused */
    return &domain;
}

/* The client makes handles itself before it has found the collector. */
static struct itt_string *itt_string_create(const char *text)
{
    struct itt_string *string = calloc(1, sizeof *string);
    if (string)
        string->text = strdup(text);
    return string;
}

static void itt_task_begin(const struct itt_domain *domain, struct itt_id task,
                           struct itt_id parent, const struct itt_string *name)
{
    (void)task;
    (void)parent;
    write_line(strcmp(domain->name, "gpuglue") ? "other " : "push ", name->text);
}

static void itt_task_end(const struct itt_domain *domain)
{
    (void)domain;
    write_line("pop", "");
}

void __itt_api_init(struct itt_global *global, int groups);

void __itt_api_init(struct itt_global *global, int groups)
{
    static const struct {
        const char *name;
        function function;
    } own[] = {{"__itt_domain_create", (function)itt_domain_create},
               {"__itt_string_handle_create", (function)itt_string_create},
               {"__itt_task_begin", (function)itt_task_begin},
               {"__itt_task_end", (function)itt_task_end}};
    pthread_mutex_lock(&global->mutex);
    for (struct itt_row *row = global->rows; row->name; row++)
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            if (!strcmp(row->name, own[i].name) && row->group & groups && global->library)
                *row->place = own[i].function;
    pthread_mutex_unlock(&global->mutex);
}
