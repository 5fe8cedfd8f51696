// How is data put on the page?
//
// Every view builds its nodes with `el` and `svg`. Data enters as text nodes and attribute values
// and in no other way: there is no innerHTML anywhere in the renderer. Characters that would turn
// the direction of the text around them are shown by their code.
// Read before: nothing. Read after: locale.ts, history.ts, jaxpr.ts.
// Invariant: hostile strings stay text (test/escape.test.ts).

export type Child = Node | string | null | undefined | false | readonly Child[];
type Value = string | number | boolean | null | undefined | EventListener;
export type Attributes = Readonly<Record<string, Value>>;

const SVG = "http://www.w3.org/2000/svg";
// Unicode's marks of direction: a name or a source line with one could show what it is not.
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const READ = new Set(["title", "aria-label", "placeholder"]);

/** The text with each mark of direction as its code: `⟨U+202E⟩`. */
export function directed(text: string): string {
  const code = (mark: string): string => mark.codePointAt(0)!.toString(16).padStart(4, "0");
  return text.replace(DIRECTIONS, mark => `⟨U+${code(mark).toUpperCase()}⟩`);
}

/**
 * For an element that takes the focus and answers to arrows itself: else a notebook takes them for
 * its own shortcuts. It looks for this on the focused element and not around it.
 */
export const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" } as const;

/** An HTML element; attributes that are null or false are left out, functions are listeners. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/** An SVG element, made like an HTML one. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(SVG, tag);
  fill(node, attributes, children);
  return node;
}

function fill(node: Element, attributes: Attributes, children: readonly Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (typeof value === "function") {
      node.addEventListener(name.replace(/^on/, ""), value);
    } else {
      const text = value === true ? "" : String(value);
      node.setAttribute(name, READ.has(name) ? directed(text) : text);
    }
  }
  append(node, children);
}

/** Append children, strings as text nodes. */
export function append(node: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) {
      continue;
    }
    if (typeof child === "string") {
      node.appendChild(document.createTextNode(directed(child)));
    } else if (child instanceof Node) {
      node.appendChild(child);
    } else {
      append(node, child as readonly Child[]);
    }
  }
}

/** Text in which words between backticks are code. */
export function prose(text: string): Child[] {
  return text
    .split(/(`[^`]*`)/)
    .filter(part => part.length > 0)
    .map(part =>
      part.length > 1 && part.startsWith("`") && part.endsWith("`")
        ? el("code", {}, part.slice(1, -1))
        : part
    );
}
