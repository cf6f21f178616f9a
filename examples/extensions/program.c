/* program.c: a C program that uses the installed library:
 *     cc program.c $(gpuglue-config --cflags --libs) && ./a.out [device] */
#include <gpuglue/gpuglue.h>

#include <stdio.h>
#include <string.h>

static int fail(const char *what)
{
    struct gg_error error = {.struct_size = sizeof error};
    gg_last_error(&error);
    fprintf(stderr, "%s: %s\n", what, error.message);
    return 1;
}

int main(int argc, char **argv)
{
    const char out[] = "there and back";
    char back[sizeof out] = "";
    gg_device *device;
    gg_memory *memory;
    if (argc > 1 ? gg_device_find(argv[1], &device) : gg_current_device(&device))
        return fail("no device");
    if (gg_memory_alloc(device, GG_MEMORY_DEVICE, sizeof out, NULL, &memory))
        return fail("no memory");
    const struct gg_copy_operand there = {.memory = memory}, from = {.host = (void *)(size_t)out},
                                 to = {.host = back};
    int failed =
        gg_copy(&there, &from, sizeof out, NULL, 0) || gg_copy(&to, &there, sizeof out, NULL, 0);
    if (failed)
        fail("no copy");
    else
        printf("%s on %s:%d\n", back, gg_device_backend(device), (int)gg_device_ordinal(device));
    gg_memory_release(memory);
    gg_shutdown(1000000000);
    return failed || strcmp(out, back);
}
