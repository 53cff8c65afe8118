import { h } from "./preact.js";
import { editor } from "./editor.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js";
import { go } from "./place.js";
import { plain } from "./format.js";
import { processName } from "./names.js";
import { state } from "./watch.js";
import { jobTarget } from "./job_list.js";
const show = { help: () => { }, palette: () => { }, close: () => false };
const typing = (event) => event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null;
const pressing = (event) => event.target instanceof HTMLElement && event.target.closest("button, a, summary, canvas") !== null;
function walk(step) {
    const all = [...document.querySelectorAll("main summary, main td a, main li a")].filter((one) => one.offsetParent);
    const now = all.indexOf(document.activeElement);
    all[Math.min(all.length - 1, Math.max(0, now + step))]?.focus();
}
export function listenKeys(act) {
    let leader = -Infinity;
    addEventListener("keydown", (event) => {
        if (event.key === "Escape" && show.close())
            return;
        if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !editor) {
            event.preventDefault();
            show.palette();
            return;
        }
        if (event.ctrlKey || event.metaKey || event.altKey || typing(event))
            return;
        if (performance.now() - leader < 1500) {
            leader = -Infinity;
            const screen = act.screens.find((one) => one.key === event.key);
            if (screen)
                act.open(screen.id);
            return;
        }
        if (event.key === "g")
            leader = performance.now();
        else if (event.key === "?")
            show.help();
        else if (event.key === "j")
            walk(1);
        else if (event.key === "k")
            walk(-1);
        else if (event.key === "/") {
            event.preventDefault();
            document.querySelector("main input[type=search]")?.focus();
        }
        else if (event.key === " " && !pressing(event)) {
            event.preventDefault();
            act.freeze();
        }
    });
}
function choices(screens, place) {
    return [
        ...screens.map((one) => ({ text: one.name, open: () => go({ target: place.target, screen: one.id }) })),
        ...state.jobs.map((one) => ({ text: plain(jobTarget(one), 90), open: () => go({ target: jobTarget(one), screen: place.screen }) })),
        ...state.processes.map((one) => ({
            text: plain(processName(one.process), 90),
            open: () => go({ target: one.process.id, screen: place.screen === "overview" ? "stacks" : place.screen }),
        })),
    ];
}
function Palette({ screens, place, close }) {
    const [text, setText] = useState("");
    const [chosen, setChosen] = useState("");
    const [waits, setWaits] = useState(false);
    const found = choices(screens, place)
        .filter((one) => one.text.toLowerCase().includes(text.toLowerCase()))
        .slice(0, 12);
    const at = Math.max(0, found.findIndex((one) => one.text === chosen));
    const open = (one) => {
        if (!one)
            return setWaits(true);
        close();
        one.open();
    };
    const press = (event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setChosen(found[at + (event.key === "ArrowDown" ? 1 : -1)]?.text ?? chosen);
        }
        else if (event.key === "Enter") {
            event.preventDefault();
            open(found[at]);
        }
    };
    useEffect(() => {
        if (waits && found[0])
            open(found[0]);
    });
    return (h("div", { class: "palette" },
        h("input", { role: "combobox", "aria-label": "Go to a screen or a process", "aria-expanded": "true", "aria-controls": "choices", "aria-activedescendant": found[at] ? "choice" + at : undefined, placeholder: "screen or process", value: text, onKeyDown: press, onInput: (event) => (setText(event.currentTarget.value), setChosen(""), setWaits(false)) }),
        h("ul", { id: "choices", role: "listbox", "aria-label": "Screens and processes" }, found.map((one, i) => (h("li", { role: "option", id: "choice" + i, "aria-selected": i === at, onClick: () => open(one) }, one.text)))),
        !found.length && h("p", { class: "quiet" }, waits ? "It is opened when it is there …" : "Nothing is called so.")));
}
function Help({ screens }) {
    const keys = [
        ["Space", "freeze and go on"],
        ["/", "filter"],
        ["j  k", "down and up"],
        ["Enter", "open"],
        ["Esc", "close"],
        ...(editor ? [] : [["Ctrl-K", "go to a screen or a process"]]),
        ...screens.map((one) => ["g " + one.key, one.name]),
    ];
    return (h("div", null,
        h("h2", null, "Keys"),
        h("dl", { class: "keys" }, keys.map(([key, what]) => (h("div", null,
            h("dt", null,
                h("kbd", null, key)),
            h("dd", null, what)))))));
}
export function Keys({ screens, place }) {
    const [open, setOpen] = useState("");
    const dialog = useRef(null);
    show.help = () => setOpen("help");
    show.palette = () => setOpen("palette");
    show.close = () => (setOpen(""), open !== "");
    useLayoutEffect(() => {
        if (!open)
            return;
        dialog.current?.showModal();
        dialog.current?.querySelector("input")?.focus();
    }, [open]);
    if (!open)
        return null;
    return (h("dialog", { ref: dialog, "aria-label": open === "help" ? "Keys" : "Go to", onClose: () => setOpen("") },
        open === "help" ? h(Help, { screens: screens }) : h(Palette, { screens: screens, place: place, close: () => setOpen("") }),
        h("form", { method: "dialog" },
            h("button", null, "Close"))));
}
