"""PyCUDA's glue on gpuglue: driver, autoinit, autoprimaryctx, compiler, gpuarray, tools.

It runs on cuda, hip and host. Contexts are the devices' primary ones, streams are ordered with the default
stream, and errors carry the driver's code. What PyCUDA computes (arithmetic on arrays, reductions, random
numbers) is not here: gpuglue does no maths."""

VERSION = (2026, 1)
VERSION_STATUS = ""
VERSION_TEXT = "2026.1"
