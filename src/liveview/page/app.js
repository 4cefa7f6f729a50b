// Hold the page's state (route, overview, connection), and render it when it changes.

import { Live, token } from "./connection.js";
import { Documents } from "./documents.js";
import { patch } from "./dom.js";
import * as keys from "./keys.js";
import { announcements } from "./logic.js";
import * as routes from "./routes.js";
import { shown } from "./shown.js";
import * as shell from "./shell.js";
import * as overview from "./view-overview.js";
import * as pipeline from "./view-pipeline.js";
import * as files from "./view-files.js";
import * as table from "./view-table.js";

const VIEWS = {
  overview,
  pipeline,
  table,
  files: { title: files.filesTitle, view: files.filesView },
  journey: { title: files.journeyTitle, view: files.journeyView },
  missing: { title: () => "Not found", view: shell.missing },
};
const PAUSE_AFTER_TYPING_MS = 200;

const state = {
  overview: null,
  link: { kind: "starting", since: Date.now() }, // starting, live, lost, paused or token
  route: routes.parse(location.hash),
  ui: new Map(),
  said: [],
  tokenTried: false,
};

const documents = new Documents(draw, askForToken);
const live = new Live(heard);
let drawing = false;
let typing = null;

function heard(event) {
  if (event.kind === "overview") {
    say(announcements(state.overview, event.overview));
    state.overview = event.overview;
    if (state.link.kind === "lost") {
      say(["Connection restored"]);
      documents.mend();
    }
    if (state.link.kind !== "live") state.link = { kind: "live", since: Date.now() };
  } else if (event.kind === "lost") {
    if (state.link.kind !== "lost") say(["Connection lost"]);
    const since = state.link.kind === "lost" ? state.link.since : Date.now();
    state.link = { kind: "lost", since, retryAt: event.retryAt };
  } else if (event.kind === "token") {
    askForToken(event.tried);
  }
  draw();
}

function askForToken(tried = token.get() !== null) {
  live.stop();
  token.forget();
  documents.forget();
  state.tokenTried = tried;
  state.link = { kind: "token", since: Date.now() };
  draw();
}

function giveToken(text) {
  token.set(text);
  state.link = { kind: "starting", since: Date.now() };
  live.start();
  draw();
}

function say(sentences) {
  if (sentences.length) state.said = sentences;
}

// Render at most once per frame; a hidden tab gets no frames.
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    render();
  });
}

function render() {
  const ctx = context();
  const view = VIEWS[state.route.view];
  document.title = shown(`${state.overview ? view.title(ctx) : "Loading"} · Blizzard and Penguin`);
  patch(document.getElementById("top"), shell.top(state, actions, ctx.now));
  patch(document.getElementById("banner"), shell.banner(state, actions, ctx.now));
  patch(
    document.getElementById("said"),
    state.said.map((text) => `${text}. `),
  );
  const main = document.getElementById("main");
  main.className = state.link.kind === "lost" ? "stale" : "";
  if (state.link.kind === "token") patch(main, shell.tokenForm(state.tokenTried, giveToken));
  else if (!state.overview) patch(main, shell.waiting(state.link));
  else patch(main, view.view(ctx));
  jump();
  patch(
    document.getElementById("foot"),
    state.overview && state.link.kind !== "token" ? shell.foot(state.overview, ctx.now) : [],
  );
}

// Scroll to the row of a linked entry or version, once it is loaded.
function jump() {
  const row = state.route.asked.entry ?? state.route.asked.version ? document.querySelector(".is-open") : null;
  if (!row || state.jumped === location.hash) return;
  state.jumped = location.hash;
  row.scrollIntoView({ block: "center" });
}

function context() {
  const viewKey = `${state.route.view} ${state.route.name ?? ""} ${state.route.path ?? ""}`;
  const known = state.ui.get(viewKey) ?? new Map();
  state.ui.set(viewKey, known);
  return {
    now: Date.now(),
    stale: state.link.kind === "lost",
    narrow: matchMedia("(max-width: 720px)").matches,
    route: state.route,
    overview: state.overview,
    documents,
    go,
    replace: (hash) => {
      history.replaceState(null, "", hash);
      state.route = routes.parse(hash);
      draw();
    },
    later: (act) => {
      clearTimeout(typing);
      typing = setTimeout(act, PAUSE_AFTER_TYPING_MS);
    },
    ui: {
      get: (key, otherwise) => (known.has(key) ? known.get(key) : otherwise),
      set: (key, value) => {
        if (known.get(key) === value) return;
        known.set(key, value);
        draw();
      },
    },
  };
}

function go(hash) {
  location.hash = hash;
}

function routeChanged() {
  const before = state.route;
  state.route = routes.parse(location.hash);
  clearTimeout(typing);
  render();
  // Start a new view at its top, for sighted readers and for screen readers.
  if (
    before.view === state.route.view &&
    before.name === state.route.name &&
    before.path === state.route.path
  )
    return;
  window.scrollTo(0, 0);
  document.getElementById("main").focus({ preventScroll: true });
}

// A button copies the text of the element before it.
async function copy(button) {
  const text = button.previousElementSibling.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text); // The clipboard needs https or localhost.
  }
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), 2000);
  say(["Copied"]);
  draw();
}

function copyBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function help() {
  const dialog = document.getElementById("help");
  patch(
    dialog,
    keys.help(() => dialog.close()),
  );
  dialog.showModal();
}

function nextTheme() {
  shell.theme.next();
  say([`Colours: ${shell.THEME_WORDS[shell.theme.get()]}`]);
  draw();
}

const actions = {
  help,
  theme: nextTheme,
  retry: () => live.retry(),
  go,
  search: () =>
    go(routes.files(state.route.name && state.route.view !== "table" ? { pipeline: state.route.name } : {})),
};

// A hidden tab requests nothing.
function visibilityChanged() {
  if (state.link.kind === "token") return;
  if (document.visibilityState === "hidden") {
    live.stop();
    if (state.link.kind !== "lost") state.link = { kind: "paused", since: Date.now() };
  } else {
    live.start();
  }
  draw();
}

shell.theme.apply();
keys.listen(actions);
addEventListener("hashchange", routeChanged);
document.querySelector("[data-skip]").addEventListener("click", (event) => {
  event.preventDefault(); // The hash holds the route: keep it.
  document.getElementById("main").focus();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy");
  if (button) copy(button);
});
document.addEventListener("visibilitychange", visibilityChanged);
setInterval(() => {
  if (document.visibilityState === "visible") draw();
}, 1000);
visibilityChanged();
