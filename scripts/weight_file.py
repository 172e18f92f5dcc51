"""Reads model.quern with NumPy, from docs/FILE_FORMAT.md alone: tensors as float32 arrays.

Independent of the C++ code, so it also tests that document.  tensors(path) -> {name: Tensor}.
"""
import pathlib, struct
from dataclasses import dataclass
import numpy as np

PANEL, SUPER, GROUP = 16, 256, 32
NAMES = {1: "rows_f32", 2: "f32", 3: "bf16", 4: "f16", 16: "q8", 17: "q4", 32: "q4_0", 33: "q4_1", 34: "q5_0", 35: "q5_1",
         36: "q4_k", 37: "q5_k", 38: "q6_k", 40: "mxfp4", 48: "int4_g32", 49: "int4_g64", 50: "int4_g128", 51: "int4_f32",
         52: "int8_g32", 53: "int8_g128", 56: "f8_e4m3"}
STEP = {"f32": 1, "bf16": 2, "f16": 2, "f8_e4m3": 4}
# Columns that share a scale of the int8 activations; absent: activations stay float.
ACTIVATION_GROUP = {"q8": 32, "q4": 256, "q4_0": 32, "q4_1": 32, "q5_0": 32, "q5_1": 32, "q4_k": 32, "q5_k": 32,
                    "q6_k": 16, "mxfp4": 32, "int4_g32": 32, "int4_g64": 32, "int4_g128": 32, "int4_f32": 32, "int8_g32": 32,
                    "int8_g128": 32}
# Columns of a scale and type of the scale of the formats with zero points.
INT_GROUPS = {"int4_g32": (32, np.float16), "int4_g64": (64, np.float16), "int4_g128": (128, np.float16),
              "int4_f32": (32, np.float32), "int8_g32": (32, np.float32), "int8_g128": (128, np.float32)}
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
Q4_N = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
Q4_S = np.array([1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8])
Q4_T = (Q4_N[None, :] * Q4_S[:, None] + 4) >> 3


@dataclass
class Tensor:
    format: str
    values: np.ndarray  # float32 [rows, columns]


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, dtype, *shape):
        count = int(np.prod(shape))
        out = np.frombuffer(self.data, dtype, count, self.at)
        self.at += out.nbytes
        return out.reshape(shape)


