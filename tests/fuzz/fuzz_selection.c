/* fuzz_selection.c: the texts of GPUGLUE_BACKEND and GPUGLUE_DEVICE. */
#include "fuzz.h"
#include "loader/loader.h"

#include <strings.h>

static void fuzz_backends(const char *text)
{
    struct ggi_selection selection;
    struct ggi_text why = GGI_TEXT(256);
    if (!ggi_selection_parse(&selection, text, &why)) {
        FUZZ_CHECK(why.data[0]);
        return;
    }
    FUZZ_CHECK(selection.count <= GGI_SELECTION_MAX);
    for (size_t i = 0; i < selection.count; i++)
        FUZZ_CHECK(ggi_selection_has(&selection, selection.names[i]));
    ggi_selection_admits(&selection, ggi_plugin_named("host"));
}

/* The message about a name without a plugin is kept for the life of the process: 10^7 of them would fill the memory. */
static bool is_kept(const char *text)
{
    struct ggi_text name = GGI_TEXT(64);
    ggi_text_add(&name, "%.*s", (int)strcspn(text, ":"), text);
    ggi_text_lower(name.data);
    return ggi_backend_name_is_valid(name.data) && !ggi_plugin_named(name.data);
}

static void fuzz_device(const char *text)
{
    gg_device *device = NULL;
    if (is_kept(text) && strncasecmp(text, "pci:", 4) != 0 && strncasecmp(text, "uuid:", 5) != 0)
        return;
    if (!gg_device_find(text, &device))
        FUZZ_CHECK(device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    if (data[0] % 2)
        fuzz_backends(text);
    else
        fuzz_device(text);
    free(text);
    return 0;
}
