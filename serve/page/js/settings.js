import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { ask, at, forgetToken, has, net, query, records } from "./net.js";
import { bytes, duration, number, plain } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { state, watched } from "./watch.js";
import { Allow, Table, Trouble } from "./parts.js";
import { editor } from "./editor.js";
import { applyTheme, theme } from "./theme.js";
function Cost() {
    const seconds = performance.now() / 1000;
    const rows = [
        ["answers asked for", `${number(net.looks)}, ${(net.looks / seconds).toFixed(1)} a second`],
        ["time of an answer", net.looks ? `${(net.millis / net.looks).toFixed(1)} ms on average` : ""],
        ["received", bytes(net.bytes)],
        ["threads stopped", "none, but with native frames: each for some 0.1 ms"],
    ];
    return (h(Table, { label: "What this page costs", rows: rows, columns: [
            { name: "Cost", cell: ([name]) => name },
            { name: "of this page, since it was opened", cell: ([, value]) => value },
        ] }));
}
function Server() {
    const facts = net.facts;
    if (!facts)
        return null;
    const rows = [
        ["version", facts.version],
        ["process", String(facts.pid)],
        ["this address may", facts.grants.join(", ")],
        ...Object.entries(facts.limits).map(([name, value]) => [
            "at most: " + name.replaceAll("_", " "),
            name.endsWith("bytes") ? bytes(value) : name.endsWith("seconds") ? duration(value) : number(value),
        ]),
    ];
    return (h(Table, { label: "Server", rows: rows, columns: [
            { name: "Server", cell: ([name]) => plain(name, 60) },
            { name: "Value", cell: ([, value]) => plain(value, 100) },
        ] }));
}
function Setting({ target, one, done }) {
    const [value, setValue] = useState(String(one["value"] ?? ""));
    const [error, setError] = useState(null);
    const may = (net.facts?.grants.includes("control") ?? false) && has("/p/{}/config/{}");
    if (!may)
        return h("code", null, plain(String(one["value"] ?? ""), 120));
    const put = (event) => {
        event.preventDefault();
        const path = at(target, "config/" + encodeURIComponent(String(one["name"])));
        ask(path, { method: "PUT", body: { value } }).then(() => (setError(null), done()), setError);
    };
    return (h("form", { onSubmit: put },
        h("input", { type: "text", "aria-label": String(one["name"]), value: value, onInput: (event) => setValue(event.currentTarget.value) }),
        " ",
        h("button", { disabled: value === String(one["value"] ?? "") }, "Set"),
        h(Trouble, { error: error })));
}
function Probe({ target }) {
    const settings = usePolled(target, 0, async (signal) => records(await query(target, "SELECT name, value, unit, doc FROM information_schema.settings ORDER BY name", signal)));
    return (h(Fragment, null,
        h("h2", null,
            "Settings of process ",
            plain(target.split(".")[0], 40)),
        !editor && !net.facts?.grants.includes("control") && (h("p", { class: "quiet" },
            "This address may look, not change. ",
            h("code", null, "probing serve --allow control"),
            " grants it.")),
        h(Trouble, { error: settings.error }),
        settings.value && (h(Table, { label: "Settings of the probe", rows: settings.value, columns: [
                { name: "Setting", cell: (one) => h("code", null, plain(String(one["name"]), 80)) },
                { name: "Value", cell: (one) => h(Setting, { key: String(one["name"]) + String(one["value"]), target: target, one: one, done: settings.again }) },
                { name: "Unit", cell: (one) => plain(String(one["unit"] ?? ""), 30) },
                { name: "What it does", cell: (one) => plain(String(one["doc"] ?? ""), 300) },
            ] }))));
}
function OfBrowser() {
    const [chosen, setChosen] = useState(theme);
    return (h("div", { class: "tools" },
        h("label", { class: "switch" },
            "Colours",
            " ",
            h("select", { value: chosen, onChange: (event) => (applyTheme(event.currentTarget.value), setChosen(event.currentTarget.value)) },
                h("option", { value: "" }, "as the system"),
                h("option", { value: "light" }, "light"),
                h("option", { value: "dark" }, "dark"))),
        h("button", { type: "button", onClick: forgetToken }, "Forget the token")));
}
export function SettingsScreen({ target }) {
    useWatch();
    return (h(Fragment, null,
        h("h1", null, "Settings and cost"),
        h("h2", null, "This page"),
        editor ? h(Allow, null) : h(OfBrowser, null),
        h(Cost, null),
        h("h2", null, "The server"),
        h(Server, null),
        target && (watched(target) || !state.loaded) && h(Probe, { key: target, target: target })));
}
