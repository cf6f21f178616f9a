/* cudart.c: a CUDA runtime library that only reports its version. */

__attribute__((visibility("default"))) int cudaRuntimeGetVersion(int *version);

int cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return 1;
    *version = CUDART_VERSION;
    return 0;
}
