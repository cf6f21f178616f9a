/* sim_ze_program.c: Level Zero: what a module is made of. The rules are those of ModuleImp::initialize,
 * createBuildOptions, processSpecConstantInfo and createFromNativeBinary of intel/compute-runtime: a program of several
 * inputs has no other flags than the inputs' own, which are joined without a space; a constant that an input does not
 * have fails the build; so does a native binary of another device. A reader of SPIR-V of its own, so that it does not
 * share errors with the core's. */
#include "sim_ze_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x07230203, HEADER = 5, FAILED = ZE_RESULT_ERROR_MODULE_BUILD_FAILURE };
enum { SPEC_TRUE = 48, SPEC_FALSE = 49, SPEC_CONSTANT = 50, DECORATE = 71 };
enum { SPEC_ID = 1, LINKAGE = 41, IMPORTED = 1 };

/* ---- flags ---- */

static const char large_buffers[] = "-ze-opt-greater-than-4GB-buffer-required";

static bool flag_is_known(const char *flag)
{
    static const char *const all[] = {large_buffers,
                                      "-ze-opt-disable",
                                      "-ze-opt-level=0",
                                      "-ze-opt-level=1",
                                      "-ze-opt-level=2",
                                      "-ze-opt-large-register-file",
                                      "-ze-opt-has-buffer-offset-arg",
                                      "-g"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(flag, all[i]))
            return true;
    return false;
}

static int check_flags(const char *flags, struct ze_program *out, char log[256])
{
    char copy[1024], *rest = copy;
    snprintf(copy, sizeof copy, "%s", flags);
    out->stateful = !strstr(flags, large_buffers);
    for (char *flag; (flag = strsep(&rest, " "));)
        if (flag[0] && !flag_is_known(flag)) {
            snprintf(log, 256, "unrecognized build options: %.200s", flag);
            return FAILED;
        }
    return SIM_OK;
}

/* ---- one input ---- */

struct input {
    uint32_t *words;
    size_t count;
    const ze_module_constants_t *constants;
};

/* Calls @p each for every instruction; stops at the first that returns nonzero. */
static int scan(const struct input *input, int (*each)(void *user, uint32_t *words, unsigned count),
                void *user)
{
    for (size_t at = HEADER; at < input->count;) {
        const unsigned count = input->words[at] >> 16;
        if (!count || count > input->count - at)
            return FAILED;
        const int status = each(user, &input->words[at], count);
        if (status)
            return status;
        at += count;
    }
    return SIM_OK;
}

struct numbering { /* result ids of the constants, by number */
    const struct input *input;
    uint32_t ids[SIM_MAX_CONSTANTS], numbers[SIM_MAX_CONSTANTS];
    unsigned count, used; /* used: constants that were set */
    struct ze_program *out;
};

static int note_number(void *user, uint32_t *words, unsigned count)
{
    struct numbering *all = user;
    if ((words[0] & 0xffff) != DECORATE || count < 4 || words[2] != SPEC_ID)
        return SIM_OK;
    if (all->count == SIM_MAX_CONSTANTS)
        return FAILED;
    all->ids[all->count] = words[1];
    all->numbers[all->count++] = words[3];
    return SIM_OK;
}

/* Replaces a constant's words, as the compiler does before it reads the rest. */
static void set_constant(uint32_t *words, unsigned count, const void *value)
{
    const unsigned op = words[0] & 0xffff;
    if (op != SPEC_CONSTANT)
        words[0] = (words[0] & 0xffff0000) | (*(const uint8_t *)value ? SPEC_TRUE : SPEC_FALSE);
    else
        memcpy(&words[3], value, (count - 3) * sizeof *words);
}

static int apply_constant(void *user, uint32_t *words, unsigned count)
{
    struct numbering *all = user;
    const unsigned op = words[0] & 0xffff;
    const ze_module_constants_t *set = all->input->constants;
    if (op < SPEC_TRUE || op > SPEC_CONSTANT || count < 3)
        return SIM_OK;
    for (unsigned i = 0; i < all->count; i++) {
        if (all->ids[i] != words[2])
            continue;
        for (unsigned k = 0; set && k < set->numConstants; k++)
            if (set->pConstantIds[k] == all->numbers[i]) {
                set_constant(words, count, set->pConstantValues[k]);
                all->used++;
            }
        if (all->out->constant_count == SIM_MAX_CONSTANTS)
            return FAILED;
        uint64_t value = (words[0] & 0xffff) == SPEC_TRUE;
        if (op == SPEC_CONSTANT)
            value = words[3] | (count > 4 ? (uint64_t)words[4] << 32 : 0);
        all->out->constants[all->out->constant_count++] = value;
    }
    return SIM_OK;
}

static int apply_constants(const struct input *input, struct ze_program *out)
{
    struct numbering all = {.input = input, .out = out};
    int status = scan(input, note_number, &all);
    if (!status)
        status = scan(input, apply_constant, &all);
    if (!status && input->constants && all.used != input->constants->numConstants)
        return FAILED; /* without a log, as there */
    return status;
}

/* ---- linking ---- */

struct names {
    const char *seek;        /* NULL: none */
    const struct input *all; /* where imports are sought */
    unsigned count;
};

static const char *linkage_name(const uint32_t *words, unsigned count, bool *imported)
{
    if ((words[0] & 0xffff) != DECORATE || count < 5 || words[2] != LINKAGE)
        return NULL;
    *imported = words[count - 1] == IMPORTED;
    return (const char *)&words[3];
}

static int is_export(void *user, uint32_t *words, unsigned count)
{
    const struct names *names = user;
    bool imported = false;
    const char *name = linkage_name(words, count, &imported);
    return name && !imported && !strcmp(name, names->seek);
}

