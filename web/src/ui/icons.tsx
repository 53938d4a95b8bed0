// One stroke, one size: drawn on a grid of 24.
const PATHS = {
  home: "M4 11.5 12 4.5l8 7M6 10v9.5h12V10M10 19.5v-5h4v5",
  graph: "M6.5 7.5 11 11M13.3 10.6 17 6.8M13 13.8l3.4 3M10.7 14 7 17.6M7.2 6.2a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM20.8 5.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM14.4 12.2a2.4 2.4 0 1 1-4.8 0 2.4 2.4 0 0 1 4.8 0ZM20 18.2a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM7.6 18.8a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM15.3 15.3 20 20",
  note: "M6.5 3.5h8l4 4v13h-12zM14 3.5V8h4.5M9 12h6.5M9 15.5h6.5",
  memory: "M12 4c4.4 0 8 1.3 8 3s-3.6 3-8 3-8-1.3-8-3 3.6-3 8-3ZM4 7v5c0 1.700 3.600 3 8 3s8-1.300 8-3V7M4 12v5c0 1.700 3.600 3 8 3s8-1.300 8-3v-5",
  changes: "M12 7.500V12l3 2M4.500 9A8 8 0 1 1 4 12.500M4 5v4h4",
  health: "M3 12.500h4l2.500-6 4 11.500 2.500-5.500h5",
  theme: "M12 3.500v17a8.500 8.500 0 0 0 0-17ZM12 20.500a8.500 8.500 0 0 1 0-17",
  help: "M9.200 9.300a2.900 2.900 0 1 1 4.400 2.500c-1 .6-1.600 1.200-1.600 2.400M12 17.200v.1M20.500 12a8.500 8.500 0 1 1-17 0 8.500 8.500 0 0 1 17 0Z",
  close: "M6 6l12 12M18 6 6 18",
  panel: "M4 5h16v14H4zM14.500 5v14",
  arrow: "M5 12h14M13 6l6 6-6 6",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  pause: "M9 6v12M15 6v12",
  play: "M8 5.500v13l10-6.500z",
  warning: "M12 4 3 19.500h18zM12 10v4.500M12 17v.1",
  check: "M5 12.500l4.500 4.500L19 7.500",
  copy: "M9 9h10.500v10.500H9zM15 9V4.500H4.500V15H9",
  external: "M14 4.500h5.500V10M19 5l-8.500 8.500M17 14v5.500H4.500V7H10",
  merge: "M7 4v4c0 3 5 4 5 8v4M17 4v4c0 3-5 4-5 8",
  edit: "M4.500 19.500l1-4L16 5l3 3L8.500 18.500z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" class="icon" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="20" height="20" viewBox="0 0 24 24" class="logo" aria-hidden="true">
      <path d="M3 5.500c6 2 12 2 18 0M6.500 6.800V20M12 7v13M17.500 6.800V17" />
      <circle cx="6.500" cy="12" r="2.100" />
      <circle cx="6.500" cy="17" r="1.500" />
      <circle cx="12" cy="14.500" r="2.400" />
      <circle cx="17.500" cy="11.500" r="1.800" />
    </svg>
  );
}
