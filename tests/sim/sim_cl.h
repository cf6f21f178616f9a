/* sim_cl.h: the part of OpenCL 3.0 that sim_opencl.c uses, declared by hand: its headers are not installed everywhere.
 * All handles are pointers. */
#ifndef SIM_CL_H
#define SIM_CL_H

#include <stddef.h>
#include <stdint.h>

enum {
    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE = 0x104D,
    CL_DEVICE_SVM_CAPABILITIES = 0x1053,
    CL_DEVICE_SVM_FINE_GRAIN_SYSTEM = 8,
    CL_DEVICE_IL_VERSION = 0x105B,
    CL_QUEUE_PROPERTIES = 0x1093,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
    CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B,
    CL_KERNEL_ARG_ADDRESS_LOCAL = 0x119C,
    CL_KERNEL_ARG_ADDRESS_CONSTANT = 0x119D,
    CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119E,
    CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
    CL_INVALID_KERNEL_NAME = -46
};

/* FUNCTION(result, name, parameters) */
#define SIM_CL_FUNCTIONS(FUNCTION)                                                                  \
    FUNCTION(int, clGetPlatformIDs, (unsigned, void **, unsigned *))                                \
    FUNCTION(int, clGetDeviceIDs, (void *, uint64_t, unsigned, void **, unsigned *))                \
    FUNCTION(int, clGetDeviceInfo, (void *, unsigned, size_t, void *, size_t *))                    \
    FUNCTION(void *, clCreateContext,                                                               \
             (const intptr_t *, unsigned, void *const *, void *, void *, int *))                    \
    FUNCTION(void *, clCreateCommandQueueWithProperties, (void *, void *, const uint64_t *, int *)) \
    FUNCTION(void *, clCreateProgramWithIL, (void *, const void *, size_t, int *))                  \
    FUNCTION(                                                                                       \
        void *, clCreateProgramWithBinary,                                                          \
        (void *, unsigned, void *const *, const size_t *, const unsigned char **, int *, int *))    \
    FUNCTION(int, clBuildProgram, (void *, unsigned, void *const *, const char *, void *, void *))  \
    FUNCTION(int, clGetProgramBuildInfo, (void *, void *, unsigned, size_t, void *, size_t *))      \
    FUNCTION(int, clReleaseProgram, (void *))                                                       \
    FUNCTION(void *, clCreateKernel, (void *, const char *, int *))                                 \
    FUNCTION(int, clReleaseKernel, (void *))                                                        \
    FUNCTION(int, clGetKernelInfo, (void *, unsigned, size_t, void *, size_t *))                    \
    FUNCTION(int, clGetKernelWorkGroupInfo, (void *, void *, unsigned, size_t, void *, size_t *))   \
    FUNCTION(int, clGetKernelArgInfo, (void *, unsigned, unsigned, size_t, void *, size_t *))       \
    FUNCTION(int, clSetKernelArg, (void *, unsigned, size_t, const void *))                         \
    FUNCTION(int, clSetKernelArgSVMPointer, (void *, unsigned, const void *))                       \
    FUNCTION(int, clEnqueueNDRangeKernel,                                                           \
             (void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned,   \
              void *const *, void **))                                                              \
    FUNCTION(int, clFlush, (void *))                                                                \
    FUNCTION(int, clWaitForEvents, (unsigned, void *const *))                                       \
    FUNCTION(int, clReleaseEvent, (void *))

#endif
