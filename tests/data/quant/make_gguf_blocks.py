#!/usr/bin/env python3
"""Cuts rows of the 32-column types out of a GGUF and its float oracle: ../shared/gguf-types -> gguf_blocks.bin.

Layout, for each of Q4_0 Q4_1 Q5_0 Q5_1 Q8_0: 3 rows of 512 weights as GGUF blocks, then their f32 values.
Usage: make_gguf_blocks.py types.gguf types.expected.safetensors gguf_blocks.bin
"""
import sys

import gguf
from safetensors.numpy import load_file

ROWS = 3

reader = gguf.GGUFReader(sys.argv[1])
expected = load_file(sys.argv[2])
tensors = {tensor.name: tensor for tensor in reader.tensors}
with open(sys.argv[3], "wb") as out:
    for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        rows = tensors[name].data.reshape(16, -1)[:ROWS]
        out.write(rows.tobytes())
        out.write(expected[name].reshape(16, 512)[:ROWS].astype("<f4").tobytes())