static int is_unresolved(void *user, uint32_t *words, unsigned count)
{
    const struct names *names = user;
    bool imported = false;
    const char *name = linkage_name(words, count, &imported);
    struct names sought = {.seek = name};
    if (name && !strncmp(name, "__spirv_", 8))
        return 0; /* the compiler's own, such as the number of a work item */
    for (unsigned i = 0; name && imported && i < names->count; i++)
        if (scan(&names->all[i], is_export, &sought) == 1)
            return 0;
    return name && imported;
}

static bool has_unresolved(const struct input *inputs, unsigned count)
{
    struct names names = {.all = inputs, .count = count};
    for (unsigned i = 0; i < count; i++)
        if (scan(&inputs[i], is_unresolved, &names) == 1)
            return true;
    return false;
}

/* ---- SPIR-V ---- */

static int add_input(struct ze_program *out, const void *bytes, size_t size)
{
    uint32_t magic = 0;
    if (size >= HEADER * sizeof magic)
        memcpy(&magic, bytes, sizeof magic);
    unsigned char *larger = magic == MAGIC ? realloc(out->bytes, out->size + size) : NULL;
    if (!larger)
        return magic == MAGIC ? SIM_NO_MEMORY : FAILED;
    memcpy(larger + out->size, bytes, size);
    out->bytes = larger;
    out->size += size;
    return SIM_OK;
}

static int make_inputs(const ze_module_program_exp_desc_t *program, struct ze_program *out)
{
    struct input inputs[16] = {0};
    int status = program->count && program->count <= 16 ? SIM_OK : FAILED;
    for (uint32_t i = 0; i < program->count && !status; i++)
        status = add_input(out, program->pInputModules[i], program->inputSizes[i]);
    for (uint32_t i = 0, at = 0; i < program->count && !status; i++) {
        inputs[i] = (struct input){.words = (uint32_t *)(void *)(out->bytes + at),
                                   .count = program->inputSizes[i] / sizeof(uint32_t),
                                   .constants = program->pConstants ? program->pConstants[i] : NULL};
        at += (uint32_t)program->inputSizes[i];
        status = apply_constants(&inputs[i], out);
    }
    if (status)
        return status;
    out->first = program->inputSizes[0];
    out->unlinked = has_unresolved(inputs, program->count);
    return SIM_OK;
}

static int make_program(const ze_module_desc_t *desc, struct ze_program *out, char log[256])
{
    const ze_module_program_exp_desc_t *program = desc->pNext;
    char flags[1024] = "";
    if (program->stype != ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC ||
        desc->format != ZE_MODULE_FORMAT_IL_SPIRV)
        return FAILED;
    for (uint32_t i = 0; program->pBuildFlags && i < program->count; i++)
        if (program->pBuildFlags[i])
            strncat(flags, program->pBuildFlags[i], sizeof flags - strlen(flags) - 1);
    const int status = check_flags(flags, out, log);
    return status ? status : make_inputs(program, out);
}

static int make_one(const ze_module_desc_t *desc, struct ze_program *out, char log[256])
{
    const uint8_t *image = desc->pInputModule;
    const ze_module_constants_t *constants = desc->pConstants;
    const ze_module_program_exp_desc_t one = {.count = 1,
                                              .inputSizes = &desc->inputSize,
                                              .pInputModules = &image,
                                              .pConstants = &constants};
    const int status = check_flags(desc->pBuildFlags ? desc->pBuildFlags : "", out, log);
    return status ? status : make_inputs(&one, out);
}

/* ---- native binaries ---- */

struct native {
    char mark[8];
    uint32_t api, constant_count;
    uint64_t constants[SIM_MAX_CONSTANTS], first;
    uint8_t stateful, unlinked, reserved[6];
};

static const char mark[8] = "SIMZEBIN";

static int make_native(const ze_module_desc_t *desc, struct ze_program *out)
{
    struct native head;
    if (desc->inputSize <= sizeof head)
        return FAILED;
    memcpy(&head, desc->pInputModule, sizeof head);
    if (memcmp(head.mark, mark, sizeof mark) || head.api != SIM_ZE_API)
        return FAILED;
    out->size = desc->inputSize - sizeof head;
    out->bytes = malloc(out->size);
    if (!out->bytes)
        return SIM_NO_MEMORY;
    memcpy(out->bytes, desc->pInputModule + sizeof head, out->size);
    memcpy(out->constants, head.constants, sizeof out->constants);
    out->constant_count = head.constant_count;
    out->first = head.first;
    out->stateful = head.stateful;
    out->unlinked = head.unlinked;
    return SIM_OK;
}

void ze_program_binary(const struct ze_program *program, size_t *size, uint8_t *out)
{
    struct native head = {.api = SIM_ZE_API,
                          .constant_count = program->constant_count,
                          .first = program->first,
                          .stateful = program->stateful,
                          .unlinked = program->unlinked};
    memcpy(head.mark, mark, sizeof mark);
    memcpy(head.constants, program->constants, sizeof head.constants);
    *size = sizeof head + program->size;
    if (!out)
        return;
    memcpy(out, &head, sizeof head);
    memcpy(out + sizeof head, program->bytes, program->size);
}

int ze_program_make(const ze_module_desc_t *desc, struct ze_program *out, char log[256])
{
    *out = (struct ze_program){0};
    log[0] = 0;
    if (desc->stype != ZE_STRUCTURE_TYPE_MODULE_DESC)
        return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    if (desc->pNext)
        return make_program(desc, out, log);
    if (desc->format == ZE_MODULE_FORMAT_IL_SPIRV)
        return make_one(desc, out, log);
    return make_native(desc, out);
}
