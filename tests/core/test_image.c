/* test_image.c: image formats are detected by content, and no read goes past the end, whatever
 * the bytes are. Damaged images are made from whole ones; GPUGLUE_TEST_FULL makes ten times as
 * many. */
#include "kernel/image.h"

#include "../support/runner.h"

#include <stdio.h>
#include <unistd.h>

#define MUTATIONS 1200 /* of each image; times ten with GPUGLUE_TEST_FULL */

static const char *const files[] = {"kernels.ptx",        "kernels.gfx942.co", "kernels.gfx90a.co",
                                    "kernels.bundle",     "kernels.spv",       "kernels_host.so",
                                    "kernels.sm90.cubin", "kernels.fatbin"};
enum { FILES = sizeof files / sizeof files[0] };

static char *load(const char *name, size_t *size)
{
    char path[4200];
    ssize_t length = readlink("/proc/self/exe", path, 4000);
    assert_true(length > 0);
    path[length] = 0;
    snprintf(strrchr(path, '/'), 128, "/images/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static struct gg_image *read_file(const char *name)
{
    size_t size;
    struct gg_image *image = NULL;
    char *bytes = load(name, &size);
    gg_status status = gg_image_read(bytes, size, &image);
    free(bytes);
    if (status) {
        struct gg_error error = {.struct_size = sizeof error};
        gg_last_error(&error);
        fail_msg("%s: %s", name, error.message);
    }
    return image;
}

static const struct gg_image_kernel *find(const struct gg_image *image, const char *name)
{
    for (size_t i = 0; i < image->kernel_count; i++)
        if (!strcmp(image->kernels[i].name, name))
            return &image->kernels[i];
    fail_msg("no kernel %s", name);
    return NULL;
}

static void formats_and_architectures_are_detected_by_content(void **state)
{
    static const char *const expected[FILES][2] = {
        {"ptx", "sm_50"},          {"code object", "gfx942"},
        {"code object", "gfx90a"}, {"code object bundle", "gfx90a gfx942"},
        {"spirv", "spirv"},        {"shared object", NULL},
        {"cubin", "sm_90"},        {"fatbin", "compute_90 sm_90"}};
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        struct gg_image *image = read_file(files[i]);
        assert_string_equal(image->word, expected[i][0]);
        if (expected[i][1])
            assert_string_equal(image->arch, expected[i][1]);
        gg_image_free(image);
    }
}

static void check_scale(const char *file, const uint32_t kinds[3])
{
    static const uint32_t offsets[] = {0, 8, 12}, sizes[] = {8, 4, 4};
    struct gg_image *image = read_file(file);
    const struct gg_image_kernel *scale = find(image, "scale");
    assert_int_equal(scale->parameter_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(scale->parameters[i].size, sizes[i]);
        assert_int_equal(scale->parameters[i].kind, kinds[i]);
        if (image->format != GG_IMAGE_SPIRV)
            assert_int_equal(scale->parameters[i].offset, offsets[i]);
    }
    assert_int_equal(find(image, "nothing")->parameter_count, 0);
    assert_int_equal(find(image, "say")->parameter_count, 8);
    gg_image_free(image);
}

static void parameters_of_kernels_are_read(void **state)
{
    (void)state;
    check_scale("kernels.ptx",
                (const uint32_t[]){GG_PARAMETER_INTEGER, GG_PARAMETER_INTEGER, GG_PARAMETER_FLOAT});
    check_scale("kernels.gfx90a.co",
                (const uint32_t[]){GG_PARAMETER_POINTER, GG_PARAMETER_UNSIGNED, GG_PARAMETER_FLOAT});
    check_scale("kernels.spv",
                (const uint32_t[]){GG_PARAMETER_POINTER, GG_PARAMETER_INTEGER, GG_PARAMETER_FLOAT});
    check_scale("kernels.sm90.cubin", (const uint32_t[]){0, 0, 0});
}

static void structs_by_value_have_their_size(void **state)
{
    static const char *const reported[] = {"kernels.ptx", "kernels.gfx942.co", "kernels.sm90.cubin"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct gg_image *image = read_file(reported[i]);
        const struct gg_parameter *last = &find(image, "say")->parameters[7];
        assert_int_equal(last->size, 16);
        assert_int_equal(last->offset, 40);
        gg_image_free(image);
    }
}

/* ---- damage ---- */

static uint64_t random_state;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static uint32_t interesting(void)
{
    static const uint32_t values[] = {0,          1,          0x7f,   0x80,       0xff,
                                      0x7fff,     0x8000,     0xffff, 0x7fffffff, 0x80000000,
                                      0xffffffff, 0xfffffff0, 4,      8,          64};
    return values[next_random(sizeof values / sizeof values[0])];
}

/* Where the map of a code object's note begins; 0 in other images. */
static uint32_t note_of(const unsigned char *bytes, size_t size)
{
    const unsigned char *found = memmem(bytes, size, "amdhsa.kernels", 14);
    return found ? (uint32_t)(found - bytes) - 2 : 0;
}

static uint32_t somewhere(size_t size, uint32_t note)
{
    const uint32_t front = size < 512 ? (uint32_t)size : 512, rest = (uint32_t)size - note;
    if (note && next_random(2))
        return note + next_random(rest < 1500 ? rest : 1500);
    return next_random(next_random(2) ? (uint32_t)size : front);
}

/* One to eight changes, most of them in headers and in the note; sometimes a cut. */
static size_t damage(unsigned char *bytes, size_t size)
{
    const uint32_t note = note_of(bytes, size);
    for (uint32_t left = 1 + next_random(8); left; left--) {
        const uint32_t at = somewhere(size, note);
        const uint32_t value = interesting();
        const size_t width = next_random(2) ? 1 : size - at < 4 ? size - at : 4;
        if (next_random(3))
            memcpy(bytes + at, &value, width);
        else
            bytes[at] ^= (unsigned char)(1u << next_random(8));
    }
    return next_random(3) ? size : next_random((uint32_t)size + 1);
}

/* In memory of exactly its size, so that the sanitizer sees a read past it. */
static void read_damaged(const char *original, size_t size, size_t *whole)
{
    struct gg_image *image = NULL;
    unsigned char *scratch = malloc(size);
    memcpy(scratch, original, size);
    const size_t left = damage(scratch, size);
    unsigned char *exact = malloc(left ? left : 1);
    memcpy(exact, scratch, left);
    free(scratch);
    gg_status status = gg_image_read(exact, left, &image);
    assert_true(status == GG_OK || status == GG_ERR_INVALID_ARGUMENT);
    assert_true((status == GG_OK) == (image != NULL));
    *whole += status == GG_OK;
    gg_image_free(image);
    free(exact);
}

static void damaged_images_are_refused_or_read_without_harm(void **state)
{
    const char *full = getenv("GPUGLUE_TEST_FULL");
    const size_t count = full && *full == '1' ? 10 * MUTATIONS : MUTATIONS;
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        size_t size, whole = 0;
        char *bytes = load(files[i], &size);
        random_state = 12345 + i;
        for (size_t k = 0; k < count; k++)
            read_damaged(bytes, size, &whole);
        free(bytes);
        assert_true(whole < count); /* some damage is found */
    }
}

