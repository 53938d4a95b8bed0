#!/usr/bin/env python3
"""Collects the text that the coarse encoder is trained on, from local clones of the repositories in SOURCES.

    scripts/coarse_text.py CLONES EVALUATION text.jsonl.xz

CLONES holds one bare or plain clone per repository, named owner+name. EVALUATION holds judged sets, each a folder with docs.jsonl
and queries.jsonl: a paragraph that shares ten consecutive words with one of their documents, or equals one of their queries, is
left out. The result has a line per document: {"s": source, "t": title, "u": [[1 for a heading, else 0, text], ...]}.

Only text whose licence requires attribution at most is used: crates/embed/assets/README.md lists the sources.
"""
import html
import json
import lzma
import os
import random
import re
import subprocess
import sys
from xml.etree import ElementTree

SPACES = re.compile(r"\s+")


def blobs(clone, pattern):
    """Path and text of the files whose paths match, in random order."""
    git = ["git", "-C", clone]
    listing = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout
    wanted = re.compile(pattern)
    files = []
    for line in listing.decode("utf8", "replace").split("\0"):
        if "\t" in line:
            about, path = line.split("\t", 1)
            if wanted.search(path):
                files.append((about.split()[2], path))
    random.shuffle(files)
    reader = subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for blob, path in files:
            reader.stdin.write(f"{blob}\n".encode())
            reader.stdin.flush()
            head = reader.stdout.readline().split()
            if len(head) == 3:
                text = reader.stdout.read(int(head[2])).decode("utf8", "replace")
                reader.stdout.read(1)
                yield path, text[:400_000]
    finally:
        reader.kill()


def plain(text):
    """Markdown or reStructuredText without its markup."""
    for pattern, by in (
        (r"!\[[^\]]*\]\([^)]*\)", ""),
        (r"\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"\{[%{<][^}]*[%}>]\}", ""),
        (r"<[^>]{1,200}>", ""),
        (r"\*\*|__|``", ""),
        (r":\w[\w:.+-]*:`~?([^`<]*)(<[^`]*>)?`", r"\1"),
        ("`", ""),
    ):
        text = re.sub(pattern, by, text)
    return SPACES.sub(" ", html.unescape(text)).strip()


class Units:
    """Headings and paragraphs in their order."""

    def __init__(self):
        self.units, self.lines = [], []

    def end_paragraph(self):
        text = plain(" ".join(self.lines))
        self.lines.clear()
        if len(text) > 20:
            self.units.append((0, text))

    def heading(self, text):
        self.end_paragraph()
        if text:
            self.units.append((1, text))


def markdown(text, path):
    title, units, fence = None, Units(), 0
    if text.startswith("---") and (end := text.find("\n---", 3)) > 0:
        if found := re.search(r"^title:\s*(.+)$", text[:end], re.M):
            title = found.group(1).strip().strip("'\"")
        text = text[end + 4 :]
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            units.end_paragraph()
            fence = 0 if fence else 1
        elif fence:
            # The beginning of a code block says what it is about.
            fence += 1
            if fence <= 7:
                units.lines.append(line.strip())
        elif found := re.match(r"#{1,6}\s+(.*)", line):
            heading = plain(found.group(1).split("{#")[0])
            if title is None:
                units.end_paragraph()
                title = heading
            else:
                units.heading(heading)
        elif not line.strip():
            units.end_paragraph()
        elif not line.lstrip().startswith(("|---", "import ", "export ", "{/*", "<!--")):
            units.lines.append(line)
    units.end_paragraph()
    return title or os.path.basename(path).rsplit(".", 1)[0].replace("-", " "), units.units


