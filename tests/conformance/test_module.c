/* test_module.c: device code: loaded, asked, launched; and what is refused before anything runs. The image is
 * that of the test kernels (tests/images) for the architecture that the device reports. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LENGTH 100u

/* ---- images ---- */

static char *image;
static size_t image_size;

static const char *folder(void)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(size > 0);
    path[size] = 0;
    strcpy(strrchr(path, '/'), "/images/");
    return path;
}

/* What a file of the folder holds; to be freed. */
static char *read_image(const char *name, size_t *size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", folder(), name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there: it is part of the tests' build", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

static const char *image_for(const char *arch)
{
    if (!strncmp(arch, "sm_", 3))
        return "kernels.ptx";
    if (!strncmp(arch, "gfx", 3))
        return "kernels.gfx942.co";
    if (!strcmp(arch, "x86_64") || !strcmp(arch, "aarch64"))
        return "kernels_host.so";
    return "kernels.spv";
}

static struct gg_device_info info_of(gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(device, &info), GG_OK);
    return info;
}

static gg_module *load(struct fixture *f)
{
    gg_module *module;
    need(f, GG_OP_module_load);
    free(image);
    image = read_image(image_for(info_of(f->device).arch), &image_size);
    gg_status status = gg_module_load(f->device, image, image_size, &module);
    if (status)
        fail_msg("%s", last_error().message);
    return module;
}

static gg_kernel *kernel_of(struct fixture *f, const char *name)
{
    gg_module *module = load(f);
    gg_kernel *kernel;
    gg_status status = gg_module_kernel(module, name, &kernel);
    gg_module_release(module);
    if (status)
        fail_msg("%s", last_error().message);
    return kernel;
}

/* ---- launches ---- */

struct call {
    const void *values[8];
    size_t sizes[8];
    struct gg_launch launch;
};

static void call_begin(struct call *call, gg_memory *const *memories, size_t count)
{
    *call = (struct call){.launch = {.struct_size = sizeof call->launch,
                                     .grid = {1, 1, 1},
                                     .block = {32, 1, 1},
                                     .memories = memories,
                                     .memory_count = count}};
    call->launch.arguments = call->values;
    call->launch.sizes = call->sizes;
}

static void pass(struct call *call, const void *value, size_t size)
{
    call->values[call->launch.argument_count] = value;
    call->sizes[call->launch.argument_count++] = size;
}

struct scaling {
    struct call call;
    gg_memory *memory;
    void *pointer;
    uint32_t count;
    float by;
};

/* scale(x, LENGTH, 2) over LENGTH floats of 3. */
static void make_scaling(struct fixture *f, struct scaling *s)
{
    const float three = 3;
    s->memory = new_memory(f, LENGTH * sizeof(float));
    s->pointer = gg_memory_pointer(s->memory);
    s->count = LENGTH;
    s->by = 2;
    assert_int_equal(gg_fill(s->memory, 0, &three, sizeof three, LENGTH, f->stream), GG_OK);
    call_begin(&s->call, &s->memory, 1);
    s->call.launch.grid[0] = (LENGTH + 31) / 32;
    pass(&s->call, &s->pointer, sizeof s->pointer);
    pass(&s->call, &s->count, sizeof s->count);
    pass(&s->call, &s->by, sizeof s->by);
}

static void assert_floats(struct fixture *f, gg_memory *memory, float expected)
{
    float got[LENGTH];
    read_back(f, memory, got, sizeof got);
    for (size_t i = 0; i < LENGTH; i++)
        assert_float_equal(got[i], expected, 0);
}

static void a_kernel_does_its_work(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    finish(f->stream);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(kernel);
}

static void a_kernel_without_arguments_runs(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "nothing");
    struct call call;
    call_begin(&call, NULL, 0);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_kernel_parameter_count(kernel), 0);
    gg_kernel_release(kernel);
}

static void a_launch_returns_when_it_is_queued(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    assert_true(busy(f->stream));
    s.by = 100; /* the values were read */
    gate_open(gate);
    finish(f->stream);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(kernel);
}

static void a_launch_without_a_stream_waits_for_work_on_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    const float five = 5;
    make_scaling(f, &s);
    finish(f->stream);
    gg_scope *scope;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_fill(s.memory, 0, &five, sizeof five, LENGTH, f->stream), GG_OK);
    assert_int_equal(gg_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, NULL), GG_OK);
    assert_int_equal(gg_leave(scope), GG_OK);
    assert_true(busy(f->second));
    gate_open(gate);
    finish(f->second);
    assert_floats(f, s.memory, 10);
    gg_kernel_release(kernel);
}

