// Which words does JupyterLab's panel say itself?
//
// English goes through JupyterLab's translator (domain `saem_lens`), so that a language pack may
// translate it; Korean is ours and is always there.
// Read before: ../renderer/locale.ts. Read after: panel.ts.
// Invariant: every word is there in English and Korean (test/locale.test.ts).
import type { ITranslator } from "@jupyterlab/translation";
import { Locale } from "../renderer/locale";
import type { Text } from "../schema";

export const DOMAIN = "saem_lens";

export const PANEL_WORDS = {
  "title": { en: "Saem lens", ko: "샘 렌즈" },
  "toggle": { en: "Show or Hide the Saem Lens", ko: "샘 렌즈 보이기/숨기기" },
  "clear": { en: "Forget the Compile History", ko: "컴파일 이력 지우기" },
  "clear.short": { en: "Clear", ko: "지우기" },
  "connect": { en: "Connect the Saem Lens Again", ko: "샘 렌즈 다시 연결" },
  "connect.short": { en: "Connect again", ko: "다시 연결" },
  "load": { en: "Load the lens", ko: "렌즈 불러오기" },
  "none": {
    en: "Open a notebook: the lens follows the one you work in.",
    ko: "노트북을 여세요. 렌즈는 작업 중인 노트북을 따라갑니다."
  },
  "noKernel": {
    en: "This notebook has no kernel. Choose one from the Kernel menu.",
    ko: "이 노트북에 커널이 없습니다. 커널 메뉴에서 고르세요."
  },
  "language": {
    en: "This notebook's kernel is not Python. The lens shows what Saem does in a Python kernel.",
    ko: "이 노트북의 커널은 파이썬이 아닙니다. 렌즈는 파이썬 커널에서 샘이 하는 일을 보여 줍니다."
  },
  "connecting": { en: "Asking the kernel …", ko: "커널에 묻는 중 …" },
  "restarting": { en: "The kernel is restarting …", ko: "커널을 다시 시작하는 중 …" },
  "dead": {
    en: "The kernel has died. Restart it from the Kernel menu; the history starts anew.",
    ko: "커널이 멈췄습니다. 커널 메뉴에서 다시 시작하세요. 이력은 처음부터 다시 쌓입니다."
  },
  "absent": {
    en:
      "The lens is not loaded in this kernel. " +
      "Run `%load_ext saem.lens` in a cell, or load it here:",
    ko: "이 커널에는 렌즈가 없습니다. 셀에서 `%load_ext saem.lens`를 실행하거나 여기서 불러오세요."
  },
  "notInstalled": {
    en:
      "Saem could not be loaded in this kernel ({why}). " +
      "Install it there: `%pip install 'saem[lens]'`.",
    ko: "이 커널에서 샘을 불러오지 못했습니다({why}). 설치하세요: `%pip install 'saem[lens]'`"
  },
  "version": {
    en:
      "The kernel's Saem speaks protocol version {got}, this panel version {have}. Update the " +
      "older one (`pip install -U saem` in both environments), restart the kernel and reload " +
      "the page.",
    ko:
      "커널의 샘은 프로토콜 버전 {got}, 이 패널은 버전 {have}입니다. 두 환경에서 " +
      "`pip install -U saem`을 실행한 뒤 커널을 다시 시작하고 페이지를 새로 고치세요."
  },
  "waiting": {
    en: "The lens is watching. Call a function under `jit`, `grad` or `vmap` and it appears here.",
    ko: "렌즈가 지켜보고 있습니다. `jit`, `grad`, `vmap`을 거친 함수를 호출하면 여기에 나타납니다."
  },
  "total": { en: "{compiles} compiled · {seconds}", ko: "컴파일 {compiles} · {seconds}" },
  "badge": {
    en: "{n} traced here. Show in the lens.",
    ko: "여기서 추적 {n}번. 렌즈에서 보기."
  }
} as const satisfies { readonly [key: string]: Text };

export type PanelWord = keyof typeof PANEL_WORDS;

/** What the panel says, in the language chosen in the settings or, with `auto`, JupyterLab's. */
export class Words {
  readonly locale: Locale;

  constructor(
    private readonly translator: ITranslator,
    choice: string
  ) {
    const own = translator.languageCode;
    this.locale = Locale.of(choice === "ko" || choice === "en" ? choice : own);
  }

  say(word: PanelWord, fields: Readonly<{ [name: string]: string | number }> = {}): string {
    const text = PANEL_WORDS[word];
    const said =
      this.locale.language === "ko"
        ? text.ko
        : // A pack for a third language may translate our English.
          this.translator.load(DOMAIN).__(text.en);
    return said.replace(/\{(\w+)\}/g, (whole, name: string) =>
      name in fields ? String(fields[name]) : whole
    );
  }
}
