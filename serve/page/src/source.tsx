// The source lines around a frame, when the server gives source.
import { h } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
import type { Frame } from "./looks.js";

interface Source {
  first: number;
  lines: string[];
}

/** Some lines around one, of what the route answers: text, or lines with the number of the first. */
function around(told: { text?: string; lines?: string[]; first?: number }, line: number): Source {
  const all = told.lines ?? (told.text ?? "").split("\n");
  const first = told.first ?? 1;
  const from = Math.max(0, line - first - 5);
  return { first: first + from, lines: all.slice(from, from + 11) };
}

export function SourceLines({ target, frame }: { target: string; frame: Frame }) {
  const [source, setSource] = useState<Source | string>("");
  useEffect(() => {
    if (!has("/p/{}/source") || frame.kind !== "python" || !frame.file || !frame.line) {
      setSource(frame.kind === "python" ? "This server gives no source." : "There is no source of native code here.");
      return;
    }
    askJson<{ text?: string; lines?: string[]; first?: number }>(at(target, "source", { frame: `${frame.file}:${frame.line}` })).then(
      (told) => setSource(around(told, frame.line!)),
      (error: Error) => setSource(error.message),
    );
  }, [frame.file, frame.line]);
  if (typeof source === "string") return <p class="quiet source">{plain(source)}</p>;
  return (
    <pre class="source" tabIndex={0}>
      {source.lines.map((text, i) => (
        <span class={source.first + i === frame.line ? "here" : undefined}>
          {String(source.first + i).padStart(5)} {plain(text, 400)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
