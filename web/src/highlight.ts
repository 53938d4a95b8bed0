// Colours for code blocks: comments, strings, numbers, names and the words of a language. Small and in a time that grows with the length
// of the block; what it does not know stays plain.

/** How a family of languages is cut: the first group that matches says what a piece is. */
interface Family {
  pattern: RegExp;
  words: Set<string>;
  /** Whether words count in any case. */
  anyCase?: boolean;
}

type Kind = "comment" | "string" | "number" | "name" | "word" | "added" | "removed";

const list = (words: string) => new Set(words.split(" "));
const DOUBLE = String.raw`"(?:\\.|[^"\\\n])*"?`;
const SINGLE = String.raw`'(?:\\.|[^'\\\n])*'?`;
const BACKTICK = "`(?:\\\\[^]|[^`\\\\])*`?";
const SLASHES = String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$(?!\n))`;
const HASH = String.raw`(?<![^\s;])#[^\n]*`;
const NUMBER = String.raw`\b\d[\w.]*`;
const WORD = String.raw`[A-Za-z_$@][\w$]*`;

const pieces = (parts: Partial<Record<Kind, string>>, flags = "g") =>
  new RegExp(Object.entries(parts).map(([kind, pattern]) => `(?<${kind}>${pattern})`).join("|"), flags);
const family = (words: string, parts: Partial<Record<Kind, string>>, flags?: string): Family => ({ pattern: pieces(parts, flags), words: list(words) });

const C_WORDS =
  "abstract as async await base bool boolean break byte case catch chan char class const constexpr continue default defer del delete do double dyn else enum explicit export extends extern false final finally float fn for foreach from func function go goto if impl implements import in inline instanceof int interface is let long loop map match mod module move mut namespace new nil null nullptr of operator override package private protected pub public range readonly ref return select self Self short signed sizeof static struct super switch template this throw throws trait true try type typedef typeof typename undefined union unsafe unsigned use using val var virtual void volatile when where while with yield";
const c = family(C_WORDS, { comment: SLASHES, string: `${DOUBLE}|${SINGLE}|${BACKTICK}`, number: NUMBER, word: WORD });
// One quote begins a lifetime as often as a character.
const rust = family(C_WORDS, { comment: SLASHES, string: String.raw`${DOUBLE}|'(?:\\[^'\n]{1,10}|[^'\\\n])'`, number: NUMBER, word: WORD });
const python = family(
  "False None True and as assert async await begin break class continue def del do elif else elsif end ensure except finally for from function global if import in is lambda local module next nil nonlocal not or pass raise require rescue return self then true false try undef unless until when while with yield",
  { comment: HASH, string: String.raw`"""[^]*?(?:"""|$(?!\n))|'''[^]*?(?:'''|$(?!\n))|${DOUBLE}|${SINGLE}`, number: NUMBER, word: WORD },
);
const shell = family(
  "case cd do docker done echo elif else esac exit export fi for function if in kubectl local npm readonly return set source sudo then unset until while",
  { comment: HASH, string: String.raw`"(?:\\[^]|[^"\\])*"?|'[^']*'?`, name: String.raw`\$\{?\w+\}?|(?<=\s)--?[A-Za-z][\w-]*`, number: NUMBER, word: String.raw`[A-Za-z_][\w-]*` },
);
const yaml = family(
  "true false null yes no on off",
  { comment: HASH, name: String.raw`^[ \t]*(?:- +)*[\w./$-]+(?=[ \t]*[:=](?:\s|$))|^[ \t]*\[[^\]\n]*\]`, string: `${DOUBLE}|${SINGLE}`, number: String.raw`(?<![\w.-])\d[\d_.:TZ-]*(?![\w])`, word: String.raw`[A-Za-z_][\w-]*` },
  "gm",
);
const json = family("true false null", { comment: SLASHES, name: String.raw`"(?:\\.|[^"\\\n])*"(?=\s{0,20}:)`, string: DOUBLE, number: String.raw`-?\b\d[\d.eE+-]*`, word: WORD });
const markup = family("", { comment: String.raw`<!--[^]*?(?:-->|$(?!\n))`, name: String.raw`<[\/!?]?[\w:.-]+|\/?>`, string: `${DOUBLE}|${SINGLE}` });
const css = family("important media import keyframes supports", {
  comment: String.raw`\/\*[^]*?(?:\*\/|$(?!\n))`, string: `${DOUBLE}|${SINGLE}`, name: String.raw`(?<![\w-])[\w-]+(?=\s{0,20}:\s)`, number: String.raw`#[\da-fA-F]{3,8}\b|\b\d[\w.%]*`, word: String.raw`[A-Za-z][\w-]*`,
});
const sql: Family = {
  ...family(
    "add all alter and as asc between by case cast column constraint create cross database default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right select set table then union unique update using values view when where with",
    { comment: String.raw`--[^\n]*|\/\*[^]*?(?:\*\/|$(?!\n))`, string: `${SINGLE}|${DOUBLE}`, number: NUMBER, word: WORD },
  ),
  anyCase: true,
};
const diff = family("", { comment: String.raw`^(?:@@|diff |index |--- |\+\+\+ )[^\n]*`, added: String.raw`^\+[^\n]*`, removed: String.raw`^-[^\n]*` }, "gm");

const LANGUAGES: Record<string, Family> = {};
const known = (names: string, of: Family) => names.split(" ").forEach((name) => (LANGUAGES[name] = of));
known("js javascript jsx mjs cjs ts typescript tsx c h cpp c++ cxx cc hpp cs csharp java kotlin kt go golang swift scala dart php zig proto protobuf groovy dataview dataviewjs", c);
known("rust rs", rust);
known("py python python3 rb ruby elixir ex julia jl r lua perl pl", python);
known("sh bash zsh fish shell console shell-session powershell ps1 dockerfile docker makefile make", shell);
known("yaml yml toml ini conf cfg properties env hcl terraform", yaml);
known("json json5 jsonc", json);
known("html xml svg vue svelte xhtml", markup);
known("css scss sass less", css);
known("sql mysql postgres postgresql sqlite", sql);
known("diff patch", diff);

/** Longer blocks stay plain, and so does what is behind this many pieces. */
const MAX_CHARS = 60_000;
const MAX_PIECES = 6_000;

/** Cuts code into plain text and pieces with a kind. */
function cut(text: string, { pattern, words, anyCase }: Family): [string, Kind | null][] {
  const found: [string, Kind | null][] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const groups = match.groups as Partial<Record<Kind, string>>;
    const kind = (Object.keys(groups) as Kind[]).find((name) => groups[name] !== undefined)!;
    if (kind === "word" && !words.has(anyCase ? match[0].toLowerCase() : match[0])) continue;
    if (match.index > end) found.push([text.slice(end, match.index), null]);
    found.push([match[0], kind]);
    end = match.index + match[0].length;
    if (found.length > MAX_PIECES) break;
  }
  found.push([text.slice(end), null]);
  return found;
}

/** Colours a code block whose language is known. */
export function highlight(code: HTMLElement, language: string) {
  const of = LANGUAGES[language.toLowerCase()];
  const text = code.textContent ?? "";
  if (!of || text.length > MAX_CHARS) return;
  code.replaceChildren(
    ...cut(text, of).map(([part, kind]) => {
      if (!kind) return part;
      const span = document.createElement("span");
      span.className = `code-${kind}`;
      span.textContent = part;
      return span;
    }),
  );
}