def lines(reader, c):       # byte lines -> [16, c]
    return reader.take(np.int8, c // 4, PANEL, 4).transpose(1, 0, 2).reshape(PANEL, c)


def nibbles(reader, c):     # nibble lines -> codes [16, c]
    b = reader.take(np.uint8, c // 8, PANEL, 4)
    return np.stack([b & 15, b >> 4], 2).transpose(1, 0, 2, 3).reshape(PANEL, c)


def fifth_bits(reader, c):  # -> [16, c] of 0 or 1
    b = np.unpackbits(reader.take(np.uint8, c // 8, 2, 8), axis=2, bitorder="little").reshape(c // 8, 2, PANEL, 4)
    return b.transpose(2, 0, 1, 3).reshape(PANEL, c)


def per_group(reader, c):   # f16 [G][16] -> float32 [16, c]
    return np.repeat(reader.take(np.float16, c // GROUP, PANEL).astype(np.float32).T, GROUP, 1)


def groups_of(reader, c, group, dtype):  # [c / group rounded up][16] -> [16, c]
    return np.repeat(reader.take(dtype, -(-c // group), PANEL).T, group, 1)[:, :c]


def small_scales(reader, c):  # 6-bit scales and minima of q4_k and q5_k -> two [16, c]
    n = c // GROUP
    low, pairs = reader.take(np.uint8, n, PANEL), reader.take(np.uint8, -(-n // 2), PANEL)
    high = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1, PANEL)[:n]
    steps = ((low & 15) | (high & 3) << 4, low >> 4 | high >> 2 << 4)
    return [np.repeat(part.astype(np.float32).T, GROUP, 1) for part in steps]


def e4m3(bits):
    exponent, mantissa = (bits >> 3 & 15).astype(np.int32), (bits & 7).astype(np.float32)
    value = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(8 + mantissa, exponent - 10))
    return np.where(bits & 0x80, -value, value).astype(np.float32)


def super_block(name, reader, c):
    if name == "f8_e4m3":
        codes = e4m3(reader.take(np.uint8, c, PANEL).T)
        return codes * groups_of(reader, c, 128, np.float32)
    if name in INT_GROUPS:
        group, dtype = INT_GROUPS[name]
        codes = (nibbles if name.startswith("int4") else lines)(reader, c).astype(np.int32)
        d = groups_of(reader, c, group, dtype).astype(np.float32)
        zeros = groups_of(reader, c, group, np.uint8 if name.startswith("int4") else np.int8).astype(np.int32)
        return d * (codes - zeros).astype(np.float32)
    if name == "f32": return reader.take(np.float32, c, PANEL).T
    if name in ("bf16", "f16"):
        bits = reader.take(np.uint16, c // 2, PANEL, 2).transpose(1, 0, 2).reshape(PANEL, c)
        return bits.view(np.float16).astype(np.float32) if name == "f16" else (bits.astype(np.uint32) << 16).view(np.float32)
    if name == "q8":
        codes = lines(reader, c).astype(np.float32)
        return per_group(reader, c) * codes
    codes = nibbles(reader, c).astype(np.int32)
    if name == "q4":
        ids = reader.take(np.uint8, c // GROUP, PANEL).T
        ids = np.repeat(np.stack([ids & 15, ids >> 4], 2).reshape(PANEL, c // 16), 16, 1)
        return reader.take(np.float16, PANEL, 1).astype(np.float32) * Q4_T[ids, codes].astype(np.float32)
    if name == "mxfp4": return np.ldexp(E2M1[codes], groups_of(reader, c, GROUP, np.uint8).astype(np.int32) - 127)
    if name == "q6_k":
        pairs = reader.take(np.uint8, c // 16, PANEL, 4)
        high = np.stack([pairs >> 2 * i & 3 for i in range(4)], 2).transpose(1, 0, 2, 3).reshape(PANEL, c)
        s = groups_of(reader, c, 16, np.int8).astype(np.float32)
        return reader.take(np.float16, PANEL, 1).astype(np.float32) * s * (codes + 16 * high.astype(np.int32) - 32).astype(np.float32)
    if name in ("q4_k", "q5_k"):
        if name == "q5_k": codes = codes + 16 * fifth_bits(reader, c)
        s, n = small_scales(reader, c)
        d, dmin = (reader.take(np.float16, PANEL, 1).astype(np.float32) for _ in range(2))
        return d * s * codes.astype(np.float32) - dmin * n
    if name in ("q5_0", "q5_1"): codes = codes + 16 * fifth_bits(reader, c)
    d = per_group(reader, c)
    if name in ("q4_0", "q5_0"): return d * (codes - (8 if name == "q4_0" else 16)).astype(np.float32)
    return d * codes.astype(np.float32) + per_group(reader, c)


def matrix(name, data, rows, columns):
    step = STEP.get(name, GROUP)
    padded = -(-columns // step) * step
    reader, panels = Reader(data), []
    for _ in range(-(-rows // PANEL)):
        panels.append(np.concatenate([super_block(name, reader, min(SUPER, padded - k)) for k in range(0, padded, SUPER)], 1))
    assert reader.at == len(data), (name, reader.at, len(data))
    return np.ascontiguousarray(np.concatenate(panels)[:rows, :columns], np.float32)


def tensors(path):
    path = pathlib.Path(path)
    data = (path / "model.quern" if path.is_dir() else path).read_bytes()
    assert data[:8] == b"QUERN\r\n\x1a"
    directory, = struct.unpack_from("<Q", data, 24)
    n_sections, n_tensors = struct.unpack_from("<II", data, 56)
    names_at = directory + 64 * n_sections
    out = {}
    for i in range(n_tensors):
        offset, size, _, rows, columns, kind, form, at, length, _ = struct.unpack_from("<QQQQQIIIIQ", data, directory + 64 * i)
        assert kind == 1
        name, body = data[names_at + at:names_at + at + length].decode(), data[offset:offset + size]
        if NAMES[form] == "rows_f32": values = np.frombuffer(body, np.float32, rows * columns).reshape(rows, columns)
        else: values = matrix(NAMES[form], body, rows, columns)
        out[name] = Tensor(NAMES[form], values)
    return out
