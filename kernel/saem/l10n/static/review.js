// The buttons and keys of the review page.  The server renders each row; this file asks it to change
// one and puts the row that comes back in its place.
"use strict";

const token = new URLSearchParams(location.search).get("token");
const rows = () => [...document.querySelectorAll(".row")];
const waiting = (row) => row.dataset.state !== "reviewed";
let current = null;

// What was typed and not saved stays with the tab: a page that is loaded again opens it again.
const drafts = {
  key: (row, action) => ["saem", document.title, action, row.id].join("\n"),
  read: (row, action) => sessionStorage.getItem(drafts.key(row, action)),
  keep: (row, action, text) => sessionStorage.setItem(drafts.key(row, action), text),
  drop: (row, action) => sessionStorage.removeItem(drafts.key(row, action)),
};

function say(text) {
  document.getElementById("message").textContent = text;
}

function count() {
  const left = document.getElementById("left");
  const number = rows().filter(waiting).length;
  left.textContent = number ? left.dataset.left.replace("{}", number) : left.dataset.done;
}

function choose(row) {
  if (!row) return;
  current?.classList.remove("current");
  current = row;
  row.classList.add("current");
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = rows();
  choose(all[Math.max(0, Math.min(all.length - 1, all.indexOf(current) + by))]);
}

function next() {
  const all = rows();
  const at = all.indexOf(current);
  choose([...all.slice(at + 1), ...all.slice(0, at + 1)].find(waiting));
}

// `saem l10n review` knows the page by its token, JupyterLab's server by its cookies.
const query = new URLSearchParams(location.search);
query.delete("token");
const cookie = () => /(?:^|;\s*)_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "";

async function post(action, row, text) {
  const headers = { "Content-Type": "application/json", "X-XSRFToken": cookie() };
  if (token) headers["X-Saem-Token"] = token;
  const body = JSON.stringify({ unit: row.id, text, seen: row.dataset.seen });
  let answer, said;
  try {
    answer = await fetch(`${action}?${query}`, { method: "POST", headers, body });
    said = await answer.json();
  } catch { // the server ended, or answered with no JSON: what was typed stays
    say(document.body.dataset.unreachable);
    return null;
  }
  if (!answer.ok) say(said.message);
  return answer.ok || said.row ? said : null;
}

// While somebody types: what would the lint say of this?  Only the answer to the last question counts.
let asked = 0;
async function judge(row, text) {
  const mine = ++asked;
  await new Promise((done) => setTimeout(done, 250));
  if (mine !== asked) return;
  const said = await post("lint", row, text);
  if (said && mine === asked) row.querySelector(".findings").innerHTML = said.findings;
}

async function ask(action, row, text = "") {
  const said = await post(action, row, text);
  if (!said) return null;
  const holder = document.createElement("template");
  holder.innerHTML = said.row;
  const fresh = holder.content.firstElementChild;
  row.replaceWith(fresh);
  count();
  choose(fresh);
  if (said.message) { // somebody else changed it: what was typed goes on beside what is there now
    if (action !== "accept") write(fresh, action, text);
    return null;
  }
  drafts.drop(fresh, action);
  say("");
  return fresh;
}

function write(row, action, start) {
  if (row.querySelector("textarea")) return;
  const area = document.createElement("textarea");
  area.value = drafts.read(row, action) ?? start;
  area.lang = action === "edit" ? document.body.dataset.language : "";
  const keep = document.createElement("button");
  keep.textContent = document.body.dataset.save;
  keep.className = "save";
  const drop = document.createElement("button");
  drop.textContent = document.body.dataset.cancel;
  const box = document.createElement("div");
  box.append(area, keep, drop);
  row.querySelector(".translation").after(box);
  const shown = row.querySelector(".findings");
  const before = shown.innerHTML;
  area.addEventListener("input", () => {
    drafts.keep(row, action, area.value);
    if (action === "edit") judge(row, area.value);
  });
  const close = () => { asked += 1; shown.innerHTML = before; box.remove(); choose(row); };
  keep.addEventListener("click", () => { asked += 1; ask(action, row, area.value); });
  drop.addEventListener("click", () => { drafts.drop(row, action); close(); });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep.click();
    event.stopPropagation();
  });
  area.focus();
}

function act(row, what) {
  const typed = row.querySelector("textarea");
  if (typed) { // the present text is not what is on the screen
    say(document.body.dataset.unsaved);
    typed.focus();
    return;
  }
  choose(row);
  if (what === "edit") write(row, "edit", row.dataset.text);
  if (what === "comment") write(row, "comment", "");
  if (what === "accept") ask("accept", row).then((fresh) => fresh && next());
}

document.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  const what = event.target.dataset?.do;
  if (row && what) act(row, what);
  else if (row && !event.target.closest("textarea, button, a")) choose(row);
});

const keys = {
  j: () => step(1), k: () => step(-1), n: next,
  e: () => current && act(current, "edit"),
  a: () => current && act(current, "accept"),
  c: () => current && act(current, "comment"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "TEXTAREA") return;
  // Where letters are composed (an input method is on), the key itself says which it is.  The event
  // of a form that the browser fills in has neither.
  const letter = /^[ -~]$/.test(event.key) ? event.key : (event.code ?? "").replace("Key", "").toLowerCase();
  const key = keys[letter];
  if (key) {
    event.preventDefault();
    key();
  }
});

count();
next();
for (const row of rows()) {
  for (const action of ["edit", "comment"]) {
    if (drafts.read(row, action) !== null) write(row, action, row.dataset.text);
  }
}
