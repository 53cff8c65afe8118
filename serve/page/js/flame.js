function grown(old, size) {
    if (size <= old.length)
        return old;
    const made = new old.constructor(Math.max(1024, size * 2));
    made.set(old);
    return made;
}
export class Flame {
    frames = [];
    threads = [];
    count = 1;
    deepest = 0;
    parent = new Int32Array(1024);
    frame = new Int32Array(1024);
    depth = new Int32Array(1024);
    self = new Float64Array(1024);
    total = new Float64Array(1024);
    x = new Float64Array(1024);
    only = -1;
    weights = [];
    cursor = new Float64Array(1024);
    order = null;
    constructor() {
        this.parent[0] = -1;
        this.frame[0] = -1;
    }
    addNode(parent, frame) {
        const at = this.count++;
        this.parent = grown(this.parent, this.count);
        this.frame = grown(this.frame, this.count);
        this.depth = grown(this.depth, this.count);
        this.self = grown(this.self, this.count);
        this.total = grown(this.total, this.count);
        this.x = grown(this.x, this.count);
        this.cursor = grown(this.cursor, this.count);
        this.parent[at] = parent;
        this.frame[at] = frame;
        this.depth[at] = this.depth[parent] + 1;
        this.deepest = Math.max(this.deepest, this.depth[at]);
        this.order = null;
        return at;
    }
    setWeight(thread, node, weight) {
        const mine = (this.weights[thread] ??= new Map());
        if (this.only < 0 || this.only === thread)
            this.self[node] += weight - (mine.get(node) ?? 0);
        mine.set(node, weight);
    }
    weightOf(thread, node) {
        return this.weights[thread]?.get(node) ?? 0;
    }
    show(thread) {
        this.only = thread;
        this.self.fill(0);
        this.weights.forEach((mine, at) => {
            if (thread < 0 || at === thread)
                for (const [node, weight] of mine)
                    this.self[node] += weight;
        });
    }
    sort() {
        this.sum();
        const order = Int32Array.from({ length: this.count }, (_, i) => i);
        this.order = order.sort((a, b) => this.depth[a] - this.depth[b] || this.total[b] - this.total[a] || a - b);
    }
    unsort() {
        this.order = null;
    }
    sum() {
        const { total, self, parent, count } = this;
        total.set(self.subarray(0, count));
        for (let i = count - 1; i > 0; i--)
            total[parent[i]] += total[i];
    }
    layOut() {
        this.sum();
        const { total, parent, x, cursor, count, order } = this;
        x[0] = 0;
        cursor[0] = 0;
        for (let k = 1; k < count; k++) {
            const i = order ? order[k] : k;
            const above = parent[i];
            x[i] = cursor[above];
            cursor[i] = x[i];
            cursor[above] += total[i];
        }
    }
    name(node) {
        return node ? (this.frames[this.frame[node]]?.name ?? "?") : "all";
    }
    functionOf(node) {
        const frame = this.frames[this.frame[node]];
        return frame ? `${frame.name ?? "?"}\n${frame.file ?? ""}` : "";
    }
}
function ofPaths(source, paths) {
    const flame = new Flame();
    const byFunction = new Map();
    const children = new Map();
    const frameFor = (frame) => {
        const one = source.frames[frame];
        const key = `${one.name}\n${one.file}`;
        const known = byFunction.get(key);
        if (known !== undefined)
            return known;
        byFunction.set(key, flame.frames.length);
        return flame.frames.push(one) - 1;
    };
    paths((path, weight) => {
        let node = 0;
        for (const frame of path) {
            const mine = frameFor(frame);
            const key = `${node} ${mine}`;
            let next = children.get(key);
            if (next === undefined) {
                next = flame.addNode(node, mine);
                children.set(key, next);
            }
            node = next;
        }
        flame.setWeight(0, node, flame.weightOf(0, node) + weight);
    });
    return flame;
}
function pathUp(source, node) {
    const path = [];
    for (let at = node; at > 0; at = source.parent[at])
        path.push(source.frame[at]);
    return path;
}
export function inverted(source) {
    return ofPaths(source, (add) => {
        for (let i = 1; i < source.count; i++)
            if (source.self[i] > 0)
                add(pathUp(source, i), source.self[i]);
    });
}
export function functions(flame) {
    const rows = new Map();
    const { count, self, total, parent } = flame;
    const keys = [""];
    for (let i = 1; i < count; i++) {
        const key = flame.functionOf(i);
        keys.push(key);
        if (!total[i])
            continue;
        const frame = flame.frames[flame.frame[i]];
        const row = rows.get(key) ?? { key, name: frame?.name ?? "?", place: frame?.file ?? "", own: 0, total: 0 };
        rows.set(key, row);
        row.own += self[i];
        let outermost = true;
        for (let at = parent[i]; at > 0 && outermost; at = parent[at])
            outermost = keys[at] !== key;
        if (outermost)
            row.total += total[i];
    }
    return [...rows.values()].sort((a, b) => b.own - a.own || b.total - a.total);
}
export function around(flame, key) {
    const callers = new Map();
    const callees = new Map();
    const add = (rows, node, weight) => {
        const frame = flame.frames[flame.frame[node]];
        const of = flame.functionOf(node);
        const row = rows.get(of) ?? { key: of, name: frame?.name ?? "all", place: frame?.file ?? "", own: 0, total: 0 };
        row.total += weight;
        rows.set(of, row);
    };
    for (let i = 1; i < flame.count; i++) {
        if (!flame.total[i])
            continue;
        if (flame.functionOf(i) === key)
            add(callers, flame.parent[i], flame.total[i]);
        if (flame.parent[i] > 0 && flame.functionOf(flame.parent[i]) === key)
            add(callees, i, flame.total[i]);
    }
    const sorted = (rows) => [...rows.values()].sort((a, b) => b.total - a.total).slice(0, 12);
    return { callers: sorted(callers), callees: sorted(callees) };
}
