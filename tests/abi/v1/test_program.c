/* test_program.c: a program of ABI 1, built with the headers in this directory and linked to today's library. Do not change
 * it: what it does must work with every library of that ABI. The argument is the file of the host kernels. */
#include "../guard.h"

#include <dlfcn.h>
#include <gpuglue/gpuglue.h>

static gg_device *device;
static const char *kernels_path;

static int open_device(void **state)
{
    (void)state;
    return gg_device_get("host", 0, &device) != GG_OK;
}

static void the_library_has_the_abi_of_the_headers(void **state)
{
    (void)state;
    assert_int_equal(gg_abi() >> 16, GG_ABI_MAJOR);
    assert_true((gg_abi() & 0xffff) >= GG_ABI_MINOR);
}

static void the_librarys_symbols_have_the_version_of_the_abi(void **state)
{
    (void)state;
    assert_non_null(dlvsym(RTLD_DEFAULT, "gg_version", "GPUGLUE_1"));
}

/* Each function writes no more than the struct of these headers. */
#define CHECK_ANSWER(type, call)                                   \
    do {                                                           \
        GUARDED(struct type) theirs;                               \
        GUARD_SET(theirs);                                         \
        theirs.struct_size = sizeof(struct type);                  \
        assert_int_equal(call, GG_OK);                             \
        assert_int_equal(theirs.struct_size, sizeof(struct type)); \
        GUARD_CHECK(theirs, sizeof(struct type));                  \
    } while (0)

static void structs_of_the_headers_are_filled_and_nothing_behind_them(void **state)
{
    gg_device *found;
    char local;
    (void)state;
    CHECK_ANSWER(gg_device_info, gg_device_info(device, &theirs.known));
    CHECK_ANSWER(gg_memory_stats, gg_device_memory_stats(device, &theirs.known));
    CHECK_ANSWER(gg_pool_stats, gg_pool_stats(device, GG_MEMORY_DEVICE, &theirs.known));
    CHECK_ANSWER(gg_pointer_info, gg_pointer_query(&local, &found, &theirs.known));
    CHECK_ANSWER(gg_error, gg_last_error(&theirs.known));
}

static void reports_are_read_one_after_another(void **state)
{
    struct gg_reports *reports;
    int hosts = 0;
    (void)state;
    assert_int_equal(gg_probe(GG_ACTIVE, &reports), GG_OK);
    for (size_t i = 0; i < reports->count; i++) {
        const struct gg_report *report = gg_report_at(reports, i);
        for (size_t j = 0; j < report->tried_count; j++)
            assert_non_null(gg_tried_at(report, j)->outcome);
        hosts += !strcmp(report->name, "host") && report->status == GG_PROBE_AVAILABLE;
    }
    assert_int_equal(hosts, 1);
    gg_reports_free(reports);
}

static void the_last_error_names_what_was_wrong(void **state)
{
    struct gg_error error = {.struct_size = sizeof error};
    gg_device *none;
    (void)state;
    assert_int_equal(gg_device_get("host", 99, &none), GG_ERR_NO_SUCH_DEVICE);
    assert_int_equal(gg_last_error(&error), GG_OK);
    assert_int_equal(error.status, GG_ERR_NO_SUCH_DEVICE);
    assert_non_null(strstr(error.message, "99"));
}

static void bytes_are_copied_to_the_device_and_back(void **state)
{
    uint32_t in[100], out[100] = {0};
    gg_memory *memory;
    gg_stream *stream;
    gg_event *event;
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        in[i] = i * i;
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, sizeof in, NULL, &memory), GG_OK);
    assert_int_equal(gg_stream_create(device, 0, 0, &stream), GG_OK);
    assert_int_equal(gg_event_create(device, 0, &event), GG_OK);
    const struct gg_copy_operand on_device = {.memory = memory}, from = {.host = in},
                                 to = {.host = out};
    assert_int_equal(gg_copy(&on_device, &from, sizeof in, stream, 0), GG_OK);
    assert_int_equal(gg_event_record(event, stream), GG_OK);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    assert_int_equal(gg_copy(&to, &on_device, sizeof out, stream, 0), GG_OK);
    assert_memory_equal(in, out, sizeof in);
    gg_event_release(event);
    gg_stream_release(stream);
    gg_memory_release(memory);
}

