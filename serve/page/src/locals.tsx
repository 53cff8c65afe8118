// The variables of frames.  They are asked for apart from the stacks, every 2 s, and only while the switch is on.
import { h } from "./preact.js";
import { askJson, at } from "./net.js";
import { plain } from "./format.js";
import { usePolled, type Answered } from "./polled.js";

export interface Local {
  name: string | null;
  repr: string | null;
  type: string | null;
  arg: boolean;
}

export type ThreadLocals = Local[][]; // by frame, innermost first

interface Told {
  os_thread_id: number;
  frames: { locals: Local[] | null }[];
}

export async function localsOf(target: string, native: boolean, signal: AbortSignal): Promise<Map<number, ThreadLocals>> {
  const words = { format: "pyspy", locals: "1", ...(native ? { native: "1" } : {}) };
  const told = await askJson<Told[]>(at(target, "stacks", words), { signal });
  return new Map(told.map((one) => [one.os_thread_id, one.frames.map((frame) => frame.locals ?? [])]));
}

export function useLocals(target: string, native: boolean): Answered<Map<number, ThreadLocals>> {
  return usePolled(target && `${target} ${native}`, 2, (signal) => localsOf(target, native, signal));
}

export function Locals({ values }: { values: Local[] }) {
  if (!values.length) return null;
  return (
    <dl class="locals">
      {values.map((one) => (
        <div>
          <dt>
            {plain(one.name ?? "?", 60)} <span class="quiet">{plain(one.type ?? "", 40)}</span>
          </dt>
          <dd>{plain(one.repr ?? "", 400)}</dd>
        </div>
      ))}
    </dl>
  );
}
