// Which words does the reader see?
//
// All words come from the kernel's table (kernel/saem/observe/words.py) in both languages, as
// generated data. This file picks a language, fills fields in, and writes numbers.
// Read before: ../schema.ts. Read after: history.ts, jaxpr.ts.
// Invariant: every word is there in English and Korean (test/locale.test.ts).
import { WORDS, type Language, type Text } from "../schema";

export type Word = keyof typeof WORDS;
type Fields = Readonly<Record<string, string | number>>;

/** The words and numbers of one language. */
export class Locale {
  /** `translated` turns our English into a third language, where a language pack has it. */
  constructor(
    readonly language: Language,
    private readonly translated: (english: string) => string = text => text
  ) {}

  /** The reader's language from a locale name such as ko_KR, ko-KR, Korean or en. */
  static of(name: string | null | undefined): Locale {
    const wanted = name || (typeof navigator === "undefined" ? "en" : navigator.language);
    return new Locale(/^(ko|kor|korean)(?![a-z])/i.test(wanted) ? "ko" : "en");
  }

  /** One of the kernel's sentences. */
  pick(text: Text): string {
    return text[this.language] || text.en;
  }

  /** A word of the table, with its fields filled. */
  say(key: Word, fields: Fields = {}): string {
    const text = WORDS[key];
    const said = this.language === "ko" ? text.ko : this.translated(text.en);
    return said.replace(/\{(\w+)\}/g, (whole, name: string) =>
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
    return this.scaled(s * 1e6, ["µs", "ms", "s"]);
  }

  /** Bytes in powers of 1000, as in the text form of the views. */
  bytes(n: number): string {
    return this.scaled(n, ["B", "kB", "MB", "GB", "TB"]);
  }

  /** A large count in powers of 1000. */
  flops(n: number): string {
    return this.scaled(n, ["", "k", "M", "G", "T", "P"]);
  }

  private scaled(n: number, units: readonly string[]): string {
    let at = 0;
    let value = n;
    // 999.96 is shown as 1000, and so belongs to the next unit.
    while (Number(value.toPrecision(4)) >= 1000 && at + 1 < units.length) {
      value /= 1000;
      at += 1;
    }
    return `${this.digits(value)} ${units[at]}`.trim();
  }

  private digits(value: number): string {
    const options = { maximumSignificantDigits: value >= 100 ? 4 : 3 };
    return new Intl.NumberFormat(this.language, options).format(value);
  }
}
