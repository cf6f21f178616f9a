"""A backend for gpuglue: the folder of gpuglue_mine.so. gpuglue finds it by the entry point and does not
import this."""
