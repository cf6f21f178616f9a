/* sim_capture.c: stream capture: work is recorded instead of queued, and unsafe calls invalidate
 * the capture. */
#include "sim_control.h"
#include "sim_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Thread_local enum sim_capture_mode sim_capture_thread_mode = SIM_CAPTURE_GLOBAL;

static struct sim_capture *captures;

static unsigned long this_thread(void)
{
    return (unsigned long)gettid();
}

struct sim_capture *sim_capture_find(uint64_t id)
{
    struct sim_capture *capture = id ? captures : NULL;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

int sim_capture_begin(struct sim_queue *queue, enum sim_capture_mode mode)
{
    struct sim_capture *capture;
    if (queue->legacy)
        return SIM_CAPTURE_UNSUPPORTED;
    if (queue->capture)
        return SIM_ILLEGAL_STATE;
    capture = calloc(1, sizeof *capture);
    if (!capture)
        return SIM_NO_MEMORY;
    capture->graph = sim_table_take(&sim_graphs);
    if (!capture->graph) {
        free(capture);
        return SIM_NO_MEMORY;
    }
    capture->graph->slot.internal = true; /* until the client receives it */
    capture->origin = queue;
    capture->mode = mode;
    capture->thread = this_thread();
    capture->id = sim_serial();
    capture->next = captures;
    captures = capture;
    queue->capture = capture;
    return SIM_OK;
}

/* Removes every queue from a capture. Returns true if one of them was not joined to the origin. */
static bool release_queues(const struct sim_capture *capture)
{
    bool unjoined = false;
    for (struct sim_queue *queue = sim_table_next(&sim_queues, NULL); queue;
         queue = sim_table_next(&sim_queues, queue)) {
        if (queue->capture != capture)
            continue;
        unjoined = unjoined || queue->unjoined;
        queue->capture = NULL;
        queue->unjoined = false;
    }
    return unjoined;
}

static void unlink_capture(struct sim_capture *capture)
{
    struct sim_capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

static bool has_unjoined(const struct sim_capture *capture)
{
    for (struct sim_queue *queue = sim_table_next(&sim_queues, NULL); queue;
         queue = sim_table_next(&sim_queues, queue))
        if (queue->capture == capture && queue->unjoined)
            return true;
    return false;
}

/* The driver has removed the capture from its lists already, and frees it again. */
static void check_not_left(const struct sim_capture *capture)
{
    if (!capture->left)
        return;
    fprintf(stderr, "sim: a capture that has failed was ended again\n");
    abort();
}

int sim_capture_end(struct sim_queue *queue, bool leave, struct sim_graph **out)
{
    struct sim_capture *capture = queue->capture;
    struct sim_graph *graph;
    int status = SIM_OK;
    if (!capture)
        return SIM_ILLEGAL_STATE;
    if (capture->origin != queue)
        return SIM_CAPTURE_UNMATCHED;
    if (capture->mode != SIM_CAPTURE_RELAXED && capture->thread != this_thread())
        return SIM_CAPTURE_WRONG_THREAD;
    check_not_left(capture);
    if (capture->invalid)
        status = SIM_CAPTURE_INVALIDATED;
    if (leave && (status || has_unjoined(capture))) {
        capture->left = capture->invalid = true;
        return status ? status : SIM_CAPTURE_UNJOINED;
    }
    if (release_queues(capture) && !status)
        status = SIM_CAPTURE_UNJOINED;
    graph = capture->graph;
    unlink_capture(capture);
    graph->slot.internal = false;
    if (status)
        sim_graph_destroy(&sim_graphs, graph);
    else
        *out = graph;
    return status;
}

void sim_capture_forget(struct sim_queue *queue)
{
    struct sim_capture *capture = queue->capture;
    if (!capture)
        return;
    capture->invalid = true;
    if (capture->origin != queue)
        return;
    release_queues(capture);
    sim_graph_destroy(&sim_graphs, capture->graph);
    unlink_capture(capture);
}

int sim_capture_work(struct sim_queue *queue, const struct sim_work *work)
{
    if (queue->capture->invalid)
        return SIM_CAPTURE_INVALIDATED;
    if (queue->capture->origin != queue)
        queue->unjoined = true;
    return sim_graph_add(queue->capture->graph, work);
}

/* A wait adds a queue to the capture, joins it back, or fails where two captures would merge. */
int sim_capture_wait(struct sim_queue *queue, struct sim_event *event)
{
    struct sim_capture *from = sim_capture_find(event->capture_id);
    if (!queue->capture) {
        if (queue->legacy || from->invalid) {
            from->invalid = true;
            return queue->legacy ? SIM_CAPTURE_IMPLICIT : SIM_CAPTURE_INVALIDATED;
        }
        queue->capture = from;
        queue->unjoined = !sim.joins_idle;
        return SIM_OK;
    }
    if (queue->capture->invalid)
        return SIM_CAPTURE_INVALIDATED;
    if (from == queue->capture) {
        event->captured_on->unjoined = false;
        return SIM_OK;
    }
    queue->capture->invalid = true;
    if (from)
        from->invalid = true;
    return from ? SIM_CAPTURE_MERGE : SIM_CAPTURE_ISOLATION;
}

int sim_capture_unsafe(void)
{
    int status = SIM_OK;
    if (sim_capture_thread_mode == SIM_CAPTURE_RELAXED)
        return SIM_OK;
    for (struct sim_capture *capture = captures; capture; capture = capture->next) {
        bool own = capture->thread == this_thread() && capture->mode != SIM_CAPTURE_RELAXED;
        bool global =
            capture->mode == SIM_CAPTURE_GLOBAL && sim_capture_thread_mode == SIM_CAPTURE_GLOBAL;
        if ((!own && !global) || capture->left)
            continue;
        capture->invalid = true;
        status = SIM_CAPTURE_UNSUPPORTED;
    }
    return status;
}

int sim_capture_refuse(struct sim_queue *queue)
{
    if (!queue->capture)
        return SIM_OK;
    queue->capture->invalid = true;
    return SIM_CAPTURE_UNSUPPORTED;
}

int sim_capture_refuse_all(const struct sim_context *context)
{
    int status = SIM_OK;
    for (struct sim_queue *queue = sim_table_next(&sim_queues, NULL); queue;
         queue = sim_table_next(&sim_queues, queue))
        if ((!context || queue->context == context) && !(queue->capture && queue->capture->left) &&
            sim_capture_refuse(queue))
            status = SIM_CAPTURE_UNSUPPORTED;
    return status;
}

/* The next capturing queue that is ordered with the null stream. */
static struct sim_queue *ordered_capture(struct sim_context *context, struct sim_queue *queue)
{
    if (!captures)
        return NULL;
    do
        queue = sim_table_next(&sim_queues, queue);
    while (queue && (queue->context != context || !queue->capture || queue->capture->left ||
                     queue->nonblocking));
    return queue;
}

bool sim_capture_beside(struct sim_context *context)
{
    return ordered_capture(context, NULL);
}

int sim_capture_implicit(struct sim_context *context)
{
    int status = SIM_OK;
    for (struct sim_queue *queue = ordered_capture(context, NULL); queue;
         queue = ordered_capture(context, queue)) {
        queue->capture->invalid = true;
        status = SIM_CAPTURE_IMPLICIT;
    }
    return status;
}

int sim_graph_add(struct sim_graph *graph, const struct sim_work *work)
{
    struct sim_work *grown = realloc(graph->work, (graph->count + 1) * sizeof *grown);
    if (!grown)
        return SIM_NO_MEMORY;
    graph->work = grown;
    graph->work[graph->count++] = *work;
    return SIM_OK;
}

int sim_graph_copy(struct sim_table *table, const struct sim_graph *from, struct sim_graph **out)
{
    struct sim_graph *copy = sim_table_take(table);
    int status = copy ? SIM_OK : SIM_NO_MEMORY;
    for (size_t i = 0; !status && i < from->count; i++)
        status = sim_graph_add(copy, &from->work[i]);
    if (!status)
        *out = copy;
    return status;
}

int sim_graph_launch(const struct sim_graph *graph, struct sim_queue *queue)
{
    int status = SIM_OK;
    for (size_t i = 0; !status && i < graph->count; i++)
        status = sim_queue_submit(queue, &graph->work[i]);
    return status;
}

/* Drivers accept other arguments of the same work, not other work. */
int sim_graph_update(struct sim_graph *exec, const struct sim_graph *graph, bool partly)
{
    size_t same = 0;
    if (exec->count != graph->count)
        return SIM_UPDATE_FAILURE;
    while (same < graph->count && exec->work[same].kind == graph->work[same].kind)
        same++;
    if (same && (partly || same == graph->count))
        memcpy(exec->work, graph->work, same * sizeof *graph->work);
    return same == graph->count ? SIM_OK : SIM_UPDATE_FAILURE;
}

static int captured_in(struct sim_table *table, sim_host_function function,
                       int (*mine)(const void *data, const void *of), const void *of)
{
    int count = 0;
    for (const struct sim_graph *graph = sim_table_next(table, NULL); graph;
         graph = sim_table_next(table, graph))
        for (size_t i = 0; i < graph->count; i++)
            count += graph->work[i].kind == SIM_HOST && graph->work[i].host.run == function &&
                     mine(graph->work[i].host.data, of);
    return count;
}

int sim_captured(void (*function)(void *data), int (*mine)(const void *data, const void *of),
                 const void *of)
{
    pthread_mutex_lock(&sim.lock);
    const int count =
        captured_in(&sim_graphs, function, mine, of) + captured_in(&sim_execs, function, mine, of);
    pthread_mutex_unlock(&sim.lock);
    return count;
}

static void visit_work(const struct sim_work *work, void (*visit)(const void *address))
{
    if (work->kind == SIM_HOST)
        visit(work->host.data);
    if (work->kind != SIM_COPY)
        return;
    visit((const void *)(uintptr_t)work->copy.src);
    visit((const void *)(uintptr_t)work->copy.dst);
}

static void visit_graphs(struct sim_table *table, void (*visit)(const void *address))
{
    for (const struct sim_graph *graph = sim_table_next(table, NULL); graph;
         graph = sim_table_next(table, graph))
        for (size_t i = 0; i < graph->count; i++)
            visit_work(&graph->work[i], visit);
}

void sim_each_use(void (*visit)(const void *address))
{
    pthread_mutex_lock(&sim.lock);
    for (const struct sim_command *command = sim_oldest; command; command = command->next)
        visit_work(&command->work, visit);
    visit_graphs(&sim_graphs, visit);
    visit_graphs(&sim_execs, visit);
    pthread_mutex_unlock(&sim.lock);
}

void sim_graph_destroy(struct sim_table *table, struct sim_graph *graph)
{
    free(graph->work);
    graph->work = NULL;
    graph->count = 0;
    sim_table_drop(table, graph);
}
