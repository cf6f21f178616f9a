/* sim_nccl_meet.c: of the simulated NCCL and RCCL, names of the files of shared memory in which ranks meet, and delays. */
#include "sim_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Those that this process has given last. Rank 0 removes the name when all have met, which they may never do. */
static struct {
    _Atomic(pid_t) owner; /* not a forked child */
    atomic_uint count;
    char names[16][MEET_NAME];
} meetings;

__attribute__((destructor)) static void meetings_remove(void)
{
    for (size_t i = 0; i < 16 && meetings.owner == getpid(); i++)
        if (meetings.names[i][0])
            shm_unlink(meetings.names[i]);
}

bool meet_name(char *name, size_t size)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return false;
    snprintf(name, size, "/gpuglue-sim-nccl-%016llx", number);
    meetings.owner = getpid();
    memcpy(meetings.names[atomic_fetch_add(&meetings.count, 1) % 16], name, MEET_NAME);
    return true;
}

static void delay_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

void delay_call(const char *name)
{
    const char *slow = getenv("GPUGLUE_SIM_NCCL_SLOW");
    const size_t length = strlen(name);
    if (slow && !strncmp(slow, name, length) && (!slow[length] || slow[length] == ':'))
        delay_ms(slow[length] ? atol(slow + length + 1) : 300);
}

void delay_work(void)
{
    const char *given = getenv("GPUGLUE_SIM_NCCL_WORK");
    if (given)
        delay_ms(atol(given));
}
