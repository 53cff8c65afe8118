// Stacks: threads with equal stacks in one group, each with since when; two moments compared; the last ten minutes.
import { h, Fragment } from "./preact.js";
import { useMemo, useRef, useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { set } from "./place.js";
import { count, duration, plain } from "./format.js";
import { frameName, framePlace, framesOf, groups, metAgain, sameStack, since, threadState, type Group, type Stacks, type Thread } from "./looks.js";
import { note, STUCK, watched } from "./watch.js";
import { usePolled, useWatch } from "./polled.js";
import { hasLive, useLive } from "./live.js";
import { Empty, Filter, Loading, Switch, Trouble } from "./parts.js";
import { fits, FrameList } from "./frames.js";
import { RankStacks, ranksOf } from "./ranks.js";
import { compare, Difference, Moments, type Look } from "./moments.js";
import { useLocals, type ThreadLocals } from "./locals.js";
import type { ScreenProps } from "./main.js";

const KEPT = 600;

// ---- groups and threads ----

function ThreadWords({ target, stacks, thread }: { target: string; stacks: Stacks; thread: Thread }) {
  const seconds = since.of(target, stacks, thread);
  return (
    <>
      <b>{plain(thread.name ?? "thread", 60)}</b> <span class="quiet">{thread.id}</span> <span class={thread.gil === "holding" ? "chip good" : "chip"}>{threadState(thread)}</span>
      {thread.unstable && <span class="chip">unstable</span>}
      <span class={"since" + (seconds >= STUCK ? " bad" : "")}>{seconds < 1 ? "moving" : `unchanged for ${duration(seconds)}`}</span>
    </>
  );
}

interface Shown {
  target: string;
  id: string; // of the process, as looks know it
  pid: number;
  stacks: Stacks;
  q: string;
  locals: Map<number, ThreadLocals> | null;
}

function GroupBox({ shown, group, open }: { shown: Shown; group: Group; open: boolean }) {
  const { stacks, target, id } = shown;
  const first = group.threads[0]!;
  const frames = framesOf(stacks, first);
  const longest = Math.min(...group.threads.map((one) => since.of(id, stacks, one)));
  return (
    <details class={"group" + (longest >= STUCK && group.first ? " standing" : "")} open={open}>
      <summary>
        {group.threads.length === 1 ? (
          <ThreadWords target={id} stacks={stacks} thread={first} />
        ) : (
          <>
            <b>{count(group.threads.length, "thread")}</b>{" "}
            <span class="quiet names">
              {plain(
                group.threads
                  .slice(0, 4)
                  .map((one) => one.name ?? one.id)
                  .join(", "),
                90,
              )}
              {group.threads.length > 4 && " …"}
            </span>
            <span class="chip">{threadState(first)}</span>
            <span class="since">{longest < 1 ? "moving" : `all unchanged for ${duration(longest)}`}</span>
          </>
        )}
        <span class="top">{frames[0] ? plain(frameName(frames[0]), 60) : "no frame"}</span>
      </summary>
      {!frames.length && <p class="quiet">This thread runs no Python now.</p>}
      <FrameList frames={frames} target={target} q={shown.q} locals={shown.locals?.get(first.id) ?? null} />
    </details>
  );
}

function ThreadBox({ shown, thread, open }: { shown: Shown; thread: Thread; open: boolean }) {
  return <GroupBox shown={shown} open={open} group={{ stack: thread.stack, threads: [thread], first: thread.id === shown.pid }} />;
}

function matches(stacks: Stacks, threads: Thread[], q: string): boolean {
  const named = threads.some((one) => `${one.name ?? ""} ${one.id}`.toLowerCase().includes(q));
  return !q || named || framesOf(stacks, threads[0]!).some((one) => fits(one, q));
}

function List({ shown, merged }: { shown: Shown; merged: boolean }) {
  const { stacks, q, pid } = shown;
  const all = groups(stacks, pid).filter((one) => matches(stacks, one.threads, q));
  const threads = stacks.threads.filter((one) => matches(stacks, [one], q));
  if (!(merged ? all : threads).length) return <Empty>No thread fits “{plain(q)}”.</Empty>;
  return merged ? (
    <>{all.map((one, i) => <GroupBox key={sameStack(stacks, one.stack)} shown={shown} group={one} open={i < 3 || q !== ""} />)}</>
  ) : (
    <>{threads.map((one, i) => <ThreadBox key={one.id} shown={shown} thread={one} open={i < 3 || q !== ""} />)}</>
  );
}

function asText(stacks: Stacks, pid: number): string {
  return groups(stacks, pid)
    .map((group) => {
      const who = group.threads.map((one) => `${one.name ?? "thread"} ${one.id} (${threadState(one)})`).join(", ");
      return [who, ...framesOf(stacks, group.threads[0]!).map((one) => `    ${frameName(one)} ${framePlace(one)}`)].map((one) => plain(one, 2000)).join("\n");
    })
    .join("\n\n");
}

// ---- the looks of this screen ----

function useLooks(target: string, native: boolean): { looks: Look[]; error: Error | null; millis: number } {
  const looks = useRef<{ key: string; all: Look[] }>({ key: "", all: [] });
  const [, again] = useState(0);
  const key = `${target} ${native}`;
  if (looks.current.key !== key) looks.current = { key, all: [] };
  const live = hasLive();
  const take = (stacks: Stacks): void => {
    note(target, stacks);
    const all = looks.current.all;
    all.push({ time: stacks.time, stacks });
    if (all.length > KEPT) all.shift();
    again((n) => n + 1);
  };
  const still = (time: number): void => {
    const last = looks.current.all.at(-1);
    if (last) take(metAgain(last.stacks, time));
  };
  const failed = useLive(live ? { topic: "stacks", target, every: 1, ...(native ? { native: true } : {}) } : null, (value) => take(value as Stacks), still);
  const polled = usePolled(live ? "" : key, 1, async (signal) => {
    const stacks = await askJson<Stacks>(at(target, "stacks", native ? { native: "1" } : {}), { signal });
    take(stacks);
    return stacks;
  });
  return { looks: looks.current.all, error: failed ?? polled.error, millis: polled.millis };
}

function ProcessStacks({ target, place }: ScreenProps) {
  useWatch();
  const native = place.params["native"] === "1";
  const merged = place.params["threads"] !== "1";
  const wantsLocals = place.params["locals"] === "1";
  const q = (place.params["q"] ?? "").toLowerCase();
  const { looks, error } = useLooks(target, native);
  const locals = useLocals(wantsLocals ? target : "", native);
  const [then, setThen] = useState<Look | null>(null);
  const [marks, setMarks] = useState<{ a: Look | null; b: Look | null }>({ a: null, b: null });
  const look = then ?? looks.at(-1) ?? null;
  const one = watched(target);
  const difference = useMemo(() => (marks.a && marks.b ? compare(marks.a.stacks, marks.b.stacks) : null), [marks]);
  const shown = look && { target, id: one?.process.id ?? target, pid: one?.process.pid ?? look.stacks.threads[0]?.id ?? 0, stacks: look.stacks, q, locals: then ? null : locals.value };
  return (
    <>
      <div class="tools">
        <Filter label="Thread or frame" value={place.params["q"] ?? ""} set={(q) => set({ q })} />
        <Switch label="each thread" on={!merged} set={(on) => set({ threads: on ? "1" : "" })} hint="instead of groups of equal stacks" />
        <Switch label="native" on={native} set={(on) => set({ native: on ? "1" : "" })} hint="C and C++ frames, too; stops single threads for about 0.1 ms" />
        <Switch label="variables" on={wantsLocals} set={(on) => set({ locals: on ? "1" : "" })} />
        <button type="button" disabled={!look} onClick={() => look && void navigator.clipboard.writeText(asText(look.stacks, shown?.pid ?? 0))}>
          Copy as text
        </button>
      </div>
      <Moments target={has("/p/{}/history") ? target : ""} looks={looks} then={then} setThen={setThen} marks={marks} setMarks={setMarks} now={looks.at(-1) ?? null} />
      <Trouble error={error ?? locals.error} />
      {look?.stacks.warning && <p class="banner">{plain(look.stacks.warning)}</p>}
      {difference && <Difference changes={difference} />}
      {!shown && !error && <Loading />}
      {shown && !difference && <List shown={shown} merged={merged} />}
    </>
  );
}

/** Of one process, or, of a job, of all its ranks here. */
export function StacksScreen({ target, place }: ScreenProps) {
  useWatch();
  const ranks = ranksOf(target);
  const all = place.params["ranks"] === "1" && ranks.length > 0;
  return (
    <>
      <h1>Stacks</h1>
      {ranks.length > 1 && (
        <div class="tools">
          <Switch label={`all ${ranks.length} ranks in one tree`} on={all} set={(on) => set({ ranks: on ? "1" : "" })} hint="main threads whose stacks begin alike share their branches" />
        </div>
      )}
      {all ? <RankStacks ranks={ranks} place={place} /> : <ProcessStacks target={target} place={place} />}
    </>
  );
}
