// Is anything at all shown without an exception, and what cannot be shown said?
import assert from "node:assert/strict";
import { test } from "node:test";
import { HISTORY, JAXPR } from "./page";
import { Locale } from "../src/renderer/locale";
import { show, showJson } from "../src/renderer/view";
import { VERSION } from "../src/schema";

const STRANGE: readonly unknown[] = [
  null, 7, "text", [], {}, { kind: "history" }, { kind: "none", version: VERSION },
  { kind: "history", version: VERSION }, { kind: "jaxpr", version: VERSION, body: 3 },
  { ...HISTORY, version: 99 }, { ...JAXPR, lines: null }
];

test("what is not a model is said in the reader's language, and nothing is thrown", () => {
  for (const language of ["en", "ko"] as const) {
    const locale = new Locale(language);
    for (const model of STRANGE) {
      const root = show(model, { locale });
      assert.equal(root.lang, language);
      assert.ok(root.querySelector(".saem-notice"), JSON.stringify(model).slice(0, 60));
    }
    assert.ok(showJson("{", { locale }).querySelector(".saem-notice"));
  }
});

test("another version names both versions", () => {
  const root = show({ ...HISTORY, version: 99 }, { locale: new Locale("en") });
  assert.match(root.textContent ?? "", new RegExp(`version ${VERSION} .* got 99`));
});
