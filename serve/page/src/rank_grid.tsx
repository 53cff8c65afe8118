// A cell for each rank on this machine: which one is elsewhere, behind, or stands.
import { h, Fragment } from "./preact.js";
import { plain } from "./format.js";
import { link } from "./place.js";
import { frameName, sameStack } from "./looks.js";
import { isStuck, state, type Watched } from "./watch.js";
import { chain } from "./sayings.js";

/** Ranks with the same stack have the same colour, as they come. */
function colours(ranks: Watched[]): Map<Watched, number> {
  const known = new Map<string, number>();
  return new Map(
    ranks.map((one) => {
      const thread = one.stacks?.threads.find((thread) => thread.id === one.process.pid);
      const key = one.stacks && thread ? one.main.map((frame) => frameName(frame)).join() || sameStack(one.stacks, thread.stack) : "";
      if (!known.has(key)) known.set(key, known.size % 8);
      return [one, known.get(key)!] as const;
    }),
  );
}

export function Ranks() {
  const ranks = state.processes.filter((one) => one.process.job !== null).sort((a, b) => a.process.job! - b.process.job! || a.process.rank! - b.process.rank!);
  const ahead = Math.max(...ranks.map((one) => one.process.step ?? -1));
  if (ranks.length < 2) return null;
  const colour = colours(ranks);
  const behind = (one: Watched): boolean => one.process.step !== null && one.process.step < ahead - 1;
  return (
    <>
      <h2>
        Ranks <a href={link({ target: ranks[0]!.process.id, screen: "stacks", params: { ranks: "1" } })}>their stacks in one tree</a>
      </h2>
      <ul class="ranks">
        {ranks.map((one) => (
          <li class={`group${colour.get(one)}` + (isStuck(one) || behind(one) ? " standing" : "")}>
            <a href={link({ target: one.process.id, screen: "stacks" })} title={chain(one)}>
              <b>{one.process.rank}</b>
              <span>{one.process.step === null ? (one.main[0] ? plain(frameName(one.main[0]), 14) : "") : `step ${one.process.step}`}</span>
              <meter aria-label={`CPU of rank ${one.process.rank}`} min={0} max={1} value={Math.min(1, one.share ?? 0)} />
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}
