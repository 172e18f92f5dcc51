#!/usr/bin/env python3
"""Writes tests/data/packed: one small quantized checkpoint a scheme, and the float32 values of its matrices.

usage: make_packed_checkpoints.py [OUT]

Every directory has config.json, model.safetensors (the scheme's parts) and expected.safetensors (each matrix under
the name its float weight has, dequantized in float32 by the scheme's formula). Packing is done one code at a time,
from the descriptions of the formats, so that it shares nothing with the reader in src/checkpoint."""
import json
import pathlib
import sys

import numpy as np

DTYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int64": "I64", "int8": "I8", "uint8": "U8"}
random = np.random.default_rng(20261129)


class Raw:
    """Bytes of a type that NumPy does not have."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), data


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        if isinstance(value, Raw):
            dtype, shape, raw = value.dtype, value.shape, value.data
        else:
            value = np.ascontiguousarray(value)
            dtype, shape, raw = DTYPES[str(value.dtype)], list(value.shape), value.tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return Raw("BF16", values.shape, bits.tobytes()), (bits.astype(np.uint32) << 16).view(np.float32)


def e4m3(bits):
    sign = np.where(bits & 0x80, -1.0, 1.0)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    value = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0))
    return (sign * value).astype(np.float32)


def e5m2(bits):
    return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float32)


def set_bits(words, index, bit, count, value):
    """Puts `count` bits of value at position `bit` of the stream of words[index]."""
    for i in range(count):
        if value >> i & 1:
            word, shift = divmod(bit + i, 32)
            words[index(word)] |= np.uint32(1 << shift)


def random_scales(shape, low=0.002, high=0.02):
    return random.uniform(low, high, shape).astype(np.float32)


def group_index(columns, group, order):
    plain = np.arange(columns) // group
    return random.permutation(plain) if order else plain


def gptq(out, columns, bits, group, sym, v2, order=False, with_index=True, scale="float16"):
    n_groups = -(-columns // group)
    codes = random.integers(0, 1 << bits, (out, columns))
    zeros = np.full((n_groups, out), 1 << (bits - 1)) if sym else random.integers(1, 1 << bits, (n_groups, out))
    scales = random_scales((n_groups, out)).astype(scale)
    index = group_index(columns, group, order)
    qweight = np.zeros((columns * bits // 32, out), np.uint32)
    for o in range(out):
        for i in range(columns):
            set_bits(qweight, lambda word: (word, o), i * bits, bits, int(codes[o, i]))
    qzeros = np.zeros((n_groups, out * bits // 32), np.uint32)
    for g in range(n_groups):
        for o in range(out):
            stored = int(zeros[g, o]) - (0 if v2 else 1)
            set_bits(qzeros, lambda word: (g, word), o * bits, bits, stored)
    wide = scales.astype(np.float32)
    value = wide[index].T * (codes - zeros[index].T).astype(np.float32)
    parts = {"qweight": qweight.view(np.int32), "qzeros": qzeros.view(np.int32), "scales": scales}
    if with_index:
        parts["g_idx"] = index.astype(np.int32)
    return parts, value


def awq(out, columns, group):
    n_groups = columns // group
    codes = random.integers(0, 16, (out, columns))
    zeros = random.integers(0, 16, (n_groups, out))
    scales = random_scales((n_groups, out)).astype(np.float16)

    def pack(matrix):  # [lines, out]
        words = np.zeros((matrix.shape[0], out // 8), np.uint32)
        for line in range(matrix.shape[0]):
            for c in range(out // 8):
                for k, j in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
                    words[line, c] |= np.uint32(int(matrix[line, 8 * c + j]) << 4 * k)
        return words.view(np.int32)

    index = np.arange(columns) // group
    value = scales.astype(np.float32)[index].T * (codes - zeros[index].T).astype(np.float32)
    return {"qweight": pack(codes.T), "qzeros": pack(zeros), "scales": scales}, value


def packed(out, columns, bits, group, symmetric, scale="bf16", order=False):
    n_groups = 1 if group is None else -(-columns // group)
    half = 1 << (bits - 1)
    codes = random.integers(-half, half, (out, columns))
    zeros = np.zeros((out, n_groups), int) if symmetric else random.integers(-half, half, (out, n_groups))
    scales = random_scales((out, n_groups))
    if scale == "bf16":
        stored_scales, scales = bf16(scales)
    else:
        stored_scales = scales = scales.astype(scale)
    words = np.zeros((out, -(-columns // (32 // bits))), np.uint32)
    for o in range(out):
        for i in range(columns):
            set_bits(words, lambda word: (o, word), i * bits, bits, int(codes[o, i]) + half)
    parts = {"weight_packed": words.view(np.int32), "weight_scale": stored_scales,
             "weight_shape": np.array([out, columns], np.int64)}
    if not symmetric:
        points = np.zeros((-(-out // (32 // bits)), n_groups), np.uint32)
        for o in range(out):
            for g in range(n_groups):
                set_bits(points, lambda word: (word, g), o * bits, bits, int(zeros[o, g]) + half)
        parts["weight_zero_point"] = points.view(np.int32)
    index = group_index(columns, group or columns, order)
    if order:
        parts["weight_g_idx"] = index.astype(np.int32)
    return parts, scales.astype(np.float32)[:, index] * (codes - zeros[:, index]).astype(np.float32)


def int8(out, columns, symmetric=True):
    codes = random.integers(-128, 128, (out, columns)).astype(np.int8)
    stored, scales = bf16(random_scales((out, 1)))
    parts, zeros = {"weight": codes, "weight_scale": stored}, 0
    if not symmetric:
        zeros = random.integers(-128, 128, (out, 1))
        parts["weight_zero_point"] = zeros.astype(np.int8)
    return parts, scales * (codes.astype(np.int32) - zeros).astype(np.float32)


def float8(out, columns, scales, suffix, block=(128, 128), dtype="float32", of=e4m3, name="F8_E4M3"):
    codes = random.integers(0, 256, (out, columns)).astype(np.uint8)
    codes = np.where((codes & 0x7F) >= (0x7F if of is e4m3 else 0x7C), codes & 0xBB, codes).astype(np.uint8)
    shape = {"tensor": (1,), "channel": (out, 1), "block": (-(-out // block[0]), -(-columns // block[1]))}[scales]
    if dtype == "ue8m0":
        exponents = random.integers(110, 125, shape).astype(np.uint8)
        stored, value = Raw("F8_E8M0", shape, exponents.tobytes()), (2.0 ** (exponents - 127.0)).astype(np.float32)
    elif dtype == "bf16":
        stored, value = bf16(random_scales(shape))
    else:
        stored = value = random_scales(shape)
    rows, cols = np.arange(out), np.arange(columns)
    if scales == "tensor":
        factor = value.reshape(1, 1)
    elif scales == "channel":
        factor = value
    else:
        factor = value[rows // block[0]][:, cols // block[1]]
    parts = {"weight": Raw(name, codes.shape, codes.tobytes()), "weight" + suffix: stored}
    return parts, of(codes) * factor


def mxfp4(experts, out, columns):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    codes = random.integers(0, 16, (experts, out, columns))
    exponents = random.integers(110, 125, (experts, out, columns // 32)).astype(np.uint8)
    exponents[0, 0, 0], exponents[0, 1, 0] = 0, 1
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8).reshape(experts, out, columns // 32, 16)
    value = np.ldexp(table[codes], np.repeat(exponents.astype(int) - 127, 32, axis=-1)).astype(np.float32)
    return blocks, exponents, value


def write(folder, config, modules, extra=None):
    folder.mkdir(parents=True, exist_ok=True)
    tensors, expected = {}, {}
    for name, (parts, value) in modules.items():
        for part, tensor in parts.items():
            tensors[f"{name}.{part}"] = tensor
        expected[f"{name}.weight"] = value.astype(np.float32)
    tensors["norm.weight"] = np.ones(4, np.float32)
    tensors.update((extra or ({}, {}))[0])
    expected.update((extra or ({}, {}))[1])
    (folder / "config.json").write_text(json.dumps({"quantization_config": config}, indent=1) + "\n")
    write_safetensors(folder / "model.safetensors", tensors)
    write_safetensors(folder / "expected.safetensors", expected)


def main(out):
    each = {"quant_method": "gptq", "bits": 4, "group_size": 64, "dynamic": {"+:.*": {}}}
    write(out / "gptq", each, {
        "sym_g128": gptq(32, 320, 4, 128, True, False), "asym_g32": gptq(40, 96, 4, 32, False, False),
        "plain_g64": gptq(32, 128, 4, 64, False, False, with_index=False),
        "whole_rows": gptq(16, 96, 4, 96, False, False), "order_g32": gptq(16, 128, 4, 32, False, False, order=True),
        "bits8_g32": gptq(16, 64, 8, 32, False, False), "bits8_sym_g128": gptq(16, 256, 8, 128, True, False),
        "bits2_g32": gptq(16, 64, 2, 32, False, False), "bits3_g32": gptq(32, 64, 3, 32, False, False),
        "wide_g64": gptq(16, 128, 4, 64, False, False, scale="float32")})
    write(out / "gptq_v2", {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"}, {
        "asym_g32": gptq(24, 96, 4, 32, False, True), "sym_g32": gptq(8, 32, 4, 32, True, True)})
    write(out / "awq", {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "GEMM",
                        "modules_to_not_convert": ["lm_head"]}, {
        "a": awq(24, 128, 64), "b": awq(40, 192, 64)})
    groups = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "symmetric": False,
                                                             "strategy": "group", "group_size": 128}},
              "group_1": {"targets": ["re:.*bits8.*"], "weights": {"num_bits": 8, "type": "int", "symmetric": True,
                                                                   "strategy": "channel"}}}
    write(out / "pack_quantized", {"quant_method": "compressed-tensors", "format": "pack-quantized",
                                   "config_groups": groups, "ignore": ["lm_head", "re:.*norm.*"]}, {
        "sym_g128": packed(24, 384, 4, 128, True), "asym_g32": packed(20, 96, 4, 32, False),
        "f16_g64": packed(16, 128, 4, 64, False, scale="float16"),
        "f32_g128": packed(16, 256, 4, 128, False, scale="float32"),
        "channel": packed(16, 96, 4, None, True), "order": packed(8, 64, 4, 32, True, order=True),
        "bits8_channel": packed(16, 96, 8, None, True), "bits8_g32": packed(16, 64, 8, 32, False)})
    write(out / "int_quantized", {"quant_method": "compressed-tensors", "format": "int-quantized"}, {
        "sym": int8(16, 96), "asym": int8(16, 160, False)}, ({"sym.input_scale": np.ones(1, np.float32)}, {}))
    write(out / "float_quantized", {"quant_method": "compressed-tensors", "format": "float-quantized"}, {
        "tensor": float8(16, 96, "tensor", "_scale"), "channel": float8(20, 97, "channel", "_scale", dtype="bf16"),
        "block": float8(144, 160, "block", "_scale"),
        "e5m2": float8(16, 96, "channel", "_scale", of=e5m2, name="F8_E5M2")})
    write(out / "fp8", {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3",
                        "activation_scheme": "dynamic"}, {
        "block": float8(144, 320, "block", "_scale_inv"), "small": float8(16, 32, "block", "_scale_inv"),
        "powers": float8(130, 130, "block", "_scale_inv", dtype="ue8m0")})
    plain = float8(12, 40, "tensor", "_scale")
    codes = plain[0]["weight"]
    write(out / "plain_fp8", None, {"m": ({"weight": codes}, e4m3(np.frombuffer(codes.data, np.uint8)).reshape(12, 40))})
    blocks, exponents, value = mxfp4(3, 8, 64)
    blocks2, exponents2, value2 = mxfp4(3, 6, 96)
    write(out / "mxfp4", {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, {}, (
        {"experts.gate_up_proj_blocks": blocks, "experts.gate_up_proj_scales": exponents,
         "experts.down_proj_blocks": blocks2, "experts.down_proj_scales": exponents2},
        {"experts.gate_up_proj": value, "experts.down_proj": value2}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1] / "tests/data/packed"))
