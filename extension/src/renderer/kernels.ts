// What does XLA run, and which equations ended in it?
//
// Read before: dom.ts. Read after: jaxpr.ts, compiled.ts.
// Invariant: a kernel carries the ids of its equations, so pointing at it lights them.
import type { Kernel } from "../schema";
import { el } from "./dom";
import type { Locale } from "./locale";
import { share } from "./parts";

/** The kernels of a program in the order they run, each with its share of the bytes. */
export function kernelList(kernels: readonly Kernel[], locale: Locale): HTMLElement {
  const most = Math.max(...kernels.map(k => k.share), 1e-9);
  return el(
    "ol",
    { class: "saem-kernels saem-scroll" },
    kernels.map(kernel =>
      el(
        "li",
        {
          class: "saem-kernel saem-line",
          "data-eqn": kernel.equations.join(" ") || null,
          tabindex: kernel.equations.length > 0 ? 0 : null,
          title: kernel.text
        },
        share(kernel.share / most),
        el("span", { class: "saem-share-number" }, `${Math.round(100 * kernel.share)}%`),
        el("code", { class: "saem-name" }, kernel.name),
        el("code", { class: "saem-t-type" }, kernel.type),
        el("span", { class: "saem-dim" }, locale.bytes(kernel.bytes)),
        el(
          "span",
          { class: "saem-dim" },
          kernel.equations.length > 1
            ? locale.say("compiled.fused", { n: kernel.equations.length })
            : kernel.equations.length === 0
              ? locale.say("compiled.copy")
              : ""
        ),
        kernel.operations.length > 0 &&
          el("code", { class: "saem-t-parameter" }, kernel.operations.join(" "))
      )
    )
  );
}
