// Rows of a result.  Only what can be seen is in the document: ten thousand rows scroll as ten do.
import { h } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import type { Rows } from "./net.js";
import { number, plain } from "./format.js";

const ROW = 26; // px, as page.css has it
const BEYOND = 12;

type Cell = string | number | null;

function shown(value: Cell): string {
  if (value === null) return "NULL";
  return typeof value === "number" ? number(value) : plain(value, 200);
}

function less(a: Cell, b: Cell): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : Number(a !== b);
}

export function Grid({ rows }: { rows: Rows }) {
  const [top, setTop] = useState(0);
  const [sort, setSort] = useState<{ column: number; down: boolean } | null>(null);
  const box = useRef<HTMLDivElement | null>(null);
  const sorted = sort ? [...rows.rows].sort((a, b) => less(a[sort.column] ?? null, b[sort.column] ?? null) * (sort.down ? -1 : 1)) : rows.rows;
  const height = box.current?.clientHeight ?? 600;
  const from = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const some = sorted.slice(from, from + Math.ceil(height / ROW) + 2 * BEYOND);
  const after = Math.max(0, sorted.length - from - some.length);
  return (
    <div class="scroll grid" role="region" aria-label="Rows" tabIndex={0} ref={box} onScroll={() => setTop(box.current?.scrollTop ?? 0)}>
      <table>
        <thead>
          <tr>
            {rows.columns.map((name, i) => (
              <th scope="col" aria-sort={sort?.column === i ? (sort.down ? "descending" : "ascending") : "none"}>
                <button type="button" class="bare" onClick={() => setSort({ column: i, down: sort?.column === i && !sort.down })}>
                  {plain(name, 60)}
                  {sort?.column === i && (sort.down ? " ↓" : " ↑")}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {from > 0 && (
            <tr aria-hidden="true">
              <td colSpan={rows.columns.length} style={{ height: `${from * ROW}px`, padding: 0 }} />
            </tr>
          )}
          {some.map((row, i) => (
            <tr key={from + i}>
              {row.map((value) => (
                <td class={value === null ? "quiet" : typeof value === "number" ? "right" : undefined} title={typeof value === "string" && value.length > 60 ? plain(value, 2000) : undefined}>
                  {shown(value)}
                </td>
              ))}
            </tr>
          ))}
          {after > 0 && (
            <tr aria-hidden="true">
              <td colSpan={rows.columns.length} style={{ height: `${after * ROW}px`, padding: 0 }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}
