// Small parts that screens share.
import { h, Fragment, type Child } from "./preact.js";
import { useState } from "./hooks.js";
import { editor } from "./editor.js";
import { net, Refused } from "./net.js";
import { plain } from "./format.js";
import { frameName, framePlace, type Frame } from "./looks.js";

export function Trouble({ error }: { error: Error | null }) {
  if (!error) return null;
  return (
    <div class="trouble" role="alert">
      <b>{plain(error.message)}</b>
      {error instanceof Refused && error.remedy && <p>{plain(error.remedy)}</p>}
    </div>
  );
}

export function Empty({ children }: { children?: Child }) {
  return <div class="empty">{children}</div>;
}

export function Loading() {
  return <p class="empty">looking …</p>;
}

export function Switch({ label, on, set, hint }: { label: string; on: boolean; set: (on: boolean) => void; hint?: string }) {
  return (
    <label class="switch" title={hint}>
      <input type="checkbox" checked={on} onChange={(event: { currentTarget: HTMLInputElement }) => set(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

export function Filter({ value, set, label }: { value: string; set: (value: string) => void; label: string }) {
  return (
    <input
      type="search"
      class="filter"
      placeholder={label + "  /"}
      aria-label={label}
      value={value}
      onInput={(event: { currentTarget: HTMLInputElement }) => set(event.currentTarget.value)}
    />
  );
}

/** A frame: name and place.  `times`: it stands so often below itself. */
export function FrameLine({ frame, times = 1 }: { frame: Frame; times?: number }) {
  return (
    <>
      <span class={"fname " + frame.kind}>{plain(frameName(frame), 120)}</span>
      {times > 1 && <span class="times"> ×{times}</span>}
      <span class="fplace"> {plain(framePlace(frame), 160)}</span>
    </>
  );
}

/** Opens a frame's line in the editor that shows the page. */
export function OpenSource({ target, frame }: { target: string; frame: Frame }) {
  const { line } = frame;
  const file = frame.path ?? frame.file;
  if (!editor || frame.kind !== "python" || !file || !line) return null;
  const title = `Open in ${editor.name}: ${plain(file, 120)}:${line}`;
  return (
    <button type="button" class="bare opens" title={title} aria-label={title} onClick={() => editor?.openSource(target, file, line)}>
      ↗
    </button>
  );
}

/** In an editor's panel, which may only look: its user can let it do more. */
export function Allow() {
  const [asking, setAsking] = useState(false);
  if (!editor || net.facts?.grants.includes("eval")) return null;
  const ask = async (): Promise<void> => {
    setAsking(true);
    if (await editor?.allow()) net.facts = null; // asked for anew, with what it may now
    setAsking(false);
  };
  return (
    <p>
      <button type="button" disabled={asking} onClick={() => void ask()}>
        Let this panel change settings and run code …
      </button>
    </p>
  );
}

export interface Column<T> {
  name: string;
  right?: boolean;
  cell: (row: T) => Child;
}

/** A table that becomes cards on a phone.  A header row for the eye and for readers. */
export function Table<T>({ columns, rows, label, row }: { columns: Column<T>[]; rows: T[]; label: string; row?: (row: T) => string }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table class="cards">
        <thead>
          <tr>
            {columns.map((one) => (
              <th scope="col" class={one.right ? "right" : undefined}>
                {one.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((value) => (
            <tr class={row?.(value)}>
              {columns.map((one) => (
                <td class={one.right ? "right" : undefined} data-name={one.name}>
                  {one.cell(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function save(name: string, type: string, text: string | Blob): void {
  const blob = typeof text === "string" ? new Blob([text], { type }) : text;
  if (editor) {
    editor.save(name, blob);
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
