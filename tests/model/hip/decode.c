/* decode.c: instructions by address. AMD's disassembler decodes them, so there are no tables of opcodes here. */
#include "wave.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 16, TARGET = 128 };

struct disassembly {
    uint64_t handle;
};

typedef int create_function(const char *target,
                            uint64_t (*read)(uint64_t from, char *to, uint64_t size, void *user),
                            void (*text)(const char *text, void *user),
                            void (*address)(uint64_t address, void *user), struct disassembly *);
typedef int disassemble_function(struct disassembly, uint64_t address, void *user, uint64_t *size);

/* The argument of the disassembler's callbacks. */
struct decoding {
    const struct gpu *gpu;
    struct instruction *instruction;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct disassembly disassembly;
static disassemble_function *disassemble;
static struct instruction *decoded[SLOTS];

void instruction_fail(const struct instruction *i, const char *why)
{
    model_fail("%s: `%s` (%d bytes, %016llx)", why, i->text, i->bytes,
               (unsigned long long)i->code[0]);
}

/* ---- the disassembler ---- */

static uint64_t read_code(uint64_t from, char *to, uint64_t size, void *user)
{
    const struct decoding *decoding = user;
    memcpy(to, gpu_memory(decoding->gpu, from), size);
    return size;
}

static void take_text(const char *text, void *user)
{
    const struct decoding *decoding = user;
    while (isspace((unsigned char)*text))
        text++;
    snprintf(decoding->instruction->text, sizeof decoding->instruction->text, "%s", text);
}

static void take_address(uint64_t address, void *user)
{
    (void)address;
    (void)user;
}

static void disassembler_open(void)
{
    const char *target = getenv("GPUGLUE_TEST_MODEL_TARGET");
    char name[TARGET];
    void *library = dlopen("libamd_comgr.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        model_fail("no disassembler: %s", dlerror());
    create_function *create =
        __extension__(create_function *) dlsym(library, "amd_comgr_create_disassembly_info");
    disassemble =
        __extension__(disassemble_function *) dlsym(library, "amd_comgr_disassemble_instruction");
    snprintf(name, sizeof name, "amdgcn-amd-amdhsa--%s", target ? target : "gfx942");
    if (!create || !disassemble || create(name, read_code, take_text, take_address, &disassembly))
        model_fail("there is no disassembler for %s", name);
}

/* ---- instructions ---- */

static size_t code_bytes(const struct instruction *i)
{
    return (size_t)i->bytes < sizeof i->code ? (size_t)i->bytes : sizeof i->code;
}

static void resolve(struct instruction *i)
{
    if (gfx11_is_dual(i)) {
        for (int n = 0; n < 2; n++)
            if (!(i->dual[n] = calloc(1, sizeof *i)))
                model_fail("no memory for an instruction");
        gfx11_split(i, i->dual[0], i->dual[1]);
        resolve(i->dual[0]);
        resolve(i->dual[1]);
        i->single = i->dual[0]->single || i->dual[1]->single;
        i->execute = gfx11_execute_dual;
        return;
    }
    instruction_parse(i);
    gfx11_adapt(i);
    instruction_find(i);
    i->single = strstr(i->name, "f32") != NULL;
}

static struct instruction *decode(const struct gpu *gpu, uint64_t address)
{
    struct instruction *instruction = calloc(1, sizeof *instruction);
    struct decoding decoding = {gpu, instruction};
    uint64_t size = 0;
    if (!instruction)
        model_fail("no memory for an instruction");
    if (!disassemble)
        disassembler_open();
    *instruction = (struct instruction){.address = address};
    if (disassemble(disassembly, address, &decoding, &size))
        instruction_fail(instruction, "no instruction");
    instruction->bytes = (int)size;
    memcpy(instruction->code, gpu_memory(gpu, address), code_bytes(instruction));
    instruction->immediate = (int16_t)instruction->code[0];
    MODEL_LOG("code %llx: %s", (unsigned long long)address, instruction->text);
    resolve(instruction);
    return instruction;
}

/* An instruction that was replaced is not freed: another wave may be running it. */
const struct instruction *instruction_at(const struct gpu *gpu, uint64_t address)
{
    struct instruction **slot = &decoded[(address >> 2) * 2654435761u % SLOTS];
    struct instruction *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (found && found->address == address &&
        !memcmp(found->code, gpu_memory(gpu, address), code_bytes(found)))
        return found;
    pthread_mutex_lock(&lock);
    found = decode(gpu, address);
    pthread_mutex_unlock(&lock);
    __atomic_store_n(slot, found, __ATOMIC_RELEASE);
    return found;
}

/* ---- by name ---- */

static const struct instruction_row *whole_row(const struct instruction_row *rows, const char *name)
{
    for (; rows->name; rows++)
        if (!strcmp(rows->name, name))
            return rows;
    return NULL;
}

static const struct instruction_row *family_row(const struct instruction_row *rows, const char *name)
{
    for (; rows->name; rows++)
        if (!strncmp(rows->name, name, strlen(rows->name)))
            return rows;
    return NULL;
}

static const struct instruction_row *row_of(const char *name)
{
    static const struct instruction_row *const whole[] = {
        scalar_rows, branch_rows, vector_rows, vector_other_rows,
        packed_rows, lds_rows,    gfx11_rows};
    static const struct instruction_row *const families[] = {compare_family_rows,
                                                             scalar_family_rows, memory_family_rows,
                                                             atomic_family_rows, lds_family_rows};
    const struct instruction_row *row = NULL;
    for (size_t i = 0; !row && i < sizeof whole / sizeof whole[0]; i++)
        row = whole_row(whole[i], name);
    for (size_t i = 0; !row && i < sizeof families / sizeof families[0]; i++)
        row = family_row(families[i], name);
    return row;
}

void instruction_find(struct instruction *instruction)
{
    const struct instruction_row *row = row_of(instruction->name);
    if (!row || instruction->unknown)
        instruction_fail(instruction, "an instruction that the model does not know");
    instruction->execute = row->execute;
    if (row->prepare)
        row->prepare(instruction);
    if (instruction->dpp != DPP_NONE) {
        instruction->inner = row->execute;
        instruction->execute = dpp_execute;
    }
}
