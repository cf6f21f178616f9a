/* lds.c: the memory that a group shares. One thread runs all waves of a group, so nothing here needs to be atomic. */
#include "atomic.h"
#include "memory.h"

static uint64_t lds_offset(const struct wave *w, const struct instruction *i, int operand,
                           int64_t offset, int lane)
{
    return (uint32_t)(read_u32(w, i, operand, lane) + (uint32_t)offset);
}

static char *lds_lane(const struct wave *w, const struct instruction *i, int operand, int lane)
{
    return lds_memory(w, i, lds_offset(w, i, operand, i->offset, lane), (size_t)i->access_bytes);
}

/* ---- ds_read_b32 v0, v1 offset:4 and ds_write_b32 v0, v1 ---- */

static void ds_read_prepare(struct instruction *i)
{
    access_prepare(i, i->name + strlen("ds_read_"));
}

static void ds_write_prepare(struct instruction *i)
{
    access_prepare(i, i->name + strlen("ds_write_"));
}

static void ds_read(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane) access_load(w, i, lane, lds_lane(w, i, 1, lane));
}

static void ds_write(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane) access_store(w, i, 1, lane, lds_lane(w, i, 0, lane));
}

/* ---- two at once: ds_read2_b32 v[0:1], v2 offset0:1 offset1:2; ds_write2st64_b64 v0, v[1:2], v[3:4] ---- */

static void ds_two_prepare(struct instruction *i)
{
    i->access_bytes = strstr(i->name, "b64") ? 8 : 4;
    const int64_t unit = i->access_bytes * (strstr(i->name, "st64") ? 64 : 1);
    i->offset0 *= unit;
    i->offset1 *= unit;
}

static char *lds_second(const struct wave *w, const struct instruction *i, int operand, int n,
                        int lane)
{
    const int64_t offset = n ? i->offset1 : i->offset0;
    return lds_memory(w, i, lds_offset(w, i, operand, offset, lane), (size_t)i->access_bytes);
}

static void ds_read2(struct wave *w, const struct instruction *i)
{
    const int words = i->access_bytes / 4;
    EACH_LANE(w, lane)
    {
        uint32_t values[4];
        for (int n = 0; n < 2; n++)
            memcpy(values + n * words, lds_second(w, i, 1, n, lane), (size_t)i->access_bytes);
        for (int n = 0; n < 2 * words; n++)
            w->vector[i->operand[0].index + n][lane] = values[n];
    }
}

static void ds_write2(struct wave *w, const struct instruction *i)
{
    const int words = i->access_bytes / 4;
    EACH_LANE(w, lane)
    for (int n = 0; n < 2; n++) {
        char *to = lds_second(w, i, 0, n, lane);
        for (int word = 0; word < words; word++)
            memcpy(to + 4 * word, &w->vector[i->operand[1 + n].index + word][lane], 4);
    }
}

/* ---- atomics: ds_add_u32 v0, v1; ds_add_rtn_u64 v[0:1], v2, v[3:4]; ds_cmpst_b32 v0, compare, value ---- */

static void ds_atomic_prepare(struct instruction *i)
{
    char name[sizeof i->name];
    memcpy(name, i->name, sizeof name);
    char *returned = strstr(name, "_rtn");
    i->returns = returned;
    if (returned)
        memmove(returned, returned + 4, strlen(returned + 4) + 1);
    const size_t length = strlen(name);
    i->access_bytes = length > 2 && !strcmp(name + length - 2, "64") ? 8 : 4;
    i->atomic = atomic_row(name + strlen("ds_"));
    if (!i->atomic)
        instruction_fail(i, "an instruction that the model does not know");
}

static uint64_t data_of(const struct wave *w, const struct instruction *i, int operand, int lane)
{
    if (operand >= i->count)
        return 0;
    return i->access_bytes == 4 ? read_u32(w, i, operand, lane) : read_u64(w, i, operand, lane);
}

static void ds_atomic(struct wave *w, const struct instruction *i)
{
    const int at = i->returns ? 1 : 0;
    const bool compares = strstr(i->name, "cmpst");
    EACH_LANE(w, lane)
    {
        uint64_t old = 0, new;
        char *memory = lds_lane(w, i, at, lane);
        const uint64_t first = data_of(w, i, at + 1, lane), second = data_of(w, i, at + 2, lane);
        memcpy(&old, memory, (size_t)i->access_bytes);
        new = i->atomic->combine(old, compares ? second : first, first, i->access_bytes);
        memcpy(memory, &new, (size_t)i->access_bytes);
        if (i->returns && i->access_bytes == 4)
            write_u32(w, i, lane, (uint32_t)old);
        else if (i->returns)
            write_u64(w, i, lane, old);
    }
}

/* ---- exchange between lanes by the LDS hardware, without its memory: destination, index, data ---- */

static void ds_bpermute_b32(struct wave *w, const struct instruction *i)
{
    uint32_t values[LANES];
    EACH_LANE(w, lane)
    {
        const int from = (int)((read_u32(w, i, 1, lane) + (uint32_t)i->offset) / 4 % w->lanes);
        values[lane] = wave_exec(w) >> from & 1 ? read_u32(w, i, 2, from) : 0;
    }
    EACH_LANE(w, lane) write_u32(w, i, lane, values[lane]);
}

static void ds_permute_b32(struct wave *w, const struct instruction *i)
{
    uint32_t values[LANES] = {0};
    EACH_LANE(w, lane)
    {
        const uint32_t to = (read_u32(w, i, 1, lane) + (uint32_t)i->offset) / 4 % w->lanes;
        values[to] = read_u32(w, i, 2, lane);
    }
    EACH_LANE(w, lane) write_u32(w, i, lane, values[lane]);
}

/* The low 16 bits of the instruction select the pattern: within four lanes, or by masks within 32. */
static int swizzled(unsigned how, int lane)
{
    if (how & 0x8000)
        return (lane & ~3) | (int)(how >> 2 * (lane & 3) & 3);
    const unsigned and = how & 31, or = how >> 5 & 31, xor = how >> 10 & 31;
    return (lane & ~31) | (int)((((unsigned)lane & and) | or) ^ xor);
}

static void ds_swizzle_b32(struct wave *w, const struct instruction *i)
{
    uint32_t values[LANES];
    EACH_LANE(w, lane)
    {
        const int from = swizzled((uint16_t)i->immediate, lane);
        values[lane] = wave_exec(w) >> from & 1 ? read_u32(w, i, 1, from) : 0;
    }
    EACH_LANE(w, lane) write_u32(w, i, lane, values[lane]);
}

static void ds_nop(struct wave *w, const struct instruction *i)
{
    (void)w;
    (void)i;
}

#define ROW(name)         \
    {                     \
#name, name, NULL \
    }
const struct instruction_row lds_rows[] = {
    ROW(ds_bpermute_b32), ROW(ds_permute_b32), ROW(ds_swizzle_b32), ROW(ds_nop), {NULL, NULL, NULL}};

const struct instruction_row lds_family_rows[] = {
    {"ds_read2", ds_read2, ds_two_prepare}, {"ds_write2", ds_write2, ds_two_prepare},
    {"ds_read_", ds_read, ds_read_prepare}, {"ds_write_", ds_write, ds_write_prepare},
    {"ds_", ds_atomic, ds_atomic_prepare},  {NULL, NULL, NULL}};
