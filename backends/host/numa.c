/* numa.c: NUMA nodes, from /sys: those of the processors that the process may use, and a device for each on request. */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "GPUGLUE_HOST_DEVICES"
#define NODES_MAX 1024
#define POLICY_PREFERRED 1 /* MPOL_PREFERRED */
#define LIST_SIZE 4096     /* a file of /sys has at most a page */

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

/* The processors of the node among @p allowed; false if there are none. @p out may be NULL. */
static bool node_processors(unsigned long node, const struct host_processors *allowed,
                            struct host_processors *out)
{
    char path[64], list[LIST_SIZE];
    const char *at = list;
    unsigned long first, last;
    bool any = false;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%lu/cpulist", node);
    if (out)
        CPU_ZERO_S(sizeof out->set, out->set);
    if (!file_read(path, list))
        return false;
    while (list_next(&at, &first, &last))
        for (; first <= last && first < HOST_CPUS_MAX; first++) {
            if (!CPU_ISSET_S(first, sizeof allowed->set, allowed->set))
                continue;
            any = true;
            if (out)
                CPU_SET_S(first, sizeof out->set, out->set);
        }
    return any;
}

/* The nodes whose processors the process may use: up to @p room of them. */
static int32_t nodes_find(int32_t *nodes, int32_t room)
{
    char online[LIST_SIZE];
    const char *at = online;
    struct host_processors allowed;
    unsigned long node, last;
    int32_t count = 0;
    if (!file_read("/sys/devices/system/node/online", online) || !host_processors_get(&allowed))
        return 0;
    while (list_next(&at, &node, &last))
        for (; node <= last && node < NODES_MAX && count < room; node++)
            if (node_processors(node, &allowed, NULL))
                nodes[count++] = (int32_t)node;
    return count;
}

/* ---- devices: one with all nodes, or one for each node ---- */

static int32_t device_nodes[HOST_DEVICES_MAX];
static int32_t device_node_count; /* 0: one device has all nodes */

static void devices_read_variable(void)
{
    const char *text = host_api->get_env(VARIABLE);
    if (!text || !*text || !strcmp(text, "1"))
        return;
    if (!strcmp(text, "numa"))
        device_node_count = nodes_find(device_nodes, HOST_DEVICES_MAX);
    else
        host_api->log(GG_LOG_WARN, "host",
                      VARIABLE "=%.64s is not understood: expected 1 or numa; using one device",
                      text);
}

static bool devices_are_nodes(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, devices_read_variable);
    return device_node_count > 0;
}

int32_t host_device_count(void)
{
    return devices_are_nodes() ? device_node_count : 1;
}

int32_t host_device_node(int32_t ordinal)
{
    return devices_are_nodes() ? device_nodes[ordinal] : -1;
}

int32_t host_numa_node(int32_t ordinal)
{
    int32_t nodes[2];
    if (devices_are_nodes())
        return device_nodes[ordinal];
    return nodes_find(nodes, 2) == 1 ? nodes[0] : -1;
}

bool host_device_processors(int32_t ordinal, struct host_processors *out)
{
    struct host_processors allowed;
    if (!host_processors_get(&allowed))
        return false;
    if (!devices_are_nodes() ||
        !node_processors((unsigned long)device_nodes[ordinal], &allowed, out))
        *out = allowed;
    return true;
}

/* "Node 0 MemTotal:   65842220 kB" */
uint64_t host_node_memory(int32_t node)
{
    char path[64], line[LIST_SIZE] = "";
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", (int)node);
    if (!file_read(path, line) || sscanf(line, "Node %*d MemTotal: %llu kB", &kib) != 1)
        return 0;
    return (uint64_t)kib << 10;
}

/* Other nodes have the rest where this one is full. A system that refuses it places the pages where they are first used. */
void host_node_prefer(int32_t node, void *base, size_t nbytes)
{
    unsigned long wanted[NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    const size_t bits = 8 * sizeof wanted[0];
    if (node < 0 || node >= NODES_MAX)
        return;
    wanted[(size_t)node / bits] = 1ul << (size_t)node % bits;
    if (syscall(SYS_mbind, base, nbytes, POLICY_PREFERRED, wanted, (unsigned long)NODES_MAX, 0ul))
        host_api->log(GG_LOG_DEBUG, "host", "mbind of %zu bytes to node %d: %s", nbytes, (int)node,
                      strerror(errno));
}
