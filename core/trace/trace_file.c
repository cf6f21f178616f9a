/* trace_file.c: the recorded operations as JSON in the Trace Event Format. Every event is complete ("X"): begin and
 * duration in microseconds. The device's rows are threads of the same process, whose numbers no real thread has.
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
#include "base/list.h"
#include "trace/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_ROW 5000000 /* above the largest thread id of Linux, 2^22 */

/* One stream of one device: a row of the picture. */
struct trace_row {
    const char *backend;
    int32_t device;
    uint64_t stream;
};
/* Adding it to a time since the device's first operation gives the host's clock. */
struct trace_offset {
    const char *backend;
    int32_t device;
    double ns;
};

struct trace_out {
    FILE *file;
    int pid;
    const char *comma;
    struct trace_row *rows;
    size_t row_count;
    struct trace_offset *offsets;
    size_t offset_count;
};

/* ---- JSON ---- */

/* The length of the UTF-8 sequence at @p text; 0 if it is not valid. */
static size_t trace_utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc2 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                    : text[0] < 0xf5 ? 4
                                     : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static void trace_put_string(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t length = trace_utf8_length(at);
        if (!length)
            fputs("\\ufffd", file);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(file, "\\u%04x", *at);
        else
            fwrite(at, 1, length, file);
        at += length ? length : 1;
    }
    putc('"', file);
}

static void trace_put_times(const struct trace_out *out, long tid, double begin_ns, double ns)
{
    fprintf(out->file, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%ld,\"ts\":%.3f,\"dur\":%.3f", out->pid,
            tid, begin_ns / 1e3, ns / 1e3);
}

static void trace_put_row_name(struct trace_out *out, long tid, const char *name)
{
    fprintf(out->file,
            "%s\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%ld,\"name\":\"thread_name\",\"args\":{\"name\":",
            out->comma, out->pid, tid);
    trace_put_string(out->file, name);
    fputs("}}", out->file);
    out->comma = ",";
}

/* ---- rows and offsets of devices ---- */

static long trace_row_of(struct trace_out *out, const struct ggi_trace_record *record)
{
    size_t i = 0;
    char name[96];
    for (; i < out->row_count; i++)
        if (out->rows[i].backend == record->backend && out->rows[i].device == record->device &&
            out->rows[i].stream == record->stream)
            return FIRST_ROW + (long)i;
    struct trace_row *grown = ggi_array_grow(out->rows, out->row_count, sizeof *grown);
    if (!grown)
        return FIRST_ROW;
    out->rows = grown;
    out->rows[out->row_count++] =
        (struct trace_row){record->backend, record->device, record->stream};
    snprintf(name, sizeof name, "%s:%d stream %" PRIu64, record->backend, (int)record->device,
             record->stream);
    trace_put_row_name(out, FIRST_ROW + (long)i, name);
    return FIRST_ROW + (long)i;
}

static struct trace_offset *trace_offset_of(struct trace_out *out,
                                            const struct ggi_trace_record *record)
{
    for (size_t i = 0; i < out->offset_count; i++)
        if (out->offsets[i].backend == record->backend && out->offsets[i].device == record->device)
            return &out->offsets[i];
    struct trace_offset *grown = ggi_array_grow(out->offsets, out->offset_count, sizeof *grown);
    if (!grown)
        return NULL;
    out->offsets = grown;
    grown += out->offset_count++;
    *grown = (struct trace_offset){record->backend, record->device, 0};
    return grown;
}

/* The device's clock has another origin. It is placed so that no operation begins before the host has submitted it,
 * and at least one begins at once. */
static void trace_align(struct trace_out *out, const struct ggi_trace_record *record, long tid)
{
    (void)tid;
    struct trace_offset *offset = record->device_ms >= 0 ? trace_offset_of(out, record) : NULL;
    double ns = (double)record->begin_ns - record->device_begin_ms * 1e6;
    if (offset && ns > offset->ns)
        offset->ns = ns;
}

/* ---- events ---- */

static void trace_put_name(const struct trace_out *out, const struct ggi_trace_record *record)
{
    fprintf(out->file, "%s\n{\"name\":", out->comma);
    if (record->name || !record->backend)
        trace_put_string(out->file, record->name ? record->name : "");
    else
        trace_put_string(out->file, gg_op_name(record->op));
}

static void trace_put_arguments(const struct trace_out *out, const struct ggi_trace_record *record)
{
    fprintf(out->file, ",\"args\":{\"operation\":\"%s\",\"device\":\"%s:%d\"",
            gg_op_name(record->op), record->backend, (int)record->device);
    if (record->stream)
        fprintf(out->file, ",\"stream\":%" PRIu64, record->stream);
    if (record->bytes)
        fprintf(out->file, ",\"bytes\":%" PRIu64, record->bytes);
    if (record->status)
        fprintf(out->file, ",\"status\":\"%s\"", gg_status_name(record->status));
    fputs("}}", out->file);
}

static void trace_put_record(struct trace_out *out, const struct ggi_trace_record *record, long tid)
{
    const double begin = (double)record->begin_ns, ns = (double)(record->end_ns - record->begin_ns);
    trace_put_name(out, record);
    out->comma = ",";
    fprintf(out->file, ",\"cat\":\"%s\"", record->backend ? "host" : "range");
    trace_put_times(out, tid, begin, ns);
    if (!record->backend) {
        putc('}', out->file);
        return;
    }
    trace_put_arguments(out, record);
    if (record->device_ms < 0)
        return;
    long row = trace_row_of(out, record);
    const struct trace_offset *offset = trace_offset_of(out, record);
    trace_put_name(out, record);
    fputs(",\"cat\":\"device\"", out->file);
    trace_put_times(out, row, (offset ? offset->ns : begin) + record->device_begin_ms * 1e6,
                    (double)record->device_ms * 1e6);
    trace_put_arguments(out, record);
}

static void trace_each(struct trace_out *out, const struct ggi_trace_thread *thread,
                       void (*function)(struct trace_out *, const struct ggi_trace_record *, long))
{
    for (const struct ggi_trace_chunk *chunk = thread->chunks; chunk; chunk = chunk->next)
        for (size_t i = 0; i < chunk->used; i++)
            function(out, &chunk->record[i], thread->tid);
}

static void trace_put_header(const struct trace_out *out, uint64_t dropped)
{
    struct timespec unix_time, monotonic;
    clock_gettime(CLOCK_REALTIME, &unix_time);
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    fprintf(out->file,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"gpuglue "
            "%s\",\"clock\":\"CLOCK_MONOTONIC\","
            "\"unix_minus_clock_s\":%.6f,\"dropped_records\":%" PRIu64 "},\n\"traceEvents\":[",
            gg_version(),
            (double)(unix_time.tv_sec - monotonic.tv_sec) +
                (double)(unix_time.tv_nsec - monotonic.tv_nsec) * 1e-9,
            dropped);
}

void ggi_trace_write(FILE *file, const struct ggi_trace_thread *threads, uint64_t dropped)
{
    struct trace_out out = {.file = file, .pid = (int)getpid(), .comma = ""};
    trace_put_header(&out, dropped);
    for (const struct ggi_trace_thread *thread = threads; thread; thread = thread->next)
        trace_each(&out, thread, trace_align);
    for (const struct ggi_trace_thread *thread = threads; thread; thread = thread->next) {
        if (!thread->chunks)
            continue;
        trace_put_row_name(&out, thread->tid, thread->name);
        trace_each(&out, thread, trace_put_record);
    }
    fputs("\n]}\n", file);
    free(out.rows);
    free(out.offsets);
}
