"""Compile CUDA source with HIPRTC: compile.py SOURCE ARCHITECTURE IMAGE"""

import ctypes
import pathlib
import sys

LIBRARY = "libhiprtc.so.7"


def compile_source(text, architecture):
    """The code object, or an exit with the compiler's log."""
    rtc = ctypes.CDLL(LIBRARY)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    rtc.hiprtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    options = (ctypes.c_char_p * 2)(f"--offload-arch={architecture}".encode(), b"-O3")
    if rtc.hiprtcCompileProgram(program, len(options), options):
        rtc.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        rtc.hiprtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    rtc.hiprtcGetCodeSize(program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    rtc.hiprtcGetCode(program, image)
    return image.raw


if __name__ == "__main__":
    source, architecture, image = sys.argv[1:]
    pathlib.Path(image).write_bytes(compile_source(pathlib.Path(source).read_bytes(), architecture))
