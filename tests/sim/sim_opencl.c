/* sim_opencl.c: builds SPIR-V and runs its kernels with the library that GPUGLUE_SIM_OPENCL names. */
#include "sim_opencl.h"
#include "sim_cl.h"
#include "sim_control.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_PARAMETERS = 64, MAX_PLATFORMS = 8, LOG_SIZE = 1 << 14 };

#define MEMBER(result, name, parameters) result(*name) parameters;
static struct {
    SIM_CL_FUNCTIONS(MEMBER)
} cl;

static void *device, *context, *queue;
static bool takes_spirv, has_variables;
static char missing[512]; /* why no kernel can run; "" if they can */
static pthread_once_t started = PTHREAD_ONCE_INIT;
static char log_text[LOG_SIZE];
/* An OpenCL kernel has one set of arguments, from the first that is set until it is queued. */
static pthread_mutex_t arguments_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned running; /* kernels, under sim.lock */

struct sim_program {
    void *handle;
};

struct sim_code {
    void *handle;
    unsigned count;
    uint64_t local;
    unsigned spaces[MAX_PARAMETERS]; /* CL_KERNEL_ARG_ADDRESS_… */
};

/* ---- the driver ---- */

bool sim_opencl_wanted(void)
{
    const char *name = getenv("GPUGLUE_SIM_OPENCL");
    return name && *name;
}

__attribute__((format(printf, 1, 2))) static void lack(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(missing, sizeof missing, format, arguments);
    va_end(arguments);
}

