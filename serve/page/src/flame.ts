// A tree of weighted stacks in flat arrays.  It only grows: nodes keep their index, and a parent stands before its children,
// so that one pass backwards sums weights and one pass forwards lays the tree out.

export interface FlameFrame {
  name: string | null;
  file: string | null;
  line: number | null;
  kind: string;
}

function grown<T extends Int32Array | Float64Array>(old: T, size: number): T {
  if (size <= old.length) return old;
  const made = new (old.constructor as new (size: number) => T)(Math.max(1024, size * 2));
  made.set(old as never);
  return made;
}

export class Flame {
  frames: FlameFrame[] = [];
  threads: { id: number; name: string | null; rank?: number | null }[] = [];
  count = 1;
  deepest = 0;
  parent = new Int32Array(1024);
  frame = new Int32Array(1024);
  depth = new Int32Array(1024);
  self = new Float64Array(1024); // of the threads that are shown
  total = new Float64Array(1024);
  x = new Float64Array(1024);
  only = -1; // a thread's index; -1: all
  private readonly weights: Map<number, number>[] = []; // by thread, then node
  private cursor = new Float64Array(1024);
  private order: Int32Array | null = null; // by depth and weight; null: as they came

  constructor() {
    this.parent[0] = -1;
    this.frame[0] = -1;
  }

  addNode(parent: number, frame: number): number {
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
    this.depth[at] = this.depth[parent]! + 1;
    this.deepest = Math.max(this.deepest, this.depth[at]!);
    this.order = null;
    return at;
  }

  /** The weight of the stacks that end in a node, as it is now, not what came to it. */
  setWeight(thread: number, node: number, weight: number): void {
    const mine = (this.weights[thread] ??= new Map());
    if (this.only < 0 || this.only === thread) this.self[node]! += weight - (mine.get(node) ?? 0);
    mine.set(node, weight);
  }

  weightOf(thread: number, node: number): number {
    return this.weights[thread]?.get(node) ?? 0;
  }

  show(thread: number): void {
    this.only = thread;
    this.self.fill(0);
    this.weights.forEach((mine, at) => {
      if (thread < 0 || at === thread) for (const [node, weight] of mine) this.self[node]! += weight;
    });
  }

  /** Siblings by weight instead of by first appearance, until a node comes. */
  sort(): void {
    this.sum();
    const order = Int32Array.from({ length: this.count }, (_, i) => i);
    this.order = order.sort((a, b) => this.depth[a]! - this.depth[b]! || this.total[b]! - this.total[a]! || a - b);
  }

  unsort(): void {
    this.order = null;
  }

  private sum(): void {
    const { total, self, parent, count } = this;
    total.set(self.subarray(0, count));
    for (let i = count - 1; i > 0; i--) total[parent[i]!]! += total[i]!;
  }

  /** Totals and places, in samples. */
  layOut(): void {
    this.sum();
    const { total, parent, x, cursor, count, order } = this;
    x[0] = 0;
    cursor[0] = 0;
    for (let k = 1; k < count; k++) {
      const i = order ? order[k]! : k;
      const above = parent[i]!;
      x[i] = cursor[above]!;
      cursor[i] = x[i]!;
      cursor[above]! += total[i]!;
    }
  }

  name(node: number): string {
    return node ? (this.frames[this.frame[node]!]?.name ?? "?") : "all";
  }

  /** What a stack is called: to merge by function. */
  functionOf(node: number): string {
    const frame = this.frames[this.frame[node]!];
    return frame ? `${frame.name ?? "?"}\n${frame.file ?? ""}` : "";
  }
}

/** A tree of paths, each a list of frame indices with a weight: of what is shown another way round. */
function ofPaths(source: Flame, paths: (add: (path: number[], weight: number) => void) => void): Flame {
  const flame = new Flame();
  const byFunction = new Map<string, number>();
  const children = new Map<string, number>();
  const frameFor = (frame: number): number => {
    const one = source.frames[frame]!;
    const key = `${one.name}\n${one.file}`;
    const known = byFunction.get(key);
    if (known !== undefined) return known;
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

function pathUp(source: Flame, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at > 0; at = source.parent[at]!) path.push(source.frame[at]!);
  return path;
}

/** Innermost first: who calls what is hot. */
export function inverted(source: Flame): Flame {
  return ofPaths(source, (add) => {
    for (let i = 1; i < source.count; i++) if (source.self[i]! > 0) add(pathUp(source, i), source.self[i]!);
  });
}

export interface Row {
  key: string;
  name: string;
  place: string;
  own: number;
  total: number;
}

/** By function: own weight, and with what it calls; a recursive one counts once. */
export function functions(flame: Flame): Row[] {
  const rows = new Map<string, Row>();
  const { count, self, total, parent } = flame;
  const keys: string[] = [""];
  for (let i = 1; i < count; i++) {
    const key = flame.functionOf(i);
    keys.push(key);
    if (!total[i]) continue;
    const frame = flame.frames[flame.frame[i]!];
    const row = rows.get(key) ?? { key, name: frame?.name ?? "?", place: frame?.file ?? "", own: 0, total: 0 };
    rows.set(key, row);
    row.own += self[i]!;
    let outermost = true;
    for (let at = parent[i]!; at > 0 && outermost; at = parent[at]!) outermost = keys[at] !== key;
    if (outermost) row.total += total[i]!;
  }
  return [...rows.values()].sort((a, b) => b.own - a.own || b.total - a.total);
}

/** Who calls a function, and what it calls, by weight. */
export function around(flame: Flame, key: string): { callers: Row[]; callees: Row[] } {
  const callers = new Map<string, Row>();
  const callees = new Map<string, Row>();
  const add = (rows: Map<string, Row>, node: number, weight: number): void => {
    const frame = flame.frames[flame.frame[node]!];
    const of = flame.functionOf(node);
    const row = rows.get(of) ?? { key: of, name: frame?.name ?? "all", place: frame?.file ?? "", own: 0, total: 0 };
    row.total += weight;
    rows.set(of, row);
  };
  for (let i = 1; i < flame.count; i++) {
    if (!flame.total[i]) continue;
    if (flame.functionOf(i) === key) add(callers, flame.parent[i]!, flame.total[i]!);
    if (flame.parent[i]! > 0 && flame.functionOf(flame.parent[i]!) === key) add(callees, i, flame.total[i]!);
  }
  const sorted = (rows: Map<string, Row>): Row[] => [...rows.values()].sort((a, b) => b.total - a.total).slice(0, 12);
  return { callers: sorted(callers), callees: sorted(callees) };
}
