/* device_launch_parameters.h: for the host backend: what a kernel may want of it is in cuda_dialect.h. */
