"""Importing this makes the default device's primary context current."""

import atexit

from . import driver, tools

driver.init()
context = tools.make_default_context()
device = context.get_device()
atexit.register(context.detach)
