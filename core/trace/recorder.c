/* recorder.c: each thread records its operations and ranges in memory of its own. */
#include "base/list.h"
#include "runtime/call.h"
#include "runtime/range.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHUNKS_MAX 9000u /* about 4.5 million records, 330 MiB */
#define RESERVED 32u /* chunks that the start of a session maps, 1.1 MiB: to map one takes 20 us */
#define OPEN_MAX 8   /* operations begun by one thread and not ended */
#define RANGES_MAX 64
#define DEVICE_TIMES 1u
#define NAMES_CACHED 256u
#define NAME_BLOCK 16384u

struct trace_names { /* copies of names, freed with the session */
    struct trace_names *next;
    size_t used, size;
    char text[];
};

struct trace_thread {
    struct ggi_trace_thread out; /* first: the writer sees this part */
    _Atomic(int) busy; /* the thread uses records, names or events, which the end of a session frees */
    _Atomic(bool) ended;
    /* of this thread alone */
    bool inside; /* operations of the recorder itself are not recorded */
    uint64_t session;
    int depth, ranges;
    struct {
        uint64_t begin_ns;
        _Atomic(gg_event *)
            event; /* exchanged for NULL, then released: by this thread, or at the end of the session */
    } open[OPEN_MAX];
    struct {
        uint64_t begin_ns;
        const char *name;
    } range[RANGES_MAX];
    struct trace_names *names;
    const char *cached[NAMES_CACHED];
};

/* A new number for each session, whose lowest bit is DEVICE_TIMES; 0 while nothing is recorded. */
static _Atomic(uint64_t) trace_session;
static _Atomic(uint32_t) trace_generation;
static _Atomic(uint32_t) trace_chunks;
static struct ggi_trace_chunk *trace_reserve; /* of a session; NULL if it could not be mapped */
static _Atomic(uint64_t) trace_dropped;
static _Atomic(struct ggi_trace_thread *) trace_threads;
static uint64_t trace_sessions;

static _Thread_local struct trace_thread *trace_mine;
static pthread_key_t trace_key;
static pthread_once_t trace_key_once = PTHREAD_ONCE_INIT;

/* ---- threads ---- */

static void trace_end_thread(void *pointer)
{
    struct trace_thread *thread = pointer;
    trace_mine = NULL;
    atomic_store(&thread->ended, true); /* gg_trace_stop frees it */
}

static void trace_make_key(void)
{
    pthread_key_create(&trace_key, trace_end_thread);
}

static struct trace_thread *trace_thread_new(void)
{
    pthread_once(&trace_key_once, trace_make_key);
    struct trace_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->out.tid = syscall(SYS_gettid);
    pthread_getname_np(pthread_self(), thread->out.name, sizeof thread->out.name);
    pthread_setspecific(trace_key, thread);
    ggi_list_push(&trace_threads, &thread->out);
    return trace_mine = thread;
}

static gg_event *trace_take_event(struct trace_thread *thread, int at)
{
    return atomic_exchange(&thread->open[at].event, NULL);
}

static void trace_drop_events(struct trace_thread *thread)
{
    for (int i = 0; i < OPEN_MAX; i++)
        gg_event_release(trace_take_event(thread, i));
}

/* This thread, if @p session may record it. An operation that began in an earlier session is not recorded in this one. */
static struct trace_thread *trace_owner(uint64_t session)
{
    if (!session || atomic_load_explicit(&trace_generation, memory_order_relaxed) !=
                        atomic_load_explicit(&ggi_generation, memory_order_relaxed))
        return NULL;
    struct trace_thread *thread = trace_mine ? trace_mine : trace_thread_new();
    if (!thread || thread->inside)
        return NULL;
    if (thread->session != session) {
        thread->depth = thread->ranges = 0;
        thread->session = session;
    }
    return thread;
}

static void trace_leave(struct trace_thread *thread)
{
    thread->inside = false;
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
}

/* The same, and gg_trace_stop waits until trace_leave, so that the thread may use what the session owns. */
static struct trace_thread *trace_enter(void)
{
    const uint64_t session = atomic_load_explicit(&trace_session, memory_order_acquire);
    struct trace_thread *thread = trace_owner(session);
    if (!thread)
        return NULL;
    atomic_store(&thread->busy, 1); /* first: either this thread or the stop sees the other's store */
    if (atomic_load(&trace_session) == session) {
        thread->inside = true;
        return thread;
    }
    trace_leave(thread);
    return NULL;
}

/* ---- records ---- */

