// The colours of categories. `tests/explorer/colours.mjs` checks that each two stay apart for every kind of colour blindness, and that
// all stand out from the background.
export const LIGHT = ["#31559c", "#cf811c", "#22869e", "#be2763", "#7a5bd0", "#009dd8", "#903c12", "#996b00"];
export const DARK = ["#626ef0", "#f0a026", "#45c3a0", "#ac6b9d", "#af94f7", "#48e7fe", "#e25c3a", "#f7df61"];
