// How does a view live in a page with no server: nbconvert, GitHub Pages, a file, an output frame?
//
// A classic script that a page's loader (kernel/saem/lens/page.py) unpacks and runs once; it leaves
// one function, `saemShow(home, json)`, which shows a model inside the element `home`:
//
//   <div class="saem-static" data-locale="ko">
//     … what is seen without scripts, class "saem-fallback" …
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

function saemShow(home: HTMLElement, json: string): void {
  const locale = Locale.of(home.dataset.locale || document.documentElement.lang);
  const view = showJson(json, { locale });
  home.append(el("style", {}, SAEM_STYLE), view);
  // Jupyter's bullets and grounds of code are for texts, and no part of a view.
  home.closest(".jp-RenderedHTMLCommon")?.classList.remove("jp-RenderedHTMLCommon");
  // A long history's table would take more memory than its view.
  home.querySelectorAll(".saem-fallback").forEach(fallback => fallback.remove());
}

Object.assign(window, { saemShow });
