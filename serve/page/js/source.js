import { h } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
function around(told, line) {
    const all = told.lines ?? (told.text ?? "").split("\n");
    const first = told.first ?? 1;
    const from = Math.max(0, line - first - 5);
    return { first: first + from, lines: all.slice(from, from + 11) };
}
export function SourceLines({ target, frame }) {
    const [source, setSource] = useState("");
    useEffect(() => {
        if (!has("/p/{}/source") || frame.kind !== "python" || !frame.file || !frame.line) {
            setSource(frame.kind === "python" ? "This server gives no source." : "There is no source of native code here.");
            return;
        }
        askJson(at(target, "source", { frame: `${frame.file}:${frame.line}` })).then((told) => setSource(around(told, frame.line)), (error) => setSource(error.message));
    }, [frame.file, frame.line]);
    if (typeof source === "string")
        return h("p", { class: "quiet source" }, plain(source));
    return (h("pre", { class: "source", tabIndex: 0 }, source.lines.map((text, i) => (h("span", { class: source.first + i === frame.line ? "here" : undefined },
        String(source.first + i).padStart(5),
        " ",
        plain(text, 400),
        "\n")))));
}