static void a_launch_counts_as_use_of_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    float got[LENGTH];
    make_scaling(f, &s);
    finish(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    gg_scope *scope;
    assert_int_equal(gg_enter(f->device, f->second, &scope), GG_OK);
    gg_event *event = new_event(f, 0);
    gg_memory *copied = new_memory(f, sizeof got);
    assert_int_equal(copy(at(copied, 0), at(s.memory, 0), sizeof got, NULL, 0), GG_OK);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_leave(scope), GG_OK);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_floats(f, copied, 6);
    gg_kernel_release(kernel);
}

static void a_module_may_be_released_while_its_kernel_runs(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    gg_kernel_release(kernel);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    gate_open(gate);
    finish(f->stream);
    assert_floats(f, s.memory, 6);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
}

/* ---- variables ---- */

static void a_variable_is_memory_that_kernels_read(void **state)
{
    struct fixture *f = *state;
    const uint32_t values[] = {1, 20, 300, 4000}, zero = 0;
    uint32_t got[8], count = 8;
    gg_memory *table;
    gg_module *module = load(f);
    need(f, GG_OP_module_global);
    assert_int_equal(gg_module_global(module, "table", &table), GG_OK);
    assert_int_equal(gg_memory_size(table), sizeof values);
    assert_int_equal(copy(at(table, 0), host_at(values), sizeof values, NULL, 0), GG_OK);
    gg_memory *memory = new_memory(f, sizeof got);
    assert_int_equal(gg_fill(memory, 0, &zero, 4, 8, NULL), GG_OK);
    void *pointer = gg_memory_pointer(memory);
    gg_kernel *kernel;
    struct call call;
    assert_int_equal(gg_module_kernel(module, "add_table", &kernel), GG_OK);
    call_begin(&call, &memory, 1);
    pass(&call, &pointer, sizeof pointer);
    pass(&call, &count, sizeof count);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, NULL), GG_OK);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    read_back(f, memory, got, sizeof got);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(got[i], values[i & 3]);
    gg_memory_release(table);
    gg_kernel_release(kernel);
    gg_module_release(module);
}

static void a_launch_waits_for_copies_to_a_variable(void **state)
{
    struct fixture *f = *state;
    uint32_t values[] = {7, 7, 7, 7}, got[4] = {0}, count = 4;
    gg_memory *table;
    gg_module *module = load(f);
    need(f, GG_OP_module_global);
    assert_int_equal(gg_module_global(module, "table", &table), GG_OK);
    gg_memory *memory = new_memory_with(f, got, sizeof got);
    void *pointer = gg_memory_pointer(memory);
    gg_kernel *kernel;
    struct call call;
    assert_int_equal(gg_module_kernel(module, "add_table", &kernel), GG_OK);
    call_begin(&call, &memory, 1);
    pass(&call, &pointer, sizeof pointer);
    pass(&call, &count, sizeof count);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(table, 0), host_at(values), sizeof values, f->stream, GG_COPY_ASYNC),
                     GG_OK);
    gg_memory_release(table); /* the copy is still to come */
    gg_scope *scope;
    assert_int_equal(gg_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, NULL), GG_OK);
    assert_int_equal(gg_leave(scope), GG_OK);
    gate_open(gate);
    finish(f->second);
    read_back(f, memory, got, sizeof got);
    assert_int_equal(got[3], 7);
    gg_kernel_release(kernel);
    gg_module_release(module);
}

static void a_variable_that_is_not_there_is_named(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    gg_module *module = load(f);
    need(f, GG_OP_module_global);
    assert_int_equal(gg_module_global(module, "tabel", &memory), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("tabel");
    assert_null(memory);
    gg_module_release(module);
}

/* ---- what is refused ---- */

static void a_kernel_that_is_not_there_lists_those_that_are(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = NULL;
    gg_module *module = load(f);
    assert_int_equal(gg_module_kernel(module, "scael", &kernel), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("scael");
    assert_message_has("scale");
    assert_message_has("write_word");
    assert_null(kernel);
    gg_module_release(module);
}

static void an_image_for_another_architecture_is_refused_naming_both(void **state)
{
    struct fixture *f = *state;
    const char *arch = info_of(f->device).arch;
    static const char *const names[] = {"kernels.gfx90a.co", "kernels.ptx", "kernels.spv",
                                        "kernels_host.so"};
    need(f, GG_OP_module_load);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size;
        gg_module *module = NULL;
        char *bytes = read_image(names[i], &size);
        if (strcmp(names[i], image_for(arch)) != 0) {
            assert_int_equal(gg_module_load(f->device, bytes, size, &module),
                             GG_ERR_INVALID_ARGUMENT);
            assert_message_has(arch);
            assert_message_has(i == 0   ? "gfx90a"
                               : i == 1 ? "sm_50"
                               : i == 2 ? "spirv"
                                        : "shared object");
            assert_null(module);
        }
        free(bytes);
    }
}

static void bytes_that_are_no_image_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const texts[] = {"", "hello, world, this is no image", "\177ELF",
                                        "\x03\x02#\a"};
    need(f, GG_OP_module_load);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        gg_module *module = NULL;
        assert_int_equal(gg_module_load(f->device, texts[i], strlen(texts[i]), &module),
                         GG_ERR_INVALID_ARGUMENT);
        assert_null(module);
    }
}

