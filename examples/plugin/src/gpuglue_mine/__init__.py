"""A backend for gpuglue: the directory of gpuglue_mine.so. gpuglue finds it by the entry point and does not
import this."""
