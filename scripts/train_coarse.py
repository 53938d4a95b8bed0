#!/usr/bin/env python3
"""Trains the coarse encoder: cheap vectors in the space of the builtin model.

    scripts/train_coarse.py --text text.jsonl.xz --tokenizer tokenizer.json --evaluation EVALUATION --out coarse.pt

The text is what coarse_text.py collects; tokenizer.json is the one inside the package that convert_granite.py reads; EVALUATION
holds judged sets (docs.jsonl, queries.jsonl, qrels.tsv in a folder each), which are measured and never used for training. Needs PyTorch,
numpy, tokenizers and a GPU; ten minutes on an H200. scripts/export_coarse.py turns the result into the program's file.

The builtin model embeds 1.6 million passages, cut from the text as Quipu cuts notes (title, heading, piece), and a query made of
each: a title, a heading, a stretch of it, some of its rare words, or something unrelated. The encoder learns to give passages the
model's vectors (cosine), and to rank them as the model does for those queries (KL divergence of softmaxed similarities).
"""
import argparse
import json
import lzma
import math
import multiprocessing
import os
import re
import struct
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import nn

MODEL = os.path.join(os.path.dirname(__file__), "../crates/embed/assets/granite-embedding-30m-english.bin")
VOCABULARY, DIMENSIONS, GROUP, LAYERS, HEADS = 50265, 384, 64, 6, 12
START, PADDING, END = 0, 1, 2
PROJECTED, CHANNELS, HIDDEN, TAPS = 96, 256, 1024, 3
MAX_PASSAGE, MAX_QUERY = 320, 30
BATCH, TEMPERATURE, WARM_UP, DROPPED = 2048, 0.04, 200, 0.1
STEPS, SHARES = 34_000, 64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STARTED = time.time()


def log(*words):
    print(f"[{time.time() - STARTED:.0f} s]", *words, flush=True)


# The builtin model, read from its file.


def sections():
    data = open(MODEL, "rb").read()
    (length,) = struct.unpack("<I", data[8:12])
    body = data[12 + length :]
    table = json.loads(data[12 : 12 + length])["sections"]
    return {name: body[start : start + size] for name, (start, size) in table.items()}


