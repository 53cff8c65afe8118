import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
import { Trouble } from "./parts.js";
export function DebugFromHere({ target }) {
    const [told, setTold] = useState(null);
    const [error, setError] = useState(null);
    const [busy, setBusy] = useState(false);
    if (!has("/p/{}/debug"))
        return null;
    const act = async (method) => {
        setBusy(true);
        setError(null);
        try {
            const answer = await askJson(at(target, "debug"), method === "POST" ? { method, body: {} } : { method });
            setTold(method === "POST" ? answer : null);
        }
        catch (error) {
            setError(error);
        }
        setBusy(false);
    };
    return (h("section", { "aria-label": "Debugger" },
        h("h2", null, "Debugger"),
        h("p", { class: "quiet" }, "VS Code, or any other client of the Debug Adapter Protocol on the server's machine, connects to the process; it goes on until a breakpoint is met."),
        h("div", { class: "tools" },
            h("button", { type: "button", disabled: busy, onClick: () => void act(told ? "DELETE" : "POST") }, told ? "End it" : "Let a debugger connect"),
            told && h("span", { role: "status" },
                "It waits at ",
                plain(told.address, 80),
                ".")),
        h(Trouble, { error: error }),
        told && h("pre", { class: "how" }, JSON.stringify(told.launch, null, 2))));
}
