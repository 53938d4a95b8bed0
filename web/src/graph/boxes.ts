// Places for labels: none over another.

/** The boxes that are taken, and the picture they are in. */
export class Boxes {
  private readonly rows = new Map<number, [number, number, number, number][]>();
  private static readonly ROW = 32;

  constructor(
    private readonly width: number,
    private readonly height: number,
  ) {}

  /** Takes a place, unless it is taken or not in the picture. */
  take(x: number, y: number, width: number, height: number): boolean {
    if (x < 0 || y < 0 || x + width > this.width || y + height > this.height) return false;
    const [first, last] = [Math.floor(y / Boxes.ROW), Math.floor((y + height) / Boxes.ROW)];
    for (let row = first; row <= last; row++) {
      for (const [left, top, right, bottom] of this.rows.get(row) ?? []) {
        if (x < right && x + width > left && y < bottom && y + height > top) return false;
      }
    }
    this.block(x, y, width, height);
    return true;
  }

  /** Takes a place that other boxes may have already. */
  block(x: number, y: number, width: number, height: number) {
    const [first, last] = [Math.floor(y / Boxes.ROW), Math.floor((y + height) / Boxes.ROW)];
    for (let row = first; row <= last; row++) {
      const boxes = this.rows.get(row);
      const box: [number, number, number, number] = [x, y, x + width, y + height];
      if (boxes) boxes.push(box);
      else this.rows.set(row, [box]);
    }
  }
}