class Model(nn.Module):
    """The builtin model in floats; convert_granite.py describes the layout of its weights."""

    def __init__(self):
        super().__init__()
        self.raw = sections()
        self.kind = torch.float16 if DEVICE == "cuda" else torch.float32
        values = np.frombuffer(self.raw["word"], np.int8).reshape(VOCABULARY, -1, GROUP).astype(np.float32)
        scales = np.frombuffer(self.raw["word.scale"], np.float32).reshape(VOCABULARY, -1, 1)
        self.words = torch.tensor((values * scales).reshape(VOCABULARY, DIMENSIONS), device=DEVICE)
        self.table = self.words.to(self.kind)
        self.positions = self.floats("pos").reshape(-1, DIMENSIONS)
        self.norm = self.floats("emb.norm").reshape(2, DIMENSIONS)
        self.layers = [self.layer(number) for number in range(LAYERS)]

    def floats(self, name):
        return torch.tensor(np.frombuffer(self.raw[name], np.float32).copy()).to(DEVICE, self.kind)

    def matrix(self, name, outputs, inputs):
        values = np.frombuffer(self.raw[name + ".values"], np.int8).reshape(outputs // 16, inputs // 4, 16, 4)
        values = values.transpose(0, 2, 1, 3).reshape(outputs, inputs // GROUP, GROUP).astype(np.float32)
        scales = np.frombuffer(self.raw[name + ".scale"], np.float32).reshape(outputs // 16, inputs // GROUP, 16)
        scales = scales.transpose(0, 2, 1).reshape(outputs, inputs // GROUP, 1)
        matrix = torch.tensor((values * scales).reshape(outputs, inputs)).to(DEVICE, self.kind)
        return matrix, self.floats(name + ".bias")

    def layer(self, number):
        shapes = {"qkv": (1152, 384), "attention": (384, 384), "up": (1536, 384), "down": (384, 1536)}
        layer = {name: self.matrix(f"{number}.{name}", *shape) for name, shape in shapes.items()}
        for name in ("attention.norm", "output.norm"):
            layer[name] = self.floats(f"{number}.{name}").reshape(2, DIMENSIONS)
        return layer

    @torch.no_grad()
    def forward(self, tokens, mask):
        count, length = tokens.shape
        norm = lambda rows, weights: F.layer_norm(rows, (DIMENSIONS,), weights[0], weights[1], 1e-12)
        heads = lambda rows: rows.reshape(count, -1, HEADS, DIMENSIONS // HEADS).transpose(1, 2)
        states = norm(self.table[tokens] + self.positions[2 : 2 + length], self.norm)
        for number, layer in enumerate(self.layers):
            queries, keys, values = F.linear(states, *layer["qkv"]).split(DIMENSIONS, -1)
            if number == LAYERS - 1:
                queries, states = queries[:, :1], states[:, :1]
            attended = F.scaled_dot_product_attention(
                heads(queries), heads(keys), heads(values), attn_mask=mask[:, None, None, :]
            )
            attended = attended.transpose(1, 2).reshape(count, -1, DIMENSIONS)
            states = norm(states + F.linear(attended, *layer["attention"]), layer["attention.norm"])
            fed = F.linear(F.gelu(F.linear(states, *layer["up"])), *layer["down"])
            states = norm(states + fed, layer["output.norm"])
        return F.normalize(states[:, 0].float(), dim=-1)

    def embed(self, texts, tokens_at_once=262_144):
        """Vectors of texts, batched by length."""
        lengths = np.diff(texts.offsets)
        order = np.argsort(lengths, kind="stable")
        vectors = torch.zeros(len(order), DIMENSIONS, device=DEVICE, dtype=torch.float16)
        flat = torch.tensor(texts.tokens.astype(np.int32), device=DEVICE)
        start = 0
        while start < len(order):
            end = min(len(order), start + 16_384)
            while end - start > 1 and (end - start) * (lengths[order[end - 1]] + 2) > tokens_at_once:
                end = start + max(1, min(end - start - 1, tokens_at_once // int(lengths[order[end - 1]] + 2)))
            chosen = order[start:end]
            length = torch.tensor(lengths[chosen], device=DEVICE)[:, None]
            place = torch.arange(int(length.max()) + 2, device=DEVICE)[None]
            tokens = flat[(torch.tensor(texts.offsets[chosen], device=DEVICE)[:, None] + place - 1).clamp(0, len(flat) - 1)]
            tokens = torch.where(place <= length, tokens.long(), torch.where(place == length + 1, END, PADDING))
            tokens[:, 0] = START
            vectors[torch.tensor(chosen, device=DEVICE)] = self(tokens, place <= length + 1).half()
            start = end
        return vectors


class Texts:
    """Tokens of many texts, one behind the other."""

    def __init__(self, texts):
        self.tokens = np.concatenate(texts).astype(np.uint16)
        self.offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
        self.flat = None

    def batch(self, chosen):
        """Tokens of the chosen texts, each with its text, position and text length."""
        if self.flat is None:
            self.flat = torch.tensor(self.tokens.astype(np.int64), device=DEVICE)
            self.starts = torch.tensor(self.offsets, device=DEVICE)
        starts = self.starts[chosen]
        lengths = self.starts[chosen + 1] - starts
        text = torch.repeat_interleave(torch.arange(len(chosen), device=DEVICE), lengths)
        place = torch.arange(int(lengths.sum()), device=DEVICE) - (torch.cumsum(lengths, 0) - lengths)[text]
        return self.flat[starts[text] + place], text, place, lengths[text], len(chosen)


# Passages and queries from the text.


class Corpus:
    def __init__(self, path, tokenizer):
        encode = lambda texts: [
            np.array(entry.ids, np.uint16) for entry in tokenizer.encode_batch(texts, add_special_tokens=False)
        ]
        documents = [json.loads(line) for line in lzma.open(path, "rt", encoding="utf8")]
        texts = [text for entry in documents for text in [entry["t"], *(text for _, text in entry["u"])]]
        tokens = iter(encode(texts))
        self.documents = {}
        for entry in documents:
            title = next(tokens)
            units = [(kind, next(tokens)) for kind, _ in entry["u"]]
            self.documents.setdefault(entry["s"], []).append((title, units))
        self.line, self.blank_line = encode(["\n", "\n\n"])
        everything = np.concatenate([unit for all in self.documents.values() for _, units in all for _, unit in units])
        self.counts = np.bincount(everything, minlength=VOCABULARY)
        self.is_common = np.zeros(VOCABULARY, bool)
        self.is_common[np.argsort(-self.counts)[:160]] = True
        self.sources = sorted(self.documents)
        sizes = np.array([sum(len(unit) for _, units in self.documents[s] for _, unit in units) for s in self.sources])
        # Small sources are sampled more often than their size suggests.
        self.shares = sizes**0.6 / (sizes**0.6).sum()
        vocabulary = tokenizer.get_vocab()
        self.lower = np.arange(VOCABULARY, dtype=np.uint16)
        self.starts_word, self.is_word = np.zeros(VOCABULARY, bool), np.zeros(VOCABULARY, bool)
        for token, number in vocabulary.items():
            if number < VOCABULARY:
                mark, rest = (token[0], token[1:]) if token[0] in "ĠĊ" else ("", token)
                self.lower[number] = vocabulary.get(mark + rest.lower(), number)
                self.starts_word[number] = mark == "Ġ"
                self.is_word[number] = any(c.isalnum() for c in rest)

    def word_start(self, text, at):
        while at > 0 and not self.starts_word[text[at]]:
            at -= 1
        return at

    def passage(self, random, title, units):
        """A stretch of a document under its title and heading, as Quipu cuts notes; nothing when it is too short."""
        first = random.integers(len(units))
        headings = [text for kind, text in reversed(units[max(0, first - 5) : first + 1]) if kind == 1]
        heading = headings[0] if headings else None
        names = [title[:40]] if len(title) and random.random() < 0.8 else []
        if heading is not None and random.random() < 0.7:
            names.append(heading[:40])
        wanted = int(random.choice([24, 60, 120, 200, 290], p=[0.1, 0.15, 0.25, 0.25, 0.25]))
        parts, length = [], 0
        for kind, text in units[first:]:
            if length >= wanted or (kind == 1 and length and random.random() < 0.6):
                break
            if not length and len(text) > wanted and random.random() < 0.5:
                text = text[self.word_start(text, random.integers(len(text) - wanted + 1)) :]
            parts.append(text[: wanted - length + 8])
            length += len(parts[-1])
        if length < 4:
            return None
        body = np.concatenate([piece for part in parts for piece in (self.blank_line, part)][1:])
        whole = np.concatenate([piece for name in names for piece in (name, self.line)] + [body])
        return whole[:MAX_PASSAGE], body, parts, heading

    def query(self, random, title, body, parts, heading):
        choice = random.random()
        if choice < 0.2 and len(title):
            query = title
        elif choice < 0.3 and heading is not None:
            query = heading
        elif choice < 0.6:
            text = parts[random.integers(len(parts))]
            length = min(len(text), int(random.integers(5, 30)))
            start = self.word_start(text, random.integers(len(text) - length + 1))
            query = text[start : start + length]
        elif choice < 0.9:
            starts = np.flatnonzero(self.starts_word[body] & self.is_word[body] & ~self.is_common[body])
            starts = starts if len(starts) else np.array([0])
            words = []
            for start in random.choice(starts, size=min(len(starts), int(random.integers(1, 9))), replace=False):
                end = start + 1
                while end < min(len(body), start + 4) and self.is_word[body[end]] and not self.starts_word[body[end]]:
                    end += 1
                words.append(body[start:end])
            query = np.concatenate(words)
        else:
            other = self.documents[self.sources[random.integers(len(self.sources))]]
            units = other[random.integers(len(other))][1]
            query = units[random.integers(len(units))][1][:24]
        query = query[:MAX_QUERY] if len(query) else body[:5]
        return self.lower[query] if random.random() < 0.4 else query

    def share(self, seed, count):
        random = np.random.default_rng(seed)
        passages, queries = [], []
        while len(passages) < count:
            documents = self.documents[self.sources[random.choice(len(self.sources), p=self.shares)]]
            title, units = documents[random.integers(len(documents))]
            made = self.passage(random, title, units)
            if made is not None:
                passages.append(made[0])
                queries.append(self.query(random, title, *made[1:]))
        return passages, queries


CORPUS = None


def share(arguments):
    return CORPUS.share(*arguments)


def passages_and_queries(corpus, count, seed):
    global CORPUS
    CORPUS = corpus
    # As many on any machine: each draws from a seed of its own.
    shares = [(seed * 1000 + number, count // SHARES) for number in range(SHARES)]
    with ProcessPoolExecutor(min(16, os.cpu_count()), mp_context=multiprocessing.get_context("fork")) as pool:
        made = list(pool.map(share, shares))
    return (Texts([text for part in made for text in part[side]]) for side in (0, 1))


# The encoder.


class Coarse(nn.Module):
    def __init__(self, words, counts):
        super().__init__()
        random = lambda *shape: nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-1]))
        frequency = torch.tensor(counts / counts.sum(), dtype=torch.float32)
        rarity = torch.log(1e-3 / (1e-3 + frequency))
        self.lw, self.lw2 = nn.Parameter(rarity.clone()), nn.Parameter(rarity.clone())
        self.pw = nn.Parameter(torch.zeros(64))
        self.proj = random(PROJECTED, DIMENSIONS)
        self.conv, self.cb = random(CHANNELS, PROJECTED * TAPS), nn.Parameter(torch.zeros(CHANNELS))
        self.att = nn.Parameter(torch.randn(1, CHANNELS) * 0.02)
        pooled = DIMENSIONS + CHANNELS
        self.out, self.b = random(DIMENSIONS, pooled), nn.Parameter(torch.zeros(DIMENSIONS))
        self.h1, self.hb = random(HIDDEN, pooled), nn.Parameter(torch.zeros(HIDDEN))
        self.h2 = nn.Parameter(torch.randn(DIMENSIONS, HIDDEN) * 0.02 / math.sqrt(HIDDEN))
        self.words = words.to(torch.bfloat16 if DEVICE == "cuda" else torch.float32)
        self.unit = 1 / float(words.norm(dim=1).mean())

    def forward(self, tokens, text, place, length, count):
        position = self.pw[(place // 5).clamp_max(63)]

        def pool(rows, weights):
            totals = torch.zeros(count, device=DEVICE).index_add_(0, text, weights)
            shares = (weights / totals[text])[:, None]
            return torch.zeros(count, rows.shape[1], device=DEVICE).index_add_(0, text, (rows * shares).float())

        weights = (self.lw[tokens] + position).exp()
        if self.training:
            weights = weights * (torch.rand_like(weights) > DROPPED) + 1e-6
        rows = self.words[tokens]
        mean = pool(rows, weights) * self.unit
        projected = F.linear(rows, self.proj.to(rows.dtype)) * self.unit
        taps = []
        for tap in (-1, 0, 1):
            is_inside = (place + tap >= 0) & (place + tap < length)
            taps.append(torch.roll(projected, -tap, 0) * is_inside[:, None])
        features = F.gelu(F.linear(torch.cat(taps, 1), self.conv.to(rows.dtype), self.cb.to(rows.dtype)))
        logits = F.linear(features, self.att.to(rows.dtype)).float()[:, 0].clamp(-8, 8)
        pooled = torch.cat([mean, pool(features, (self.lw2[tokens] + position + logits).exp())], 1)
        pooled = F.layer_norm(pooled, (pooled.shape[1],))
        vector = F.linear(pooled, self.out, self.b) + F.linear(F.gelu(F.linear(pooled, self.h1, self.hb)), self.h2)
        return F.normalize(vector, dim=-1)

    @torch.no_grad()
    def embed(self, texts):
        count = len(texts.offsets) - 1
        chosen = torch.arange(count, device=DEVICE).split(BATCH)
        return torch.cat([self(*texts.batch(part)).float() for part in chosen])


def divergence(wanted, got):
    log_shares = lambda scores: F.log_softmax(scores / TEMPERATURE, 1)
    return F.kl_div(log_shares(got), log_shares(wanted), log_target=True, reduction="batchmean")


def train(coarse, passages, passage_vectors, query_vectors, steps):
    tables = [coarse.lw, coarse.lw2, coarse.pw]
    is_table = {id(parameter) for parameter in tables}
    others = [parameter for parameter in coarse.parameters() if id(parameter) not in is_table]
    optimiser = torch.optim.AdamW(
        [{"params": tables, "rate": 6e-3, "weight_decay": 0.0}, {"params": others, "rate": 2e-3, "weight_decay": 0.01}],
        betas=(0.9, 0.98),
        fused=DEVICE == "cuda",
    )
    same = torch.eye(BATCH, device=DEVICE, dtype=torch.bool)
    coarse.train()
    # By steps, not by time: the same seed then takes the same steps on any machine.
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * min(1, (step + 1) / WARM_UP) * (1 - step / steps)
        chosen = torch.randint(len(passage_vectors), (BATCH,), device=DEVICE)
        wanted, queries = passage_vectors[chosen].float(), query_vectors[chosen[: BATCH // 2]].float()
        got = coarse(*passages.batch(chosen))
        distance = 1 - (got * wanted).sum(1).mean()
        ranking = divergence(queries @ wanted.T, queries @ got.T)
        likeness = divergence((wanted @ wanted.T).masked_fill(same, -9), (wanted @ got.T).masked_fill(same, -9))
        optimiser.zero_grad(set_to_none=True)
        (4 * distance + ranking + 0.5 * likeness).backward()
        nn.utils.clip_grad_norm_(coarse.parameters(), 1.0)
        optimiser.step()
        if step % 500 == 499:
            log(f"step {step + 1}: distance {distance:.3f}, ranking {ranking:.3f}, likeness {likeness:.3f}")
    coarse.eval()


# Judged sets: words, the model and the encoder, alone and fused with words.


def stem(word):
    for suffix in ("ingly", "edly", "ies", "ing", "ed", "es", "ly", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def bm25(documents, queries):
    words = lambda text: [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower())]
    numbers, rows, columns, values, lengths = {}, [], [], [], []
    for row, document in enumerate(documents):
        counts = Counter(words(document))
        lengths.append(sum(counts.values()))
        for word, count in counts.items():
            rows.append(row)
            columns.append(numbers.setdefault(word, len(numbers)))
            values.append(count)
    rows, columns, values, lengths = np.array(rows), np.array(columns), np.array(values, float), np.array(lengths, float)
    found_in = np.bincount(columns, minlength=len(numbers))
    rarity = np.log(1 + (len(documents) - found_in + 0.5) / (found_in + 0.5))
    values = rarity[columns] * values * 2.2 / (values + 1.2 * (0.25 + 0.75 * lengths[rows] / lengths.mean()))
    scores = torch.zeros(len(queries), len(documents))
    by_word = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[by_word], np.arange(len(numbers) + 1))
    for number, query in enumerate(queries):
        for word in words(query):
            if word in numbers:
                entries = by_word[starts[numbers[word]] : starts[numbers[word] + 1]]
                scores[number].index_add_(0, torch.tensor(rows[entries]), torch.tensor(values[entries], dtype=torch.float32))
    return scores.to(DEVICE)


class Judged:
    def __init__(self, folder, tokenizer, model):
        lines = lambda name: [json.loads(line) for line in open(os.path.join(folder, name))]
        documents, queries = lines("docs.jsonl"), lines("queries.jsonl")
        texts = ["\n".join(filter(None, [entry["title"], entry["text"]])) for entry in documents]
        encode = lambda texts, most: Texts(
            [np.array(e.ids[:most], np.uint16) for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
        )
        places = {entry["id"]: place for place, entry in enumerate(documents)}
        relevant = {}
        for line in open(os.path.join(folder, "qrels.tsv")):
            query, document, score = line.rstrip("\n").split("\t")
            if document in places and float(score) > 0:
                relevant.setdefault(query, set()).add(places[document])
        self.relevant = [relevant.get(entry["id"], set()) for entry in queries]
        self.documents = encode(texts, MAX_PASSAGE)
        self.queries = model.embed(encode([entry["text"] for entry in queries], 60)).float()
        self.by_words = bm25(texts, [entry["text"] for entry in queries])

    def ndcg(self, scores):
        best = scores.topk(min(10, scores.shape[1]), 1).indices.cpu().numpy()
        gain = lambda found: sum(1 / math.log2(place + 2) for place, is_hit in enumerate(found) if is_hit)
        of_query = [
            gain(document in relevant for document in row) / gain([True] * min(10, len(relevant)))
            for row, relevant in zip(best, self.relevant)
            if relevant
        ]
        return 100 * float(np.mean(of_query))

    def figures(self, vectors, weight):
        by_meaning = self.queries @ vectors.T

        def ranks(scores):
            best = scores.topk(min(100, scores.shape[1]), 1).indices
            shares = (1 / (61 + torch.arange(best.shape[1], device=DEVICE))).expand(best.shape)
            return torch.zeros_like(scores).scatter_(1, best, shares) * (scores > 0)

        return self.ndcg(by_meaning), self.ndcg(ranks(self.by_words) + weight * ranks(by_meaning))


def report(folder, tokenizer, model, coarse):
    log("nDCG@10: words | model, fused | coarse, fused")
    totals = []
    for name in sorted(os.listdir(folder)):
        if os.path.exists(os.path.join(folder, name, "qrels.tsv")):
            judged = Judged(os.path.join(folder, name), tokenizer, model)
            full = judged.figures(model.embed(judged.documents).float(), 2.0)
            got = judged.figures(coarse.embed(judged.documents), 0.5)
            totals.append([judged.ndcg(judged.by_words), *full, *got])
            log(f"{name:28} " + " ".join(f"{value:6.1f}" for value in totals[-1]))
    log(f"{'mean':28} " + " ".join(f"{value:6.1f}" for value in np.mean(totals, 0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--evaluation", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--passages", type=int, default=1_600_000)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.from_file(options.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model, corpus = Model(), Corpus(options.text, tokenizer)
    log("text:", int(corpus.counts.sum()), "tokens")
    passages, queries = passages_and_queries(corpus, options.passages, options.seed)
    passage_vectors, query_vectors = model.embed(passages), model.embed(queries)
    log("embedded", len(passage_vectors), "passages and queries")
    coarse = Coarse(model.words, corpus.counts).to(DEVICE)
    train(coarse, passages, passage_vectors, query_vectors, options.steps)
    kept = {name: (value.half() if value.ndim == 2 else value.float()).cpu() for name, value in coarse.state_dict().items()}
    torch.save(kept, options.out)
    report(options.evaluation, tokenizer, model, coarse)


if __name__ == "__main__":
    main()
