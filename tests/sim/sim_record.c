/* sim_record.c: writes each command that is queued to the file GPUGLUE_SIM_WORK: a line with its number, the unit that
 * executes it (- if none does), its kind, the bytes of a copy, and the numbers of the unfinished commands that it comes
 * after. With sim_hold on, all are unfinished, and the lines are the whole graph. */
#include "sim_engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const units[] = {"-", "compute", "copy"};
static const char *const kinds[] = {"mark",  "copy", "fill", "host",
                                    "write", "wait", "free", "time"};

static size_t bytes_of(const struct sim_work *work)
{
    const struct sim_region *copy = &work->copy;
    return work->kind == SIM_COPY ? copy->width * copy->height * copy->depth : 0;
}

static const char *kind_of(const struct sim_work *work)
{
    return work->kind == SIM_HOST && work->host.kernel ? "kernel" : kinds[work->kind];
}

void sim_record(const struct sim_command *command)
{
    const struct sim_work *work = &command->work;
    const char *path = getenv("GPUGLUE_SIM_WORK");
    FILE *file = path && *path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%" PRIu64 " %s %s %zu", command->serial, units[work->unit], kind_of(work),
            bytes_of(work));
    for (size_t i = 0; i < command->need_count; i++)
        fprintf(file, " %" PRIu64, command->needs[i]->serial);
    fputc('\n', file);
    fclose(file);
}
