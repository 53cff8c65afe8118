// The keyboard: g and a letter go to a screen, Space freezes, / filters, j k walk, ? lists keys, Ctrl-K opens the palette.
import { h } from "./preact.js";
import { editor } from "./editor.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./hooks.js";
import { go, type Place } from "./place.js";
import { plain } from "./format.js";
import { processName } from "./names.js";
import { state } from "./watch.js";
import { jobTarget } from "./job_list.js";

interface Named {
  id: string;
  name: string;
  key: string;
}

const show = { help: () => {}, palette: () => {}, close: () => false as boolean };

const typing = (event: KeyboardEvent): boolean =>
  event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]") !== null;

const pressing = (event: KeyboardEvent): boolean => event.target instanceof HTMLElement && event.target.closest("button, a, summary, canvas") !== null;

/** j and k: the next and the last of what can be opened on the screen. */
function walk(step: number): void {
  const all = [...document.querySelectorAll<HTMLElement>("main summary, main td a, main li a")].filter((one) => one.offsetParent);
  const now = all.indexOf(document.activeElement as HTMLElement);
  all[Math.min(all.length - 1, Math.max(0, now + step))]?.focus();
}

export function listenKeys(act: { freeze: () => void; open: (screen: string) => void; screens: Named[] }): void {
  let leader = -Infinity; // ms: when g was pressed
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && show.close()) return;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !editor) {
      event.preventDefault();
      show.palette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    if (performance.now() - leader < 1500) {
      leader = -Infinity;
      const screen = act.screens.find((one) => one.key === event.key);
      if (screen) act.open(screen.id);
      return;
    }
    if (event.key === "g") leader = performance.now();
    else if (event.key === "?") show.help();
    else if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (event.key === "/") {
      event.preventDefault();
      document.querySelector<HTMLInputElement>("main input[type=search]")?.focus();
    } else if (event.key === " " && !pressing(event)) {
      event.preventDefault();
      act.freeze();
    }
  });
}

interface Choice {
  text: string;
  open: () => void;
}

function choices(screens: Named[], place: Place): Choice[] {
  return [
    ...screens.map((one) => ({ text: one.name, open: () => go({ target: place.target, screen: one.id }) })),
    ...state.jobs.map((one) => ({ text: plain(jobTarget(one), 90), open: () => go({ target: jobTarget(one), screen: place.screen }) })),
    ...state.processes.map((one) => ({
      text: plain(processName(one.process), 90),
      open: () => go({ target: one.process.id, screen: place.screen === "overview" ? "stacks" : place.screen }),
    })),
  ];
}

function Palette({ screens, place, close }: { screens: Named[]; place: Place; close: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(""); // its text: the list may change below the eyes; "": the first
  const [waits, setWaits] = useState(false); // Enter came before what it is to open
  const found = choices(screens, place)
    .filter((one) => one.text.toLowerCase().includes(text.toLowerCase()))
    .slice(0, 12);
  const at = Math.max(0, found.findIndex((one) => one.text === chosen));
  const open = (one: Choice | undefined): void => {
    if (!one) return setWaits(true);
    close();
    one.open();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setChosen(found[at + (event.key === "ArrowDown" ? 1 : -1)]?.text ?? chosen);
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(found[at]);
    }
  };
  useEffect(() => {
    if (waits && found[0]) open(found[0]);
  });
  return (
    <div class="palette">
      <input
        role="combobox"
        aria-label="Go to a screen or a process"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={found[at] ? "choice" + at : undefined}
        placeholder="screen or process"
        value={text}
        onKeyDown={press}
        onInput={(event: { currentTarget: HTMLInputElement }) => (setText(event.currentTarget.value), setChosen(""), setWaits(false))}
      />
      <ul id="choices" role="listbox" aria-label="Screens and processes">
        {found.map((one, i) => (
          <li role="option" id={"choice" + i} aria-selected={i === at} onClick={() => open(one)}>
            {one.text}
          </li>
        ))}
      </ul>
      {!found.length && <p class="quiet">{waits ? "It is opened when it is there …" : "Nothing is called so."}</p>}
    </div>
  );
}

function Help({ screens }: { screens: Named[] }) {
  const keys = [
    ["Space", "freeze and go on"],
    ["/", "filter"],
    ["j  k", "down and up"],
    ["Enter", "open"],
    ["Esc", "close"],
    ...(editor ? [] : [["Ctrl-K", "go to a screen or a process"]]), // an editor begins its own with that
    ...screens.map((one) => ["g " + one.key, one.name]),
  ];
  return (
    <div>
      <h2>Keys</h2>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

export function Keys({ screens, place }: { screens: Named[]; place: Place }) {
  const [open, setOpen] = useState<"" | "help" | "palette">("");
  const dialog = useRef<HTMLDialogElement | null>(null);
  show.help = () => setOpen("help");
  show.palette = () => setOpen("palette");
  show.close = () => (setOpen(""), open !== "");
  useLayoutEffect(() => {
    if (!open) return; // before the next key comes
    dialog.current?.showModal();
    dialog.current?.querySelector("input")?.focus();
  }, [open]);
  if (!open) return null;
  return (
    <dialog ref={dialog} aria-label={open === "help" ? "Keys" : "Go to"} onClose={() => setOpen("")}>
      {open === "help" ? <Help screens={screens} /> : <Palette screens={screens} place={place} close={() => setOpen("")} />}
      <form method="dialog">
        <button>Close</button>
      </form>
    </dialog>
  );
}
