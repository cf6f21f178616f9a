/* comm.h: the vendor's library of collective operations. */
#ifndef GPUGLUE_CUHIP_COMM_H
#define GPUGLUE_CUHIP_COMM_H

#include "comm_numbers.h"
#include "driver.h"

struct cuhip_comm_id {
    char bytes[GG_COMM_ID_SIZE];
};

struct cuhip_comm_library {
#define FN(slot, parameters, symbol, need) int(*slot) parameters;
#define TEXT(slot, parameters, symbol, need) const char *(*slot)parameters;
#include "comm.def"
#undef FN
#undef TEXT
};

#endif
