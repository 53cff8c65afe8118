// The flame graph of an SVG that probing wrote: drawn anew from its data for zoom, search, one thread or process, and
// innermost first.  No library, no request; without scripts the drawing that the file holds stays.
(function () {
    "use strict";
    const svg = document.documentElement.localName === "svg" ? document.documentElement : document.querySelector("svg");
    const data = JSON.parse(document.getElementById("data").textContent);
    const stage = document.getElementById("stage");
    const bar = document.getElementById("status");
    const SVG = "http://www.w3.org/2000/svg", ROW = 17, TOP = 64, LETTER = 6.6, DEPTH_MAX = 4000;
    const BELOW = 40, MARGIN = 45, LETTERS_HIGH = 14, WIDTH_LEAST = 400;
    const controls = document.getElementById("controls");
    const state = { inverted: data.inverted, only: "", search: null, wrong: "", tree: null, width: 1200 };

    // Without recursion: stacks can be 100,000 deep, and a browser's own is not.
    // A tree of {label, self, total, children, parent, base} over the weights that the filter lets through.
    function build() {
        const root = { label: -1, total: 0, base: 0, children: new Map(), parent: null };
        function path(node) {
            const labels = [];
            for (; node !== 0; node = data.parents[node]) labels.push(data.of[node]);
            return labels;
        }
        for (let i = 0; i < data.weights.length; i += 3) {
            const thread = data.threads[data.weights[i]];
            if (state.only && state.only !== "t" + data.weights[i] && state.only !== "p" + thread.process) continue;
            const value = data.weights[i + 2], base = data.base ? data.base[i / 3] : 0;
            const labels = path(data.weights[i + 1]);
            if (!state.inverted) labels.reverse();
            let at = root;
            at.total += value; at.base += base;
            for (const label of labels) {
                let child = at.children.get(label);
                if (!child) {
                    child = { label: label, total: 0, base: 0, children: new Map(), parent: at };
                    at.children.set(label, child);
                }
                child.total += value; child.base += base;
                at = child;
            }
        }
        return root;
    }

    function name(node) { return node.label < 0 ? "all" : data.labels[node.label]; }

    function hash(text) {
        let h = 2166136261;
        for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
        return h;
    }

    // Warm colours for Python, cold ones for native code; of a difference red for more and blue for less.
    function colour(node) {
        const text = name(node);
        if (data.base) {
            const whole = state.tree.total || 1, before = state.tree.base || 1;
            const change = node.total / whole - node.base / before;
            const light = 255 - Math.round(135 * Math.min(1, Math.abs(change) * 8 + (change ? 0.08 : 0)));
            return change > 0 ? `rgb(255,${light},${light})` : change < 0 ? `rgb(${light},${light},255)` : "rgb(240,240,240)";
        }
        const h = hash(text.replace(/:\d+\)$/, ")"));
        const hue = /\.py[:)]|\(</.test(text) ? 8 + h % 45 : 185 + h % 55;
        return `hsl(${hue},${65 + (h >> 8) % 25}%,${62 + (h >> 16) % 12}%)`;
    }

    function share(value, whole) { return whole ? (100 * value / whole).toFixed(2) + " %" : "0 %"; }
    function amount(value) {
        if (data.unit === "bytes")
            return value < 1048576 ? (value / 1024).toFixed(1) + " KiB" : (value / 1048576).toFixed(1) + " MiB";
        return data.unit === "nanoseconds" ? (value / 1e9).toFixed(3) + " s" : value + " samples";
    }

    function describe(node) {
        let text = `${name(node)}: ${amount(node.total)}, ${share(node.total, state.tree.total)}`;
        if (data.base) text += `; before ${share(node.base, state.tree.base)}`;
        return text;
    }

    function add(parent, kind, attributes) {
        const made = document.createElementNS(SVG, kind);
        for (const key in attributes) made.setAttribute(key, attributes[key]);
        parent.appendChild(made);
        return made;
    }

    function rectangle(node, x, width, depth, faded) {
        const group = add(stage, "g", { class: faded ? "frame faded" : "frame" });
        const label = name(node);
        const found = state.search && state.search.test(label);
        add(group, "title", {}).textContent = describe(node);
        add(group, "rect", {
            x: x.toFixed(2), y: TOP + depth * ROW, width: Math.max(width - 0.4, 0.3).toFixed(2), height: ROW - 1, rx: 1,
            fill: found ? "rgb(220,60,220)" : colour(node)
        });
        const fits = Math.floor((width - 4) / LETTER);
        if (fits > 2)
            add(group, "text", { x: (x + 3).toFixed(2), y: TOP + depth * ROW + 12 }).textContent =
                label.length > fits ? label.slice(0, fits - 1) + "…" : label;
        group.addEventListener("click", function () { zoom(node); });
        return depth;
    }

    // The window's width: one unit of the drawing is a pixel.
    function room() {
        return Math.max(WIDTH_LEAST, Math.floor(svg.getBoundingClientRect().width || window.innerWidth));
    }

    function draw() {
        state.width = room();
        put();
        if (room() !== state.width) { // a scroll bar came or went
            state.width = room();
            put();
        }
    }

    function put() {
        const WIDTH = state.width;
        while (stage.firstChild) stage.removeChild(stage.firstChild);
        const focus = state.focus || state.tree;
        let deepest = 0, above = [];
        for (let at = focus.parent; at; at = at.parent) above.unshift(at);
        above.forEach(function (node, depth) { rectangle(node, 0, WIDTH, depth, true); });
        const todo = [{ node: focus, x: 0, width: WIDTH, depth: above.length }];
        while (todo.length) {
            const one = todo.pop();
            deepest = Math.max(deepest, rectangle(one.node, one.x, one.width, one.depth, false));
            const children = Array.from(one.node.children.values());
            children.sort(function (a, b) { return name(a) < name(b) ? -1 : 1; });
            let at = one.x;
            for (const child of children) {
                const part = one.node.total ? one.width * child.total / one.node.total : 0;
                if (part >= 0.3 && one.depth < above.length + DEPTH_MAX)
                    todo.push({ node: child, x: at, width: part, depth: one.depth + 1 });
                at += part;
            }
        }
        const height = TOP + (deepest + 1) * ROW + BELOW;
        svg.setAttribute("height", height);
        svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
        bar.setAttribute("y", height - BELOW + LETTERS_HIGH);
        if (controls) controls.setAttribute("width", WIDTH - 12);
        tell();
    }

    function tell() {
        if (state.wrong) { status(`not a regular expression: ${state.wrong}`); return; }
        if (!state.search) { status(data.counts); return; }
        let found = 0;
        for (const todo = [state.tree]; todo.length;) {
            const node = todo.pop();
            if (state.search.test(name(node))) found += node.total;
            else node.children.forEach(function (child) { todo.push(child); });
        }
        status(`found: ${amount(found)}, ${share(found, state.tree.total)}`);
    }

    /* In two lines when one is too short. */
    function status(text) {
        const letters = Math.floor((state.width - MARGIN) / LETTER);
        const parts = text.length > letters && text.slice(0, letters).match(/^.*[;,] /);
        bar.textContent = parts ? parts[0] : text;
        if (parts)
            add(bar, "tspan", { x: 8, dy: LETTERS_HIGH }).textContent = text.slice(parts[0].length);
    }

    function zoom(node) { state.focus = node; draw(); }
    function rebuild() { state.tree = build(); state.focus = null; draw(); }

    function search(text) {
        state.search = null;
        state.wrong = "";
        try {
            if (text) state.search = new RegExp(text, "i");
        } catch (error) {
            state.wrong = error.message.replace(/^Invalid regular expression: /, "");
        }
        if (box) box.style.outline = state.wrong ? "2px solid #c00" : "";
        draw();
    }

    const only = document.getElementById("only"), box = document.getElementById("search");
    const inverted = document.getElementById("inverted");
    if (only) {
        const HTML = "http://www.w3.org/1999/xhtml";
        const option = function (value, text) {
            const made = document.createElementNS(HTML, "option");
            made.setAttribute("value", value);
            made.textContent = text;
            only.appendChild(made);
        };
        option("", "all threads");
        data.processes.forEach(function (text, i) { if (data.processes.length > 1) option("p" + i, text); });
        data.threads.forEach(function (thread, i) { if (thread.used) option("t" + i, thread.name); });
        only.addEventListener("change", function () { state.only = only.value; rebuild(); });
        box.addEventListener("input", function () { search(box.value); });
        inverted.checked = state.inverted;
        inverted.addEventListener("change", function () { state.inverted = inverted.checked; rebuild(); });
    }
    window.addEventListener("resize", function () { if (room() !== state.width) draw(); });
    document.addEventListener("keydown", function (event) {
        if (event.key === "Escape") { if (box) box.value = ""; search(""); zoom(state.tree); }
        if (event.key === "/" && box && document.activeElement !== box) { event.preventDefault(); box.focus(); }
    });
    rebuild();
})();
