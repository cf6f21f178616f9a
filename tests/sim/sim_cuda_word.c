/* sim_cuda_word.c: CUDA: cuStreamWriteValue and cuStreamWaitValue. */
#include "sim_cuda.h"

static CUresult submit(const char *name, CUstream stream, const struct sim_word *word,
                       enum sim_kind kind)
{
    struct sim_work work = {.kind = kind, .word = *word};
    struct sim_queue *queue;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    if (word->address % word->bytes ||
        !cuda_end_valid(word->address, word->bytes, CUDA_DEVICE_END, &work.dst_tracked))
        return cuda_leave(SIM_INVALID);
    return cuda_leave(sim_queue_submit(queue, &work));
}

static CUresult put(const char *name, CUstream stream, const struct sim_word *word, unsigned flags)
{
    if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return CUDA_ERROR_INVALID_VALUE;
    return submit(name, stream, word, SIM_WRITE);
}

static CUresult await(const char *name, CUstream stream, struct sim_word *word, unsigned flags)
{
    unsigned compare = flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;
    if (compare > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    word->compare = (enum sim_compare)compare; /* same order as in the engine */
    return submit(name, stream, word, SIM_WAIT);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags)
{
    struct sim_word word = {addr, value, 4, SIM_EQUAL};
    return put("cuStreamWriteValue32_v2", stream, &word, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags)
{
    struct sim_word word = {addr, value, 8, SIM_EQUAL};
    return put("cuStreamWriteValue64_v2", stream, &word, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags)
{
    struct sim_word word = {addr, value, 4, SIM_EQUAL};
    return await("cuStreamWaitValue32_v2", stream, &word, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags)
{
    struct sim_word word = {addr, value, 8, SIM_EQUAL};
    return await("cuStreamWaitValue64_v2", stream, &word, flags);
}
