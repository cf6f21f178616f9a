/* ipc.h: the handle of a block for another process, which both vendors pass by value. */
#ifndef GPUGLUE_CUHIP_IPC_H
#define GPUGLUE_CUHIP_IPC_H

struct cuhip_ipc {
    char bytes[64];
};

#endif
