/* local_rank.c: the rank of this process among those of its node. */
#include "runtime/device.h"

/* The first of these that is set is the rank among the processes of this node. */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "PMI_LOCAL_RANK",
    "PMIX_LOCAL_RANK",
    "FLUX_TASK_LOCAL_ID",
    "JSM_NAMESPACE_LOCAL_RANK",
    "SLURM_LOCALID",
    "LOCAL_RANK",
};

long py_local_rank(struct py_state *state)
{
    for (size_t i = 0; i < sizeof rank_variables / sizeof rank_variables[0]; i++) {
        const char *value = getenv(rank_variables[i]);
        char *end;
        if (!value || !value[0])
            continue;
        long rank = strtol(value, &end, 10);
        const bool refused = *end || rank < 0 || rank > INT32_MAX;
        if (refused)
            py_invalid(state, "%s is '%s', expected a number from 0 to %d", rank_variables[i],
                       value, INT32_MAX);
        return refused ? -1 : rank;
    }
    return 0;
}
