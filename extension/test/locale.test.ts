// Is every word there in both languages, and every number with the unit that suits it?
import assert from "node:assert/strict";
import { test } from "node:test";
import { WORDS } from "../src/schema";
import { Locale } from "../src/renderer/locale";

test("every word is there in English and Korean, with the same fields and code", () => {
  const all = WORDS;
  for (const [key, { en, ko }] of Object.entries(all)) {
    assert.ok(en.length > 0 && ko.length > 0, key);
    // A field such as {where_ko} is one that differs between the languages.
    const marks = (text: string): string[] =>
      (text.match(/\{\w+\}|`[^`]*`/g) ?? []).map(m => m.replace(/_(en|ko)\}$/, "}")).sort();
    assert.deepEqual(marks(en), marks(ko), key);
  }
});

test("the language of a locale's name", () => {
  for (const name of ["ko", "ko_KR", "ko-KR", "KO", "Korean_Korea.949"]) {
    assert.equal(Locale.of(name).language, "ko");
  }
  for (const name of ["en", "default", "fr_FR", "kok_IN"]) {
    assert.equal(Locale.of(name).language, "en");
  }
});

test("numbers", () => {
  const en = new Locale("en");
  assert.equal(en.seconds(0.00035), "350 µs");
  assert.equal(en.seconds(0.0496), "49.6 ms");
  assert.equal(en.seconds(1.3456), "1.35 s");
  assert.equal(en.bytes(1480), "1.48 kB");
  assert.equal(en.flops(2_500_000), "2.5 M");
  // What is rounded to the next unit is shown in it.
  assert.equal(en.flops(999_999), "1 M");
  assert.equal(en.seconds(0.99999), "1 s");
  assert.equal(en.bytes(999_999), "1 MB");
  assert.equal(en.count(1204), "1,204");
  assert.equal(new Locale("ko").brief(12_000), "1.2만");
});
