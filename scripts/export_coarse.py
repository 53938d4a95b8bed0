#!/usr/bin/env python3
"""Converts the weights that train_coarse.py saved to the coarse encoder's file.

    scripts/export_coarse.py coarse.pt crates/embed/assets/coarse-encoder.bin \
        crates/embed/assets/granite-embedding-30m-english.bin crates/embed/tests/reference.jsonl \
        crates/embed/tests/coarse_reference.jsonl

Matrices become int8 with one f32 scale for every 64 weights, packed as in convert_granite.py. The last argument is the
output file for reference vectors: the same weights in 32-bit floats on the tokens of reference.jsonl, for the crate's tests.
Needs numpy, not PyTorch.

Sections: weight, weight2 (f32 per token: logarithms of the pooling weights), position (64 x f32), attention (256 x f32),
conv.bias (256 x f32), and the matrices project (128 x 384; rows from 96 on are zero), neighbours (768 x 128: the
convolution's three taps one below the other), direct (384 x 640), up (1024 x 640), down (384 x 1024).
"""
import json
import math
import pickle
import struct
import sys
import zipfile

import numpy as np

from convert_granite import pack

DIMENSIONS, CHANNELS, PROJECTED, GROUP = 384, 256, 96, 64


def load(path):
    """The tensors of a file that torch.save wrote."""
    archive = zipfile.ZipFile(path)
    prefix = archive.namelist()[0].split("/")[0]
    kinds = {"HalfStorage": np.float16, "FloatStorage": np.float32}

    def rebuild(storage, offset, shape, *_):
        count = int(np.prod(shape))
        return storage[offset : offset + count].reshape(shape).astype(np.float32)

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if name in kinds:
                return kinds[name]
            if name == "_rebuild_tensor_v2":
                return rebuild
            if (module, name) == ("collections", "OrderedDict"):
                return dict
            raise pickle.UnpicklingError(f"unexpected {module}.{name}")

        def persistent_load(self, pid):
            return np.frombuffer(archive.read(f"{prefix}/data/{pid[2]}"), pid[1])

    return Unpickler(archive.open(f"{prefix}/data.pkl")).load()


def asset(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<I", data[8:12])
    body = data[12 + length :]
    return {name: body[start : start + size] for name, (start, size) in json.loads(data[12 : 12 + length])["sections"].items()}


def word_table(path):
    sections = asset(path)
    values = np.frombuffer(sections["word"], np.int8).reshape(-1, DIMENSIONS // GROUP, GROUP).astype(np.float32)
    scales = np.frombuffer(sections["word.scale"], np.float32).reshape(-1, DIMENSIONS // GROUP, 1)
    return (values * scales).reshape(-1, DIMENSIONS)


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def reference(weights, words, unit, tokens):
    """The vector of a text in floats, as train_coarse.py computes it."""
    positions = weights["pw"][np.minimum(np.arange(len(tokens)) // 5, 63)]
    weight = np.exp(weights["lw"][tokens] + positions)
    rows = words[tokens] * unit
    mean = (rows * weight[:, None]).sum(0) / max(weight.sum(), 1e-30)
    projected = rows @ weights["proj"].T
    edge = np.zeros((1, projected.shape[1]), np.float32)
    padded = np.concatenate([edge, projected, edge])
    windows = np.concatenate([padded[:-2], padded[1:-1], padded[2:]], 1)
    features = gelu(windows @ weights["conv"].T + weights["cb"])
    logits = np.clip(features @ weights["att"][0], -8, 8)
    weight = np.exp(weights["lw2"][tokens] + positions + logits)
    pooled = np.concatenate([mean, (features * weight[:, None]).sum(0) / max(weight.sum(), 1e-30)])
    pooled = (pooled - pooled.mean()) / np.sqrt(pooled.var() + 1e-5)
    out = weights["out"] @ pooled + weights["b"] + weights["h2"] @ gelu(weights["h1"] @ pooled + weights["hb"])
    return out / np.linalg.norm(out)


def quantised(matrix):
    outputs, inputs = matrix.shape
    groups = matrix.reshape(outputs, inputs // GROUP, GROUP)
    scales = np.maximum(np.abs(groups).max(2), 1e-12) / 127
    values = np.rint(groups / scales[:, :, None]).astype(np.int8)
    return pack(values.tobytes(), scales.astype(np.float32).ravel().tolist(), outputs, inputs, GROUP)


def main(source, target, model, cases, fixture):
    weights, words = load(source), word_table(model)
    unit = float(1 / np.linalg.norm(words, axis=1).mean())
    project = np.zeros((128, DIMENSIONS), np.float32)
    project[:PROJECTED] = weights["proj"]
    taps = weights["conv"].reshape(CHANNELS, 3, PROJECTED)
    neighbours = np.zeros((3 * CHANNELS, 128), np.float32)
    for tap in range(3):
        neighbours[tap * CHANNELS : (tap + 1) * CHANNELS, :PROJECTED] = taps[:, tap]
    floats = lambda array: np.ascontiguousarray(array, np.float32).tobytes()
    sections = {
        "weight": floats(weights["lw"]),
        "weight2": floats(weights["lw2"]),
        "position": floats(weights["pw"]),
        "attention": floats(weights["att"][0]),
        "conv.bias": floats(weights["cb"]),
        "unit": floats([unit]),
    }
    matrices = {
        "project": (project, np.zeros(128)),
        "neighbours": (neighbours, np.zeros(3 * CHANNELS)),
        "direct": (weights["out"], weights["b"]),
        "up": (weights["h1"], weights["hb"]),
        "down": (weights["h2"], np.zeros(DIMENSIONS)),
    }
    for name, (matrix, bias) in matrices.items():
        for part, raw in zip(("values", "scale", "offset"), quantised(matrix)):
            sections[f"{name}.{part}"] = raw
        sections[f"{name}.bias"] = floats(bias)
    table, body = {}, bytearray()
    for name, raw in sections.items():
        body += bytes(-len(body) % 64)
        table[name] = [len(body), len(raw)]
        body += raw
    head = json.dumps({"model": "coarse encoder for granite-embedding-30m-english", "sections": table}, separators=(",", ":")).encode()
    head += b" " * (-(12 + len(head)) % 64)
    with open(target, "wb") as out:
        out.write(b"QUIPUEM1" + struct.pack("<I", len(head)) + head + body)
    with open(fixture, "w") as out:
        for line in open(cases):
            tokens = np.array(json.loads(line)["tokens"][1:-1], np.int64)
            vector = reference(weights, words, unit, tokens)
            out.write(json.dumps([round(float(x) * 10000) for x in vector]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
