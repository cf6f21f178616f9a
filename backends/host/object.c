/* object.c: the list of a device's streams or events, in which a native handle is looked up. */
#include "host.h"

void host_object_add(struct gg_device_impl *device, struct host_object **list,
                     struct host_object *object)
{
    pthread_mutex_lock(&device->lock);
    object->refs = 1;
    object->next = *list;
    object->previous = NULL;
    if (*list)
        (*list)->previous = object;
    *list = object;
    pthread_mutex_unlock(&device->lock);
}

/* Compares addresses without dereferencing @p native, so any number is safe. @p list is a pointer to the
 * head because the head is read with the lock held. */
struct host_object *host_object_find(struct gg_device_impl *device, struct host_object **list,
                                     uint64_t native)
{
    pthread_mutex_lock(&device->lock);
    struct host_object *object = *list;
    while (object && (uint64_t)(uintptr_t)object != native)
        object = object->next;
    if (object)
        object->refs++;
    pthread_mutex_unlock(&device->lock);
    return object;
}

bool host_object_drop(struct gg_device_impl *device, struct host_object **list,
                      struct host_object *object)
{
    pthread_mutex_lock(&device->lock);
    const bool last = --object->refs == 0;
    if (last && object->next)
        object->next->previous = object->previous;
    if (last && object->previous)
        object->previous->next = object->next;
    else if (last)
        *list = object->next;
    pthread_mutex_unlock(&device->lock);
    return last;
}
