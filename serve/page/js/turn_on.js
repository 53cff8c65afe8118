import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { ask, at, has, net } from "./net.js";
import { plain } from "./format.js";
import { Trouble } from "./parts.js";
export const mayControl = () => (net.facts?.grants.includes("control") ?? false) && has("/p/{}/config/{}");
export function TurnOn({ target, setting, value, label, done }) {
    const [error, setError] = useState(null);
    const [busy, setBusy] = useState(false);
    const press = () => {
        setBusy(true);
        ask(at(target, "config/" + setting), { method: "PUT", body: { value } })
            .then(() => (setError(null), done()), setError)
            .finally(() => setBusy(false));
    };
    if (!mayControl())
        return (h("p", { class: "quiet" },
            h("code", { class: "command" },
                "probing ",
                target.split(".")[0],
                " config ",
                setting,
                "=",
                plain(value, 200)),
            " ",
            "or a button here, once this address may: ",
            h("code", { class: "command" }, "probing serve --url --allow control")));
    return (h("p", null,
        h("button", { type: "button", class: "main", disabled: busy || !value, onClick: press }, busy ? "loading …" : label),
        " ",
        h("span", { class: "quiet" }, "loads the probe into the process, where it is not there yet"),
        h(Trouble, { error: error })));
}
