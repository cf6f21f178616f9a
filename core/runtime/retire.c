/* retire.c: released objects that the device may still use. A release is one push and calls no driver. A drain examines
 * each object, unless its release knows what it waits for, and keeps those in use: with the stream that it has to wait for, by
 * ticket, so that it is not examined again before; or in a list. */
#include "base/list.h"
#include "runtime/retire.h"
#include "runtime/stream.h"

void ggi_retire(struct gg_device *device, struct ggi_retired *item)
{
    ggi_list_push(&device->retired, item);
}

struct ggi_retired *ggi_retire_next(struct gg_device *device)
{
    if (!device->fresh)
        device->fresh = atomic_exchange(&device->retired, NULL);
    struct ggi_retired *item = device->fresh;
    if (item)
        device->fresh = item->next;
    return item;
}

void ggi_retire_examine_unknown(struct gg_device *device)
{
    struct ggi_retired_queue *queue = &device->unknown;
    if (!queue->first)
        return;
    queue->last->next = device->fresh;
    device->fresh = queue->first;
    queue->first = NULL;
}

/* ---- leftist heaps: each operation takes logarithmic time in the worst case ---- */

static uint32_t heap_rank(const struct ggi_retired *heap)
{
    return heap ? heap->rank : 0;
}

static struct ggi_retired *heap_merge(struct ggi_retired *a, struct ggi_retired *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->ticket < a->ticket) {
        struct ggi_retired *swap = a;
        a = b;
        b = swap;
    }
    struct ggi_retired *right = heap_merge(a->next, b), *left = a->left;
    const bool swapped = heap_rank(left) < heap_rank(right);
    a->left = swapped ? right : left;
    a->next = swapped ? left : right;
    a->rank = heap_rank(a->next) + 1;
    return a;
}

/* ---- what is kept ---- */

static void queue_push(struct ggi_retired_queue *queue, struct ggi_retired *item)
{
    item->next = NULL;
    if (queue->first)
        queue->last->next = item;
    else
        queue->first = item;
    queue->last = item;
}

/* ---- the objects that wait for a stream: most come in the order of their tickets, and the others are in the heap ---- */

struct ggi_retired *ggi_retire_first(const gg_stream *stream)
{
    struct ggi_retired *next = stream->held_in_order.first, *other = stream->held;
    return other && (!next || other->ticket < next->ticket) ? other : next;
}

struct ggi_retired *ggi_retire_pop(gg_stream *stream)
{
    struct ggi_retired *item = ggi_retire_first(stream);
    if (item == stream->held)
        stream->held = heap_merge(item->left, item->next);
    else
        stream->held_in_order.first = item->next;
    return item;
}

/* A later object of the queue is written, not read: it is in no cache any more. */
static void held_push(gg_stream *stream, struct ggi_retired *item)
{
    if (!stream->held_in_order.first || item->ticket >= stream->held_ticket) {
        queue_push(&stream->held_in_order, item);
    } else {
        item->left = item->next = NULL;
        item->rank = 1;
        stream->held = heap_merge(stream->held, item);
    }
    if (stream->held_ticket < item->ticket)
        stream->held_ticket = item->ticket;
}

void ggi_retire_list(struct ggi_holding *list, gg_stream *stream)
{
    stream->holding = list;
    stream->next_holding = NULL;
    stream->previous_holding = list->last;
    *(list->last ? &list->last->next_holding : &list->first) = stream;
    list->last = stream;
    list->count++;
}

void ggi_retire_unlist(gg_stream *stream)
{
    struct ggi_holding *list = stream->holding;
    gg_stream *next = stream->next_holding, *previous = stream->previous_holding;
    *(previous ? &previous->next_holding : &list->first) = next;
    *(next ? &next->previous_holding : &list->last) = previous;
    list->count--;
    stream->holding = NULL;
}

void ggi_retire_hold(struct ggi_retired *item)
{
    gg_stream *stream = item->after;
    struct ggi_holding *list = &stream->device->holding;
    held_push(stream, item);
    if (stream->holding == list)
        return;
    if (stream->holding)
        ggi_retire_unlist(stream);
    ggi_retire_list(list, stream);
}

struct ggi_retired_queue *ggi_retire_keep(struct gg_device *device, struct ggi_retired *item)
{
    struct ggi_retired_queue *queue = item->never      ? &device->never
                                      : item->unknown  ? &device->unknown
                                      : item->may_wait ? &device->may_wait
                                                       : &device->pending;
    if (queue == &device->pending && item->after) {
        ggi_retire_hold(item);
        return NULL;
    }
    queue_push(queue, item);
    return queue;
}

static void retire_flatten_list(struct gg_device *device, struct ggi_holding *list)
{
    for (gg_stream *stream; (stream = list->first);) {
        ggi_retire_unlist(stream);
        while (ggi_retire_first(stream))
            queue_push(&device->pending, ggi_retire_pop(stream));
    }
}

void ggi_retire_flatten(struct gg_device *device)
{
    retire_flatten_list(device, &device->holding);
    retire_flatten_list(device, &device->busy_holding);
}

static struct ggi_retired *queue_pick(struct ggi_retired_queue *queue,
                                      bool (*want)(const struct ggi_retired *item, const void *what),
                                      const void *what)
{
    struct ggi_retired *item, *previous = NULL;
    for (item = queue->first; item && !want(item, what); item = item->next)
        previous = item;
    if (!item)
        return NULL;
    *(previous ? &previous->next : &queue->first) = item->next;
    if (queue->last == item)
        queue->last = previous;
    return item;
}

struct ggi_retired *ggi_retire_pick(struct gg_device *device,
                                    bool (*want)(const struct ggi_retired *item, const void *what),
                                    const void *what)
{
    struct ggi_retired *item;
    ggi_retire_examine_unknown(device);
    while ((item = ggi_retire_next(device)))
        queue_push(item->may_wait ? &device->may_wait : &device->pending, item);
    item = queue_pick(&device->pending, want, what);
    if (!item)
        item = queue_pick(&device->may_wait, want, what);
    ggi_retire_note_waiting(device); /* so that the next drain runs */
    return item;
}

void ggi_retire_note_waiting(struct gg_device *device)
{
    atomic_store(&device->waiting, device->fresh || device->pending.first ||
                                       device->may_wait.first || device->unknown.first ||
                                       device->holding.first || device->busy_holding.first);
}
