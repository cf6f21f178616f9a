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
        int64_t spilled = 0, local = 0;
        if (!gg_kernel_attribute_get(kernel, GG_KERNEL_SPILL_SIZE, &spilled) &&
            !gg_kernel_attribute_get(kernel, GG_KERNEL_LOCAL_SIZE, &local))
            assert_in_range(spilled, 0, local);
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

/* ---- SPIR-V with constants, flags and further inputs (tests/images/make_images.py) ---- */

struct spirv {
    char *bytes, *more;
    struct gg_module_constant constants[4];
    struct gg_module_input input;
    struct gg_module_options options;
    size_t size;
};

static void spirv_begin(struct fixture *f, struct spirv *spirv, const char *name, const char *more)
{
    need(f, GG_OP_module_load_with);
    *spirv = (struct spirv){.options = {.struct_size = sizeof spirv->options}};
    spirv->bytes = read_image(name, &spirv->size);
    spirv->options.constants = spirv->constants;
    if (!more)
        return;
    spirv->more = read_image(more, &spirv->input.nbytes);
    spirv->input.bytes = spirv->more;
    spirv->options.inputs = &spirv->input;
    spirv->options.input_count = 1;
}

static void spirv_end(struct spirv *spirv)
{
    free(spirv->bytes);
    free(spirv->more);
}

static void spirv_set(struct spirv *spirv, uint32_t id, uint64_t value)
{
    spirv->constants[spirv->options.constant_count++] =
        (struct gg_module_constant){.id = id, .value = value};
}

static gg_status spirv_load(struct fixture *f, struct spirv *spirv, gg_module **out)
{
    return gg_module_load_with(f->device, spirv->bytes, spirv->size, &spirv->options, out);
}

/* What the kernel of that name stores; releases the module. */
static void spirv_run(struct fixture *f, gg_module *module, const char *name, uint64_t got[4])
{
    gg_kernel *kernel;
    struct call call;
    memset(got, 0, 4 * sizeof *got);
    gg_memory *memory = new_memory_with(f, got, 4 * sizeof *got);
    void *pointer = gg_memory_pointer(memory);
    assert_int_equal(gg_module_kernel(module, name, &kernel), GG_OK);
    call_begin(&call, &memory, 1);
    pass(&call, &pointer, sizeof pointer);
    call.launch.grid[0] = call.launch.block[0] = 1;
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    read_back(f, memory, got, 4 * sizeof *got);
    gg_kernel_release(kernel);
    gg_module_release(module);
}

static void assert_words(const uint64_t *got, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    assert_int_equal(got[0], a);
    assert_int_equal(got[1], b);
    assert_int_equal(got[2], c);
    assert_int_equal(got[3], d);
}

static void specialisation_constants_have_the_values_that_were_set(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module;
    uint64_t got[4];
    spirv_begin(f, &spirv, "constants.spv", NULL);
    assert_int_equal(spirv_load(f, &spirv, &module), GG_OK);
    spirv_run(f, module, "constants", got);
    assert_words(got, 7, 0x3fc00000, 1, UINT64_C(1) << 40);
    spirv_set(&spirv, 9, UINT64_C(3) << 50);
    spirv_set(&spirv, 4, 0);
    spirv_set(&spirv, 0, 0xfffffffe);
    assert_int_equal(spirv_load(f, &spirv, &module), GG_OK);
    assert_int_equal(gg_module_image(module)->constant_count, 4);
    spirv_run(f, module, "constants", got);
    assert_words(got, 0xfffffffe, 0x3fc00000, 0, UINT64_C(3) << 50);
    spirv_end(&spirv);
}

