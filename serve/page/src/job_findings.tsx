// What the skills find in the ranks of a job: as `probing -t @JOB skill run` says; a part of the job's overview.
import { h } from "./preact.js";
import { askJson, at } from "./net.js";
import { count, duration, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { usePolled, useWatch } from "./polled.js";
import { ranges } from "./names.js";
import { inState, jobTarget, ranksIn, type Coverage, type RankedJob } from "./job_list.js";
import { severity, type Finding } from "./diagnosis.js";
import { screenOf } from "./sayings.js";
import { CoverageBar } from "./verdict.js";
import { Trouble } from "./parts.js";

/** What is found in some ranks, in the words of the lowest. */
interface OfRanks extends Finding {
  ranks: string; // "": of the job as a whole
  alike: boolean; // the others say the same but for their numbers
}

interface Told {
  findings: OfRanks[];
  coverage: Coverage;
}

const EVERY = 120; // s
const SHOWN = 24;

const ask = (target: string, signal: AbortSignal): Promise<Told> => askJson<Told>(at(target, "skills/diagnose"), { method: "POST", body: {}, signal, watches: true });

/** Whose it is; comm compares ranks, and its sentence names the one. */
function who(one: OfRanks): string {
  const ranks = ranksIn(one.ranks);
  return ranks.length ? `${ranks.length === 1 ? "rank" : "ranks"} ${ranges(ranks)}: ` : "";
}

function shows(job: RankedJob, one: OfRanks): string {
  const ranks = ranksIn(one.ranks);
  const here = ranks.length === 1 ? job.ranks.find((rank) => rank.rank === ranks[0])?.target : null;
  return link({ target: here ?? jobTarget(job, one.ranks), ...screenOf(one.skill) });
}

function One({ job, one }: { job: RankedJob; one: OfRanks }) {
  const ranks = ranksIn(one.ranks);
  return (
    <li class={one.severity}>
      <span class="severity">{one.severity}</span>
      <div>
        <a href={shows(job, one)}>
          {who(one)}
          {plain(one.finding, 300)}
        </a>{" "}
        <span class="quiet">
          {plain(one.skill, 40)}
          {one.alike && `; rank ${ranks[0]}, the others alike`}
        </span>
        {one.where && <div class="fplace">{plainPlace(one.where)}</div>}
        {one.next && <div class="quiet next">{plain(one.next, 240)}</div>}
      </div>
    </li>
  );
}

function List({ job, all, label }: { job: RankedJob; all: OfRanks[]; label: string }) {
  return (
    <ul class="findings" aria-label={label}>
      {all.slice(0, SHOWN).map((one) => (
        <One job={job} one={one} />
      ))}
      {all.length > SHOWN && <li class="info">and {all.length - SHOWN} more</li>}
    </ul>
  );
}

const ago = (seconds: number): string => (seconds < 1 ? "just now" : `${duration(seconds)} ago`);

const isWhole = (told: Coverage): boolean => inState(told, "answered").length === told.expected;

/** shown: the coverage that the screen shows already. */
export function JobFindings({ job, target, shown }: { job: RankedJob; target: string; shown: Coverage | undefined }) {
  useWatch();
  const asked = usePolled(`${target} skills`, EVERY, (signal) => ask(target, signal));
  const told = asked.value;
  // The verdict, above, is what the skill hang says of a job.
  const all = (told?.findings ?? []).filter((one) => one.skill !== "hang").sort((a, b) => severity(a) - severity(b));
  const bad = all.filter((one) => one.severity !== "info");
  const good = all.filter((one) => one.severity === "info");
  return (
    <section aria-label="What the skills find">
      <h2>
        What the skills find{" "}
        <button type="button" disabled={!told && !asked.error} onClick={asked.again}>
          Look again
        </button>{" "}
        <span class="quiet">{told ? ago(Date.now() / 1000 - asked.at) : asked.error ? "" : "each rank is looked at, for some ten seconds …"}</span>
      </h2>
      <Trouble error={asked.error} />
      {told && !(isWhole(told.coverage) && told.coverage.answered === shown?.answered) && <CoverageBar told={told.coverage} />}
      {told && !bad.length && <p class="quiet">Nothing bad was found beside whether it hangs.</p>}
      {bad.length > 0 && <List job={job} all={bad} label="Findings" />}
      {good.length > 0 && (
        <details class="bare">
          <summary>
            {count(good.length, "thing")} worth knowing: <span class="quiet">{plain(who(good[0]!) + good[0]!.finding, 160)}</span>
          </summary>
          <List job={job} all={good} label="Worth knowing" />
        </details>
      )}
    </section>
  );
}
