// The search, the menu and the language switch of the static site.
"use strict";

const box = document.querySelector("input[type=search]");
const list = document.getElementById("results");

// On a wide page the menu is open; on a telephone it opens when it is touched.
const menu = document.querySelector(".menu");
const wide = matchMedia("(min-width: 56.01rem)");
const unfold = () => { menu.open = wide.matches; };
wide.addEventListener("change", unfold);
unfold();

// Sections and headings have the same ids in every language: go to the one that is being read.
function place() {
  if (scrollY < 80) return "";
  const above = [...document.querySelectorAll("section[id], h2[id], h3[id]")]
    .filter((part) => part.getBoundingClientRect().top < 100);
  return above.length ? `#${above.at(-1).id}` : location.hash;
}
for (const link of document.querySelectorAll(".language")) {
  link.addEventListener("click", () => { link.hash = place(); });
}

// Pages of GitHub name the repository in their address: OWNER.github.io/NAME/ko/01-….html.
const badge = document.querySelector(".colab[data-place]");
const owner = /^([a-z0-9-]+)\.github\.io$/.exec(location.hostname)?.[1];
if (badge && owner) {
  const folders = location.pathname.split("/").slice(1, -2);
  const name = folders[0] ?? location.hostname;
  if (/^[\w.-]+$/.test(name)) {
    badge.href = `https://colab.research.google.com/github/${owner}/${name}/${badge.dataset.place}`;
    for (const other of badge.parentElement.querySelectorAll(".upload")) other.hidden = true;
  }
}

const normal = (text) => text.normalize("NFC").toLowerCase();

// Every word must be there; a title counts more than a heading, a heading more than the text.
function search(words) {
  const found = [];
  for (const section of window.saemSearch) {
    const fields = [section.title, section.heading, section.text].map(normal);
    if (!words.every((word) => fields.some((field) => field.includes(word)))) continue;
    const score = words.reduce((sum, word) =>
      sum + (fields[0].includes(word) ? 4 : 0) + (fields[1].includes(word) ? 6 : 0) + (fields[2].includes(word) ? 1 : 0), 0);
    found.push([score, section]);
  }
  return found.sort((a, b) => b[0] - a[0]).slice(0, 20).map(([, section]) => section);
}

function snippet(text, words) {
  const at = Math.max(0, Math.min(...words.map((word) => normal(text).indexOf(word)).filter((n) => n >= 0).concat(text.length)) - 40);
  return (at ? "…" : "") + text.slice(at, at + 140);
}

// Text nodes and mark elements only: nothing of a lesson is taken for HTML.
function marked(text, words) {
  const parts = document.createDocumentFragment();
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  for (const part of text.split(new RegExp(`(${pattern})`, "i"))) {
    if (words.includes(normal(part))) {
      const mark = document.createElement("mark");
      mark.textContent = part;
      parts.append(mark);
    } else parts.append(part);
  }
  return parts;
}

function show() {
  const words = normal(box.value).split(/\s+/).filter(Boolean);
  list.replaceChildren();
  list.hidden = words.length === 0;
  if (!words.length) return;
  for (const section of search(words)) {
    const link = document.createElement("a");
    link.href = `${section.page}.html#${section.anchor}`;
    link.append(marked(`${section.title} › ${section.heading}`, words));
    const small = document.createElement("small");
    small.append(marked(snippet(section.text, words), words));
    link.append(small);
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  if (!list.children.length) list.append(box.dataset.nothing);
}

function move(by) {
  const links = [...list.querySelectorAll("a")];
  const at = links.findIndex((link) => link.classList.contains("chosen"));
  links[at]?.classList.remove("chosen");
  const next = links[Math.max(0, Math.min(links.length - 1, at + by))];
  next?.classList.add("chosen");
  next?.scrollIntoView({ block: "nearest" });
}

box.addEventListener("input", show);
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  }
  if (event.key === "Escape") { box.value = ""; show(); }
  if (event.key === "Enter") (list.querySelector(".chosen") ?? list.querySelector("a"))?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(event.target.tagName)) {
    event.preventDefault();
    box.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("header")) list.hidden = true;
  else if (event.target === box) show();
  if (event.target.closest("#results a")) list.hidden = true;
});
