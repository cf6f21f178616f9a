/* sim_table.c: handle tables: slots are never unmapped, so that a stale or invalid handle can be
 * checked. */
#include "sim_engine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ALIVE = 1 << 15 }; /* of one kind */

struct sim_table sim_contexts = {.kind = "context", .stride = sizeof(struct sim_context)};
struct sim_table sim_queues = {.kind = "stream", .stride = sizeof(struct sim_queue)};
struct sim_table sim_events = {.kind = "event", .stride = sizeof(struct sim_event)};
struct sim_table sim_pools = {.kind = "pool", .stride = sizeof(struct sim_pool)};
struct sim_table sim_graphs = {.kind = "graph", .stride = sizeof(struct sim_graph)};
struct sim_table sim_execs = {.kind = "exec", .stride = sizeof(struct sim_graph)};

/* On the heap, because leak checkers do not scan mappings for pointers. */
static bool make_table(struct sim_table *table)
{
    table->base = calloc(MOST_ALIVE, table->stride);
    table->capacity = MOST_ALIVE;
    return table->base != NULL;
}

void *sim_table_take(struct sim_table *table)
{
    struct sim_slot *slot = table->free;
    if (!table->base && !make_table(table))
        return NULL;
    if (slot) {
        table->free = slot->next_free;
    } else {
        if (table->used == table->capacity)
            return NULL;
        slot = (struct sim_slot *)(void *)(table->base + table->used * table->stride);
        table->used++;
    }
    memset(slot, 0, table->stride);
    slot->alive = true;
    table->alive++;
    return slot;
}

void *sim_table_find(struct sim_table *table, const void *handle)
{
    uintptr_t base = (uintptr_t)table->base, address = (uintptr_t)handle;
    struct sim_slot *slot;
    if (!base || address < base || address >= base + table->used * table->stride)
        return NULL;
    if ((address - base) % table->stride)
        return NULL;
    slot = (struct sim_slot *)(void *)(table->base + (address - base));
    return slot->alive ? slot : NULL;
}

void *sim_table_next(struct sim_table *table, const void *previous)
{
    size_t index = 0;
    if (previous)
        index = (size_t)((const char *)previous - table->base) / table->stride + 1;
    for (; index < table->used; index++) {
        struct sim_slot *slot = (struct sim_slot *)(void *)(table->base + index * table->stride);
        if (slot->alive)
            return slot;
    }
    return NULL;
}

void sim_table_drop(struct sim_table *table, void *object)
{
    struct sim_slot *slot = object;
    slot->alive = false;
    slot->next_free = table->free;
    table->free = slot;
    table->alive--;
}

size_t sim_table_unattempted(const struct sim_table *table)
{
    size_t count = 0;
    for (size_t index = 0; index < table->used; index++) {
        const struct sim_slot *slot =
            (const struct sim_slot *)(const void *)(table->base + index * table->stride);
        count += slot->alive && !slot->internal && !slot->attempted;
    }
    return count;
}
