// How an edge is drawn. What depends on the camera is decided by the graphics card, so moving it costs no work here: an edge without an
// end in view is left out, and the longer an edge is on the screen, the fainter. Else a dense graph is a picture of its longest links.
import { EdgeRectangleProgram } from "sigma/rendering";
import type { EdgeProgramType, ProgramInfo } from "sigma/rendering";
import type { RenderParams } from "sigma/types";

const VERTEX_SHADER = /* glsl */ `
attribute vec4 a_id;
attribute vec4 a_color;
attribute vec2 a_normal;
attribute float a_normalCoef;
attribute vec2 a_positionStart;
attribute vec2 a_positionEnd;
attribute float a_positionCoef;

uniform mat3 u_matrix;
uniform float u_sizeRatio;
uniform float u_zoomRatio;
uniform float u_pixelRatio;
uniform float u_correctionRatio;
uniform float u_minEdgeThickness;
uniform float u_feather;
uniform float u_fading;

varying vec4 v_color;
varying vec2 v_normal;
varying float v_thickness;
varying float v_feather;

bool isInView(vec2 point) {
  return max(abs(point.x), abs(point.y)) < 1.05;
}

void main() {
  vec2 start = (u_matrix * vec3(a_positionStart, 1)).xy;
  vec2 end = (u_matrix * vec3(a_positionEnd, 1)).xy;
  float wanted = length(a_normal);
  vec2 unitNormal = a_normal / max(wanted, 1e-9) * a_normalCoef;
  float pixels = max(wanted, u_minEdgeThickness * u_sizeRatio);
  float thickness = pixels * u_correctionRatio / u_sizeRatio;
  vec2 position = mix(a_positionStart, a_positionEnd, a_positionCoef);
  // Outside of the picture where neither end is inside.
  gl_Position = isInView(start) || isInView(end) ? vec4((u_matrix * vec3(position + unitNormal * thickness, 1)).xy, 0, 1) : vec4(2, 2, 2, 1);
  v_thickness = thickness / u_zoomRatio;
  v_normal = unitNormal;
  v_feather = u_feather * u_correctionRatio / u_zoomRatio / u_pixelRatio * 2.0;
  #ifdef PICKING_MODE
  v_color = a_id;
  v_color.a *= 255.0 / 254.0;
  #else
  // In widths of the picture. Typed edges are thicker, and fade half as much.
  float far = smoothstep(0.12, 0.9, distance(start, end) * 0.5);
  v_color = a_color * (1.0 - 0.85 * far * u_fading * (wanted > 1.3 ? 0.5 : 1.0));
  #endif
}
`;

/** `fading` is 0 for a graph of few edges, where each can be followed, up to 1. */
export function createEdgeProgram(fading: number): EdgeProgramType {
  return class extends EdgeRectangleProgram {
    override getDefinition() {
      const plain = super.getDefinition();
      return { ...plain, VERTEX_SHADER_SOURCE: VERTEX_SHADER, UNIFORMS: [...plain.UNIFORMS, "u_fading"] as unknown as typeof plain.UNIFORMS };
    }
    override setUniforms(params: RenderParams, info: ProgramInfo) {
      super.setUniforms(params, info);
      info.gl.uniform1f(info.uniformLocations.u_fading!, fading);
    }
  } as unknown as EdgeProgramType;
}
