/* The kernels that the tests launch. kernels.ptx is made from this file: nvcc -arch=compute_75 -ptx
 * kernels.cu, then edited to the lowest .version and .target that the code allows. The simulated drivers
 * run host functions in place of these kernels; kernels_host.c has them for the host backend. */
extern "C" {
__device__ unsigned table[4];

__global__ void nothing()
{
}

__global__ void write_word(unsigned long long *at, unsigned long long value)
{
    *at = value;
}

__global__ void scale(float *x, unsigned n, float by)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}

__global__ void add_table(unsigned *x, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += table[i & 3];
}

/* Each block writes its elements in reverse, through shared memory. */
__global__ void reverse(unsigned *x)
{
    extern __shared__ unsigned held[];
    unsigned *block = x + blockIdx.x * blockDim.x;
    held[threadIdx.x] = block[threadIdx.x];
    __syncthreads();
    block[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

struct mixed {
    char letter;
    double number;
};

/* What the arguments held, as numbers. */
__global__ void say(double *out, signed char a, unsigned short b, int c, long long d, float e, double f, mixed g)
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

__global__ void wait_for(volatile unsigned *flag)
{
    while (!*flag)
        ;
}
}
