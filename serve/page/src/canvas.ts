// The flame graph on a canvas: drawing, what is under the pointer, walking by keys.
import type { Flame } from "./flame.js";

export const ROW = 18; // px
const LEAST = 0.4; // px: narrower ones are not drawn

export interface View {
  zoom: number; // the node that fills the width
  chosen: number;
  found: (node: number) => boolean;
  searching: boolean;
  tint: ((node: number) => number) | null; // -1 blue to 1 red, of a comparison
}

export interface Paint {
  ink: string;
  paper: string;
  mark: string;
  dark: boolean;
}

/** The colour of a frame: by its name, so that it stays; native ones are cooler. */
function hue(name: string, kind: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return kind === "native" ? 190 + (Math.abs(hash) % 50) : 15 + (Math.abs(hash) % 45);
}

export class Painter {
  drawn = 0;
  private colours: string[] = [];
  private dark = false;

  private colour(flame: Flame, node: number, view: View, paint: Paint): string {
    if (view.tint) {
      const tint = view.tint(node);
      const strength = Math.round(Math.min(1, Math.abs(tint)) * (paint.dark ? 40 : 45));
      return `hsl(${tint > 0 ? 0 : 215} ${strength ? 70 : 0}% ${paint.dark ? 22 + strength / 2 : 95 - strength}%)`;
    }
    const at = flame.frame[node]!;
    return (this.colours[at] ??= ((): string => {
      const frame = flame.frames[at];
      const base = hue(frame?.name ?? "", frame?.kind ?? "");
      return paint.dark ? `hsl(${base} 45% 28%)` : `hsl(${base} 75% 78%)`;
    })());
  }

  draw(context: CanvasRenderingContext2D, width: number, height: number, flame: Flame, view: View, paint: Paint): void {
    if (this.dark !== paint.dark) this.colours = [];
    this.dark = paint.dark;
    context.fillStyle = paint.paper;
    context.fillRect(0, 0, width, height);
    context.font = "12px ui-monospace, monospace";
    context.textBaseline = "middle";
    const from = flame.x[view.zoom]!;
    const scale = width / (flame.total[view.zoom]! || 1);
    const { x, total, depth, count } = flame;
    const least = LEAST / scale;
    const to = from + flame.total[view.zoom]!;
    this.drawn = 0;
    for (let i = 0; i < count; i++) {
      if (total[i]! < least || x[i]! >= to || x[i]! + total[i]! <= from) continue;
      const y = depth[i]! * ROW;
      if (y > height) continue;
      const left = Math.max(0, (x[i]! - from) * scale);
      const right = Math.min(width, (x[i]! + total[i]! - from) * scale);
      this.drawn++;
      context.globalAlpha = view.searching && !view.found(i) ? 0.35 : 1;
      context.fillStyle = this.colour(flame, i, view, paint);
      context.fillRect(left, y, Math.max(0.5, right - left - 0.5), ROW - 1);
      if (right - left > 28) this.text(context, flame.name(i), left, y, right - left, paint);
    }
    context.globalAlpha = 1;
    this.outline(context, width, flame, view, paint, from, scale);
  }

  private text(context: CanvasRenderingContext2D, name: string, left: number, y: number, width: number, paint: Paint): void {
    const most = Math.floor((width - 6) / 7.3);
    context.fillStyle = paint.ink;
    context.fillText(name.length > most ? name.slice(0, Math.max(1, most - 1)) + "…" : name, left + 3, y + ROW / 2);
  }

  private outline(context: CanvasRenderingContext2D, width: number, flame: Flame, view: View, paint: Paint, from: number, scale: number): void {
    const i = view.chosen;
    if (i < 0 || i >= flame.count) return;
    const left = Math.max(0, (flame.x[i]! - from) * scale);
    const right = Math.min(width, (flame.x[i]! + flame.total[i]! - from) * scale);
    if (right < left) return;
    context.strokeStyle = paint.mark;
    context.lineWidth = 2;
    context.strokeRect(left + 1, flame.depth[i]! * ROW + 1, Math.max(2, right - left - 2), ROW - 3);
  }
}

export function nodeAt(flame: Flame, view: View, width: number, px: number, py: number): number {
  const depth = Math.floor(py / ROW);
  const from = flame.x[view.zoom]!;
  const at = from + (px / width) * flame.total[view.zoom]!;
  for (let i = 0; i < flame.count; i++) if (flame.depth[i] === depth && flame.x[i]! <= at && at < flame.x[i]! + flame.total[i]!) return i;
  return -1;
}

/** Where an arrow leads: up to the caller, down to the heaviest callee, left and right among those beside it. */
export function step(flame: Flame, from: number, key: string): number {
  if (from < 0) return 0;
  if (key === "ArrowUp") return Math.max(0, flame.parent[from]!);
  let best = from;
  if (key === "ArrowDown") {
    for (let i = from + 1; i < flame.count; i++) if (flame.parent[i] === from && (best === from || flame.total[i]! > flame.total[best]!)) best = i;
    return flame.total[best]! > 0 ? best : from;
  }
  const forward = key === "ArrowRight";
  for (let i = 1; i < flame.count; i++) {
    if (flame.depth[i] !== flame.depth[from] || i === from || !flame.total[i]) continue;
    const beyond = forward ? flame.x[i]! > flame.x[from]! : flame.x[i]! < flame.x[from]!;
    const nearer = best === from || (forward ? flame.x[i]! < flame.x[best]! : flame.x[i]! > flame.x[best]!);
    if (beyond && nearer) best = i;
  }
  return best;
}
