/* numa.c: on which node of the machine memory is. There is no libnuma: these are a few system calls and files in /sys. */
#include "memory/numa.h"
#include "memory/memory.h"
#include "runtime/call.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_MAX 1024
enum { POLICY_DEFAULT, POLICY_PREFERRED }; /* MPOL_DEFAULT, MPOL_PREFERRED */

/* A policy that the user has set, as with numactl, comes first. */
static bool thread_has_policy(void)
{
    int mode;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) || mode != POLICY_DEFAULT;
}

bool ggi_numa_prefer(int32_t node)
{
    unsigned long wanted[NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    const size_t bits = 8 * sizeof wanted[0];
    if (node < 0 || node >= NODES_MAX || thread_has_policy())
        return false;
    wanted[(size_t)node / bits] = 1ul << (size_t)node % bits;
    return !syscall(SYS_set_mempolicy, POLICY_PREFERRED, wanted, (unsigned long)NODES_MAX);
}

void ggi_numa_restore(bool preferred)
{
    if (preferred)
        syscall(SYS_set_mempolicy, POLICY_DEFAULT, NULL, 0ul);
}

/* ---- the nodes of the machine ---- */

static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static bool machine_has_nodes; /* more than one with memory */

/* "0" is one node, "0-1" and "0,2" are several. */
static void machine_read(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/devices/system/node/has_memory", "re");
    if (!file)
        return;
    machine_has_nodes = fgets(text, sizeof text, file) && strpbrk(text, "-,");
    fclose(file);
}

enum { NODE_UNKNOWN = -1, NODE_NOT_READ = 0, NODE_FIRST = 1 }; /* of gg_device.node */

int32_t ggi_numa_of_device(struct gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    pthread_once(&machine_once, machine_read);
    if (!machine_has_nodes)
        return -1;
    int32_t node = atomic_load_explicit(&device->node, memory_order_relaxed);
    if (node == NODE_NOT_READ) {
        const bool known = !gg_device_info(device, &info) && info.numa_node >= 0;
        node = known ? info.numa_node + NODE_FIRST : NODE_UNKNOWN;
        atomic_store_explicit(&device->node, node, memory_order_relaxed);
    }
    return node >= NODE_FIRST ? node - NODE_FIRST : -1;
}

/* ---- the node of memory ---- */

/* Without nodes to move it to, move_pages only reports where a page is. It fails for memory of a device, and for pages that
 * nothing has touched. */
int32_t gg_memory_numa_node(const gg_memory *memory)
{
    const long page = sysconf(_SC_PAGESIZE);
    void *first = (void *)((uintptr_t)gg_memory_pointer(memory) & ~((uintptr_t)page - 1));
    int node = -1;
    if (!first || syscall(SYS_move_pages, 0, 1ul, &first, NULL, &node, 0))
        return -1;
    return node < 0 ? -1 : node;
}