def restructured(text, path):
    underline = re.compile(r"^([=\-~^\"'#*+])\1{2,}\s*$")
    found = re.search(r"^Title:\s*(.+)$", text[:2000], re.M)
    title, units = found and found.group(1), Units()
    lines = text.split("\n") + [""]
    at = 0
    while at < len(lines) - 1:
        line = lines[at]
        if line.strip() and underline.match(lines[at + 1]):
            heading = plain(line)
            if title is None:
                units.end_paragraph()
                title = heading
            else:
                units.heading(heading)
            at += 2
            continue
        if underline.match(line) or line.lstrip().startswith((".. ", ":")) or not line.strip():
            units.end_paragraph()
        else:
            units.lines.append(line)
        at += 1
    units.end_paragraph()
    return title or path, units.units


def inner_text(element):
    return SPACES.sub(" ", "".join(element.itertext())).strip()


def parsed(text):
    try:
        return ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", text))
    except ElementTree.ParseError:
        return None


def article(paragraphs):
    """Journal articles: the abstract and some paragraphs. Articles under licences with further conditions are left out."""

    def read(text, _path):
        root = parsed(text)
        title = root is not None and root.find(".//article-title")
        if title is None or title is False:
            return None
        licence = " ".join(
            part for element in root.iter("license") for part in [*element.attrib.values(), inner_text(element)]
        )
        if "by-nc" in licence or "by-sa" in licence:
            return None
        abstract = [inner_text(p) for part in root.findall(".//abstract") for p in part.iter("p")]
        body = [text for text in map(inner_text, root.findall(".//body//p")) if 200 < len(text) < 2500]
        kept = [text for text in abstract if len(text) > 80] + random.sample(body, min(paragraphs, len(body)))
        return inner_text(title), [(0, text) for text in kept]

    return read


def textbook(text, _path):
    root = parsed(text)
    if root is None:
        return None
    space = "{http://cnx.rice.edu/cnxml}"
    title, units = root.find(space + "title"), []
    for element in root.iter():
        if element.tag == space + "title" and element is not title:
            units.append((1, inner_text(element)))
        elif element.tag == space + "para" and len(inner_text(element)) > 60:
            units.append((0, inner_text(element)))
    return inner_text(title) if title is not None else "", units


def questions(text, _path):
    root = parsed(text)
    if root is None:
        return None
    units = []
    for pair in root.iter("QAPair"):
        question, answer = pair.findtext("Question"), pair.findtext("Answer")
        if question and answer:
            units.append((1, SPACES.sub(" ", question)))
            units += [(0, SPACES.sub(" ", part).strip()) for part in answer.split("\n\n") if len(part.strip()) > 40]
    return root.findtext("Focus") or "", units


def countries(text, path):
    units = []

    def walk(value, heading):
        if isinstance(value, dict):
            if isinstance(value.get("text"), str) and len(about := plain(value["text"])) > 60:
                units.extend([(1, heading), (0, about)])
            for key, inner in value.items():
                if key != "text":
                    walk(inner, key)

    data = json.loads(text)
    walk(data, "")
    try:
        name = plain(data["Government"]["Country name"]["conventional short form"]["text"])
    except KeyError:
        name = os.path.basename(path)
    return name, units


def book(text, path):
    found = re.finditer(r"<(p|h\d)[^>]*>(.*?)</\1>", text, re.S)
    units = [(int(match.group(1)[0] == "h"), plain(match.group(2))) for match in found]
    return os.path.basename(path), [unit for unit in units if len(unit[1]) > 15]


def abstracts(text, _path):
    """Many papers in one file: a document each."""
    root = parsed(text)
    for paper in [] if root is None else root.iter("paper"):
        title, abstract = paper.find("title"), paper.find("abstract")
        if title is not None and abstract is not None and len(inner_text(abstract)) > 200:
            yield inner_text(title), [(0, inner_text(abstract))]


