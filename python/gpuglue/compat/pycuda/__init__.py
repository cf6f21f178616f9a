"""PyCUDA's glue on gpuglue: driver, autoinit, autoprimaryctx, characterize, compiler, gpuarray, tools; and elementwise,
reduction and scan, which compile the program's own source; cumath and curandom.

It runs on cuda, hip and host. Contexts are primary contexts, streams are ordered with the default stream, and
errors have the driver's code. Arrays compute by NumPy on host, and by kernels or CuPy elsewhere."""

VERSION = (2026, 1)
VERSION_STATUS = ""
VERSION_TEXT = "2026.1"
