/* numa.c: the NUMA node of the processors that the process may use, from /sys. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

#define NODES_MAX 1024
#define LIST_SIZE 4096 /* a file of /sys has at most a page */

/* Reads a range of "0-3,8,10-11" and advances @p text behind it. False at the end, or if it is not a list. */
static bool list_next(const char **text, unsigned long *first, unsigned long *last)
{
    char *end;
    const char *at = *text + (**text == ',');
    *first = *last = strtoul(at, &end, 10);
    if (end == at)
        return false;
    if (*end == '-') {
        at = end + 1;
        *last = strtoul(at, &end, 10);
    }
    *text = end;
    return end != at && *last >= *first;
}

static bool file_read(const char *path, char text[LIST_SIZE])
{
    FILE *file = fopen(path, "re");
    const bool found = file && fgets(text, LIST_SIZE, file);
    if (file)
        fclose(file);
    return found;
}

static bool node_is_used(unsigned long node, const struct host_processors *allowed)
{
    char path[64], list[LIST_SIZE];
    const char *at = list;
    unsigned long first, last;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%lu/cpulist", node);
    if (!file_read(path, list))
        return false;
    while (list_next(&at, &first, &last))
        for (; first <= last && first < HOST_CPUS_MAX; first++)
            if (CPU_ISSET_S(first, sizeof allowed->set, allowed->set))
                return true;
    return false;
}

/* -1: none or several. */
static int32_t nodes_find_only(const char *online, const struct host_processors *allowed)
{
    int32_t only = -1;
    unsigned long node, last;
    while (list_next(&online, &node, &last))
        for (; node <= last && node < NODES_MAX; node++) {
            if (!node_is_used(node, allowed))
                continue;
            if (only >= 0)
                return -1;
            only = (int32_t)node;
        }
    return only;
}

int32_t host_numa_node(void)
{
    char online[LIST_SIZE];
    struct host_processors allowed;
    if (!file_read("/sys/devices/system/node/online", online) || !host_processors_get(&allowed))
        return -1;
    return nodes_find_only(online, &allowed);
}
