// The flame graph as a part: a canvas with pointer and keys, and a line that says what is chosen.
import { h } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { number, percent, plain } from "./format.js";
import type { Flame } from "./flame.js";
import { nodeAt, Painter, ROW, step, type Paint, type View } from "./canvas.js";

function paintOf(element: HTMLElement): Paint {
  const style = getComputedStyle(element);
  const ink = style.color;
  const light = (/\d+/.exec(ink)?.[0] ?? "0") > "99" || Number(/\d+/.exec(ink)?.[0]) > 127;
  return { ink, paper: style.backgroundColor, mark: style.outlineColor || ink, dark: light };
}

interface FlameProps {
  flame: Flame;
  changes: number; // another number: it is drawn again
  q: string;
  tint: ((node: number) => number) | null;
  unit: string;
}

function words(flame: Flame, node: number, unit: string): string {
  if (node < 0 || node >= flame.count) return "";
  const frame = flame.frames[flame.frame[node]!];
  const place = frame?.file ? ` ${frame.file}${frame.line ? ":" + frame.line : ""}` : "";
  const all = flame.total[0] || 1;
  return `${plain(flame.name(node), 160)}${plain(place, 160)}: ${number(flame.total[node]!)} ${unit}, ${percent(flame.total[node]! / all)}, itself ${percent(flame.self[node]! / all)}`;
}

export function FlameView({ flame, changes, q, tint, unit }: FlameProps) {
  const canvas = useRef<HTMLCanvasElement | null>(null);
  const painter = useRef(new Painter());
  const [zoom, setZoom] = useState(0);
  const [chosen, setChosen] = useState(-1);
  const [size, setSize] = useState(0);
  const [, themed] = useState(0);
  const words_ = q.toLowerCase();
  const top = zoom < flame.count ? zoom : 0;
  const view: View = {
    zoom: top,
    chosen,
    searching: q !== "",
    found: (node) => flame.name(node).toLowerCase().includes(words_),
    tint,
  };
  const height = Math.min(3000, (flame.deepest + 1) * ROW + 4);
  useEffect(() => {
    const element = canvas.current!;
    const resized = new ResizeObserver(() => setSize(element.clientWidth));
    const again = (): void => themed((n) => n + 1);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    resized.observe(element);
    theme.addEventListener("change", again);
    addEventListener("theme", again);
    return () => {
      resized.disconnect();
      theme.removeEventListener("change", again);
      removeEventListener("theme", again);
    };
  }, []);
  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext("2d");
    if (!size || !context) return;
    const ratio = devicePixelRatio || 1;
    element.width = size * ratio;
    element.height = height * ratio;
    element.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    painter.current.draw(context, size, height, flame, view, paintOf(element));
  });
  const under = (event: MouseEvent): number => nodeAt(flame, view, size, event.offsetX, event.offsetY);
  const press = (event: KeyboardEvent): void => {
    if (event.key.startsWith("Arrow")) setChosen(step(flame, chosen, event.key));
    else if (event.key === "Enter" && chosen >= 0) setZoom(chosen);
    else if (event.key === "Escape") setZoom(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const found = q ? share(flame, view) : 0;
  return (
    <div data-changes={changes}>
      <canvas
        ref={canvas}
        class="flame"
        tabIndex={0}
        role="img"
        aria-label="Flame graph. Arrows walk, Enter zooms, Escape shows all; the table below has the same."
        onMouseMove={(event: MouseEvent) => setChosen(under(event))}
        onClick={(event: MouseEvent) => setZoom(Math.max(0, under(event)))}
        onKeyDown={press}
      />
      <p class="told" aria-live="polite">
        {words(flame, chosen, unit) || (q ? `found: ${percent(found)}` : "\u00a0")}
      </p>
    </div>
  );
}

/** How much of all is in what was found, each stack once. */
function share(flame: Flame, view: View): number {
  const inside = new Uint8Array(flame.count);
  let sum = 0;
  for (let i = 1; i < flame.count; i++) {
    const above = inside[flame.parent[i]!];
    inside[i] = above || view.found(i) ? 1 : 0;
    if (inside[i] && !above) sum += flame.total[i]!;
  }
  return sum / (flame.total[0] || 1);
}
