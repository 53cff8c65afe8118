import { h, Fragment } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { askJson, at, has, net } from "./net.js";
import { duration, plain } from "./format.js";
import { watched } from "./watch.js";
import { Allow, Empty } from "./parts.js";
import { DebugFromHere } from "./debug.js";
import { editor } from "./editor.js";
const shown = (text) => text.split("\n").map((line) => plain(line, 4000)).join("\n");
function HowTo({ pid }) {
    if (editor)
        return (h(Empty, null,
            h("h1", null, "Console"),
            h("p", null, "Code in the process is run only when you allow it; this panel may look."),
            h(Allow, null)));
    return (h(Empty, null,
        h("h1", null, "Console"),
        h("p", null, "Code in the process is run only when who started the server allows it; this address may look. Start the server so:"),
        h("pre", null, "probing serve --allow eval"),
        h("p", null, "Or run code from a terminal of your own, which needs no grant:"),
        h("pre", null,
            "probing ",
            pid,
            " eval 'len(threading.enumerate())'"),
        h("h2", null, "Debug it in VS Code"),
        h("p", null, "This waits for a debugger; \u201CAttach to a Python process\u201D of the Probing extension, or this in launch.json, connects:"),
        h("pre", null,
            "probing ",
            pid,
            " debug --listen 127.0.0.1:5678"),
        h("pre", null, '{"type": "probing", "request": "attach", "name": "job", "connect": {"host": "127.0.0.1", "port": 5678}}')));
}
const lastName = (text) => /[\w.]*$/.exec(text)?.[0] ?? "";
export function ConsoleScreen({ target }) {
    const [entries, setEntries] = useState([]);
    const [code, setCode] = useState("");
    const [names, setNames] = useState([]);
    const [busy, setBusy] = useState(null);
    const [past, setPast] = useState(-1);
    const end = useRef(null);
    const pid = String(watched(target)?.process.pid ?? target.split(".")[0]);
    useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [entries.length]);
    if (!net.facts?.grants.includes("eval") || !has("/p/{}/eval"))
        return h(HowTo, { pid: pid });
    const run = async () => {
        if (!code.trim() || busy)
            return;
        const abort = new AbortController();
        setBusy(abort);
        setNames([]);
        let entry;
        try {
            const told = await askJson(at(target, "eval"), { method: "POST", body: { code, namespace: "page" }, signal: abort.signal });
            entry = { code, text: told.output + (told.raised ?? told.value ?? ""), bad: told.raised !== null };
            if (told.seconds && told.seconds > 1)
                entry.text += `\n(${duration(told.seconds)})`;
        }
        catch (error) {
            entry = { code, text: abort.signal.aborted ? "interrupted" : error.message, bad: true };
        }
        setEntries((all) => [...all, entry].slice(-200));
        setCode("");
        setPast(-1);
        setBusy(null);
    };
    const complete = async () => {
        const told = await askJson(at(target, "complete"), { method: "POST", body: { text: code } });
        if (told.completions.length === 1)
            setCode(code.slice(0, code.length - lastName(code).length) + told.completions[0]);
        setNames(told.completions.length === 1 ? [] : told.completions.slice(0, 60));
    };
    const recall = (step) => {
        const at = Math.max(-1, Math.min(entries.length - 1, past + step));
        setPast(at);
        setCode(at < 0 ? "" : entries[entries.length - 1 - at].code);
    };
    const press = (event) => {
        const one = !code.includes("\n");
        const act = event.key === "Enter" && !event.shiftKey && (one ? !/[:\\]\s*$/.test(code) : event.ctrlKey || code.endsWith("\n"))
            ? run
            : event.key === "Tab" && !event.shiftKey && lastName(code)
                ? complete
                : event.key === "ArrowUp" && one
                    ? () => recall(1)
                    : event.key === "ArrowDown" && one
                        ? () => recall(-1)
                        : null;
        if (!act)
            return;
        event.preventDefault();
        void act();
    };
    return (h(Fragment, null,
        h("h1", null, "Console"),
        h("p", { class: "quiet" },
            "Python in process ",
            pid,
            ". Each evaluation runs on a thread of its own, waits for the GIL as any thread, and is written to the server's log."),
        entries.length > 0 && (h("div", { class: "output", role: "log", "aria-label": "Output", tabIndex: 0 },
            entries.map((one) => (h("div", null,
                h("div", { class: "in" },
                    ">>> ",
                    shown(one.code)),
                h("div", { class: one.bad ? "bad" : undefined }, shown(one.text))))),
            h("div", { ref: end }))),
        names.length > 0 && h("p", { class: "fplace" }, names.map((one) => plain(one, 60)).join("   ")),
        h("textarea", { class: "code", rows: 3, "aria-label": "Python; Enter runs, Shift-Enter is a new line, Tab completes, arrows recall", placeholder: ">>> Enter runs, Shift-Enter is a new line, Tab completes", spellcheck: false, value: code, onKeyDown: press, onInput: (event) => setCode(event.currentTarget.value) }),
        h("div", { class: "tools" },
            h("button", { type: "button", class: "main", onClick: () => (busy ? busy.abort() : void run()) }, busy ? "Interrupt" : "Run")),
        !editor && h(DebugFromHere, { target: target })));
}
