/* dispatch.c: a kernel's groups, one after the other, and the waves of each in turn. */
#include "wave.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TURN_INSTRUCTIONS = 20000, STACK_BYTES = 16384 };

struct launch {
    struct queue *queue;
    const struct dispatch_packet *packet;
    uint64_t packet_address;
    struct kernel_descriptor kernel;
    struct group group;
    struct wave *waves;
    char *private;
    unsigned lanes; /* of a wave */
    size_t lane_bytes;
    uint64_t dispatched; /* counts up */
};

static uint32_t divided(uint32_t value, uint32_t by)
{
    return value / by + (value % by != 0);
}

/* ---- registers at a wave's start ---- */

/* Scalar registers that the kernel requests, in the order of the descriptor's bits. */
enum user_register {
    USER_PRIVATE_BUFFER,
    USER_DISPATCH_PACKET,
    USER_QUEUE,
    USER_ARGUMENTS,
    USER_DISPATCH_ID,
    USER_FLAT_SCRATCH,
    USER_PRIVATE_SIZE,
    USER_REGISTERS
};

static int wave_set_user(struct wave *wave, const struct launch *launch)
{
    static const int words[USER_REGISTERS] = {4, 2, 2, 2, 2, 2, 1};
    const uint64_t values[USER_REGISTERS] = {[USER_DISPATCH_PACKET] = launch->packet_address,
                                             [USER_QUEUE] = launch->queue->info.write_index -
                                                            QUEUE_WRITE_INDEX_AT,
                                             [USER_ARGUMENTS] = launch->packet->arguments,
                                             [USER_DISPATCH_ID] = launch->dispatched,
                                             [USER_PRIVATE_SIZE] = launch->packet->private_bytes};
    int at = 0;
    for (int n = 0; n < USER_REGISTERS; n++)
        if (launch->kernel.properties >> n & 1) {
            wave->scalar[at] = (uint32_t)values[n];
            if (words[n] > 1)
                wave->scalar[at + 1] = (uint32_t)(values[n] >> 32);
            at += words[n];
        }
    return at;
}

/* Preloaded arguments: the descriptor has their number in words, and the first word. */
static void wave_preload(struct wave *wave, const struct launch *launch, int at)
{
    const unsigned words = launch->kernel.preload & 0x7f, offset = launch->kernel.preload >> 7;
    const char *arguments = gpu_memory(launch->group.gpu, launch->packet->arguments);
    if (words)
        memcpy(&wave->scalar[at], arguments + 4 * (size_t)offset, 4 * (size_t)words);
}

static void wave_set_scalars(struct wave *wave, const struct launch *launch, const uint32_t place[3])
{
    const uint32_t resources = launch->kernel.resources2;
    wave_preload(wave, launch, wave_set_user(wave, launch));
    int at = (int)(resources >> 1 & 0x1f); /* after the user's registers */
    for (int n = 0; n < 3; n++)
        if (resources >> (7 + n) & 1)
            wave->scalar[at++] = place[n];
}

/* Each lane's place in its group: 10 bits for each direction. */
static void wave_set_lanes(struct wave *wave, const uint32_t size[3])
{
    const unsigned all = size[0] * size[1] * size[2];
    uint64_t exec = 0;
    for (unsigned lane = 0; lane < wave->lanes; lane++) {
        const unsigned thread = wave->id * wave->lanes + lane;
        if (thread >= all)
            break;
        exec |= 1ull << lane;
        wave->vector[0][lane] =
            thread % size[0] | thread / size[0] % size[1] << 10 | thread / size[0] / size[1] << 20;
    }
    wave_set_exec(wave, exec);
}

static void wave_begin(struct launch *launch, unsigned id, const uint32_t size[3],
                       const uint32_t place[3])
{
    struct wave *wave = &launch->waves[id];
    wave->group = &launch->group;
    wave->id = id;
    wave->lanes = launch->lanes;
    wave->pc = launch->packet->kernel + (uint64_t)launch->kernel.entry;
    wave->scc = false;
    wave->state = WAVE_RUNS;
    wave->lane_bytes = launch->lane_bytes;
    wave->private = launch->private + id * launch->lanes * launch->lane_bytes;
    memset(wave->scalar, 0, sizeof wave->scalar);
    wave_set_scalars(wave, launch, place);
    wave_set_lanes(wave, size);
}

/* ---- running ---- */

/* The number of instructions in a turn. Waves take turns, because they may wait for each other or for the host. */
static void wave_run(struct wave *wave)
{
    for (int n = 0; n < TURN_INSTRUCTIONS && wave->state == WAVE_RUNS; n++) {
        const struct instruction *instruction = instruction_at(wave->group->gpu, wave->pc);
        wave->pc += (uint64_t)instruction->bytes;
        if (wave->group->flushes && instruction->single)
            instruction_fail(instruction, "a mode that the model does not have");
        instruction->execute(wave, instruction);
    }
}