static bool find_functions(void *library, const char *from)
{
#define FIND(result, name, parameters)                   \
    if (!(*(void **)&cl.name = dlsym(library, #name))) { \
        lack("%s has no %s", from, #name);               \
        return false;                                    \
    }
    SIM_CL_FUNCTIONS(FIND)
    return true;
}

/* The first CPU among the platforms, which may include GPUs. */
static bool find_device(void)
{
    void *platforms[MAX_PLATFORMS];
    unsigned count = 0;
    if (cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &count))
        return false;
    for (unsigned i = 0; i < count && i < MAX_PLATFORMS; i++)
        if (!cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL))
            return true;
    return false;
}

static uint64_t device_number(unsigned what)
{
    uint64_t value = 0;
    return cl.clGetDeviceInfo(device, what, sizeof value, &value, NULL) ? 0 : value;
}

static void device_text(unsigned what, char *out, size_t size)
{
    if (cl.clGetDeviceInfo(device, what, size, out, NULL))
        out[0] = 0;
    out[size - 1] = 0;
}

/* Fills in `missing` unless the device can run SPIR-V on this process's memory. */
static void check_device(void)
{
    char name[128] = "", formats[256] = "", extensions[4096] = "";
    device_text(CL_DEVICE_NAME, name, sizeof name);
    device_text(CL_DEVICE_IL_VERSION, formats, sizeof formats);
    device_text(CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    takes_spirv = strstr(formats, "SPIR-V");
    has_variables = device_number(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE);
    if (!(device_number(CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM))
        lack("the OpenCL device %s does not access all memory of this process", name);
    else if (!takes_spirv && !strstr(extensions, "cl_khr_spir"))
        lack("the OpenCL device %s takes neither SPIR-V nor LLVM bitcode", name);
    else if (!takes_spirv && !sim_spirv_translates())
        lack("the OpenCL device %s takes no SPIR-V, and llvm-spirv-15 is not installed", name);
}

static void start(void)
{
    const uint64_t properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
    const char *name = getenv("GPUGLUE_SIM_OPENCL");
    int code = 0;
    if (!name || !*name) {
        lack("GPUGLUE_SIM_OPENCL is not set");
        return;
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        lack("%s", dlerror());
        return;
    }
    if (!find_functions(library, name))
        return;
    if (!find_device()) {
        lack("%s finds no OpenCL driver for the CPU", name);
        return;
    }
    check_device();
    if (missing[0])
        return;
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (!code)
        queue = cl.clCreateCommandQueueWithProperties(context, device, properties, &code);
    if (code)
        lack("%s makes no queue", name);
}

const char *sim_opencl_missing(void)
{
    pthread_once(&started, start);
    return missing;
}

/* ---- programs ---- */

const char *sim_opencl_log(void)
{
    return log_text;
}

static void *create_program(const void *image, size_t size)
{
    int code = 0;
    void *bitcode = NULL;
    size_t bitcode_size = 0;
    if (takes_spirv)
        return cl.clCreateProgramWithIL(context, image, size, &code);
    if (sim_spirv_translate(image, size, &bitcode, &bitcode_size, log_text))
        return NULL;
    const unsigned char *binary = bitcode;
    void *program =
        cl.clCreateProgramWithBinary(context, 1, &device, &bitcode_size, &binary, NULL, &code);
    free(bitcode);
    return program;
}

int sim_opencl_build(const void *image, size_t size, struct sim_program **out)
{
    const char *options =
        takes_spirv ? "-cl-kernel-arg-info" : "-x spir -spir-std=1.2 -cl-kernel-arg-info";
    log_text[0] = 0;
    if (sim_opencl_missing()[0]) {
        snprintf(log_text, sizeof log_text, "%s", missing);
        return SIM_UNSUPPORTED;
    }
    struct sim_program *program = calloc(1, sizeof *program);
    if (!program)
        return SIM_NO_MEMORY;
    program->handle = create_program(image, size);
    const int code =
        program->handle ? cl.clBuildProgram(program->handle, 1, &device, options, NULL, NULL) : -1;
    if (program->handle)
        cl.clGetProgramBuildInfo(program->handle, device, CL_PROGRAM_BUILD_LOG, sizeof log_text,
                                 log_text, NULL);
    if (code) {
        sim_opencl_release(program);
        return SIM_INVALID_IMAGE;
    }
    *out = program;
    return SIM_OK;
}

void sim_opencl_release(struct sim_program *program)
{
    if (program && program->handle)
        cl.clReleaseProgram(program->handle);
    free(program);
}

/* ---- kernels ---- */

static void read_parameters(struct sim_code *code)
{
    cl.clGetKernelInfo(code->handle, CL_KERNEL_NUM_ARGS, sizeof code->count, &code->count, NULL);
    cl.clGetKernelWorkGroupInfo(code->handle, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof code->local,
                                &code->local, NULL);
    for (unsigned i = 0; i < code->count && i < MAX_PARAMETERS; i++) {
        code->spaces[i] = CL_KERNEL_ARG_ADDRESS_PRIVATE;
        cl.clGetKernelArgInfo(code->handle, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                              sizeof code->spaces[i], &code->spaces[i], NULL);
    }
}

int sim_opencl_code(struct sim_program *program, const char *name, struct sim_code **out)
{
    int status = 0;
    struct sim_code *code = calloc(1, sizeof *code);
    if (!code)
        return SIM_NO_MEMORY;
    code->handle = cl.clCreateKernel(program->handle, name, &status);
    if (!status)
        read_parameters(code);
    if (status || code->count > MAX_PARAMETERS) {
        sim_code_release(code);
        return status == CL_INVALID_KERNEL_NAME ? SIM_NOT_FOUND : SIM_INVALID;
    }
    *out = code;
    return SIM_OK;
}

void sim_code_release(struct sim_code *code)
{
    if (code && code->handle)
        cl.clReleaseKernel(code->handle);
    free(code);
}

unsigned sim_code_count(const struct sim_code *code)
{
    return code->count;
}

unsigned sim_code_local(const struct sim_code *code)
{
    return (unsigned)code->local;
}

bool sim_code_pointer(const struct sim_code *code, unsigned index)
{
    return code->spaces[index] == CL_KERNEL_ARG_ADDRESS_GLOBAL ||
           code->spaces[index] == CL_KERNEL_ARG_ADDRESS_CONSTANT;
}

int sim_code_check(struct sim_code *code, unsigned index, size_t size, const void *bytes)
{
    if (index >= code->count)
        return SIM_NOT_FOUND;
    if (sim_code_pointer(code, index))
        return size == sizeof(void *) && bytes ? SIM_OK : SIM_INVALID;
    if (code->spaces[index] == CL_KERNEL_ARG_ADDRESS_LOCAL)
        return size && !bytes ? SIM_OK : SIM_INVALID;
    if (!bytes)
        return SIM_INVALID;
    pthread_mutex_lock(&arguments_lock);
    const int status = cl.clSetKernelArg(code->handle, index, size, bytes);
    pthread_mutex_unlock(&arguments_lock);
    return status ? SIM_INVALID : SIM_OK;
}

/* ---- launches ---- */

/* The address at which a kernel reaches the client's memory. NULL stays NULL; an address that is not in an allocation
 * is a fault of the device. */
static int resolve(uint64_t address, uint64_t *out)
{
    const struct sim_alloc *alloc = address ? sim_memory_find(address) : NULL;
    *out = alloc && sim.far_base ? (uintptr_t)sim_memory_alias(alloc, address) : address;
    return alloc || !address ? SIM_OK : SIM_ILLEGAL_ADDRESS;
}

/* While a kernel runs, device memory is accessible at its own address, so that pointers in memory are valid too. */
static void open_memory(int change)
{
    running += (unsigned)change;
    if (sim.far_base || running > (change > 0))
        return;
    for (int i = 0; i < sim.device_count; i++)
        mprotect((void *)(uintptr_t)sim.devices[i].base, sim.devices[i].size,
                 change > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static int resolve_all(const struct sim_code *code, const struct sim_shape *shape,
                       uint64_t *addresses)
{
    int status = SIM_OK;
    pthread_mutex_lock(&sim.lock);
    for (unsigned i = 0; i < code->count && !status; i++)
        if (sim_code_pointer(code, i))
            status = resolve(*(const uint64_t *)shape->values[i].bytes, &addresses[i]);
    if (!status)
        open_memory(1);
    pthread_mutex_unlock(&sim.lock);
    return status;
}

static int set_arguments(const struct sim_code *code, const struct sim_shape *shape,
                         const uint64_t *addresses)
{
    int status = 0;
    for (unsigned i = 0; i < code->count && !status; i++)
        status =
            sim_code_pointer(code, i)
                ? cl.clSetKernelArgSVMPointer(code->handle, i, (const void *)(uintptr_t)addresses[i])
                : cl.clSetKernelArg(code->handle, i, shape->values[i].size, shape->values[i].bytes);
    return status;
}

/* Returns an OpenCL status. */
static int run_and_wait(const struct sim_code *code, const struct sim_shape *shape,
                        const uint64_t *addresses)
{
    size_t threads[3], block[3];
    void *end = NULL;
    for (int d = 0; d < 3; d++) {
        block[d] = shape->block[d];
        threads[d] = (size_t)shape->grid[d] * block[d];
    }
    pthread_mutex_lock(&arguments_lock);
    int status = set_arguments(code, shape, addresses);
    if (!status)
        status =
            cl.clEnqueueNDRangeKernel(queue, code->handle, 3, NULL, threads, block, 0, NULL, &end);
    pthread_mutex_unlock(&arguments_lock);
    if (status)
        return status;
    cl.clFlush(queue);
    status = cl.clWaitForEvents(1, &end);
    cl.clReleaseEvent(end);
    return status;
}

int sim_code_run(struct sim_code *code, const struct sim_shape *shape)
{
    uint64_t addresses[MAX_PARAMETERS] = {0};
    const int status = resolve_all(code, shape, addresses);
    if (status)
        return status;
    const int result = run_and_wait(code, shape, addresses);
    pthread_mutex_lock(&sim.lock);
    open_memory(-1);
    pthread_mutex_unlock(&sim.lock);
    return result ? SIM_ILLEGAL_ADDRESS : SIM_OK;
}

int sim_opencl_variable(struct sim_program *program, const char *name, uint64_t *address,
                        size_t *size)
{
    uint64_t found[2] = {0}, addresses[MAX_PARAMETERS] = {(uintptr_t)found};
    const struct sim_shape shape = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct sim_code *code = NULL;
    char kernel[256];
    if (!has_variables)
        return SIM_UNSUPPORTED; /* each kernel has variables of its own */
    snprintf(kernel, sizeof kernel, "where_%s", name);
    int status = sim_opencl_code(program, kernel, &code);
    if (!status)
        status = run_and_wait(code, &shape, addresses) ? SIM_INVALID : SIM_OK;
    sim_code_release(code);
    *address = found[0];
    *size = found[1];
    return status;
}
