/* probe_diagnosis.c: why a driver is unavailable and what to do about it: what the vendors' diagnoses share. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct cuhip_diagnosis *cuhip_find_diagnosis(const struct cuhip_diagnosis *diagnoses, int code)
{
    static const struct cuhip_diagnosis other = {0, GG_PROBE_INIT_FAILED,
                                                 "the driver could not start"};
    for (; diagnoses->sentence; diagnoses++)
        if (diagnoses->code == code)
            return diagnoses;
    return &other;
}

const char *cuhip_find_denied_node(const char *const *nodes)
{
    for (; *nodes; nodes++)
        if (access(*nodes, R_OK | W_OK) && (errno == EACCES || errno == EPERM))
            return *nodes;
    return NULL;
}

void cuhip_report_diagnosis(const struct cuhip_diagnosis *diagnosis, int code,
                            struct gg_probe_result *result)
{
    const char *name = cuhip_error_name(code);
    result->status = diagnosis->status;
    if (code)
        snprintf(result->reason, sizeof result->reason, "%s (the driver returned %d, %s)",
                 diagnosis->sentence, code, name ? name : "an unknown code");
    else
        snprintf(result->reason, sizeof result->reason, "%s (it reported 0 devices)",
                 diagnosis->sentence);
}

void cuhip_append_variable(const char *variable, struct gg_probe_result *result)
{
    const char *value = cuhip_api->get_env(variable);
    const size_t used = strlen(result->reason);
    if (value)
        snprintf(result->reason + used, sizeof result->reason - used,
                 "; %s is set to \"%s\": unset it, or name a device that exists", variable, value);
}

void cuhip_note_variable(const char *variable, const struct gg_probe_result *result)
{
    const char *value = cuhip_api->get_env(variable);
    if (value)
        cuhip_api->note(result->log, "%s is set to \"%s\"", variable, value);
}
