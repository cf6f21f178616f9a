/* sim_spirv.c: translates SPIR-V to LLVM bitcode with the program llvm-spirv, for OpenCL drivers that take no SPIR-V. */
#include "sim_opencl.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* PoCL 3.1, which takes no SPIR-V in Debian 12, is built with LLVM 15 and reads its bitcode. */
static const char translator[] = "llvm-spirv-15";
extern char **environ;

bool sim_spirv_translates(void)
{
    const char *path = getenv("PATH");
    char file[4096];
    while (path && *path) {
        const size_t length = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, path, translator);
        if (!access(file, X_OK))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* Runs the translator on two files; returns its exit status, or -1. */
static int run(int input, int output)
{
    char program[] = "llvm-spirv-15", reverse[] = "-r", option[] = "-o";
    char from[] = "/dev/stdin", to[] = "/dev/stdout"; /* "-" is read as an empty file */
    char *arguments[] = {program, reverse, from, option, to, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int failed = posix_spawnp(&child, translator, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int read_all(int file, void **out, size_t *size)
{
    struct stat about;
    if (fstat(file, &about) || about.st_size <= 0)
        return SIM_INVALID_IMAGE;
    *size = (size_t)about.st_size;
    *out = malloc(*size);
    if (!*out)
        return SIM_NO_MEMORY;
    if (pread(file, *out, *size, 0) == about.st_size)
        return SIM_OK;
    free(*out);
    return SIM_INVALID_IMAGE;
}

int sim_spirv_translate(const void *image, size_t size, void **out, size_t *out_size, char log[256])
{
    const int input = memfd_create("spirv", MFD_CLOEXEC),
              output = memfd_create("bitcode", MFD_CLOEXEC);
    int status = SIM_NO_MEMORY;
    if (input >= 0 && output >= 0 && write(input, image, size) == (ssize_t)size &&
        !lseek(input, 0, SEEK_SET)) {
        const int code = run(input, output);
        status = code ? SIM_INVALID_IMAGE : read_all(output, out, out_size);
        if (code)
            snprintf(log, 256, "%s ended with %d", translator, code);
    }
    if (input >= 0)
        close(input);
    if (output >= 0)
        close(output);
    return status;
}
