/* shared.c: memory that other processes can map: ranges of one file in memory per device, which has no name and
 * vanishes with its last user. A range of the file is never used twice: a handle to freed memory leads to zeros, not to the
 * data of others.
 *
 * A program may close descriptors that it does not know (a daemon that starts, os.closerange), and then get the file's
 * number for a file of its own. So the number is used only while it still is the device's file; else there will be another. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGE_UNIT ((uint64_t)2 << 20) /* a huge page */

static void *file_map(int file, uint64_t offset, size_t nbytes, void *at)
{
    void *base = mmap(at, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), file,
                      (off_t)offset);
    return base == MAP_FAILED ? NULL : base;
}

static bool file_is_open(const struct gg_device_impl *device)
{
    struct stat found;
    return device->file >= 0 && !fstat(device->file, &found) &&
           found.st_ino == device->file_inode && S_ISREG(found.st_mode) && !found.st_nlink;
}

/* With memory_lock held. */
static bool file_open(struct gg_device_impl *device)
{
    struct stat made;
    if (file_is_open(device))
        return true;
    device->file =
        (int)syscall(SYS_memfd_create, HOST_FILE_NAME, MFD_CLOEXEC); /* in glibc since 2.27 */
    device->file_end = 0;
    if (device->file < 0 || fstat(device->file, &made))
        return false;
    device->file_inode = made.st_ino;
    return true;
}

/* Beyond the limit of `ulimit -f` the kernel ends the program by SIGXFSZ. */
static bool file_may_have(uint64_t size)
{
    struct rlimit limit;
    const bool fits = getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
    if (!fits)
        errno = EFBIG;
    return fits;
}

/* With memory_lock held. */
static bool file_extend(struct gg_device_impl *device, struct host_block *block)
{
    const uint64_t size = (block->size + RANGE_UNIT - 1) / RANGE_UNIT * RANGE_UNIT;
    if (!file_open(device) || !file_may_have(device->file_end + size) ||
        ftruncate(device->file, (off_t)(device->file_end + size)))
        return false;
    block->inode = device->file_inode;
    block->offset = device->file_end;
    device->file_end += size;
    return true;
}

void host_shared_close(struct gg_device_impl *device)
{
    if (file_is_open(device))
        close(device->file);
}

bool host_shared_is_current(const struct gg_device_impl *device, const struct host_block *block)
{
    return block->shared && block->inode == device->file_inode && file_is_open(device);
}

bool host_shared_allocate(struct gg_device_impl *device, struct host_block *block)
{
    pthread_mutex_lock(&device->memory_lock);
    const bool extended = file_extend(device, block);
    pthread_mutex_unlock(&device->memory_lock);
    if (!extended)
        return false;
    block->base = file_map(device->file, block->offset, block->size, NULL);
    block->shared = block->base != NULL;
    if (block->shared)
        madvise(block->base, block->size, MADV_HUGEPAGE); /* for kernels that have them in files */
    return block->shared;
}

void host_shared_free(struct gg_device_impl *device, const struct host_block *block)
{
    munmap(block->base, block->size);
    if (host_shared_is_current(device, block))
        fallocate(device->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)block->offset,
                  (off_t)block->size);
}

/* Its peers may use the device's memory, too. */
static void device_and_peers_pause(struct gg_device_impl *device)
{
    host_device_pause(device);
    for (int i = 0; i < HOST_DEVICES_MAX; i++)
        if (atomic_load(&device->peers[i]))
            host_device_pause(atomic_load(&device->peers[i]));
}

static void device_and_peers_resume(struct gg_device_impl *device)
{
    for (int i = 0; i < HOST_DEVICES_MAX; i++)
        if (atomic_load(&device->peers[i]))
            host_device_resume(atomic_load(&device->peers[i]));
    host_device_resume(device);
}

gg_status host_shared_convert(struct gg_device_impl *device, struct host_block *block)
{
    struct host_block copy = {.size = block->size};
    gg_status status = host_device_synchronize(device);
    if (status)
        return status;
    if (!host_shared_allocate(device, &copy))
        goto no_memory;
    device_and_peers_pause(device); /* or what is written meanwhile would be lost */
    memcpy(copy.base, block->base, block->size);
    const bool mapped = file_map(device->file, copy.offset, block->size, block->base);
    device_and_peers_resume(device);
    if (!mapped) {
        host_shared_free(device, &copy);
        goto no_memory;
    }
    munmap(copy.base, copy.size);
    block->inode = copy.inode;
    block->offset = copy.offset;
    block->shared = true;
    return GG_OK;

no_memory:
    return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL,
                          "%zu bytes cannot be shared with other processes: %s", block->size,
                          strerror(errno));
}
