/* range.c: passes the program's ranges to the profilers that backends have found. */
#include "runtime/range.h"

#define TOOLS_MAX 8u
#define RANGES_MAX 64u

static pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(range_lock)
static struct gg_range_tool range_tools[TOOLS_MAX]; /* those below the count do not change */
static _Atomic(uint32_t) range_tool_count;

/* Of this thread: its open ranges, and in how many tools each was begun. A tool that was found inside a range must not
 * receive the end of that range. */
static _Thread_local uint32_t range_depth;
static _Thread_local uint8_t range_begun[RANGES_MAX];

static void range_add_tool(const struct gg_range_tool *tool)
{
    pthread_mutex_lock(&range_lock);
    uint32_t count = atomic_load(&range_tool_count);
    if (count < TOOLS_MAX) {
        range_tools[count] = *tool;
        atomic_store_explicit(&range_tool_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&range_lock);
}

void ggi_range_find_tool(struct gg_device *device)
{
    struct gg_range_tool tool = {.struct_size = sizeof tool};
    if (!device->ops->range_tool || atomic_exchange(&device->backend->range_tool_sought, true))
        return;
    if (!device->ops->range_tool(&tool) && tool.push && tool.pop)
        range_add_tool(&tool);
}

void ggi_range_push(const char *name)
{
    const uint32_t count = atomic_load_explicit(&range_tool_count, memory_order_acquire),
                   at = range_depth++;
    if (at >= RANGES_MAX)
        return;
    range_begun[at] = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        range_tools[i].push(name);
}

void ggi_range_pop(void)
{
    if (!range_depth || --range_depth >= RANGES_MAX)
        return;
    for (uint32_t i = range_begun[range_depth]; i-- > 0;)
        range_tools[i].pop();
}
