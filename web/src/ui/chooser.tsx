// A field with a list below it, over the page: a few letters, the arrow keys and Enter choose. The command menu and the path picker.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";

export interface Choice {
  name: string;
  detail: string;
  icon: IconName;
  key: string;
  run: () => void;
}

interface Props {
  open: boolean;
  close: () => void;
  label: string;
  placeholder: string;
  /** What the letters find, best first. */
  find: (typed: string) => Choice[];
  /** When this changes, the list is made again. */
  data: unknown;
  opened?: () => void;
  typedInto?: () => void;
  children?: ComponentChildren;
}

export function Chooser({ open, close, label, placeholder, find, data, opened, typedInto, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const id = label.toLowerCase().replace(/\W+/g, "-");
  const found = useMemo(() => (open ? find(typed.trim()) : []), [open, typed, data]);
  useEffect(() => {
    if (open) {
      opened?.();
      setTyped("");
      setAt(0);
      dialog.current?.showModal();
    } else dialog.current?.close();
  }, [open]);
  useEffect(() => {
    setAt(0);
    if (typed) typedInto?.();
  }, [typed]);
  const run = (choice: Choice | undefined) => {
    close();
    // At once, so that the next key goes to the page.
    (document.activeElement as HTMLElement | null)?.blur();
    dialog.current?.close();
    choice?.run();
  };
  return (
    <dialog ref={dialog} class="menu" aria-label={label} onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <div class="menu-box">
        <div class="menu-input">
          <Icon name="search" />
          <input
            role="combobox"
            aria-expanded="true"
            aria-controls={`${id}-list`}
            aria-activedescendant={found[at] ? `${id}-${at}` : undefined}
            aria-label={label}
            placeholder={placeholder}
            value={typed}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onKeyDown={(event) => {
              // Enter confirms a conversion of an input method.
              if (event.isComposing) return;
              const move = event.key === "ArrowDown" || (event.ctrlKey && event.key === "n") ? 1 : event.key === "ArrowUp" || (event.ctrlKey && event.key === "p") ? -1 : 0;
              if (move) setAt((n) => Math.max(0, Math.min(found.length - 1, n + move)));
              else if (event.key === "Enter") run(found[at]);
              else return;
              event.preventDefault();
            }}
          />
          <kbd>Esc</kbd>
        </div>
        <ul id={`${id}-list`} role="listbox" aria-label="Matches">
          {found.map((choice, n) => (
            <li key={choice.key} id={`${id}-${n}`} role="option" aria-selected={n === at} onMouseMove={() => setAt(n)} onClick={() => run(choice)}>
              <Icon name={choice.icon} size={16} />
              <span class="name">{choice.name}</span>
              <span class="where">{choice.detail}</span>
            </li>
          ))}
        </ul>
        {children}
      </div>
    </dialog>
  );
}

/** How well letters match a name: all in order, better at the start of words and together. 0 for not at all. */
export function fuzzy(typed: string, name: string): number {
  const [want, have] = [typed.toLowerCase(), name.toLowerCase()];
  const whole = have.indexOf(want);
  if (whole >= 0) return 1 - whole / (have.length + 20) - have.length / 2000 + (whole === 0 || /\W/.test(have[whole - 1]!) ? 0.3 : 0);
  let score = 0;
  let at = -1;
  for (const letter of want) {
    const next = have.indexOf(letter, at + 1);
    if (next < 0) return 0;
    score += next === at + 1 ? 1 : next === 0 || /\W/.test(have[next - 1]!) ? 0.8 : 0.2;
    at = next;
  }
  return (0.7 * score) / Math.max(want.length, 3) - have.length / 1000;
}

/** Below this, letters match by chance. */
export const ENOUGH = 0.25;
