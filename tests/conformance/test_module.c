/* test_module.c: device code: loaded, queried, refused. The image is that of the test kernels
 * (tests/images) for the architecture that the device reports. */
#include "kernels.h"

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

static gg_memory *table_of(struct fixture *f, gg_module *module)
{
    gg_memory *table = NULL;
    need(f, GG_OP_module_global);
    need(f, GG_OP_kernel_launch);
    const gg_status status = gg_module_global(module, "table", &table);
    if (status == GG_ERR_UNSUPPORTED)
        skip_because("the driver has no variables of modules");
    assert_int_equal(status, GG_OK);
    return table;
}

static void a_variable_is_memory_that_kernels_read(void **state)
{
    struct fixture *f = *state;
    const uint32_t values[] = {1, 20, 300, 4000}, zero = 0;
    uint32_t got[8], count = 8;
    gg_module *module = load(f);
    gg_memory *table = table_of(f, module);
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
    gg_module *module = load(f);
    gg_memory *table = table_of(f, module);
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
    gg_memory_release(table); /* the copy has not run yet */
    gg_scope *scope;
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gate_open(gate);
    finish(f->second);
    read_back(f, memory, got, sizeof got);
    assert_int_equal(got[3], 7);
    gg_kernel_release(kernel);
    gg_module_release(module);
}

static void the_error_for_a_missing_variable_names_it(void **state)
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

static void the_error_for_a_missing_kernel_lists_the_existing_ones(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = NULL;
    gg_module *module = load(f);
    assert_int_equal(gg_module_kernel(module, "scael", &kernel), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("has no kernel \"scael\" (did you mean \"scale\"?); it has: ");
    assert_message_has("write_word");
    assert_null(kernel);
    gg_module_release(module);
}

static void the_names_of_all_kernels_are_listed(void **state)
{
    struct fixture *f = *state;
    static const char *const expected[] = {"nothing", "write_word", "scale",   "add_table",
                                           "reverse", "say",        "wait_for"};
    gg_module *module = load(f);
    size_t count = 0, found = 0;
    assert_int_equal(gg_module_kernel_count(module, &count), GG_OK);
    for (size_t i = 0; i < count; i++) {
        gg_kernel *kernel;
        const char *name = gg_module_kernel_name(module, i);
        assert_int_equal(gg_module_kernel(module, name, &kernel), GG_OK);
        gg_kernel_release(kernel);
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++)
            found += !strcmp(name, expected[k]);
    }
    assert_int_equal(found, sizeof expected / sizeof expected[0]);
    assert_null(gg_module_kernel_name(module, count));
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

static void bytes_that_are_not_an_image_are_refused(void **state)
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

static void a_truncated_image_is_refused(void **state)
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

static void a_kernel_has_its_attributes(void **state)
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
    if (gg_device_supports(f->device, GG_OP_kernel_suggest_block_size)) {
        assert_int_equal(gg_kernel_suggest_block_size(kernel, 0, 64, &block, &grid), GG_OK);
        assert_in_range(block, 1, 64);
        assert_true(grid >= 1);
    }
    gg_kernel_release(kernel);
}

static void unsupported_modules_are_reported(void **state)
{
    struct fixture *f = *state;
    gg_module *module = NULL;
    if (gg_device_supports(f->device, GG_OP_module_load))
        skip_because("the device loads modules");
    assert_int_equal(gg_module_load(f->device, "x", 1, &module), GG_ERR_UNSUPPORTED);
    assert_null(module);
}

static void all_handles_of_a_kernel_share_its_shared_memory_limit(void **state)
{
    struct fixture *f = *state;
    gg_kernel *first = kernel_of(f, "scale"), *second;
    int64_t most = 0;
    assert_int_equal(gg_module_kernel(gg_kernel_module(first), "scale", &second), GG_OK);
    struct scaling s;
    make_scaling(f, &s);
    if (gg_device_attribute(f->device, GG_ATTR_SHARED_MEMORY_OPTIN, &most) || most < 1)
        gg_device_attribute(f->device, GG_ATTR_SHARED_MEMORY_PER_BLOCK, &most);
    int64_t own = 0; /* what the kernel itself uses */
    if (!gg_kernel_attribute_get(first, GG_KERNEL_SHARED_SIZE, &own))
        most -= own;
    s.call.launch.shared = (uint32_t)most;
    gg_status status = gg_kernel_launch(first, &s.call.launch, f->stream);
    if (status != GG_ERR_UNSUPPORTED) {
        assert_int_equal(status, GG_OK);
        s.call.launch.shared = (uint32_t)most - 1024;
        assert_int_equal(gg_kernel_launch(second, &s.call.launch, f->stream), GG_OK);
        s.call.launch.shared = (uint32_t)most;
        assert_int_equal(gg_kernel_launch(first, &s.call.launch, f->stream), GG_OK);
        finish(f->stream);
        assert_floats(f, s.memory, 24);
    }
    gg_kernel_release(first);
    gg_kernel_release(second);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_module_may_be_released_while_its_kernel_runs),
    cmocka_unit_test(a_variable_is_memory_that_kernels_read),
    cmocka_unit_test(a_launch_waits_for_copies_to_a_variable),
    cmocka_unit_test(the_error_for_a_missing_variable_names_it),
    cmocka_unit_test(the_error_for_a_missing_kernel_lists_the_existing_ones),
    cmocka_unit_test(the_names_of_all_kernels_are_listed),
    cmocka_unit_test(an_image_for_another_architecture_is_refused_naming_both),
    cmocka_unit_test(bytes_that_are_not_an_image_are_refused),
    cmocka_unit_test(a_truncated_image_is_refused),
    cmocka_unit_test(a_kernel_has_its_attributes),
    cmocka_unit_test(unsupported_modules_are_reported),
    cmocka_unit_test(all_handles_of_a_kernel_share_its_shared_memory_limit),
};
SUITE(module, tests);
