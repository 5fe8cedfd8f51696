// How is data put on the page?
//
// Every view builds its nodes with `el` and `svg`. Data enters as text nodes and attribute values
// and in no other way: there is no innerHTML anywhere in the renderer.
// Read before: nothing. Read after: locale.ts, history.ts, jaxpr.ts.
// Invariant: hostile strings stay text (test/escape.test.ts).

export type Child = Node | string | null | undefined | false | readonly Child[];
type Value = string | number | boolean | null | undefined | EventListener;
export type Attributes = Readonly<Record<string, Value>>;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are null or false are left out, `onclick` and kin listen. */
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
      node.setAttribute(name, value === true ? "" : String(value));
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
      node.appendChild(document.createTextNode(child));
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
