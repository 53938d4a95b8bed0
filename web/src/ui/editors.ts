// Editors on this machine that open a file by an address of their own.

export const EDITORS = { vscode: "VS Code", obsidian: "Obsidian", cursor: "Cursor", zed: "Zed" } as const;
export type Editor = keyof typeof EDITORS;

const CHOSEN = "quipu.editor";

export function chosenEditor(): Editor {
  const kept = localStorage.getItem(CHOSEN) ?? "";
  return kept in EDITORS ? (kept as Editor) : "vscode";
}
export const chooseEditor = (editor: Editor) => localStorage.setItem(CHOSEN, editor);

export function editorAddress(file: string, editor = chosenEditor()): string {
  if (editor === "obsidian") return `obsidian://open?path=${encodeURIComponent(file)}`;
  return `${editor}://file${encodeURI(file).replace(/[?#]/g, encodeURIComponent)}`;
}
