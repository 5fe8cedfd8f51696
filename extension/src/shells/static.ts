// How does a view live in a page with no server: nbconvert, GitHub Pages, a file, an output frame?
//
// A classic script that stands beside its data:
//
//   <div class="saem-static" data-locale="ko">
//     … what is seen without scripts, class "saem-fallback" …
//     <script type="application/json">{"kind": …}</script>
//     <script>(this file)</script>
//   </div>
//
// It brings its style, asks the network for nothing, and leaves the page as it was if it fails.
// Read before: ../renderer/view.ts. Read after: nothing.
// Invariant: each block of data is shown once (tests/browser).
import { el } from "../renderer/dom";
import { Locale } from "../renderer/locale";
import { showJson } from "../renderer/view";

// The style sheet, put in by scripts/build-shells.mjs.
declare const SAEM_STYLE: string;

const DATA = 'script[type="application/json"]';

function start(): void {
  const own = document.currentScript?.parentElement;
  const beside = own?.querySelector(DATA);
  const blocks = beside ? [beside] : document.querySelectorAll(`.saem-static ${DATA}`);
  for (const block of blocks) {
    const home = block.parentElement;
    if (!home || home.hasAttribute("data-shown")) {
      continue;
    }
    home.setAttribute("data-shown", "");
    const locale = Locale.of(home.dataset.locale || document.documentElement.lang);
    const view = showJson(block.textContent ?? "", { locale });
    home.append(el("style", {}, SAEM_STYLE), view);
    for (const fallback of home.querySelectorAll<HTMLElement>(".saem-fallback")) {
      fallback.hidden = true;
    }
  }
}

if (document.readyState === "loading" && !document.currentScript) {
  document.addEventListener("DOMContentLoaded", start);
} else {
  start();
}
