"""Small inputs of each kind, from which the corpora began:    seeds.py OUT     (a directory for each target)

All are made here, from the formats' descriptions."""

import json
import struct
import sys
from pathlib import Path

MACHINE_CUBIN, MACHINE_CODE_OBJECT, MACHINE_ZEBIN, X86_64 = 190, 224, 205, 62


def elf(machine, sections, *, kind=3, flags=0, version=0, segments=0):
    """A 64-bit ELF file of (name, type, contents)."""
    names = b"\0" + b"".join(name + b"\0" for name, *_ in sections) + b".names\0"
    sections = [*sections, (b".names", 3, names)]
    at, data, headers = 64 + 56 * segments, b"", bytes(64)
    for name, section, body in sections:
        headers += struct.pack("<IIQQQQIIQQ", names.index(name), section, 0, 0, at + len(data), len(body), 0, 0, 4, 0)
        data += body + bytes(-len(body) % 8)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0, version]) + bytes(7)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, kind, machine, 1, 0, 64 if segments else 0, at + len(data), flags,
                         64, 56, segments, 64, len(sections) + 1, len(sections))
    programs = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 8) * segments
    return header + programs + data + headers


def pack(value):
    """MessagePack."""
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(k) + pack(v) for k, v in value.items())
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(pack, value))
    if isinstance(value, str):
        return struct.pack(">BB", 0xD9, len(value)) + value.encode()
    return bytes([value]) if value < 128 else struct.pack(">BI", 0xCE, value)


def metadata():
    arguments = [{".offset": 0, ".size": 8, ".value_kind": "global_buffer"},
                 {".offset": 8, ".size": 4, ".value_kind": "by_value", ".type_name": "float"},
                 {".offset": 16, ".size": 8, ".value_kind": "hidden_none"}]
    return pack({"amdhsa.kernels": [{".args": arguments, ".name": "k"}, {".name": "l", ".args": []}],
                 "amdhsa.target": "amdgcn-amd-amdhsa--gfx942", "amdhsa.version": [1, 200]})


def code_object():
    body = metadata()
    note = struct.pack("<III8s", 7, len(body), 32, b"AMDGPU\0\0") + body + bytes(-len(body) % 4)
    return elf(MACHINE_CODE_OBJECT, [(b".note", 7, note)])


def cubin(version):
    parameters = b"".join(struct.pack("<BBHIHHI", 4, 0x17, 12, 0, i, 8 * i, 8 << 18) for i in range(2))
    far = struct.pack("<BBHIHHII", 4, 0x45, 16, 0, 2, 0, 16, 4)
    other = struct.pack("<BBH", 3, 0x1B, 255)
    return elf(MACHINE_CUBIN, [(b".nv.info.k", 0x70000000, other + parameters + far), (b".bss", 8, b"")], kind=2,
               flags=90 if version < 8 else 90 << 8, version=version, segments=1)


def fatbin(*kinds):
    body = b"".join(struct.pack("<HHIQIIIIII", kind, 1, 64, 8, 0, 0, 0, 90, 64, 0) + bytes(24) + bytes(8) for kind in kinds)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def bundle():
    out = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    for name in (b"host-x86_64-unknown-linux--", b"hipv4-amdgcn-amd-amdhsa--gfx90a"):
        out += struct.pack("<QQQ", 150, 8, len(name)) + name
    return out.ljust(160, b"\0")


def compressed(version):
    """The header of a compressed bundle, with the size of the whole from version 2 on, and a body that nothing reads."""
    size = {1: b"", 2: struct.pack("<I", 64), 3: struct.pack("<Q", 64)}[version]
    return (b"CCOB" + struct.pack("<HH", version, 1) + size).ljust(64, b"\0")


