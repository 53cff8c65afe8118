// The ranks of a job in one tree of stacks: which one is elsewhere is seen at once.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { count, duration, plain } from "./format.js";
import { link, set, type Place as Address } from "./place.js";
import { frameName, framePlace, framesOf, mainThread, ownFrame, since } from "./looks.js";
import { ranges } from "./names.js";
import { state, STUCK, watched, type Watched } from "./watch.js";
import { merge, places, type Branch, type Place, type Walker } from "./rank_tree.js";
import { Empty, FrameLine, Switch } from "./parts.js";

const MAIN = "";

/** The ranks of the job that a process belongs to, by number. */
export function ranksOf(target: string): Watched[] {
  const job = watched(target)?.process.job ?? null;
  if (job === null) return [];
  return state.processes.filter((one) => one.process.job === job).sort((a, b) => a.process.rank! - b.process.rank!);
}

/** Of each rank its thread of that name; MAIN: the main one. */
function walkers(ranks: Watched[], name: string): Walker[] {
  return ranks.flatMap((one): Walker[] => {
    const stacks = one.stacks;
    if (!stacks) return [];
    const thread = name === MAIN ? mainThread(stacks, one.process.pid) : stacks.threads.find((thread) => thread.name === name);
    if (!thread) return [];
    return [{ rank: one.process.rank!, frames: framesOf(stacks, thread).reverse(), since: since.of(one.process.id, stacks, thread) }];
  });
}

function threadNames(ranks: Watched[]): string[] {
  const names = ranks.flatMap((one) => (one.stacks?.threads ?? []).filter((thread) => thread.id !== one.process.pid && thread.name).map((thread) => thread.name!));
  return [...new Set(names)].sort().slice(0, 60);
}

const who = (all: Walker[]): string => `${all.length === 1 ? "rank" : "ranks"} ${ranges(all.map((one) => one.rank))}`;

/** In which place who is: the odd ones first. */
function Summary({ all, total }: { all: Place[]; total: number }) {
  if (all.length === 1) return <p class="banner">All {total} ranks are at the same place.</p>;
  const stands = all.some((one) => one.since >= STUCK / 2); // ranks that all move part at any moment
  return (
    <ul class="findings" aria-label="Where the ranks are">
      {all.slice(0, 8).map((one) => {
        const inner = one.frames[0];
        const mine = ownFrame(one.frames);
        return (
          <li class={one.odd && stands ? "high" : "info"}>
            <span class="severity">{one.odd ? "apart" : count(one.walkers.length, "rank")}</span>
            <div>
              <b>{who(one.walkers)}</b> {inner && <>in {plain(frameName(inner), 60)}</>} <span class="since">{one.since < 1 ? "moving" : `unchanged for ${duration(one.since)}`}</span>
              {mine && (
                <div class="fplace">
                  {mine !== inner && `${plain(frameName(mine), 60)} `}
                  {plain(framePlace(mine), 160)}
                </div>
              )}
            </div>
          </li>
        );
      })}
      {all.length > 8 && <li class="info">and {all.length - 8} more places</li>}
    </ul>
  );
}

const FOLDED = 5; // a stretch of so many frames without a fork is shown by its last ones

function Frames({ branch }: { branch: Branch }) {
  const [all, setAll] = useState(false);
  const hidden = all || branch.frames.length <= FOLDED + 1 ? 0 : branch.frames.length - FOLDED;
  return (
    <ol class="frames">
      {hidden > 0 && (
        <li>
          <button type="button" class="bare quiet" onClick={() => setAll(true)}>
            {count(hidden, "frame")} outside
          </button>
        </li>
      )}
      {branch.frames.slice(hidden).map((frame, i) => {
        const lines = branch.lines[hidden + i]!;
        return (
          <li>
            <FrameLine frame={lines.length > 1 ? { ...frame, line: null } : frame} />
            {lines.length > 1 && <span class="fplace"> lines {lines.slice(0, 6).join(", ")}</span>}
          </li>
        );
      })}
    </ol>
  );
}

function Tree({ all, total, most }: { all: Branch[]; total: number; most: number }) {
  return (
    <ul class="ranktree">
      {all.map((one) => {
        const odd = one.walkers.length < most;
        const longest = Math.min(...one.walkers.map((walker) => walker.since));
        return (
          <li key={one.walkers.map((walker) => walker.rank).join() + frameName(one.frames[0]!)} class={odd ? "odd" : undefined}>
            <div class="who">
              <b>{one.walkers.length === total ? `all ${total} ranks` : who(one.walkers)}</b> {one.walkers.length < total && <span class="quiet">{one.walkers.length} of {total}</span>}{" "}
              {!one.below.length && <span class={longest >= STUCK ? "since bad" : "since"}>{longest < 1 ? "moving" : `unchanged for ${duration(longest)}`}</span>}
            </div>
            <Frames branch={one} />
            {one.below.length > 0 && <Tree all={one.below} total={total} most={Math.max(...one.below.map((below) => below.walkers.length))} />}
          </li>
        );
      })}
    </ul>
  );
}

export function RankStacks({ ranks, place }: { ranks: Watched[]; place: Address }) {
  const thread = place.params["thread"] ?? MAIN;
  const lines = place.params["lines"] === "1";
  const all = walkers(ranks, thread);
  const missing = ranks.filter((one) => !all.some((walker) => walker.rank === one.process.rank));
  const tree = merge(all, lines);
  return (
    <>
      <div class="tools">
        <label class="switch">
          Thread{" "}
          <select value={thread} onChange={(event: { currentTarget: HTMLSelectElement }) => set({ thread: event.currentTarget.value })}>
            <option value={MAIN}>the main one</option>
            {threadNames(ranks).map((name) => (
              <option value={name}>{plain(name, 50)}</option>
            ))}
          </select>
        </label>
        <Switch label="apart by line" on={lines} set={(on) => set({ lines: on ? "1" : "" })} hint="ranks in one function but at different lines part, too" />
        <span class="quiet">
          {all.length} of {count(ranks.length, "rank")} answered
        </span>
      </div>
      {missing.length > 0 && (
        <p class="trouble" role="alert">
          No stack of {missing.map((one) => `rank ${one.process.rank}`).join(", ")}: {plain(missing[0]!.trouble || "it was not looked at yet", 160)}
        </p>
      )}
      {all.length > 0 ? <Summary all={places(all, lines)} total={all.length} /> : <Empty>No rank has such a thread.</Empty>}
      <Tree all={tree} total={all.length} most={Math.max(0, ...tree.map((one) => one.walkers.length))} />
      <p class="quiet">
        Stacks of one rank:{" "}
        {ranks.map((one) => (
          <Fragment>
            <a href={link({ target: one.process.id, screen: "stacks" })}>{one.process.rank}</a>{" "}
          </Fragment>
        ))}
      </p>
    </>
  );
}
