/* sim_report.c: counts live objects and writes the report at process exit. */
#include "sim_engine.h"
#include "sim_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_table *const tables[] = {&sim_queues, &sim_events, &sim_contexts, &sim_pools,
                                           &sim_graphs, &sim_execs,  &sim_modules,  &sim_functions};
static const char *const memory_names[SIM_MEMORY_KINDS] = {"device", "pinned", "managed",
                                                           "registered"};
enum { TABLES = sizeof tables / sizeof tables[0] };

static size_t visible(struct sim_table *table)
{
    size_t count = 0;
    for (struct sim_slot *slot = sim_table_next(table, NULL); slot;
         slot = sim_table_next(table, slot))
        count += !slot->internal;
    return count;
}

static int alive(const char *kind)
{
    for (size_t i = 0; i < TABLES; i++)
        if (!strcmp(tables[i]->kind, kind))
            return (int)visible(tables[i]);
    for (int i = 0; i < SIM_MEMORY_KINDS; i++)
        if (!strcmp(memory_names[i], kind))
            return (int)sim_memory_count((enum sim_memory)i, false);
    return -1;
}

int sim_alive(const char *kind)
{
    int count;
    if (sim_forked())
        return 0;
    pthread_mutex_lock(&sim.lock);
    count = alive(kind);
    pthread_mutex_unlock(&sim.lock);
    return count;
}

void sim_hold(int on)
{
    pthread_mutex_lock(&sim.lock);
    sim.hold = on != 0;
    sim_worker_wake();
    pthread_cond_broadcast(&sim.changed);
    pthread_mutex_unlock(&sim.lock);
}

void sim_room(int commands)
{
    pthread_mutex_lock(&sim.lock);
    sim.room = commands;
    pthread_cond_broadcast(&sim.changed);
    pthread_mutex_unlock(&sim.lock);
}

void sim_room_blocks(int on)
{
    pthread_mutex_lock(&sim.lock);
    sim.room_blocks = on != 0;
    pthread_mutex_unlock(&sim.lock);
}

int sim_waiting(void)
{
    pthread_mutex_lock(&sim.lock);
    const int waiting = sim.waiting;
    pthread_mutex_unlock(&sim.lock);
    return waiting;
}

struct listing {
    FILE *file;
    bool first;
};

static void write_calls(const char *name, int calls, void *data)
{
    struct listing *listing = data;
    fprintf(listing->file, "%s\n    \"%s\": %d", listing->first ? "" : ",", name, calls);
    listing->first = false;
}

static void write_objects(FILE *file, bool unattempted)
{
    for (size_t i = 0; i < TABLES; i++)
        fprintf(file, "\"%s\": %zu, ", tables[i]->kind,
                unattempted ? sim_table_unattempted(tables[i]) : visible(tables[i]));
    for (int i = 0; i < SIM_MEMORY_KINDS; i++)
        fprintf(file, "%s\"%s\": %zu", i ? ", " : "", memory_names[i],
                sim_memory_count((enum sim_memory)i, unattempted));
}

static void write_report(FILE *file)
{
    struct listing listing = {file, true};
    const char *test = getenv("GPUGLUE_TEST_NAME");
    fprintf(file, "{\n  \"test\": \"%s\",\n  \"alive\": {", test ? test : "");
    write_objects(file, false);
    fprintf(file, "},\n  \"leaked\": {");
    write_objects(file, true);
    fprintf(file, "},\n  \"calls\": {");
    sim_fault_each(write_calls, &listing);
    fprintf(file, "\n  }\n}\n");
}

/* The path with the process id in place of "%p". */
static void report_path(const char *path, char *out, size_t size)
{
    const char *mark = strstr(path, "%p");
    const int before = mark ? (int)(mark - path) : (int)strlen(path);
    if (mark)
        snprintf(out, size, "%.*s%ld%s", before, path, (long)getpid(), mark + 2);
    else
        snprintf(out, size, "%s", path);
}

void sim_report(void)
{
    const char *path = getenv("GPUGLUE_SIM_REPORT");
    char name[4096];
    FILE *file;
    if (!path || !*path || sim_forked())
        return;
    report_path(path, name, sizeof name);
    file = strcmp(path, "stderr") ? fopen(name, "w") : stderr;
    if (!file)
        return;
    pthread_mutex_lock(&sim.lock);
    write_report(file);
    pthread_mutex_unlock(&sim.lock);
    if (file != stderr)
        fclose(file);
}

__attribute__((destructor)) static void at_exit(void)
{
    sim_report();
    sim_finish();
}
