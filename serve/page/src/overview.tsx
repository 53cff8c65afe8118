// Overview: what is wrong with my job?  Each process with trouble, worst first, what it is, where, since when; then who is well.
import { h, Fragment } from "./preact.js";
import { bytes, count, duration, percent, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { frameName, ownFrame } from "./looks.js";
import { processName, title } from "./names.js";
import { isStuck, reason, stands, state, STUCK, type Watched } from "./watch.js";
import { diagnoseAgain, diagnosisOf, useDiagnoses } from "./diagnosis.js";
import { evidence, ofCrash, sayings, togetherAsRanks, withoutEchoes, worst, type Job, type Said } from "./sayings.js";
import { Ranks } from "./rank_grid.js";
import { hungJobs, useVerdicts } from "./hang.js";
import { jobTarget } from "./job_list.js";
import { JobCards } from "./verdict.js";
import { FrameLine, OpenSource, Table, Trouble, type Column } from "./parts.js";
import { lately, useCrashes } from "./crash_list.js";

const SHOWN = 12;

// ---- the jobs with trouble, and the others ----

const FIRST = 2; // findings of a process that are seen at once

function Findings({ all }: { all: Said[] }) {
  const more = all.slice(FIRST, SHOWN);
  return (
    <>
      <List all={all.slice(0, FIRST)} />
      {more.length > 0 && (
        <details class="bare">
          <summary>
            {count(more.length, "more finding")}: <span class="quiet">{more[0]!.finding}</span>
          </summary>
          <List all={more} />
        </details>
      )}
    </>
  );
}

function List({ all }: { all: Said[] }) {
  return (
    <ul class="findings">
      {all.map((one) => (
        <li class={one.severity}>
          <span class="severity">{one.severity}</span>
          <div>
            <a href={one.link}>{one.finding}</a> <span class="since">{one.since}</span>
            {one.where && <div class="fplace">{one.where}</div>}
            {one.next && <div class="quiet next">{one.next}</div>}
          </div>
        </li>
      ))}
    </ul>
  );
}

function Jobs({ jobs }: { jobs: Job[] }) {
  return (
    <>
      {jobs.slice(0, SHOWN).map((job) => (
        <section key={job.key} class={"job " + job.said[0]!.severity} aria-label={job.name}>
          <h2>
            <a href={job.link}>{job.name}</a> <span class="quiet">{job.more}</span>
          </h2>
          <Findings all={job.said} />
        </section>
      ))}
      {jobs.length > SHOWN && <p class="quiet">and {count(jobs.length - SHOWN, "more", "more")} below</p>}
    </>
  );
}

function how(one: Watched): string {
  const mine = ownFrame(one.main);
  const where = mine ? plain(frameName(mine), 40) : "";
  if (one.trouble) return plain(one.trouble, 120);
  if (!one.main.length) return "the first look is under way";
  const why = reason(one);
  if (stands(one)) return why ? `${why}, for ${duration(one.since)}` : `in ${where} for ${duration(one.since)}`;
  return `moves, now in ${where}`;
}

function Well({ one }: { one: Watched }) {
  const { at, whole, asking } = diagnosisOf(one);
  const { good } = sayings(one);
  const { name, more } = title(one.process);
  const ago = Date.now() / 1000 - at;
  const checked = whole && at ? `nothing found ${duration(ago)} ago` : asking || at ? "the skills look …" : "";
  return (
    <li>
      <details class="bare">
        <summary>
          <span class={whole && !one.trouble ? "tick" : "tick quiet"} aria-hidden="true">
            {one.trouble ? "–" : whole ? "✓" : "…"}
          </span>{" "}
          <b>{plain(name, 60)}</b> <span class="quiet">{plain(more, 80)}</span> {how(one)} <span class="quiet">{checked}</span>
        </summary>
        <ul class="plainlist">
          {good.map((finding) => (
            <li>
              <a href={evidence(one, finding)}>{plain(finding.finding)}</a> <span class="fplace">{plainPlace(finding.where ?? "")}</span>
            </li>
          ))}
          {!good.length && <li class="quiet">Nothing was said of it yet.</li>}
        </ul>
      </details>
    </li>
  );
}

/** The quiet part of the page: who has no finding. */
function Others({ all }: { all: Watched[] }) {
  const workers = all.filter((one) => reason(one) === "waits for work" && stands(one));
  const shown = all.filter((one) => !workers.includes(one));
  if (!all.length) return null;
  return (
    <ul class="well" aria-label="Processes without a finding">
      {shown.slice(0, SHOWN).map((one) => (
        <Well key={one.process.id} one={one} />
      ))}
      {shown.length > SHOWN && <li class="quiet">and {shown.length - SHOWN} more, below</li>}
      {workers.length > 0 && <li class="quiet">{count(workers.length, "worker waits", "workers wait")} for work</li>}
    </ul>
  );
}

function verdict(jobs: Job[]): string {
  const hung = hungJobs().map((one) => plain(jobTarget(one), 40));
  const told = ofProcesses(jobs);
  return hung.length ? `${hung.join(", ")} ${hung.length === 1 ? "hangs" : "hang"}; ${told}` : told;
}

function ofProcesses(jobs: Job[]): string {
  const total = count(state.processes.length, "process", "processes");
  const bad = jobs.filter((job) => worst(job) === 0);
  const crashed = bad.filter((job) => job.crash).length;
  const troubled = bad.reduce((sum, job) => sum + job.ids.length, 0);
  if (bad.length) return [troubled && `${troubled} of ${total} ${troubled === 1 ? "is" : "are"} in trouble`, crashed && count(crashed, "crash", "crashes")].filter(Boolean).join(", ");
  if (!state.processes.length) return state.jobs.length ? "no Python process runs on the server's machine" : "No Python process is running";
  if (jobs.length) return `${total}, ${jobs.length} with something to look at`;
  const asked = state.processes.filter((one) => !one.trouble);
  return asked.every((one) => diagnosisOf(one).whole || reason(one)) ? `Nothing is wrong with ${total}` : `${total}: nothing wrong so far`;
}

// ---- all processes, children below their parents ----

function tree(): { one: Watched; depth: number }[] {
  const known = new Set(state.processes.map((one) => one.process.pid));
  const out: { one: Watched; depth: number }[] = [];
  const add = (one: Watched, depth: number): void => {
    out.push({ one, depth });
    for (const child of state.processes) if (child.process.ppid === one.process.pid && child !== one && depth < 20) add(child, depth + 1);
  };
  for (const one of state.processes) if (!known.has(one.process.ppid)) add(one, 0);
  return out;
}

const columns: Column<{ one: Watched; depth: number }>[] = [
  {
    name: "Process",
    cell: ({ one, depth }) => (
      <a href={link({ target: one.process.id, screen: "stacks" })} class={"depth" + Math.min(depth, 4)} title={plain(one.process.command ?? "")}>
        {plain(processName(one.process), 80)}
      </a>
    ),
  },
  {
    name: "Main thread is in",
    cell: ({ one }) =>
      one.trouble ? <span class="quiet">{plain(one.trouble, 80)}</span> : one.main[0] ? (
        <>
          <FrameLine frame={one.main[0]} /> <OpenSource target={one.process.id} frame={one.main[0]} />
        </>
      ) : <span class="quiet">looking</span>,
  },
  {
    name: "since",
    right: true,
    cell: ({ one }) => (one.main.length ? <span class={isStuck(one) ? "bad" : ""}>{one.since < 1 || (one.since >= STUCK && !stands(one)) ? "moving" : duration(one.since)}</span> : ""),
  },
  { name: "CPU", right: true, cell: ({ one }) => (one.share === null ? "" : percent(one.share)) },
  { name: "Memory", right: true, cell: ({ one }) => bytes(one.process.rss) },
  { name: "Threads", right: true, cell: ({ one }) => one.process.threads },
  { name: "Step", right: true, cell: ({ one }) => one.process.step ?? "" },
  { name: "Python", cell: ({ one }) => one.process.python ?? "" },
  { name: "Probe", cell: ({ one }) => (one.process.has_probe ? "loaded" : "") },
];

export function Overview() {
  useDiagnoses();
  useVerdicts("");
  const crashes = useCrashes();
  const processes = togetherAsRanks(state.processes);
  const jobs = withoutEchoes([...processes, ...lately(crashes.value ?? []).map(ofCrash)].filter((job) => job.said.length)).sort((a, b) => worst(a) - worst(b) || Number(b.since > 0) - Number(a.since > 0) || a.ids.length - b.ids.length || b.since - a.since);
  const troubled = new Set(jobs.flatMap((job) => job.ids));
  return (
    <>
      <h1 class={hungJobs().length || jobs.some((job) => worst(job) === 0) ? "bad" : jobs.length ? "" : "good"}>{verdict(jobs)}</h1>
      <Trouble error={state.refused} />
      <JobCards jobs={state.jobs} />
      <Jobs jobs={jobs} />
      <Others all={state.processes.filter((one) => !troubled.has(one.process.id))} />
      <Ranks />
      <h2>
        Processes{" "}
        <button type="button" onClick={diagnoseAgain}>
          Look again
        </button>
      </h2>
      <Table label="Processes" columns={columns} rows={tree()} row={({ one }) => (isStuck(one) ? "standing" : "")} />
      <p class="quiet">
        Red: the main thread's stack has not changed for {STUCK} s. The page looks once a second, the skills every two minutes and when something changes; nothing in a process is
        changed or stopped, but single threads of a job that seems to hang, for some 0.1 ms.
      </p>
      {state.ended.length > 0 && (
        <>
          <h2>Ended while you looked</h2>
          <ul class="plainlist">
            {state.ended.map(({ process, at }) => (
              <li>
                {plain(processName(process), 90)}, at {new Date(at * 1000).toLocaleTimeString()}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
