/* why.c: why a driver does not serve, in words that a user can act on: what the vendors' sentences share. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct twin_verdict *twin_find_verdict(const struct twin_verdict *verdicts, int code)
{
    static const struct twin_verdict other = {0, GG_PROBE_INIT_FAILED, "the driver could not start"};
    for (; verdicts->sentence; verdicts++)
        if (verdicts->code == code)
            return verdicts;
    return &other;
}

const char *twin_refused_node(const char *const *nodes)
{
    for (; *nodes; nodes++)
        if (access(*nodes, R_OK | W_OK) && (errno == EACCES || errno == EPERM))
            return *nodes;
    return NULL;
}

void twin_say(const struct twin_verdict *verdict, int code, struct gg_probe_result *result)
{
    const char *name = twin_code_name(code);
    result->status = verdict->status;
    if (code)
        snprintf(result->reason, sizeof result->reason, "%s (the driver answered %d, %s)",
                 verdict->sentence, code, name ? name : "a code that is not known here");
    else
        snprintf(result->reason, sizeof result->reason, "%s (it counted 0)", verdict->sentence);
}

void twin_append_mask(const char *variable, struct gg_probe_result *result)
{
    const char *value = twin_host->get_env(variable);
    const size_t used = strlen(result->reason);
    if (value)
        snprintf(result->reason + used, sizeof result->reason - used,
                 "; %s is set to \"%s\": unset it, or name a device that exists", variable, value);
}

void twin_note_mask(const char *variable, const struct gg_probe_result *result)
{
    const char *value = twin_host->get_env(variable);
    if (value)
        twin_host->note(result->log, "%s is set to \"%s\"", variable, value);
}
