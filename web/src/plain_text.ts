// Markdown as plain text, for lines that stand beside something: excerpts, sentences around links, results inside a chat. It depends on
// nothing, so that the view inside a chat stays small.

/** A label of this kind names the type of a link. */
export const LINK_TYPE = /^(references|depends_on|implements|extends|conflicts_with)$/;

/** What a link `[[target|label]]` reads as. */
export function wikiText(target: string, label: string): string {
  return (!LINK_TYPE.test(label.trim()) && label.trim()) || target.trim().replace(/^#\^?/, "").replace(/#\^?/, " › ");
}

/** Without the marks of links, emphasis, code and footnotes. The lengths are bounded: the end of a link is looked for from every start. */
export const inlineText = (text: string) =>
  text
    .replace(/!?\[\[((?:[^[\]|\n]|\[(?!\[)){1,400}?)(?:\\?\|([^\]\n]{0,400}))?\]\]/g, (_, target: string, label = "") => wikiText(target, label))
    .replace(/!?\[([^[\]\n]{0,400})\]\([^)\n]{0,400}\)/g, "$1")
    .replace(/\[\^[^\]\s]{1,80}\]:?/g, "")
    .replace(/[*`]+|==|~~/g, "")
    // Inside of words it is part of a name.
    .replace(/(?<![\p{L}\p{N}_])_{1,3}|_{1,3}(?![\p{L}\p{N}_])/gu, "");

/** And without those at the start of lines. */
export const lineText = (text: string) =>
  inlineText(
    text
      .replace(/^[ \t]*(?:```|~~~).*$/gm, "")
      .replace(/^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+)?(?:\[[ xX/-]\][ \t]+)?/gm, "")
      .replace(/\[![\w-]+\][+-]?/g, "")
      .replace(/^\|?[ \t:|-]+\|?$/gm, "")
      .replace(/[ \t]\|[ \t]/g, " · ")
      .replace(/<!--[^]{0,400}?-->|<\/?[a-z][^<>\n]{0,400}>/gi, ""),
  );

/** One line of plain text. */
export const plainText = (source: string) => lineText(source).replace(/\s+/g, " ").trim();