static void an_image_that_was_cut_short_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_module *module = load(f);
    gg_module_release(module);
    module = NULL;
    if (!strcmp(image_for(info_of(f->device).arch), "kernels.ptx"))
        image_size = (size_t)(strstr(image, ".param") + 20 - image);
    else
        image_size = image_size / 2 + 1;
    assert_int_equal(gg_module_load(f->device, image, image_size, &module), GG_ERR_INVALID_ARGUMENT);
    assert_null(module);
}

static void the_number_of_arguments_is_checked(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.argument_count = 2;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("takes 3 arguments, got 2");
    pass(&s.call, &s.by, 4);
    pass(&s.call, &s.by, 4);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("got 4");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void the_size_of_arguments_is_checked(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.sizes[2] = 8;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("argument 2 has 8 bytes where the kernel takes 4");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void assert_refused(struct fixture *f, gg_kernel *kernel, struct scaling *s, const char *word)
{
    assert_int_equal(gg_kernel_launch(kernel, &s->call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("scale");
    assert_message_has(word);
}

static void a_block_or_grid_over_a_limit_is_refused_naming_it(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.block[0] = 2048;
    assert_refused(f, kernel, &s, "1024");
    s.call.launch.block[0] = 64;
    s.call.launch.block[1] = 64;
    assert_refused(f, kernel, &s, "threads per block");
    s.call.launch.block[1] = 0;
    assert_refused(f, kernel, &s, "block y is 0");
    s.call.launch.block[1] = 1;
    s.call.launch.grid[2] = 0;
    assert_refused(f, kernel, &s, "grid z is 0");
    s.call.launch.grid[2] = 1;
    s.call.launch.shared = 1u << 30;
    assert_refused(f, kernel, &s, "shared memory");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void memory_of_another_device_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_device *other = other_device(f);
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    gg_memory *far;
    make_scaling(f, &s);
    assert_int_equal(gg_memory_alloc(other, GG_MEMORY_DEVICE, 64, NULL, &far), GG_OK);
    s.call.launch.memories = &far;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("copy it there first");
    gg_memory_release(far);
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

/* ---- more of a launch ---- */

static void threads_of_a_block_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    enum { BLOCKS = 3, THREADS = 64 };
    uint32_t values[BLOCKS * THREADS];
    gg_kernel *kernel = kernel_of(f, "reverse");
    struct call call;
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        values[i] = i;
    gg_memory *memory = new_memory_with(f, values, sizeof values);
    void *pointer = gg_memory_pointer(memory);
    call_begin(&call, &memory, 1);
    call.launch.grid[0] = BLOCKS;
    call.launch.block[0] = THREADS;
    call.launch.shared = THREADS * 4;
    pass(&call, &pointer, sizeof pointer);
    gg_status status = gg_kernel_launch(kernel, &call.launch, f->stream);
    if (status == GG_ERR_UNSUPPORTED) { /* no dynamic shared memory: the message says what to do */
        assert_message_has("local memory");
        gg_kernel_release(kernel);
        skip();
    }
    assert_int_equal(status, GG_OK);
    finish(f->stream);
    read_back(f, memory, values, sizeof values);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(values[i], i / THREADS * THREADS + THREADS - 1 - i % THREADS);
    gg_kernel_release(kernel);
}

static void arguments_of_every_size_arrive(void **state)
{
    struct fixture *f = *state;
    struct {
        char letter;
        double number;
    } mixed = {'q', -0.5};
    const signed char a = -7;
    const uint16_t b = 65535;
    const int32_t c = -100000;
    const int64_t d = -(1ll << 40);
    const float e = 1.5f;
    const double g = 2.25;
    double got[8];
    gg_kernel *kernel = kernel_of(f, "say");
    gg_memory *memory = new_memory(f, sizeof got);
    void *pointer = gg_memory_pointer(memory);
    struct call call;
    call_begin(&call, &memory, 1);
    call.launch.block[0] = 1;
    pass(&call, &pointer, sizeof pointer);
    pass(&call, &a, sizeof a);
    pass(&call, &b, sizeof b);
    pass(&call, &c, sizeof c);
    pass(&call, &d, sizeof d);
    pass(&call, &e, sizeof e);
    pass(&call, &g, sizeof g);
    pass(&call, &mixed, sizeof mixed);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    read_back(f, memory, got, sizeof got);
    const double expected[] = {-7, 65535, -100000, -1099511627776.0, 1.5, 2.25, 'q', -0.5};
    for (size_t i = 0; i < 8; i++)
        assert_true(got[i] == expected[i]);
    gg_kernel_release(kernel);
}

static void a_kernel_tells_its_numbers(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    int64_t threads = 0;
    int32_t blocks = 0;
    uint32_t block = 0, grid = 0;
    assert_string_equal(gg_kernel_name(kernel), "scale");
    assert_ptr_equal(gg_kernel_device(kernel), f->device);
    if (gg_device_supports(f->device, GG_OP_kernel_attribute)) {
        assert_int_equal(gg_kernel_attribute_get(kernel, GG_KERNEL_MAX_THREADS_PER_BLOCK, &threads),
                         GG_OK);
        assert_true(threads >= 32);
    }
    if (gg_device_supports(f->device, GG_OP_kernel_occupancy)) {
        assert_int_equal(gg_kernel_occupancy(kernel, 32, 0, &blocks), GG_OK);
        assert_true(blocks >= 1);
        assert_int_equal(gg_kernel_occupancy(kernel, 0, 0, &blocks), GG_ERR_INVALID_ARGUMENT);
    }
    if (gg_device_supports(f->device, GG_OP_kernel_suggest)) {
        assert_int_equal(gg_kernel_suggest(kernel, 0, 64, &block, &grid), GG_OK);
        assert_in_range(block, 1, 64);
        assert_true(grid >= 1);
    }
    gg_kernel_release(kernel);
}

static void a_cooperative_launch_runs_or_is_unsupported(void **state)
{
    struct fixture *f = *state;
    int64_t able = 0;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.flags = GG_LAUNCH_COOPERATIVE;
    gg_device_attribute(f->device, GG_ATTR_COOPERATIVE_LAUNCH, &able);
    gg_status status = gg_kernel_launch(kernel, &s.call.launch, f->stream);
    assert_int_equal(status, able ? GG_OK : GG_ERR_UNSUPPORTED);
    finish(f->stream);
    assert_floats(f, s.memory, able ? 6 : 3);
    s.call.launch.flags = 64;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    gg_kernel_release(kernel);
}

static void a_device_without_modules_says_so(void **state)
{
    struct fixture *f = *state;
    gg_module *module = NULL;
    if (gg_device_supports(f->device, GG_OP_module_load))
        skip();
    assert_int_equal(gg_module_load(f->device, "x", 1, &module), GG_ERR_UNSUPPORTED);
    assert_null(module);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_does_its_work),
        cmocka_unit_test(a_kernel_without_arguments_runs),
        cmocka_unit_test(a_launch_returns_when_it_is_queued),
        cmocka_unit_test(a_launch_without_a_stream_waits_for_work_on_its_memory),
        cmocka_unit_test(a_launch_counts_as_use_of_its_memory),
        cmocka_unit_test(a_module_may_be_released_while_its_kernel_runs),
        cmocka_unit_test(a_variable_is_memory_that_kernels_read),
        cmocka_unit_test(a_launch_waits_for_copies_to_a_variable),
        cmocka_unit_test(a_variable_that_is_not_there_is_named),
        cmocka_unit_test(a_kernel_that_is_not_there_lists_those_that_are),
        cmocka_unit_test(an_image_for_another_architecture_is_refused_naming_both),
        cmocka_unit_test(bytes_that_are_no_image_are_refused),
        cmocka_unit_test(an_image_that_was_cut_short_is_refused),
        cmocka_unit_test(the_number_of_arguments_is_checked),
        cmocka_unit_test(the_size_of_arguments_is_checked),
        cmocka_unit_test(a_block_or_grid_over_a_limit_is_refused_naming_it),
        cmocka_unit_test(memory_of_another_device_is_refused),
        cmocka_unit_test(threads_of_a_block_wait_for_each_other),
        cmocka_unit_test(arguments_of_every_size_arrive),
        cmocka_unit_test(a_kernel_tells_its_numbers),
        cmocka_unit_test(a_cooperative_launch_runs_or_is_unsupported),
        cmocka_unit_test(a_device_without_modules_says_so),
    };
    int status = run_suite(argc, argv, "module", tests, sizeof tests / sizeof tests[0]);
    free(image);
    return status;
}
