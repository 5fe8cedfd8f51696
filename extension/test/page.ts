// A page for the renderer's tests, and the models kept for them.
import { readFileSync } from "node:fs";
import path from "node:path";
import { JSDOM } from "jsdom";
import type { HistoryModel, JaxprModel } from "../src/schema";

const { window } = new JSDOM("<!doctype html><body></body>", { pretendToBeVisual: true });
for (const name of ["document", "Node", "Element", "HTMLElement", "MouseEvent"] as const) {
  Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
}
// jsdom has no CSS.escape; ids in the samples need none, so a plain copy serves.
Object.defineProperty(globalThis, "CSS", { value: { escape: (s: string) => s } });

export const { document: page } = window;
export const { KeyboardEvent, Event } = window;

export function sample<T>(name: string): T {
  return JSON.parse(readFileSync(path.join("test/samples", `${name}.json`), "utf8")) as T;
}

export const HISTORY = sample<HistoryModel>("history");
export const JAXPR = sample<JaxprModel>("jaxpr");

/** Put a view on the page, alone. */
export function put<T extends HTMLElement>(element: T): T {
  page.body.replaceChildren(element);
  return element;
}

/** The texts of all elements that match. */
export function texts(root: ParentNode, selector: string): string[] {
  return [...root.querySelectorAll(selector)].map(node => node.textContent ?? "");
}

export function click(node: Element | null): void {
  node?.dispatchEvent(new window.MouseEvent("click", { bubbles: true }));
}

export function press(node: Element | null, key: string): void {
  node?.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
}
