// Shapes of nodes, beside their colours: who cannot tell two hues apart can tell two shapes. Drawn by the graphics card, over a veil on
// a plain canvas, and in the legend; each has the area of the circle of the same radius.
import { NodeCircleProgram, type NodeProgramType } from "sigma/rendering";

export const SHAPES = ["circle", "square", "triangle", "diamond", "point-down", "ring", "plus"] as const;
export type Shape = (typeof SHAPES)[number];

/** One for each category of notes, again from the first where there are more; squares are entities of memory. */
const CATEGORY_SHAPES: Shape[] = ["circle", "triangle", "diamond", "point-down", "ring", "plus"];
export const categoryShape = (place: number): Shape => CATEGORY_SHAPES[place % CATEGORY_SHAPES.length]!;

/** The radius around a regular polygon with the area of a circle of radius 1. */
const around = (sides: number) => Math.sqrt((2 * Math.PI) / (sides * Math.sin((2 * Math.PI) / sides)));
const [TRIANGLE, SQUARE] = [around(3), around(4)];
const [ARM, REACH] = [0.42, 1.15];
const [HOLE, RIM] = [0.5, 1.1];

/** How far a shape reaches from its middle, in radii. */
const MOST = TRIANGLE + 0.1;

function polygon(x: number, y: number, radius: number, sides: number, first: number): string {
  const corner = (n: number) => {
    const angle = first + (2 * Math.PI * n) / sides;
    return `${(x + radius * Math.sin(angle)).toFixed(2)} ${(y - radius * Math.cos(angle)).toFixed(2)}`;
  };
  return `M${Array.from({ length: sides }, (_, n) => corner(n)).join("L")}Z`;
}

const disc = (x: number, y: number, radius: number) => `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;

/** As the path of an SVG; filled by the rule of even and odd. */
export function shapePath(shape: Shape, x: number, y: number, radius: number): string {
  switch (shape) {
    case "circle":
      return disc(x, y, radius);
    case "square":
      return polygon(x, y, SQUARE * radius, 4, Math.PI / 4);
    case "triangle":
      return polygon(x, y, TRIANGLE * radius, 3, 0);
    case "diamond":
      return polygon(x, y, SQUARE * radius, 4, 0);
    case "point-down":
      return polygon(x, y, TRIANGLE * radius, 3, Math.PI);
    case "ring":
      return disc(x, y, RIM * radius) + disc(x, y, HOLE * radius);
    case "plus": {
      const [a, b] = [ARM * radius, REACH * radius];
      return `M${x - a} ${y - b}H${x + a}V${y - a}H${x + b}V${y + a}H${x + a}V${y + b}H${x - a}V${y + a}H${x - b}V${y - a}H${x - a}Z`;
    }
  }
}

const float = (value: number) => value.toFixed(4);

const VERTEX_SHADER = /* glsl */ `
attribute vec4 a_id;
attribute vec4 a_color;
attribute vec2 a_position;
attribute float a_size;
attribute float a_shape;
attribute float a_angle;

uniform mat3 u_matrix;
uniform float u_sizeRatio;
uniform float u_correctionRatio;

varying vec4 v_color;
varying vec2 v_away;
varying float v_radius;
varying float v_shape;

void main() {
  v_radius = a_size * u_correctionRatio / u_sizeRatio * 2.0;
  v_away = v_radius * ${float(2 * MOST)} * vec2(cos(a_angle), sin(a_angle));
  v_shape = a_shape;
  gl_Position = vec4((u_matrix * vec3(a_position + v_away, 1)).xy, 0, 1);
  #ifdef PICKING_MODE
  v_color = a_id;
  #else
  v_color = a_color;
  #endif
  v_color.a *= 255.0 / 254.0;
}
`;

const FRAGMENT_SHADER = /* glsl */ `
precision highp float;

varying vec4 v_color;
varying vec2 v_away;
varying float v_radius;
varying float v_shape;

uniform float u_correctionRatio;

/* How far outside of a regular polygon a point is; its first corner points up, or down. */
float polygon(vec2 at, float sides, float inner) {
  float slice = 6.2831853 / sides;
  float angle = atan(at.x, at.y) - slice * 0.5;
  return cos(floor(0.5 + angle / slice) * slice - angle) * length(at) - inner;
}

float outside(vec2 at) {
  if (v_shape < 0.5) return length(at) - 1.0;
  if (v_shape < 1.5) return max(abs(at.x), abs(at.y)) - ${float(SQUARE / Math.SQRT2)};
  if (v_shape < 2.5) return polygon(at, 3.0, ${float(TRIANGLE / 2)});
  if (v_shape < 3.5) return (abs(at.x) + abs(at.y)) / 1.41421356 - ${float(SQUARE / Math.SQRT2)};
  if (v_shape < 4.5) return polygon(-at, 3.0, ${float(TRIANGLE / 2)});
  if (v_shape < 5.5) return max(length(at) - ${float(RIM)}, ${float(HOLE)} - length(at));
  return max(min(abs(at.x), abs(at.y)) - ${float(ARM)}, max(abs(at.x), abs(at.y)) - ${float(REACH)});
}

void main(void) {
  float border = u_correctionRatio * 2.0;
  float away = outside(v_away / v_radius) * v_radius + border;
  #ifdef PICKING_MODE
  gl_FragColor = min(away, length(v_away) - v_radius) > border ? vec4(0.0) : v_color;
  #else
  gl_FragColor = mix(v_color, vec4(0.0), clamp(away / border, 0.0, 1.0));
  #endif
}
`;

/** Draws a node with the shape of its attribute `shape`. */
export const ShapeProgram = class extends NodeCircleProgram {
  override getDefinition() {
    const plain = super.getDefinition();
    const shape = { name: "a_shape", size: 1, type: WebGLRenderingContext.FLOAT };
    return { ...plain, VERTEX_SHADER_SOURCE: VERTEX_SHADER, FRAGMENT_SHADER_SOURCE: FRAGMENT_SHADER, ATTRIBUTES: [...plain.ATTRIBUTES, shape] };
  }
  override processVisibleItem(index: number, start: number, data: Parameters<NodeCircleProgram["processVisibleItem"]>[2] & { shape?: Shape }) {
    super.processVisibleItem(index, start, data);
    this.array[start + 5] = SHAPES.indexOf(data.shape ?? "circle");
  }
} as unknown as NodeProgramType;
