// Is a family of keys drawn, however deep it is?
import assert from "node:assert/strict";
import { test } from "node:test";
import { click, put, sample } from "./page";
import type { KeysModel } from "../src/schema";
import { drawKeys } from "../src/renderer/keys";
import { Locale } from "../src/renderer/locale";

test("a chain of 5,000 splits is drawn, folded; what is folded is drawn when it is opened", () => {
  const model = sample<KeysModel>("keys");
  const keys = Array.from({ length: 5000 }, (_, i) => ({
    ...model.keys[0]!,
    id: `k${i}`,
    parent: i ? `k${i - 1}` : null
  }));
  const view = put(drawKeys({ ...model, keys }, new Locale("en")));
  const drawn = (): number => view.querySelectorAll(".saem-key-node").length;
  assert.equal(drawn(), 1);
  click(view.querySelector(".saem-key-fold"));
  assert.equal(drawn(), 2);
  const reused = keys.map(key => ({ ...key, reused: true }));
  put(drawKeys({ ...model, keys: reused }, new Locale("en")));
});
