/* test_larger.c: a program with today's headers and a library of a later version, whose structs are larger: without this
 * difference test_program.c would pass with any library. The argument is the file of the host kernels. */
#include "guard.h"

#include <gpuglue/gpuglue.h>

#define GROWN (3 * sizeof(size_t)) /* grow.py */

static void reports_are_larger_than_those_of_the_headers(void **state)
{
    struct gg_reports *reports;
    (void)state;
    assert_int_equal(gg_probe(GG_PASSIVE, &reports), GG_OK);
    assert_int_equal(reports->report_size, sizeof(struct gg_report) + GROWN);
    for (size_t i = 0; i < reports->count; i++)
        if (gg_report_at(reports, i)->tried_count)
            assert_int_equal(gg_report_at(reports, i)->tried_size, sizeof(struct gg_tried) + GROWN);
    gg_reports_free(reports);
}

static void kernels_of_an_image_are_larger_than_those_of_the_headers(void **state)
{
    struct gg_image *image;
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = fopen(*state, "rb"), *copy = open_memstream(&bytes, &size);
    assert_true(file && copy);
    for (int byte; (byte = fgetc(file)) != EOF;)
        fputc(byte, copy);
    fclose(copy);
    fclose(file);
    assert_int_equal(gg_image_read(bytes, size, &image), GG_OK);
    assert_int_equal(image->kernel_size, sizeof(struct gg_image_kernel) + GROWN);
    gg_image_free(image);
    free(bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_larger_than_those_of_the_headers),
        cmocka_unit_test_prestate(kernels_of_an_image_are_larger_than_those_of_the_headers,
                                  argv[argc - 1]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