def spirv(order):
    words = [0x07230203, 0x10000, 0, 16, 0]

    def op(code, *operands):
        words.extend([len(operands) + 1 << 16 | code, *operands])
    op(15, 6, 1, *struct.unpack("<I", b"k\0\0\0"))
    op(21, 2, 32, 0)
    op(22, 3, 64)
    op(23, 4, 3, 3)
    op(28, 5, 2, 4)
    op(30, 6, 2, 3)
    op(32, 7, 5, 2)
    op(32, 8, 4, 2)
    op(32, 9, 7, 6)
    op(54, 10, 1, 0, 11)
    for kind in (2, 3, 4, 7, 8, 9, 99):
        op(55, kind, 12)
    op(56)
    return struct.pack(f"{order}{len(words)}I", *words)


PTX = b""".target sm_50, debug
// a comment
.visible .entry k( .param .u64 .ptr .global .align 4 a, .param .f32 b, .param .align 8 .b8 c[16] /* and another */ )
{ ret; }
.entry l { }
"""


def handle(offset, nbytes, block, mapped, *, size=144, backend=b"host", version=1):
    return struct.pack("<IIII16s16sQQQQ", size, 0x50494747, version, 0, backend, b"the only device", 1, offset, nbytes, block) + \
        struct.pack("<H", mapped).ljust(64, b"\0")


MAGIC, PROTOCOL = 0x4D4F4347, 3


def hello(rank, *, process=b"pid:[1]/2", head=(MAGIC, PROTOCOL)):
    """The first message to rank 0 (core/comm/socket.h)."""
    return struct.pack("<IIii64s48s64sI28s", *head, rank, 4, b"a job", b"this machine", process, 6, b"\0aaaaa")


def reply(kind, text=b"", ranks=b"\2", head=(MAGIC, PROTOCOL)):
    return struct.pack("<III32s600s", *head, kind, ranks, text)


def tensor(what, ndim, code, bits, lanes=1, shift=0, offset=0, sizes=()):
    return struct.pack("<BBBBBBH", what, ndim, code, bits, lanes, shift, offset) + \
        b"".join(struct.pack("<b", n) if -128 < n < 128 else b"\x80" + struct.pack("<q", n) for n in sizes)


def entry(facts, body):
    return json.dumps(facts).encode() + b"\n" + body