static void a_constant_that_the_image_does_not_have_is_refused(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module = NULL;
    spirv_begin(f, &spirv, "constants.spv", NULL);
    spirv_set(&spirv, 1, 0);
    assert_int_equal(spirv_load(f, &spirv, &module), GG_ERR_INVALID_ARGUMENT);
    assert_message_has(
        "no specialisation constant 1; it has: 0 (4 bytes), 3 (4 bytes), 4 (1 bytes)");
    spirv.constants[0] = (struct gg_module_constant){.id = 4, .value = 256};
    assert_int_equal(spirv_load(f, &spirv, &module), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("more than its 1 bytes");
    spirv_set(&spirv, 4, 0);
    spirv.constants[0].value = 1;
    assert_int_equal(spirv_load(f, &spirv, &module), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("constant 4 is given twice");
    assert_null(module);
    spirv_end(&spirv);
}

static void the_compilers_flags_are_passed_and_an_unknown_one_is_named(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module = NULL;
    spirv_begin(f, &spirv, "constants.spv", NULL);
    spirv.options.flags = "-ze-opt-level=1 -g";
    assert_int_equal(spirv_load(f, &spirv, &module), GG_OK);
    gg_module_release(module);
    module = NULL;
    spirv.options.flags = "-ze-opt-unheard-of";
    assert_int_equal(spirv_load(f, &spirv, &module), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("-ze-opt-unheard-of");
    assert_null(module);
    spirv_end(&spirv);
}

static void several_inputs_become_one_module(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module = NULL;
    uint64_t got[4];
    spirv_begin(f, &spirv, "linked.spv", "twice.spv");
    spirv_set(&spirv, 0, 12);
    spirv_set(&spirv, 9, 21);
    spirv.options.flags = "-ze-opt-level=2";
    const gg_status status = spirv_load(f, &spirv, &module);
    if (!status) {
        spirv_run(f, module, "linked", got);
        assert_words(got, 12, 0x3fc00000, 1, 42);
    }
    spirv_end(&spirv);
    if (status == GG_ERR_UNSUPPORTED) {
        const struct gg_error error = last_error();
        assert_true(strstr(error.message, "ZE_experimental_module_program") || error.vendor_code);
        skip_because("the driver links no modules");
    }
    assert_int_equal(status, GG_OK);
}

/* Drivers refuse a constant for an input that does not have it. */
static void a_constant_is_set_in_the_input_that_has_it(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module = NULL;
    spirv_begin(f, &spirv, "twice.spv", "linked.spv");
    spirv_set(&spirv, 4, 0);
    const gg_status status = spirv_load(f, &spirv, &module);
    spirv_end(&spirv);
    if (status == GG_ERR_UNSUPPORTED)
        skip_because("the driver links no modules");
    assert_int_equal(status, GG_OK);
    gg_module_release(module);
}

static void a_module_whose_functions_are_elsewhere_has_no_kernels(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module = NULL;
    gg_kernel *kernel = NULL;
    spirv_begin(f, &spirv, "linked.spv", NULL);
    spirv_set(&spirv, 0, 12);
    if (spirv_load(f, &spirv, &module) == GG_ERR_INVALID_ARGUMENT) {
        spirv_end(&spirv);
        skip_because("the driver makes no module whose functions are elsewhere");
    }
    assert_non_null(module);
    assert_int_equal(gg_module_kernel(module, "linked", &kernel), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("link it with the SPIR-V that has them");
    gg_module_release(module);
    spirv_end(&spirv);
}

static void a_module_is_made_again_of_its_machine_code(void **state)
{
    struct fixture *f = *state;
    struct spirv spirv;
    gg_module *module;
    uint64_t got[4];
    size_t size = 0, less = 3;
    char few[3];
    need(f, GG_OP_module_binary);
    spirv_begin(f, &spirv, "constants.spv", NULL);
    spirv_set(&spirv, 0, 99);
    assert_int_equal(spirv_load(f, &spirv, &module), GG_OK);
    assert_int_equal(gg_module_binary(module, NULL, &size), GG_OK);
    assert_true(size > sizeof few);
    assert_int_equal(gg_module_binary(module, few, &less), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(less, 3);
    char *binary = malloc(size);
    assert_int_equal(gg_module_binary(module, binary, &size), GG_OK);
    gg_module_release(module);
    spirv.options.binary = binary;
    spirv.options.binary_size = size;
    assert_int_equal(spirv_load(f, &spirv, &module), GG_OK);
    assert_int_equal(gg_module_image(module)->format, GG_IMAGE_SPIRV);
    spirv_run(f, module, "constants", got);
    assert_words(got, 99, 0x3fc00000, 1, UINT64_C(1) << 40);
    binary[0] ^= 1;
    assert_int_equal(spirv_load(f, &spirv, &module), GG_ERR_INVALID_ARGUMENT);
    free(binary);
    spirv_end(&spirv);
}

static void only_spirv_is_compiled_with_options(void **state)
{
    struct fixture *f = *state;
    gg_module *module = NULL;
    size_t size = 0;
    const struct gg_module_options options = {.struct_size = sizeof options, .flags = "-g"};
    const struct gg_module_options none = {.struct_size = sizeof none};
    need(f, GG_OP_module_load);
    char *bytes = read_image("kernels_host.so", &size);
    const bool compiles = gg_device_supports(f->device, GG_OP_module_load_with);
    assert_int_equal(gg_module_load_with(f->device, bytes, size, &options, &module),
                     compiles ? GG_ERR_INVALID_ARGUMENT : GG_ERR_UNSUPPORTED);
    assert_message_has("SPIR-V");
    free(bytes);
    assert_null(module);
    bytes = read_image(image_for(info_of(f->device).arch), &size);
    assert_int_equal(gg_module_load_with(f->device, bytes, size, &none, &module), GG_OK);
    free(bytes);
    if (!gg_device_supports(f->device, GG_OP_module_binary))
        assert_int_equal(gg_module_binary(module, NULL, &size), GG_ERR_UNSUPPORTED);
    gg_module_release(module);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(specialisation_constants_have_the_values_that_were_set),
    cmocka_unit_test(a_constant_that_the_image_does_not_have_is_refused),
    cmocka_unit_test(the_compilers_flags_are_passed_and_an_unknown_one_is_named),
    cmocka_unit_test(several_inputs_become_one_module),
    cmocka_unit_test(a_constant_is_set_in_the_input_that_has_it),
    cmocka_unit_test(a_module_whose_functions_are_elsewhere_has_no_kernels),
    cmocka_unit_test(a_module_is_made_again_of_its_machine_code),
    cmocka_unit_test(only_spirv_is_compiled_with_options),
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
