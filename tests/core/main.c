/* main.c: the program of the core's own units. */
#include "inside.h"

char fixtures[PATH_MAX], directory[64];

static void prepare(const char *target)
{
    const char *const variables[] = {"GPUGLUE_BACKEND", "GPUGLUE_DEVICE", "GPUGLUE_PLUGIN_PATH",
                                     "GPUGLUE_LOG"};
    if (!realpath(target, fixtures))
        fprintf(stderr, "%s: the first argument is the directory of the fixtures\n", target);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
}

int main(int argc, char **argv)
{
    static const struct program program = {.target = "FIXTURES", .prepare = prepare};
    return run_program(argc, argv, &program);
}