# Source, repository, files, reader, megabytes at most.
SOURCES = [
    ("elife", "elifesciences+elife-article-xml", r"^articles/elife-\d+-v\d+\.xml$", article(4), 16),
    # Papers from 2016 on are under CC BY 4.0; older ones are not.
    ("acl", "acl-org+acl-anthology", r"^data/xml/20(1[6-9]|2\d)\..*\.xml$", abstracts, 14),
    ("medquad", "abachaa+MedQuAD", r"\.xml$", questions, 8),
    ("github-docs", "github+docs", r"^content/.*\.md$", markdown, 6),
    ("dotnet-docs", "dotnet+docs", r"^docs/.*\.md$", markdown, 6),
    ("docker-docs", "docker+docs", r"^content/.*\.md$", markdown, 4),
    ("opentelemetry", "open-telemetry+opentelemetry.io", r"^content/en/.*\.md$", markdown, 3),
    ("powershell-docs", "MicrosoftDocs+PowerShell-Docs", r"^reference/.*\.md$", markdown, 3),
    ("peps", "python+peps", r"^peps/pep-.*\.rst$", restructured, 5),
    ("rust-rfcs", "rust-lang+rfcs", r"^text/.*\.md$", markdown, 5),
    ("eips", "ethereum+EIPs", r"^EIPS/.*\.md$", markdown, 3),
    ("swift-evolution", "swiftlang+swift-evolution", r"^proposals/.*\.md$", markdown, 4),
    ("turing-way", "the-turing-way+the-turing-way", r"^book/.*\.md$", markdown, 3),
    ("django", "django+django", r"^docs/.*\.txt$", restructured, 4),
    ("scikit-learn", "scikit-learn+scikit-learn", r"^doc/.*\.rst$", restructured, 2),
    ("react", "reactjs+react.dev", r"^src/content/.*\.md$", markdown, 2),
    ("18f", "18F+guides", r"\.(md|html)$", markdown, 1.5),
    ("plos", "PLOS+allofplos", r"\.xml$", article(40), 4),
    ("openstax-economics", "openstax+osbooks-principles-economics-bundle", r"^modules/.*\.cnxml$", textbook, 3),
    ("factbook", "factbook+factbook.json", r"^[a-z-]+/[a-z]{2}\.json$", countries, 3),
    *(
        ("standard-ebooks", "standardebooks+" + name, r"src/epub/text/.*\.xhtml$", book, 5)
        for name in (
            "charles-darwin_the-origin-of-species",
            "william-james_the-varieties-of-religious-experience",
            "arthur-conan-doyle_the-adventures-of-sherlock-holmes",
            "adam-smith_the-wealth-of-nations",
        )
    ),
]


def words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def runs(text, length=10):
    found = words(text)
    return (" ".join(found[at : at + length]) for at in range(len(found) - length + 1))


def judged(folder):
    """Runs of ten words of the judged documents, and the judged queries."""
    documents, queries = set(), set()
    for place, _, files in os.walk(folder):
        if {"docs.jsonl", "queries.jsonl"} <= set(files):
            for line in open(os.path.join(place, "docs.jsonl")):
                entry = json.loads(line)
                documents.update(hash(run) for run in runs(f"{entry['title']} {entry['text']}"))
            for line in open(os.path.join(place, "queries.jsonl")):
                queries.add(" ".join(words(json.loads(line)["text"])))
    return documents, queries


def main(clones, evaluation, target):
    random.seed(7)
    documents, queries = judged(evaluation)
    sizes, found = {}, []

    def keep(source, title, units):
        is_judged = lambda text: " ".join(words(text)) in queries or any(hash(run) in documents for run in runs(text))
        units = [(kind, text[:3000]) for kind, text in units if not is_judged(text)]
        size = sum(len(text) for _, text in units)
        if size > 150:
            found.append({"s": source, "t": title[:200], "u": units})
            sizes[source] = sizes.get(source, 0) + size

    for source, repository, pattern, read, megabytes in SOURCES:
        for path, text in blobs(os.path.join(clones, repository), pattern):
            if sizes.get(source, 0) > megabytes * 1e6:
                break
            result = read(text, path)
            for title, units in result if read is abstracts else filter(None, [result]):
                keep(source, title, units)
        print(source, sizes.get(source, 0))
    with lzma.open(target, "wt", encoding="utf8") as out:
        for entry in sorted(found, key=lambda entry: entry["s"]):
            out.write(json.dumps(entry, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