/* As CuPy's compiler returns it; in memory of exactly its size. */
static void a_cubin_without_its_last_byte_is_read_and_a_shorter_one_is_damaged(void **state)
{
    struct gg_image *whole = NULL, *image = NULL;
    size_t size;
    char *bytes = load("kernels.sm90.cubin", &size);
    (void)state;
    assert_int_equal(gg_image_read(bytes, size, &whole), GG_OK);
    for (size_t lost = 1; lost < 4; lost++) {
        char *exact = malloc(size - lost);
        memcpy(exact, bytes, size - lost);
        const gg_status status = gg_image_read(exact, size - lost, &image);
        assert_int_equal(status, lost == 1 ? GG_OK : GG_ERR_INVALID_ARGUMENT);
        free(exact);
    }
    assert_int_equal(image->kernel_count, whole->kernel_count);
    assert_string_equal(gg_image_kernel_at(image, 0)->name, gg_image_kernel_at(whole, 0)->name);
    gg_image_free(image);
    gg_image_free(whole);
    free(bytes);
}

static void metadata_whose_arguments_are_not_a_list_is_damaged(void **state)
{
    static const unsigned char pack[] =
        "\x81\xa8.kernels\x91\x82\xa5.name\xa1k\xa5.args\xc0"; /* nil */
    struct gg_image *image = calloc(1, sizeof *image);
    (void)state;
    assert_non_null(image);
    assert_int_equal(ggi_image_read_msgpack((struct ggi_bytes){pack, sizeof pack - 1}, image),
                     GG_ERR_INVALID_ARGUMENT);
    gg_image_free(image);
}

