"""The system's C++ compiler: which one is run, how, and what is made of its text."""

from compilers import needs_compiler, only_once, own_cache  # noqa: F401

from gpuglue import _host_compiler

pytestmark = needs_compiler


def test_a_template_with_a_long_name_may_stand_before_a_plain_kernel():
    name = "a_function_whose_name_is_long_enough_to_be_read_in_very_many_ways"
    text = f"template <class T> __device__ T {name}(T x) {{ return x; }}\n__global__ void f(int *x) {{ *x = {name}(1); }}"
    assert _host_compiler.kernels(_host_compiler.preprocess(text, [])[0].decode()) == {"f": "f"}
