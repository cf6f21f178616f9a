/* check.h: for the examples: ends the program if a call fails. */
#include <gpuglue/gpuglue.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(gg_status status)
{
    struct gg_error error = {.struct_size = sizeof error};
    if (!status)
        return;
    gg_last_error(&error);
    fprintf(stderr, "%s: %s\n", gg_status_name(status), error.message);
    exit(1);
}