static void every_truncation_of_an_image_is_handled(void **state)
{
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        size_t size;
        char *bytes = load(files[i], &size);
        for (size_t left = 0; left < size; left += left < 1024 ? 1 : 97) {
            struct gg_image *image = NULL;
            char *exact = malloc(left ? left : 1);
            memcpy(exact, bytes, left);
            gg_image_read(exact, left, &image);
            gg_image_free(image);
            free(exact);
        }
        free(bytes);
    }
}

static void images_that_need_linking_are_reported(void **state)
{
    static const unsigned char ltoir[] = {0xed, 0x43, 0x4e, 0x7f, 1, 0, 0, 0};
    struct gg_image *image = NULL;
    (void)state;
    assert_int_equal(gg_image_read(ltoir, sizeof ltoir, &image), GG_OK);
    assert_string_equal(image->word, "ltoir");
    gg_image_free(image);
}

/* A bundle of @p count code objects without code, for gfx1000 and on. */
static size_t make_bundle(char *bytes, uint64_t count)
{
    size_t at = 32;
    memcpy(bytes, "__CLANG_OFFLOAD_BUNDLE__", 24);
    memcpy(bytes + 24, &count, 8);
    for (uint64_t i = 0; i < count; i++) {
        char triple[80];
        const uint64_t length = (uint64_t)snprintf(
            triple, sizeof triple, "hip-amdgcn-amd-amdhsa--gfx%d:xnack-", 1000 + (int)i);
        const uint64_t entry[3] = {0, 16, length};
        memcpy(bytes + at, entry, sizeof entry);
        memcpy(bytes + at + sizeof entry, triple, length);
        at += sizeof entry + length;
    }
    return at;
}

/* One code object again, for a second target, with the parameters of `scale` as they are or changed. */
static char *bundle_with(const char *first, size_t first_size, const char *second,
                         size_t second_size, size_t *size)
{
    static const char *const triples[] = {"hipv4-amdgcn-amd-amdhsa--gfx942",
                                          "hipv4-amdgcn-amd-amdhsa--gfx90a"};
    const char *const bodies[] = {first, second};
    const size_t sizes[] = {first_size, second_size};
    char *bytes = calloc(1, 4096 + first_size + second_size);
    uint64_t code = 4096, at = 32, count = 2;
    memcpy(bytes, "__CLANG_OFFLOAD_BUNDLE__", 24);
    memcpy(bytes + 24, &count, 8);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t entry[3] = {code, sizes[i], strlen(triples[i])};
        memcpy(bytes + at, entry, sizeof entry);
        memcpy(bytes + at + sizeof entry, triples[i], entry[2]);
        memcpy(bytes + code, bodies[i], sizes[i]);
        at += sizeof entry + entry[2];
        code += sizes[i];
    }
    *size = code;
    return bytes;
}

static struct gg_image *read_bundle_with(const char *first, size_t first_size, const char *second,
                                         size_t second_size)
{
    size_t size;
    struct gg_image *image = NULL;
    char *bytes = bundle_with(first, first_size, second, second_size, &size);
    assert_int_equal(gg_image_read(bytes, size, &image), GG_OK);
    assert_string_equal(image->word, "code object bundle");
    assert_string_equal(image->arch, "gfx942 gfx90a");
    free(bytes);
    return image;
}

static void a_bundle_has_the_kernels_of_its_code_objects(void **state)
{
    size_t size;
    char *one = load("kernels.gfx942.co", &size), *other = load("kernels.gfx942.co", &size);
    (void)state;
    struct gg_image *image = read_bundle_with(one, size, other, size);
    assert_int_equal(image->kernel_count, 7); /* each once */
    assert_int_equal(find(image, "scale")->parameter_count, 3);
    gg_image_free(image);

    /* a second `nothing` with the name of another kernel, and a parameter of `scale` of another size */
    char *name = memmem(other, size, "nothing", 7), *type = memmem(other, size, "float", 5);
    memcpy(name, "nobody!", 7);
    char *length = memmem(type - 120, 120, ".size", 5);
    assert_non_null(length);
    length[5] = 2;
    image = read_bundle_with(one, size, other, size);
    assert_int_equal(image->kernel_count, 8);
    assert_int_equal(find(image, "nothing")->parameter_count, 0);
    assert_int_equal(find(image, "nobody!")->parameter_count, 0);
    assert_int_equal(find(image, "reverse")->parameter_count, 1);
    assert_int_equal(find(image, "scale")->parameter_count, -1); /* unknown: they differ */
    gg_image_free(image);
    free(one);
    free(other);
}

