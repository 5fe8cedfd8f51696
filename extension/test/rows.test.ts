// Is row `i` on the page what `draw(i)` makes, however many rows there are?
import assert from "node:assert/strict";
import { test } from "node:test";
import { page, put } from "./page";
import { Rows } from "../src/renderer/rows";

function rows(): Rows {
  return new Rows(20, index => {
    const row = page.createElement("p");
    row.textContent = `row ${index}`;
    return row;
  });
}

const drawn = (made: Rows): string[] =>
  [...made.element.querySelectorAll("p")].map(row => row.textContent ?? "");

test("few rows are all there", () => {
  const made = rows();
  put(made.element);
  made.set(250);
  assert.equal(drawn(made).length, 250);
  assert.equal(made.row(249)?.textContent, "row 249");
});

test("the row that has the focus keeps it when it is drawn anew, and comes back to it", () => {
  const draw = (index: number): HTMLElement => {
    const row = page.createElement("p");
    row.tabIndex = -1;
    row.textContent = `row ${index}`;
    return row;
  };
  const made = new Rows(20, draw, () => {}, { tabindex: "-1" });
  put(made.element);
  made.set(5000);
  made.row(3)!.focus();
  made.set(5000);
  assert.equal(page.activeElement?.textContent, "row 3");
  assert.equal(made.row(3)!.tabIndex, 0);
  made.show(3000);
  assert.equal(page.activeElement, made.element);
  assert.equal(made.element.querySelectorAll("[tabindex='0']").length, 1);
  made.show(0);
  assert.equal(page.activeElement?.textContent, "row 3");
  made.focus(4000);
  assert.equal(page.activeElement?.textContent, "row 4000");
  assert.deepEqual([...made.element.querySelectorAll("[tabindex='0']")], [made.row(4000)]);
});

test("of many rows those in sight are there, each the one of its number", () => {
  const made = rows();
  put(made.element);
  made.set(5000);
  assert.ok(drawn(made).length < 100);
  assert.equal(made.row(0)?.textContent, "row 0");
  assert.equal(made.row(3000), null);
  made.show(3000);
  assert.equal(made.row(3000)?.textContent, "row 3000");
  assert.equal(made.row(0), null);
  made.set(10);
  assert.deepEqual(drawn(made).length, 10);
});
