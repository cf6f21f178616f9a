/* fuzz_env.c: the values and the names of GPUGLUE_ variables, and the names of plugin files.
 *
 * The library reads each variable once in a process, so the source is included, to call what parses a value. */
#include "base/env.c"

#include "fuzz.h"
#include "loader/loader.h"

#define NAME_MAX_LENGTH 12

static void sink(int32_t level, const char *line, void *user)
{
    (void)level;
    (void)user;
    FUZZ_CHECK(strlen(line) < 4096);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    gg_set_log_sink(sink, NULL);
    return 0;
}

static void fuzz_value(const struct env_row *row, const char *text)
{
    int64_t value = -1;
    if (!env_parse(row, text, &value))
        return;
    if (row->words[0])
        FUZZ_CHECK(value >= 0 && value < 4 && !strcmp(row->words[value], text));
    else
        FUZZ_CHECK(value >= row->least && value <= row->most);
}

/* Comparing a name with all known ones takes longer than all else, so that is done for short names, and for one text in
 * sixty-four. */
static bool is_compared(const char *text)
{
    unsigned sum = 0;
    for (const char *at = text; *at; at++)
        sum += (unsigned char)*at;
    return strlen(text) <= NAME_MAX_LENGTH && sum % 64 == 0;
}

static void fuzz_name(const char *text)
{
    char name[GGI_NAME_SIZE], *variable;
    if (ggi_plugin_name(text, name))
        FUZZ_CHECK(ggi_backend_name_is_valid(name));
    if (!is_compared(text))
        return;
    variable = malloc(strlen(PREFIX) + strlen(text) + 1);
    FUZZ_CHECK(variable);
    strcpy(variable, PREFIX);
    strcat(variable, text);
    env_check_name(variable);
    free(variable);
}

/* The first byte selects the variable, or a name. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    if (data[0] % (GGI_ENV_VALUES + 1) < GGI_ENV_VALUES)
        fuzz_value(&env_rows[data[0] % (GGI_ENV_VALUES + 1)], text);
    else
        fuzz_name(text);
    free(text);
    return 0;
}