static void the_kernels_of_a_bundle_that_cannot_be_read_are_not_listed(void **state)
{
    size_t size;
    char *code = load("kernels.gfx942.co", &size);
    (void)state;
    struct gg_image *image = read_bundle_with(code, size, "CCOB of something", 17);
    assert_int_equal(image->kernel_count, 0);
    assert_null(image->kernels);
    gg_image_free(image);
    free(code);
}

/* Of clang's versions of the header, with @p declared as the size of the bundle. */
static void make_compressed(char *bytes, unsigned version, uint64_t declared, size_t size)
{
    const uint16_t words[2] = {(uint16_t)version, 1};
    memset(bytes, 0, size);
    memcpy(bytes, "CCOB", 4);
    memcpy(bytes + 4, words, sizeof words);
    memcpy(bytes + 8, &declared, version == 3 ? 8 : 4);
}

static void the_header_of_a_compressed_bundle_is_checked(void **state)
{
    static char bytes[64];
    static const struct {
        unsigned version;
        uint64_t declared;
        size_t size;
        bool good;
    } cases[] = {{1, 1000, 64, true}, {1, 1000, 19, false}, {2, 64, 64, true},
                 {2, 40, 64, true},   {2, 65, 64, false},   {2, 20, 64, false},
                 {2, 64, 20, false},  {3, 64, 64, true},    {3, UINT64_C(1) << 32, 64, false},
                 {3, 64, 31, false},  {4, 1, 64, true},     {0, 64, 64, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gg_image *image = NULL;
        make_compressed(bytes, cases[i].version, cases[i].declared, sizeof bytes);
        assert_int_equal(gg_image_read(bytes, cases[i].size, &image),
                         cases[i].good ? GG_OK : GG_ERR_INVALID_ARGUMENT);
        if (!cases[i].good)
            continue;
        assert_string_equal(image->word, "code object bundle");
        assert_string_equal(image->arch, "");
        gg_image_free(image);
    }
}

static void a_list_of_architectures_that_does_not_fit_is_marked(void **state)
{
    static char bytes[4096];
    (void)state;
    for (uint64_t count = 1; count < 40; count++) {
        struct gg_image *image = NULL;
        const size_t size = make_bundle(bytes, count);
        assert_int_equal(gg_image_read(bytes, size, &image), GG_OK);
        size_t words = 1;
        for (const char *at = image->arch; (at = strchr(at, ' ')); at++)
            words++;
        const char *last = strrchr(image->arch, ' ');
        const int cut = last && !strcmp(last, " \xe2\x80\xa6");
        assert_true(cut ? words <= count : words == count);
        assert_true(strlen(image->arch) < sizeof image->arch);
        gg_image_free(image);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(formats_and_architectures_are_detected_by_content),
    cmocka_unit_test(a_list_of_architectures_that_does_not_fit_is_marked),
    cmocka_unit_test(a_bundle_has_the_kernels_of_its_code_objects),
    cmocka_unit_test(the_kernels_of_a_bundle_that_cannot_be_read_are_not_listed),
    cmocka_unit_test(the_header_of_a_compressed_bundle_is_checked),
    cmocka_unit_test(parameters_of_kernels_are_read),
    cmocka_unit_test(structs_by_value_have_their_size),
    cmocka_unit_test(damaged_images_are_refused_or_read_without_harm),
    cmocka_unit_test(a_cubin_without_its_last_byte_is_read_and_a_shorter_one_is_damaged),
    cmocka_unit_test(metadata_whose_arguments_are_not_a_list_is_damaged),
    cmocka_unit_test(every_truncation_of_an_image_is_handled),
    cmocka_unit_test(images_that_need_linking_are_reported),
};
SUITE(image, tests);
