// The frame of every view: top bar, banner, token form and footer.

import { h } from "./dom.js";
import * as format from "./format.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

const THEME = "blizzard-theme";
const THEMES = ["auto", "light", "dark"];
export const THEME_WORDS = { auto: "system", light: "light", dark: "dark" };
const LINK_WORDS = {
  starting: "Connecting",
  live: "Live",
  lost: "Not connected",
  paused: "Paused",
  token: "Token needed",
};

/** The colour theme: light, dark or the system's; it is kept for the next visit. */
export const theme = {
  get: () => (THEMES.includes(localStorage.getItem(THEME)) ? localStorage.getItem(THEME) : "auto"),
  next: () => {
    localStorage.setItem(THEME, THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length]);
    theme.apply();
  },
  apply: () => document.documentElement.setAttribute("data-theme", theme.get()),
};

export function top(state, actions, now) {
  const place = state.route.view;
  const current = (on) => (on ? "page" : null);
  return [
    h(
      "a.brand",
      { href: routes.overview(), "aria-label": "Blizzard and Penguin: overview" },
      mark(),
      h("span.brand-words", { "aria-hidden": "true" }, "Blizzard ", h("i", "&"), " Penguin"),
    ),
    h(
      "nav",
      { "aria-label": "Views" },
      h("a", { href: routes.overview(), "aria-current": current(place === "overview") }, "Overview"),
      h(
        "a",
        { href: routes.files(), "aria-current": current(place === "files" || place === "journey") },
        "Files",
      ),
    ),
    h(
      "div.right",
      programs(state.overview),
      h(
        "span.link-state",
        {
          class: `link-${state.link.kind}`,
          title: state.overview ? `As of ${format.exactTime(state.overview.at)}` : "",
        },
        h("span.pulse", { "aria-hidden": "true" }),
        LINK_WORDS[state.link.kind],
        state.link.kind === "lost" &&
          h("span.sr", `, since ${format.clock(new Date(state.link.since).toISOString(), now)}`),
      ),
      h(
        "button.tool",
        {
          type: "button",
          "aria-label": `Colours: ${THEME_WORDS[theme.get()]}. Change`,
          title: `Colours: ${THEME_WORDS[theme.get()]} (t)`,
          onclick: actions.theme,
        },
        themeIcon(theme.get()),
      ),
      h(
        "button.tool",
        { type: "button", "aria-label": "Keys", title: "Keys (?)", onclick: actions.help },
        "?",
      ),
    ),
  ];
}

function programs(overview) {
  if (!overview) return null;
  return h(
    "ul.programs",
    { "aria-label": "Programs" },
    overview.programs.map((program) =>
      h(
        "li",
        {
          key: program.name,
          class: isGone(program) ? "gone" : program.reachable ? "" : "spare",
          title: [
            program.note,
            program.address,
            program.started_at && `started ${format.exactTime(program.started_at)}`,
          ]
            .filter(Boolean)
            .join(" · "),
        },
        isGone(program) ? w.icon("bad") : h("span.dot", { "aria-hidden": "true" }),
        program.name,
        " ",
        h(program.reachable ? "span.sr" : "span", answerOf(program)),
      ),
    ),
  );
}

const isGone = (program) => program.needed && !program.reachable && program.address !== null;

function answerOf(program) {
  if (program.reachable) return "is reachable";
  return program.needed ? (isGone(program) ? "no answer" : "not known") : "not needed";
}

// A snowflake of three strokes.
function mark() {
  return h(
    "svg.mark",
    { viewBox: "0 0 24 24", "aria-hidden": "true" },
    h("path", { d: "M12 2.5V21.5M3.8 7.25 20.2 16.75M3.8 16.75 20.2 7.25" }),
    h("path.tips", {
      d: "M9.5 4 12 6.2 14.5 4M9.5 20 12 17.8 14.5 20M3.6 10.2 6.8 9 6.2 5.8M20.4 13.8 17.2 15 17.8 18.2M3.6 13.8 6.8 15 6.2 18.2M20.4 10.2 17.2 9 17.8 5.8",
    }),
  );
}

function themeIcon(which) {
  const paths = {
    auto: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 2v12",
    light:
      "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
    dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z",
  };
  return h("svg.icon", { viewBox: "0 0 16 16", "aria-hidden": "true" }, h("path", { d: paths[which] }));
}

export function banner(state, actions, now) {
  if (state.link.kind !== "lost") return null;
  const since = new Date(state.link.since).toISOString();
  const wait = Math.max(0, Math.ceil((state.link.retryAt - now) / 1000));
  return h(
    "div.banner",
    w.icon("warn"),
    h(
      "p",
      h(
        "b",
        "Connection lost since ",
        w.clock(since, now),
        state.overview ? ". The page shows the last known state." : ".",
      ),
      " ",
      h("span", wait ? `Trying again in ${wait} s.` : "Trying again …"),
    ),
    h("button.button", { type: "button", onclick: actions.retry }, "Try now"),
  );
}

export function waiting(link) {
  if (link.kind !== "lost")
    return w.alone("reading", "Reading journals and logs …", h("p.dim", "A long history takes a moment."));
  const why =
    "The program that serves this page is not running, or cannot be reached. The page loads as soon as the program answers.";
  return w.alone("nobody", "No connection", h("p", why));
}

export function missing() {
  const back = h("a", { href: routes.overview() }, "Back to the overview");
  return w.alone("missing", "Page not found", h("p", back));
}

export function tokenForm(tried, give) {
  return h(
    "form.block.first-run.token",
    {
      key: "token",
      onsubmit: (event) => {
        event.preventDefault();
        give(new FormData(event.target).get("token").trim());
      },
    },
    h("h1", "A token is required"),
    h(
      "p",
      { id: "token-why" },
      "Enter the token that the configuration sets with ",
      h("code", "metrics.token"),
      " or ",
      h("code", "metrics.token_file"),
      ". It is kept only until this tab is closed.",
    ),
    tried && h("p.tone-bad", { role: "alert" }, "That token was refused."),
    h(
      "div.tools",
      h("input", {
        type: "password",
        name: "token",
        required: true,
        autocomplete: "off",
        "aria-label": "Token",
        "aria-describedby": "token-why",
        placeholder: "Token",
      }),
      h("button.button.primary", { type: "submit" }, "Show the page"),
    ),
  );
}

export function foot(overview, now) {
  const gone = overview.programs.filter((program) => !program.reachable && program.needed && program.note);
  return [
    gone.map((program) =>
      h("p", { key: program.name }, h("b", program.name), ": ", h("bdi", program.note)),
    ),
    h(
      "p",
      overview.programs.map((program) => `${program.name} ${program.version ?? answerOf(program)}`).join(" · "),
      " · as of ",
      w.clock(overview.at, now),
      " · ",
      h("a", { href: "api/openapi.json" }, "API"),
    ),
  ];
}
