/* memory.c: loads and stores of global, generic and private memory. */
#include "memory.h"

/* ---- addresses ---- */

char *lds_memory(const struct wave *w, const struct instruction *i, uint64_t offset, size_t bytes)
{
    if (offset + bytes > w->group->lds_bytes)
        instruction_fail(i, "beyond the shared memory of the launch");
    return w->group->lds + offset;
}

char *private_memory(const struct wave *w, const struct instruction *i, int lane, uint64_t offset,
                     size_t bytes)
{
    if (offset + bytes > w->lane_bytes)
        instruction_fail(i, "beyond the private memory of the launch");
    return w->private + (size_t)lane * w->lane_bytes + offset;
}

static char *generic_memory(const struct wave *w, const struct instruction *i, uint64_t address,
                            int lane, size_t bytes)
{
    if (address >> 32 == SHARED_BASE >> 32)
        return lds_memory(w, i, (uint32_t)address, bytes);
    if (address >> 32 == PRIVATE_BASE >> 32)
        return private_memory(w, i, lane, (uint32_t)address, bytes);
    return gpu_memory(w->group->gpu, address);
}

char *lane_memory(const struct wave *w, const struct instruction *i, int at, int base, int lane,
                  size_t bytes)
{
    const bool based = base < i->count && i->operand[base].kind == OPERAND_SCALAR;
    if (!strncmp(i->name, "scratch_", 8)) {
        const uint32_t offset =
            (i->operand[at].kind == OPERAND_VECTOR ? read_u32(w, i, at, lane) : 0) +
            (based ? read_u32(w, i, base, lane) : 0) + (uint32_t)i->offset;
        return private_memory(w, i, lane, offset, bytes);
    }
    if (based) {
        const uint64_t address = read_u64(w, i, base, lane) + read_u32(w, i, at, lane);
        return gpu_memory(w->group->gpu, address + (uint64_t)i->offset);
    }
    return generic_memory(w, i, read_u64(w, i, at, lane) + (uint64_t)i->offset, lane, bytes);
}

/* ---- accesses ---- */

struct access_row {
    const char *type;
    int bytes, words;
    bool is_signed;
};

/* What follows _load_, _store_, _read_ or _write_. */
static const struct access_row access_rows[] = {
    {"ubyte", 1, 1, false},   {"sbyte", 1, 1, true},     {"byte", 1, 1, false},
    {"ushort", 2, 1, false},  {"sshort", 2, 1, true},    {"short", 2, 1, false},
    {"dwordx2", 8, 2, false}, {"dwordx3", 12, 3, false}, {"dwordx4", 16, 4, false},
    {"dword", 4, 1, false},   {"u8", 1, 1, false},       {"i8", 1, 1, true},
    {"b8", 1, 1, false},      {"u16", 2, 1, false},      {"i16", 2, 1, true},
    {"b16", 2, 1, false},     {"b32", 4, 1, false},      {"b64", 8, 2, false},
    {"b96", 12, 3, false},    {"b128", 16, 4, false},
};

void access_prepare(struct instruction *i, const char *type)
{
    const struct access_row *row = NULL;
    i->access_high = strstr(type, "d16_hi");
    i->access_half = strstr(type, "d16") && !i->access_high;
    if (!strncmp(type, "d16_", 4)) /* gfx11 has the half before the type */
        type += i->access_high ? strlen("d16_hi_") : strlen("d16_");
    for (size_t k = 0; !row && k < sizeof access_rows / sizeof access_rows[0]; k++)
        if (!strncmp(type, access_rows[k].type, strlen(access_rows[k].type)))
            row = &access_rows[k];
    if (!row)
        instruction_fail(i, "an access that the model does not know");
    i->access_bytes = row->bytes;
    i->access_words = row->words;
    i->access_signed = row->is_signed;
}

/* A d16 access uses one half of the register and does not change the other. */
void access_load(struct wave *w, const struct instruction *i, int lane, const char *from)
{
    uint32_t words[4] = {0};
    uint32_t(*to)[LANES] = &w->vector[i->operand[0].index];
    memcpy(words, from, (size_t)i->access_bytes);
    if (i->access_signed)
        words[0] = (uint32_t)(i->access_bytes == 1 ? (int8_t)words[0] : (int16_t)words[0]);
    if (i->access_half)
        words[0] = (to[0][lane] & 0xffff0000) | (words[0] & 0xffff);
    if (i->access_high)
        words[0] = (to[0][lane] & 0xffff) | words[0] << 16;
    for (int n = 0; n < i->access_words; n++)
        to[n][lane] = words[n];
}

void access_store(const struct wave *w, const struct instruction *i, int operand, int lane, char *to)
{
    uint32_t words[4];
    for (int n = 0; n < i->access_words; n++)
        words[n] = w->vector[i->operand[operand].index + n][lane];
    if (i->access_high)
        words[0] >>= 16;
    memcpy(to, words, (size_t)i->access_bytes);
}

/* ---- the instructions ---- */

static void load_prepare(struct instruction *i)
{
    access_prepare(i, strstr(i->name, "_load_") + strlen("_load_"));
}

static void store_prepare(struct instruction *i)
{
    access_prepare(i, strstr(i->name, "_store_") + strlen("_store_"));
}

static void load(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    access_load(w, i, lane, lane_memory(w, i, 1, 2, lane, (size_t)i->access_bytes));
}

static void store(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    access_store(w, i, 1, lane, lane_memory(w, i, 0, 2, lane, (size_t)i->access_bytes));
}

const struct instruction_row memory_family_rows[] = {{"global_load_", load, load_prepare},
                                                     {"flat_load_", load, load_prepare},
                                                     {"scratch_load_", load, load_prepare},
                                                     {"global_store_", store, store_prepare},
                                                     {"flat_store_", store, store_prepare},
                                                     {"scratch_store_", store, store_prepare},
                                                     {NULL, NULL, NULL}};
