#!/usr/bin/env python3
"""Writes a 32-bit x86 shared library that has a header and nothing else."""

import struct
import sys

ELF_HEADER = 52
ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)  # 32 bits, little endian, version 1
shared_object, i386 = 3, 3
fields = (shared_object, i386, 1, 0, ELF_HEADER, 0, 0, ELF_HEADER, 32, 0, 40, 0, 0)
with open(sys.argv[1], "wb") as out:
    out.write(ident + struct.pack("<HHIIIIIHHHHHH", *fields) + bytes(4096))
