// The ranks of a job in one tree of stacks: which one is elsewhere is seen at once.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { count, duration, plain } from "./format.js";
import { link, set, type Place as Address } from "./place.js";
import { frameName, framePlace, framesOf, mainThread, ownFrame, since } from "./looks.js";
import { ranges } from "./names.js";
import { state, STUCK, watched, type Watched } from "./watch.js";
import { merge, places, standing, type Branch, type Place, type Walker } from "./rank_tree.js";
import { Empty, FrameLine, Switch } from "./parts.js";

export const MAIN = "";

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

const still = (since: number | null): string => (since === null ? "" : since < 1 ? "moving" : `unchanged for ${duration(since)}`);

/** In which place who is: the odd ones first. */
function Summary({ all, total }: { all: Place[]; total: number }) {
  if (all.length === 1) return <p class="banner">All {total} ranks are at the same place.</p>;
  const stands = all.some((one) => one.since === null || one.since >= STUCK / 2); // ranks that all move part at any moment
  return (
    <ul class="findings" aria-label="Where the ranks are">
      {all.slice(0, 8).map((one) => {
        const inner = one.frames[0];
        const mine = ownFrame(one.frames);
        return (
          <li class={one.odd && stands ? "high" : "info"}>
            <span class="severity">{one.odd ? "apart" : count(one.walkers.length, "rank")}</span>
            <div>
              <b>{who(one.walkers)}</b> {inner && <>in {plain(frameName(inner), 60)}</>} <span class="since">{still(one.since)}</span>
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
        const since = standing(one.walkers);
        return (
          <li key={one.walkers.map((walker) => walker.rank).join() + frameName(one.frames[0]!)} class={odd ? "odd" : undefined}>
            <div class="who">
              <b>{one.walkers.length === total ? `all ${total} ranks` : who(one.walkers)}</b> {one.walkers.length < total && <span class="quiet">{one.walkers.length} of {total}</span>}{" "}
              {!one.below.length && <span class={since !== null && since >= STUCK ? "since bad" : "since"}>{still(since)}</span>}
            </div>
            <Frames branch={one} />
            {one.below.length > 0 && <Tree all={one.below} total={total} most={Math.max(...one.below.map((below) => below.walkers.length))} />}
          </li>
        );
      })}
    </ul>
  );
}

interface RankedStacks {
  walkers: Walker[]; // of the thread that was chosen
  expected: number;
  missing: number[];
  why: string; // they are
  names: string[]; // of threads other than the main one
  place: Address;
}

export function RankTree({ walkers, expected, missing, why, names, place }: RankedStacks) {
  const lines = place.params["lines"] === "1";
  const tree = merge(walkers, lines);
  const total = new Set(walkers.map((one) => one.rank)).size;
  return (
    <>
      <div class="tools">
        <label class="switch">
          Thread{" "}
          <select value={place.params["thread"] ?? MAIN} onChange={(event: { currentTarget: HTMLSelectElement }) => set({ thread: event.currentTarget.value })}>
            <option value={MAIN}>the main one</option>
            {names.map((name) => (
              <option value={name}>{plain(name, 50)}</option>
            ))}
          </select>
        </label>
        <Switch label="apart by line" on={lines} set={(on) => set({ lines: on ? "1" : "" })} hint="ranks in one function but at different lines part, too" />
        <span class="quiet">
          {total} of {count(expected, "rank")} answered
        </span>
      </div>
      {missing.length > 0 && (
        <p class="trouble" role="alert">
          No stack of {missing.length === 1 ? "rank" : "ranks"} {ranges(missing)}: {plain(why, 160)}
        </p>
      )}
      {walkers.length > 0 ? <Summary all={places(walkers, lines)} total={total} /> : <Empty>No rank has such a thread.</Empty>}
      <Tree all={tree} total={walkers.length} most={Math.max(0, ...tree.map((one) => one.walkers.length))} />
    </>
  );
}

export function RankStacks({ ranks, place }: { ranks: Watched[]; place: Address }) {
  const all = walkers(ranks, place.params["thread"] ?? MAIN);
  const missing = ranks.filter((one) => !all.some((walker) => walker.rank === one.process.rank));
  const why = missing[0]?.trouble || "it was not looked at yet";
  return (
    <>
      <RankTree walkers={all} expected={ranks.length} missing={missing.map((one) => one.process.rank!)} why={why} names={threadNames(ranks)} place={place} />
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