/* When all waves have reached the barrier or ended, they continue. */
static bool group_pass_barrier(struct launch *launch, unsigned waves)
{
    unsigned running = 0, waiting = 0;
    for (unsigned n = 0; n < waves; n++) {
        running += launch->waves[n].state == WAVE_RUNS;
        waiting += launch->waves[n].state == WAVE_AT_BARRIER;
    }
    for (unsigned n = 0; !running && n < waves; n++)
        if (launch->waves[n].state == WAVE_AT_BARRIER)
            launch->waves[n].state = WAVE_RUNS;
    return running || waiting;
}

/* The last group of a direction may be smaller. */
static void group_run(struct launch *launch, const uint32_t place[3])
{
    const struct dispatch_packet *packet = launch->packet;
    uint32_t size[3];
    for (int n = 0; n < 3; n++) {
        const uint32_t left = packet->grid[n] - place[n] * packet->group[n];
        size[n] = left < packet->group[n] ? left : packet->group[n];
    }
    const unsigned waves = divided(size[0] * size[1] * size[2], launch->lanes);
    for (unsigned n = 0; n < waves; n++)
        wave_begin(launch, n, size, place);
    do
        for (unsigned n = 0; n < waves; n++)
            wave_run(&launch->waves[n]);
    while (group_pass_barrier(launch, waves) && !atomic_load(&launch->queue->ending));
}

/* ---- the launch ---- */

static void launch_allocate(struct launch *launch)
{
    const struct dispatch_packet *packet = launch->packet;
    const unsigned waves =
        divided((uint32_t)packet->group[0] * packet->group[1] * packet->group[2], launch->lanes);
    const bool dynamic_stack = launch->kernel.properties & KERNEL_DYNAMIC_STACK;
    launch->lane_bytes = packet->private_bytes + (dynamic_stack ? STACK_BYTES : 0);
    launch->group.lds_bytes = packet->group_bytes;
    launch->group.lds = calloc(1, packet->group_bytes + 1u);
    launch->waves = calloc(waves, sizeof *launch->waves);
    launch->private = calloc(waves * launch->lanes, launch->lane_bytes + 1);
    if (!launch->group.lds || !launch->waves || !launch->private)
        model_fail("no memory for a launch");
}

static void launch_free(struct launch *launch)
{
    free(launch->group.lds);
    free(launch->waves);
    free(launch->private);
}

/* The kernel's descriptor. A GPU cannot read everything that another GPU can. */
static void launch_read_kernel(struct launch *launch)
{
    const uint64_t kernel = launch->packet->kernel;
    const struct gpu *gpu = launch->queue->gpu;
    const struct iovec from = {gpu_memory(gpu, kernel), sizeof launch->kernel};
    const struct iovec to = {&launch->kernel, sizeof launch->kernel};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof launch->kernel)
        return;
    model_fail("GPU %d cannot access the kernel at %llx", model_ordinal(gpu),
               (unsigned long long)kernel);
}

void dispatch_run(struct queue *queue, const struct dispatch_packet *packet, uint64_t packet_address)
{
    struct launch launch = {
        .queue = queue, .packet = packet, .packet_address = packet_address, .group.gpu = queue->gpu};
    uint32_t groups[3], place[3];
    for (int n = 0; n < 3; n++)
        groups[n] = divided(packet->grid[n], packet->group[n]);
    launch_read_kernel(&launch);
    launch.lanes = launch.kernel.properties & KERNEL_WAVE32 ? 32 : 64;
    const unsigned mode = launch.kernel.resources1 >> KERNEL_MODE_AT & MODE_OF_FLOATS;
    launch.group.flushes = mode == MODE_WITHOUT_32;
    if (mode != MODE_OF_MODEL && !launch.group.flushes)
        model_fail("a kernel that rounds otherwise or flushes denormals is not supported");
    if (gfx11_is_target() != (launch.lanes == 32)) /* the disassembler's texts would differ */
        model_fail("a kernel with waves of %u lanes is not supported", launch.lanes);
    MODEL_LOG(
        "queue %p: kernel %llx, %u x %u x %u groups of %u x %u x %u, %u bytes shared, %u private",
        (void *)queue, (unsigned long long)packet->kernel, groups[0], groups[1], groups[2],
        packet->group[0], packet->group[1], packet->group[2], packet->group_bytes,
        packet->private_bytes);
    launch_allocate(&launch);
    for (place[2] = 0; place[2] < groups[2]; place[2]++)
        for (place[1] = 0; place[1] < groups[1]; place[1]++)
            for (place[0] = 0; place[0] < groups[0] && !atomic_load(&queue->ending); place[0]++)
                group_run(&launch, place);
    launch_free(&launch);
}