static void kernels_of_an_image_are_read_one_after_another(void **state)
{
    static const char ptx[] = ".version 8.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry a(.param .u64 p, .param .f32 x) { ret; }\n"
                              ".visible .entry b(.param .u32 n) { ret; }\n";
    struct gg_image *image;
    (void)state;
    assert_int_equal(gg_image_read(ptx, sizeof ptx - 1, &image), GG_OK);
    assert_int_equal(image->kernel_count, 2);
    assert_string_equal(gg_image_kernel_at(image, 0)->name, "a");
    assert_string_equal(gg_image_kernel_at(image, 1)->name, "b");
    assert_int_equal(gg_image_kernel_at(image, 0)->parameters[1].offset, 8);
    assert_int_equal(gg_image_kernel_at(image, 1)->parameters[0].size, 4);
    gg_image_free(image);
}

static void *read_kernels(size_t *size)
{
    FILE *file = fopen(kernels_path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void launch(gg_kernel *kernel, gg_memory *memory, uint64_t value)
{
    void *pointer = gg_memory_pointer(memory);
    const void *const arguments[] = {&pointer, &value};
    const size_t sizes[] = {sizeof pointer, sizeof value};
    const struct gg_launch launch = {.struct_size = sizeof launch,
                                     .grid = {1, 1, 1},
                                     .block = {1, 1, 1},
                                     .argument_count = 2,
                                     .arguments = arguments,
                                     .sizes = sizes,
                                     .memories = &memory,
                                     .memory_count = 1};
    assert_int_equal(gg_kernel_launch(kernel, &launch, NULL), GG_OK);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
}

static void a_kernel_is_launched(void **state)
{
    size_t size;
    void *bytes = read_kernels(&size);
    gg_module *module;
    gg_kernel *kernel;
    gg_memory *memory;
    (void)state;
    assert_int_equal(gg_module_load(device, bytes, size, &module), GG_OK);
    assert_int_equal(gg_module_kernel(module, "write_word", &kernel), GG_OK);
    assert_int_equal(gg_kernel_parameter_count(kernel), 2);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_PINNED, 8, NULL, &memory), GG_OK);
    launch(kernel, memory, 12345);
    assert_int_equal(*(uint64_t *)gg_memory_pointer(memory), 12345);
    gg_memory_release(memory);
    gg_kernel_release(kernel);
    gg_module_release(module);
    free(bytes);
}

static int traced;
static void trace_pre(void *user, const struct gg_trace *trace)
{
    assert_ptr_equal(user, &traced);
    assert_true(trace->struct_size >= sizeof *trace);
    traced++;
}

static void a_tracer_is_called(void **state)
{
    static const struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = &traced, .pre = trace_pre};
    (void)state;
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_true(traced > 0);
}

static struct user {
    gg_memory *whole; /* the only block */
    int blocks;       /* in use */
} user;

static gg_status user_alloc(void *data, gg_device *on, size_t nbytes, gg_stream *stream, void **out)
{
    (void)on;
    (void)stream;
    assert_ptr_equal(data, &user);
    assert_true(nbytes <= gg_memory_size(user.whole));
    user.blocks++;
    *out = gg_memory_pointer(user.whole);
    return GG_OK;
}
static void user_free(void *data, gg_device *on, void *pointer, size_t nbytes)
{
    (void)data;
    (void)on;
    (void)pointer;
    (void)nbytes;
    user.blocks--;
}

static void an_allocator_is_used(void **state)
{
    const struct gg_allocator allocator = {
        .struct_size = sizeof allocator, .user = &user, .alloc = user_alloc, .free = user_free};
    gg_memory *memory;
    (void)state;
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, 4096, NULL, &user.whole), GG_OK);
    assert_int_equal(gg_set_allocator(&allocator), GG_OK);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, 1000, NULL, &memory), GG_OK);
    assert_int_equal(gg_set_allocator(NULL), GG_OK);
    assert_int_equal(user.blocks, 1);
    gg_memory_release(memory);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    assert_int_equal(gg_device_trim(device), GG_OK);
    assert_int_equal(user.blocks, 0);
    gg_memory_release(user.whole);
}

int main(int count, char **arguments)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_has_the_abi_of_the_headers),
        cmocka_unit_test(the_librarys_symbols_have_the_version_of_the_abi),
        cmocka_unit_test(structs_of_the_headers_are_filled_and_nothing_behind_them),
        cmocka_unit_test(reports_are_read_one_after_another),
        cmocka_unit_test(the_last_error_names_what_was_wrong),
        cmocka_unit_test(bytes_are_copied_to_the_device_and_back),
        cmocka_unit_test(kernels_of_an_image_are_read_one_after_another),
        cmocka_unit_test(a_kernel_is_launched),
        cmocka_unit_test(a_tracer_is_called),
        cmocka_unit_test(an_allocator_is_used),
    };
    kernels_path = count > 1 ? arguments[1] : "";
    return cmocka_run_group_tests(tests, open_device, NULL);
}