TARGETS = {
    "elf": [code_object(), cubin(7), cubin(8), elf(MACHINE_ZEBIN, [], segments=1), elf(X86_64, [(b".text", 1, b"code")])],
    "fatbin": [b"\0" + fatbin(1), b"\0" + fatbin(1, 2), b"\0" + fatbin(3), b"\1" + bundle(),
               *(b"\2" + compressed(version) for version in (1, 2, 3))],
    "msgpack": [metadata(), pack({"amdhsa.kernels": []}), bytes([0x81, 0xA1, 0x61]) + b"\xde\0\1\xc0\xd4\0\0",
                *(b"\x81\xa1a" + bytes([code]) + bytes(9) for code in range(0xC0, 0xE0))],
    "ptx": [PTX, PTX.replace(b"(", b"").replace(b"k", b""), b".target sm_90\n"],
    "spirv": [b"\0" + spirv("<"), b"\1" + spirv(">")],
    "env": [bytes([i]) + text for i, text in enumerate((b"pool", b"8", b"sync", b"64", b"always"))] +
           [b"\5COPY_THREAD", b"\5CUDA_LIBRARI", b"\5SIM_X", b"\5/usr/lib/gpuglue_mine.so"],
    "selection": [b"\1" + text for text in (b"auto", b"cuda,host", b"^cuda, HIP", b"cpu", b"cuda:0", b",", b"a,^b")] +
                 [b"\0" + text for text in (b"host:0", b"0", b"host", b"cpu:1", b"pci:0000:65:00.0", b"pci:65:00.0",
                                           b"uuid:0123456789abcdef", b"uuid:01234567-89ab-cdef-0123-456789abcdef", b"x y:0")],
    "ipc": [b"\0" + handle(0, 64, 64, 64), b"\0" + handle(8, 8, 64, 64), b"\0" + handle(64, 64, 256, 64),
            b"\1" + handle(0, 64, 64, 64, size=136), b"\0" + handle(0, 64, 64, 64, version=2), b"\0" + handle(0, 0, 64, 64), b"\0" + handle(0, 1 << 60, 1 << 61, 64)],
    # After the first byte what is changed of the magic, the process, its file, a reserved member, the time of its start, the inode,
    # the offset, the size and the checksum.
    "host_ipc": [first + struct.pack("<IiiIQQQQQ", *changed) for first in (b"\0", b"\1") for changed in
                 ((0,) * 9, (1,) + (0,) * 8, (0, 1) + (0,) * 7, (0, 0, 1) + (0,) * 6, (0, 0, -1) + (0,) * 6, (0, 0, 0, 0, 1) + (0,) * 4,
                  (0,) * 5 + (1, 0, 0, 0), (0,) * 6 + (4096, 0, 0), (0,) * 6 + (1, 0, 0), (0,) * 6 + (1 << 63, 0, 0), (0,) * 7 + (1 << 20, 0),
                  (0,) * 7 + (1, 0), (0,) * 7 + (1 << 40, 0), (0,) * 6 + (1 << 63, 1 << 63, 0), (0,) * 8 + (1,))],
    # Of the first byte: 1: to rank 1, 2 and 4: what the fuzzer corrects, 8: a confirmation, or that memory was passed.
    "comm": [b"\6" + hello(1), b"\6" + b"".join(hello(rank, process=b"%d" % at) for at, rank in enumerate((1, 2, 3, 3, 4))), b"\2" + hello(1),
             b"\4" + hello(1, head=(MAGIC, 2)), b"\0" + hello(1, head=(0, 0)), b"\6" + hello(-1)[:100],
             *(b"\x0a" + reply(kind, b"text\1") for kind in range(6)), b"\x08" + reply(2, head=(0, 0)),
             b"\x0b" + b"".join(map(reply, (0, 1, 3))), b"\3" + reply(0) + reply(1), b"\x0b" + reply(1) + reply(1), b"\3" + reply(3),
             *(b"\3" + reply(kind, b"rank 7\n\x7f", ranks=b"\xff" * 32) for kind in (4, 5, 9)), b"\1" + reply(0, head=(MAGIC, 4))],
    "dlpack": [tensor(what, 2, 2, 32, sizes=(3, 4, 4, 1)) for what in (0, 1, 128, 129)] +
              [tensor(1, 1, code, bits, sizes=(5, -1)) for code, bits in ((0, 8), (1, 64), (2, 16), (4, 16), (5, 128), (6, 8))] +
              [tensor(1 + 4, 3, 2, 64, sizes=(2, 0, 1 << 62)), tensor(4, 0, 2, 32), tensor(1, 70, 2, 32), tensor(1, 255, 2, 32),
               tensor(1, 2, 1, 8, sizes=(2, 2, 1 << 62, -(1 << 62))), tensor(1 + 64, 1, 255, 8, shift=63, offset=65535, sizes=(1, 1)),
               tensor(1 + 2, 1, 2, 32), tensor(1 + 8, 1, 2, 32, sizes=(2, 1)), tensor(1 + 16, 1, 2, 32, shift=77, sizes=(2, 1)),
               tensor(1 + 32, 1, 2, 32, shift=2, sizes=(2, 1)), tensor(0, 1, 2, 32, lanes=2, sizes=(2, 1))],
    "cache": [first + entry(facts, b"image") for first in (b"\0", b"\1")
              for facts in ({}, {"log": "", "names": {"a": "b"}, "arch": "sm_90"}, {"sha256": "0"}, [1, None, 2.5], "text")] +
             [b"\0", b"\1" + b"[" * 40, b"\0" + b"[" * 2000, b"\0{" + b'"a":{' * 20, b"\1" + entry({"a": float("nan"), "b": 10 ** 40}, b"")],
}


def main():
    for target, inputs in TARGETS.items():
        out = Path(sys.argv[1], target)
        out.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (out / f"seed{number:02d}").write_bytes(data)


main()
