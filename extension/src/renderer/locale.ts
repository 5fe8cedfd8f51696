// Which words does the reader see?
//
// Sentences and labels come from the kernel's schema in both languages. This file adds the words
// of buttons and messages that only a browser shows, as data in the same form, and the numbers.
// Read before: ../schema.ts. Read after: history.ts, jaxpr.ts.
// Invariant: every word is there in English and Korean (test/locale.test.ts).
import { LABELS, type Language, type Text } from "../schema";

export const WORDS = {
  "fold": { en: "Fold", ko: "접기" },
  "unfold": { en: "Unfold", ko: "펼치기" },
  "fold.count": { en: "{n} equations folded", ko: "방정식 {n}개 접힘" },
  "fold.all": { en: "Fold all", ko: "모두 접기" },
  "unfold.all": { en: "Unfold all", ko: "모두 펼치기" },
  "times": { en: "{n} times", ko: "{n}번" },
  "marks": { en: "What happened to {name}, oldest first", ko: "{name}: 일어난 일, 오래된 순" },
  "close": { en: "Close details", ko: "상세 닫기" },
  "legend": { en: "Legend", ko: "범례" },
  "signature": { en: "Called with", ko: "호출한 값" },
  "programId": { en: "Program", ko: "프로그램" },
  "version": { en: "version {n}", ko: "버전 {n}" },
  "old": { en: "before", ko: "이전" },
  "new": { en: "now", ko: "지금" },
  "type": { en: "Type", ko: "타입" },
  "pick": {
    en:
      "Point at a line, an equation or a node to see where it comes from and goes to. " +
      "Click to keep it.",
    ko: "줄, 방정식, 노드를 가리키면 어디서 왔고 어디로 가는지 보입니다. 누르면 고정됩니다."
  },
  "input": { en: "input", ko: "입력" },
  "constant": { en: "constant", ko: "상수" },
  "output": { en: "output", ko: "출력" },
  "layingOut": { en: "Drawing the graph …", ko: "그래프를 그리는 중 …" },
  "noLayout": { en: "The graph could not be drawn: {why}", ko: "그래프를 그리지 못했습니다: {why}" },
  "unknownModel": {
    en:
      "This view understands version {have} of Saem's data, but got {got}. Update the older of " +
      "the two: run `pip install -U saem`, then reload the page.",
    ko:
      "이 화면이 읽는 샘 데이터 버전: {have}, 받은 버전: {got}. " +
      "`pip install -U saem`을 실행한 뒤 페이지를 새로 고치세요."
  },
  "badModel": {
    en: "Saem's data could not be read here: {why}",
    ko: "샘 데이터를 읽지 못했습니다: {why}"
  }
} as const satisfies Record<string, Text>;

export type Word = keyof typeof WORDS;
export type Label = keyof typeof LABELS;

/** The words and numbers of one language. */
export class Locale {
  constructor(readonly language: Language) {}

  /** The reader's language from a locale name such as ko_KR, ko-KR, Korean or en. */
  static of(name: string | null | undefined): Locale {
    const wanted = name || (typeof navigator === "undefined" ? "en" : navigator.language);
    return new Locale(wanted.toLowerCase().startsWith("ko") ? "ko" : "en");
  }

  /** One of the kernel's sentences. */
  pick(text: Text): string {
    return text[this.language] || text.en;
  }

  /** A fixed label of the schema. */
  label(key: Label): string {
    return this.pick(LABELS[key]);
  }

  /** A word of this file, with its fields filled. */
  word(key: Word, fields: Readonly<Record<string, string | number>> = {}): string {
    return this.pick(WORDS[key]).replace(/\{(\w+)\}/g, (whole, name: string) =>
      name in fields ? String(fields[name]) : whole
    );
  }

  /** A count with separators. */
  count(n: number): string {
    return new Intl.NumberFormat(this.language).format(n);
  }

  /** A count in little room: 1.2K, 1.2천. */
  brief(n: number): string {
    const options = { notation: "compact", maximumFractionDigits: 1 } as const;
    return new Intl.NumberFormat(this.language, options).format(n);
  }

  /** Seconds with the unit that suits them: 350 µs, 2.1 ms, 1.35 s. */
  seconds(s: number): string {
    if (s >= 1) {
      return `${this.digits(s)} s`;
    }
    return s >= 1e-3 ? `${this.digits(s * 1e3)} ms` : `${this.digits(s * 1e6)} µs`;
  }

  /** Bytes in powers of 1024. */
  bytes(n: number): string {
    return this.scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
  }

  /** A large count in powers of 1000. */
  flops(n: number): string {
    return this.scaled(n, 1000, ["", "k", "M", "G", "T", "P"]);
  }

  private scaled(n: number, base: number, units: readonly string[]): string {
    let at = 0;
    let value = n;
    while (value >= base && at + 1 < units.length) {
      value /= base;
      at += 1;
    }
    return `${this.digits(value)} ${units[at]}`.trim();
  }

  private digits(value: number): string {
    const options = { maximumSignificantDigits: value >= 100 ? 4 : 3 };
    return new Intl.NumberFormat(this.language, options).format(value);
  }
}
