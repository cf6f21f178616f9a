/* The kernels of kernels.cu in OpenCL C. kernels.spv.gz.b64 is made from this file, with clang 15 and llvm-spirv 15:
 *   clang-15 -x cl -cl-std=CL2.0 --target=spir64 -O1 -c -emit-llvm kernels.cl -o kernels.bc
 *   llvm-spirv-15 --spirv-max-version=1.2 kernels.bc -o kernels.spv
 *   gzip -9n kernels.spv && base64 kernels.spv.gz > kernels.spv.gz.b64 */
global uint table[4];

kernel void nothing(void)
{
}

kernel void write_word(global ulong *at, ulong value)
{
    *at = value;
}

kernel void scale(global float *x, uint n, float by)
{
    uint i = get_global_id(0);
    if (i < n)
        x[i] *= by;
}

kernel void add_table(global uint *x, uint n)
{
    uint i = get_global_id(0);
    if (i < n)
        x[i] += table[i & 3];
}

/* Each group writes its elements in reverse, through local memory. */
kernel void reverse(global uint *x)
{
    local uint held[1024];
    uint i = get_local_id(0), width = get_local_size(0);
    global uint *block = x + get_group_id(0) * width;
    held[i] = block[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    block[i] = held[width - 1 - i];
}

struct mixed {
    char letter;
    double number;
};

/* What the arguments held, as numbers. */
kernel void say(global double *out, char a, ushort b, int c, long d, float e, double f, struct mixed g)
{
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = e;
    out[5] = f;
    out[6] = g.letter;
    out[7] = g.number;
}

kernel void wait_for(volatile global uint *flag)
{
    while (!*flag)
        ;
}

/* OpenCL has no function for the address of a variable: the simulated driver runs this kernel to find it. */
kernel void where_table(global ulong *out)
{
    out[0] = (ulong)table;
    out[1] = sizeof table;
}