/* Their pages are mapped at once: a fault for each of them, while operations run, would cost more than the records do. */
static struct ggi_trace_chunk *trace_map(size_t chunks)
{
    void *mapped = mmap(NULL, chunks * sizeof(struct ggi_trace_chunk), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static struct ggi_trace_chunk *trace_chunk_new(void)
{
    const uint32_t number = atomic_fetch_add(&trace_chunks, 1);
    if (number < RESERVED && trace_reserve)
        return trace_reserve + number;
    return number < CHUNKS_MAX ? trace_map(1) : NULL;
}

static bool trace_chunk_is_reserved(const struct ggi_trace_chunk *chunk)
{
    return trace_reserve && chunk >= trace_reserve && chunk < trace_reserve + RESERVED;
}

static struct ggi_trace_record *trace_new_record(struct trace_thread *thread)
{
    struct ggi_trace_chunk *chunk = thread->out.chunks;
    if (!chunk || chunk->used == GGI_TRACE_CHUNK) {
        chunk = trace_chunk_new();
        if (!chunk) {
            atomic_fetch_add(&trace_dropped, 1);
            return NULL;
        }
        chunk->used = 0;
        chunk->next = thread->out.chunks;
        thread->out.chunks = chunk;
    }
    return &chunk->record[chunk->used++];
}

static const char *trace_copy_name(struct trace_thread *thread, const char *name, size_t size)
{
    struct trace_names *block = thread->names;
    if (!block || block->size - block->used < size) {
        size_t room = size > NAME_BLOCK ? size : NAME_BLOCK;
        block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        block->size = room;
        block->used = 0;
        block->next = thread->names;
        thread->names = block;
    }
    char *copy = memcpy(block->text + block->used, name, size);
    block->used += size;
    return copy;
}

/* A copy that lives as long as the session. The names of a loop are copied once. */
static const char *trace_keep_name(struct trace_thread *thread, const char *name)
{
    uint32_t hash = 2166136261u;
    size_t length = 0;
    for (; name[length]; length++)
        hash = (hash ^ (unsigned char)name[length]) * 16777619u;
    const char **cached = &thread->cached[hash % NAMES_CACHED];
    if (!*cached || strcmp(*cached, name))
        *cached = trace_copy_name(thread, name, length + 1);
    return *cached;
}

/* An event before the operation, where times on the device are measured. */
static void trace_begin_on_device(struct gg_device *device, const struct gg_trace *trace, int at)
{
    struct trace_thread *thread = trace_enter();
    if (!thread)
        return;
    /* An event is there already if the recording was started again after the operation began. */
    gg_event_release(atomic_exchange(
        &thread->open[at].event,
        ggi_trace_device_begin(device, trace->op, (gg_stream *)(uintptr_t)trace->stream)));
    trace_leave(thread);
}

/* It writes only what no other thread reads, so it need not keep a stop waiting. */
static void trace_pre(struct gg_device *device, const struct gg_trace *trace)
{
    const uint64_t session = atomic_load_explicit(&trace_session, memory_order_acquire);
    struct trace_thread *thread = trace_owner(session);
    if (!thread)
        return;
    int at = thread->depth++;
    if (at >= OPEN_MAX)
        return;
    /* Before the event, by which the device's clock is placed on the host's. */
    thread->open[at].begin_ns = ggi_now_ns();
    if (session & DEVICE_TIMES)
        trace_begin_on_device(device, trace, at);
}

static void trace_fill(struct trace_thread *thread, struct ggi_trace_record *record,
                       const struct gg_trace *trace, uint64_t end_ns)
{
    const gg_stream *stream = trace->stream;
    *record = (struct ggi_trace_record){
        .begin_ns = thread->open[thread->depth].begin_ns,
        .end_ns = end_ns,
        .bytes = trace->bytes,
        .stream = stream ? stream->serial : 0,
        .name = trace->name ? trace_keep_name(thread, trace->name) : NULL,
        .backend = trace->backend,
        .op = trace->op,
        .device = trace->device,
        .status = trace->status,
        .device_ms = -1,
    };
}

static void trace_post(struct gg_device *device, const struct gg_trace *trace)
{
    struct trace_thread *thread = trace_enter();
    (void)device;
    if (!thread)
        return;
    if (thread->depth > 0 && --thread->depth < OPEN_MAX) {
        gg_event *begin =
            thread->session & DEVICE_TIMES ? trace_take_event(thread, thread->depth) : NULL;
        const uint64_t end_ns = ggi_now_ns(); /* before the record, which may need memory */
        struct ggi_trace_record *record = trace_new_record(thread);
        if (record)
            trace_fill(thread, record, trace, end_ns);
        if (begin && record && !trace->status)
            ggi_trace_device_end((gg_stream *)(uintptr_t)trace->stream, begin, record);
        else
            gg_event_release(begin);
    }
    trace_leave(thread);
}

/* ---- ranges ---- */

void gg_range_push(const char *name)
{
    ggi_range_push(name);
    struct trace_thread *thread = trace_enter();
    if (!thread)
        return;
    int at = thread->ranges++;
    if (at < RANGES_MAX) {
        thread->range[at].name = trace_keep_name(thread, name);
        thread->range[at].begin_ns = ggi_now_ns();
    }
    trace_leave(thread);
}

void gg_range_pop(void)
{
    ggi_range_pop();
    struct trace_thread *thread = trace_enter();
    if (!thread)
        return;
    if (thread->ranges > 0 && --thread->ranges < RANGES_MAX) {
        const uint64_t end_ns = ggi_now_ns();
        struct ggi_trace_record *record = trace_new_record(thread);
        if (record)
            *record = (struct ggi_trace_record){.begin_ns = thread->range[thread->ranges].begin_ns,
                                                .end_ns = end_ns,
                                                .name = thread->range[thread->ranges].name,
                                                .device_ms = -1};
    }
    trace_leave(thread);
}

/* ---- sessions ---- */

static const struct ggi_recorder trace_recorder = {.pre = trace_pre, .post = trace_post};

/* Forget what a fork has copied: only the forking thread exists in the child. */
static void trace_forget_parent(void)
{
    for (struct ggi_trace_thread *t = atomic_load(&trace_threads); t; t = t->next) {
        struct trace_thread *thread = (struct trace_thread *)t;
        atomic_store(&thread->busy, 0);
        if (thread != trace_mine)
            atomic_store(&thread->ended, true);
        else
            thread->out.tid = syscall(SYS_gettid);
        for (int i = 0; i < OPEN_MAX; i++) /* the parent's */
            atomic_store(&thread->open[i].event, NULL);
    }
    ggi_trace_device_reset();
    ggi_trace_session_free();
}

void ggi_trace_session_begin(bool device_times)
{
    uint32_t generation = atomic_load(&ggi_generation);
    if (atomic_exchange(&trace_generation, generation) != generation)
        trace_forget_parent();
    trace_reserve = trace_map(RESERVED);
    atomic_store(&trace_session, ++trace_sessions * 2 + (device_times ? DEVICE_TIMES : 0));
    ggi_set_recorder(&trace_recorder);
}

bool ggi_trace_session_is_open(void)
{
    return atomic_load(&trace_session) &&
           atomic_load(&trace_generation) == atomic_load(&ggi_generation);
}

const struct ggi_trace_thread *ggi_trace_session_end(uint64_t *dropped)
{
    ggi_set_recorder(NULL);
    atomic_store(&trace_session, 0);
    for (struct ggi_trace_thread *t = atomic_load(&trace_threads); t; t = t->next)
        while (atomic_load(&((struct trace_thread *)t)->busy) &&
               (struct trace_thread *)t != trace_mine)
            nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    struct trace_thread *mine = trace_mine;
    if (mine)
        mine->inside = true;
    ggi_trace_device_finish();
    if (mine)
        mine->inside = false;
    *dropped = atomic_load(&trace_dropped);
    return atomic_load(&trace_threads);
}

static void trace_thread_free_records(struct trace_thread *thread)
{
    for (struct ggi_trace_chunk *chunk = thread->out.chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (!trace_chunk_is_reserved(chunk))
            munmap(chunk, sizeof *chunk);
    }
    for (struct trace_names *block = thread->names, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    thread->out.chunks = NULL;
    thread->names = NULL;
    memset(thread->cached, 0, sizeof thread->cached);
}

void ggi_trace_session_free(void)
{
    struct ggi_trace_thread *thread = atomic_exchange(&trace_threads, NULL), *next;
    for (; thread; thread = next) {
        struct trace_thread *full = (struct trace_thread *)thread;
        next = thread->next;
        trace_thread_free_records(full);
        trace_drop_events(full);
        if (atomic_load(&full->ended))
            free(full);
        else
            ggi_list_push(&trace_threads, thread);
    }
    if (trace_reserve)
        munmap(trace_reserve, RESERVED * sizeof *trace_reserve);
    trace_reserve = NULL;
    atomic_store(&trace_chunks, 0);
    atomic_store(&trace_dropped, 0);
}
