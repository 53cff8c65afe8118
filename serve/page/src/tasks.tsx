// Tasks: the asyncio tasks of the target, each below the one that waits for it; a cycle is told.
import { h, Fragment } from "./preact.js";
import { askJson, at } from "./net.js";
import { set } from "./place.js";
import { count, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, FrameLine, Loading, OpenSource, Trouble } from "./parts.js";
import type { Frame } from "./looks.js";
import type { ScreenProps } from "./main.js";

interface Link {
  id: number;
}

interface Task {
  id: number;
  name: string | null;
  coroutine: string | null;
  state: string;
  waits_for: string | null;
  awaited_by: (number | Link)[];
  awaits: (number | Link)[];
  frames: Frame[];
}

const idOf = (one: number | Link): number => (typeof one === "number" ? one : one.id);

interface Node {
  task: Task;
  below: Node[];
  cycle: boolean; // it waits, in the end, for itself
}

/** Each task below who awaits it; one that is below itself ends there. */
function trees(tasks: Task[]): Node[] {
  const byId = new Map(tasks.map((one) => [one.id, one]));
  const seen = new Set<number>();
  const make = (task: Task, above: Set<number>): Node => {
    seen.add(task.id);
    const inside = new Set([...above, task.id]);
    const below = task.awaits.map((one) => byId.get(idOf(one))).filter((one) => one !== undefined);
    return { task, cycle: above.has(task.id), below: above.has(task.id) ? [] : below.map((one) => make(one, inside)) };
  };
  const roots = tasks.filter((one) => !one.awaited_by.some((link) => byId.has(idOf(link)))).map((one) => make(one, new Set()));
  const rest: Node[] = [];
  for (const one of tasks) if (!seen.has(one.id)) rest.push(make(one, new Set()));
  return [...roots, ...rest];
}

const words = (task: Task): string => `${task.name ?? ""} ${task.coroutine ?? ""} ${task.frames.map((one) => one.name).join(" ")}`.toLowerCase();

const holds = (node: Node, q: string): boolean => words(node.task).includes(q) || node.below.some((one) => holds(one, q));

function Branch({ node, target, q }: { node: Node; target: string; q: string }) {
  const { task } = node;
  if (q && !holds(node, q)) return null;
  return (
    <li>
      <details class="bare">
        <summary>
          <b>{plain(task.name ?? "task", 60)}</b> <span class="fname">{plain(task.coroutine ?? "", 80)}</span> <span class="chip">{plain(task.state, 30)}</span>
          {task.waits_for && <span class="quiet"> waits for {plain(task.waits_for, 120)}</span>}
          {node.cycle && <span class="chip bad">waits for itself</span>}
        </summary>
        <ol class="frames">
          {task.frames.map((frame) => (
            <li>
              <FrameLine frame={frame} /> <OpenSource target={target} frame={frame} />
            </li>
          ))}
        </ol>
      </details>
      {node.below.length > 0 && (
        <ul>
          {node.below.map((one) => (
            <Branch key={one.task.id} node={one} target={target} q={q} />
          ))}
        </ul>
      )}
    </li>
  );
}

export function TasksScreen({ target, place }: ScreenProps) {
  const tasks = usePolled(target, 1, (signal) => askJson<Task[]>(at(target, "tasks"), { signal }));
  const q = place.params["q"] ?? "";
  return (
    <>
      <h1>Tasks</h1>
      <div class="tools">
        <Filter label="Task, coroutine or frame" value={q} set={(q) => set({ q })} />
        {tasks.value && <span class="quiet">{count(tasks.value.length, "task")}</span>}
      </div>
      <Trouble error={tasks.error} />
      {!tasks.value && !tasks.error && <Loading />}
      {tasks.value?.length === 0 && <Empty>No asyncio task is alive in this process.</Empty>}
      {tasks.value && (
        <ul class="tree">
          {trees(tasks.value).map((one) => (
            <Branch key={one.task.id} node={one} target={target} q={q.toLowerCase()} />
          ))}
        </ul>
      )}
    </>
  );
}
