// In which language does the extension speak in JupyterLab?
//
// In the one chosen in the settings or, with `auto`, in JupyterLab's. English goes through
// JupyterLab's translator (domain `saem_lens`), so that a language pack may translate it; Korean is
// ours and is always there.
// Read before: ../renderer/locale.ts. Read after: panel.ts.
// Invariant: the words are those of the one table (kernel/saem/observe/words.py).
import type { ITranslator } from "@jupyterlab/translation";
import { Locale } from "../renderer/locale";

const DOMAIN = "saem_lens";

/** The locale for a choice of the settings: "auto", "ko" or "en". */
export function localeOf(translator: ITranslator, choice: string): Locale {
  const wanted = choice === "ko" || choice === "en" ? choice : translator.languageCode;
  const pack = translator.load(DOMAIN);
  return new Locale(Locale.of(wanted).language, english => pack.__(english));
}
