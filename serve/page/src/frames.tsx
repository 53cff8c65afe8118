// Frames of a stack as a list: recursion folded; one opens its source lines; values of variables below.
import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { frameName, framePlace, type Frame } from "./looks.js";
import { FrameLine, OpenSource } from "./parts.js";
import { SourceLines } from "./source.js";
import { Locals, type ThreadLocals } from "./locals.js";

interface Folded {
  frame: Frame;
  times: number;
  depth: number;
}

/** Recursion is told once: "e ×20". */
function fold(frames: Frame[]): Folded[] {
  const out: Folded[] = [];
  frames.forEach((frame, depth) => {
    const last = out.at(-1);
    if (last && last.frame.name === frame.name && last.frame.file === frame.file && last.frame.line === frame.line) last.times++;
    else out.push({ frame, times: 1, depth });
  });
  return out;
}

export const fits = (frame: Frame, words: string): boolean => `${frameName(frame)} ${framePlace(frame)}`.toLowerCase().includes(words);

export function FrameList({ frames, target, q, locals }: { frames: Frame[]; target: string; q: string; locals: ThreadLocals | null }) {
  const [open, setOpen] = useState(-1);
  return (
    <ol class="frames">
      {fold(frames).map(({ frame, times, depth }) => (
        <li class={q && fits(frame, q) ? "found" : undefined}>
          <button type="button" class="bare" aria-expanded={open === depth} onClick={() => setOpen(open === depth ? -1 : depth)}>
            <FrameLine frame={frame} times={times} />
          </button>{" "}
          <OpenSource target={target} frame={frame} />
          {open === depth && <SourceLines target={target} frame={frame} />}
          {locals && <Locals values={locals[depth] ?? []} />}
        </li>
      ))}
    </ol>
  );
}
