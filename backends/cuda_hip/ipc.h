/* ipc.h: what both vendors pass by value: the handle of a block for another process. */
#ifndef GPUGLUE_TWIN_IPC_H
#define GPUGLUE_TWIN_IPC_H

struct twin_ipc {
    char bytes[64];
};

#endif
