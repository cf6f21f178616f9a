/* sycl.c: what gpuglue calls of SYCL's runtime, under the names of its library: native handles of queues and devices. A queue
 * or device is a struct sycl_object of the test's. */
#include <stdint.h>

struct sycl_object {
    int8_t backend;    /* of enum class sycl::backend; 2 is Level Zero */
    int32_t immediate; /* of a queue: whether the handle is an immediate command list */
    uint64_t native;
};

int8_t _ZNK4sycl3_V15queue11get_backendEv(const struct sycl_object *queue);
int8_t _ZNK4sycl3_V15queue11get_backendEv(const struct sycl_object *queue)
{
    return queue->backend;
}

uint64_t _ZNK4sycl3_V15queue9getNativeERi(const struct sycl_object *queue, int32_t *immediate);
uint64_t _ZNK4sycl3_V15queue9getNativeERi(const struct sycl_object *queue, int32_t *immediate)
{
    *immediate = queue->immediate;
    return queue->native;
}

int8_t _ZNK4sycl3_V16device11get_backendEv(const struct sycl_object *device);
int8_t _ZNK4sycl3_V16device11get_backendEv(const struct sycl_object *device)
{
    return device->backend;
}

uint64_t _ZNK4sycl3_V16device9getNativeEv(const struct sycl_object *device);
uint64_t _ZNK4sycl3_V16device9getNativeEv(const struct sycl_object *device)
{
    return device->native;
}
