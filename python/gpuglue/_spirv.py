"""Modules of SPIR-V: values of specialisation constants, options, further inputs; and what the driver compiled, on disk.

The driver compiles SPIR-V in each process again. So the machine code is kept in the cache of _cache.py, by all that it
depends on: the SPIR-V, the constants, the options, the device, the version of the driver, and variables for its compiler. A
binary that the driver refuses is removed, and the SPIR-V is compiled."""

import operator
import os
import struct

from . import _cache, _core

FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def load(device, image, link, options, constants):
    """A Module of the image and the images of `link`."""
    inputs = [bytes(memoryview(_core._image_bytes(each))) for each in (image, *_sequence("link", link))]
    flags = _flags([*getattr(image, "options", ()), *_sequence("options", options)])
    if len(inputs) == 1 and not flags and not constants and not device.supports("module_binary"):
        return _core._load_spirv(device, inputs, None, (), None)
    values = _values(inputs, constants)
    name = _name(device, inputs, flags, values)
    found = _cache.load(name) if name else None
    if found:
        try:
            return _core._load_spirv(device, inputs, flags, values, found[1])
        except _core.Error:
            _cache.discard(name)
    module = _core._load_spirv(device, inputs, flags, values, None)
    binary = _core._module_binary(module) if name else None
    if binary:
        _cache.store(name, {"kind": "ze binary", "arch": device.arch}, binary)
    return module


def _name(device, inputs, flags, values):
    """Of the cache's entry; None: there is none."""
    if not device.supports("module_binary") or not _cache.directory():
        return None
    [backend] = [each for each in _core.backends() if each.name == device.backend]
    drivers = [note for note in backend.notes if note.startswith("driver of ")]
    if not drivers:
        return None
    compiler = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("IGC_"))
    return _cache.key("ze binary", len(drivers), *drivers, device.name, device.arch, device.total_memory, flags or "", len(values), *values,
                      len(compiler), *compiler, *inputs)


def _sequence(name, values):
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"Module: {name} must be a sequence, got {values!r}")
    return values


def _flags(options):
    """The options as one text; None without any."""
    for option in options:
        if not isinstance(option, str):
            raise TypeError(f"Module: options must be a sequence of str, got {option!r}")
        if not option or any(character.isspace() or character == "\0" for character in option):
            raise _core.InvalidArgumentError(
                f"Module: the option {option!r}: expected one option without spaces, such as '-ze-opt-level=1'")
    return " ".join(options) or None


# ---- specialisation constants


def declared(image):
    """{number: (kind, bytes, default)} of all images given."""
    return _core._read_image(image)[3]


def defaults(image):
    """{number: default}."""
    return {number: _unpack(*facts) for number, facts in declared(image).items()}


def _unpack(kind, size, value):
    if kind == "float":
        return struct.unpack(FLOATS[size], value.to_bytes(size, "little"))[0]
    return bool(value) if kind == "bool" else value


def _values(inputs, constants):
    """((number, bits), …) as the driver takes them."""
    if constants is None:
        return ()
    known = {}
    for each in inputs:
        known.update(declared(each))
    return tuple(bits(known, number, value) for number, value in _items(constants))


def _items(constants):
    try:
        items = constants.items()
    except AttributeError:
        raise TypeError(f"constants must be a dict {{number: value}} or None, got {constants!r}") from None
    for number, value in items:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"constants: the key {number!r} must be an int, the number of the constant")
        yield operator.index(number), value


def bits(known, number, value):
    """(number, value as an unsigned integer of the constant's size)."""
    if number not in known:
        has = ", ".join(f"{each} ({_word(*known[each][:2])})" for each in sorted(known)) or "none"
        raise _core.InvalidArgumentError(f"constants: there is no specialisation constant {number}; the image has: {has}")
    kind, size, _ = known[number]
    return number, int.from_bytes(_pack(number, value, kind, size), "little")


def _word(kind, size):
    return "bool" if kind == "bool" else f"{kind}{8 * size}"


def _pack(number, value, kind, size):
    try:
        if kind == "float":
            return struct.pack(FLOATS[size], float(value))
        if kind == "bool":
            plain = value.item() if hasattr(value, "item") else value
            if plain not in (0, 1):
                raise ValueError
            return bytes([bool(plain)])
        plain = operator.index(value)
        return plain.to_bytes(size, "little", signed=plain < 0)
    except (TypeError, ValueError, OverflowError, struct.error, AttributeError):
        raise _core.InvalidArgumentError(
            f"constants: the value {value!r} for the specialisation constant {number}: expected a number of type "
            f"{_word(kind, size)}") from None


# ---- constants in the code itself

DECORATE, SPEC_ID = 71, 1
TRUE, FALSE, CONSTANT = 48, 49, 50


def specialise(image, constants):
    """The SPIR-V with other defaults."""
    known = declared(image)
    wanted = dict(bits(known, number, value) for number, value in _items(constants))
    words = list(struct.unpack(f"<{len(image) // 4}I", image))
    numbers, at = {}, 5
    while at < len(words):
        op, count = words[at] & 0xFFFF, words[at] >> 16
        if op == DECORATE and count > 3 and words[at + 2] == SPEC_ID:
            numbers[words[at + 1]] = words[at + 3]
        elif op in (TRUE, FALSE, CONSTANT) and numbers.get(words[at + 2]) in wanted:
            value = wanted[numbers[words[at + 2]]]
            if op == CONSTANT:
                words[at + 3:at + count] = [value >> 32 * i & 0xFFFFFFFF for i in range(count - 3)]
            else:
                words[at] = count << 16 | (TRUE if value else FALSE)
        at += count
    return struct.pack(f"<{len(words)}I", *words)
