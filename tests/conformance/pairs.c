/* pairs.c: see pairs.h. */
#include "pairs.h"

#include <stdio.h>
#include <stdlib.h>

static void add_device(struct devices *all, gg_device *device)
{
    if (uses_drivers_pool() && !gg_device_supports(device, GG_OP_mem_alloc_async))
        return; /* such as host, whose memory is not allocated then */
    for (size_t i = 0; i < all->count; i++)
        if (all->device[i] == device)
            return;
    all->device[all->count++] = device;
}

struct devices all_devices(struct fixture *f)
{
    const char *together = getenv("GPUGLUE_TOGETHER");
    struct devices all = {{f->device}, 1};
    char names[64], *rest = names, *name;
    gg_device *device;
    int32_t count = 0;
    snprintf(names, sizeof names, "%s", together ? together : "host");
    while ((name = strtok_r(rest, ",", &rest))) {
        if (gg_device_get(name, 0, &device))
            fail_msg("%s", last_error().message);
        add_device(&all, device);
    }
    assert_int_equal(gg_device_count(backend_name(), &count), GG_OK);
    if (count > 1) {
        assert_int_equal(gg_device_get(backend_name(), 1, &device), GG_OK);
        add_device(&all, device);
    }
    if (all.count < 2)
        skip_because("there is one device");
    return all;
}

void for_each_pair(void **state, void (*body)(struct pair *pair))
{
    struct devices all = all_devices(*state);
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < all.count; j++)
            if (i != j)
                body(&(struct pair){*state, all.device[i], all.device[j]});
}

gg_memory *memory_on(struct pair *pair, gg_device *device, enum gg_memory_kind kind, size_t nbytes)
{
    struct fixture *f = pair->f;
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(device, kind, nbytes, NULL, &memory), GG_OK);
    assert_true(f->memory_count < OWNED_ROOM && f->stream_count < OWNED_ROOM);
    return f->memories[f->memory_count++] = memory;
}

gg_memory *filled_on(struct pair *pair, gg_device *device, unsigned char value)
{
    gg_memory *memory = memory_on(pair, device, GG_MEMORY_DEVICE, NBYTES);
    assert_int_equal(fill_bytes(memory, value, NULL), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    return memory;
}

gg_stream *stream_on(struct pair *pair, gg_device *device)
{
    struct fixture *f = pair->f;
    gg_stream *stream = NULL;
    assert_int_equal(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
    return f->streams[f->stream_count++] = stream;
}

/* A direct copy needs no wait. */
static bool through_host(struct pair *pair)
{
    gg_memory *src = NULL, *dst = NULL;
    gg_stream *stream = NULL;
    assert_int_equal(gg_memory_alloc(pair->from, GG_MEMORY_DEVICE, 1, NULL, &src), GG_OK);
    assert_int_equal(gg_memory_alloc(pair->to, GG_MEMORY_DEVICE, 1, NULL, &dst), GG_OK);
    assert_int_equal(gg_stream_create(pair->from, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
    const gg_status status =
        copy(at(dst, 0), at(src, 0), 1, stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC);
    assert_true(status == GG_OK || status == GG_ERR_UNSUPPORTED);
    finish(stream);
    gg_stream_release(stream);
    gg_memory_release(src);
    gg_memory_release(dst);
    return status != GG_OK;
}

unsigned char first_byte(gg_memory *memory)
{
    unsigned char byte = 0;
    assert_int_equal(copy(host_at(&byte), at(memory, 0), 1, NULL, 0), GG_OK);
    return byte;
}

/* ---- pairs with direct copies, and pairs without ---- */

static bool for_each_of(void **state, bool through_host_wanted, void (*body)(struct pair *pair))
{
    struct devices all = all_devices(*state);
    bool any = false;
    for (size_t i = 0; i < all.count; i++)
        for (size_t j = 0; j < all.count; j++) {
            struct pair pair = {*state, all.device[i], all.device[j]};
            if (i == j || through_host(&pair) != through_host_wanted)
                continue;
            any = true;
            body(&pair);
        }
    return any;
}

void for_each_pair_apart(void **state, void (*body)(struct pair *pair))
{
    for_each_of(state, true, body);
}

void for_each_direct_pair(void **state, void (*body)(struct pair *pair))
{
    if (!for_each_of(state, false, body))
        skip_because("no two devices copy directly");
}
