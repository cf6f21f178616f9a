/* needy.c: a library that calls another one. */
#include <gpuglue/backend.h>

int fixture_identity(void);

int fixture_identity(void)
{
    return gg_backend_query(0, NULL, NULL);
}
