// What did XLA make of a program?
//
// Kernels with their share of the bytes, beside the jaxpr they came from; memory and costs.
// Read before: jaxpr.ts, kernels.ts. Read after: view.ts.
// Invariant: pointing at a kernel lights its equations (link.ts).
import type { CompiledModel } from "../schema";
import { costRows } from "./detail";
import { el } from "./dom";
import { JaxprView, type JaxprOptions } from "./jaxpr";
import { kernelList } from "./kernels";
import { fact, facts, pane } from "./parts";

export function drawCompiled(model: CompiledModel, options: JaxprOptions): HTMLElement {
  const { locale } = options;
  const { jaxpr, cost, seconds } = model;
  const kernels = jaxpr.kernels ?? [];
  const view = new JaxprView({ ...jaxpr, kernels: [] }, options);
  const rows = costRows(cost, locale);
  if (seconds !== null) {
    rows.push([locale.say("seconds.compile"), locale.seconds(seconds)]);
  }
  const sizes = (["argument_bytes", "output_bytes", "temp_bytes"] as const).map(
    name => [name, cost[name] ?? 0] as const
  );
  const total = sizes.reduce((n, [, size]) => n + size, 0) || 1;
  view.element.prepend(
    pane(
      "",
      `${locale.say("compiled.kernels")} (${kernels.length})`,
      kernelList(kernels, locale)
    ),
    el(
      "div",
      { class: "saem-memory" },
      el(
        "div",
        { class: "saem-time-bar", "aria-hidden": "true" },
        sizes.map(([name, size]) =>
          el("span", { class: `saem-memory-${name}`, style: `flex-grow:${size / total}` })
        )
      ),
      facts(rows.map(([name, value]) => fact(name, value)))
    )
  );
  return el(
    "section",
    {},
    el(
      "header",
      { class: "saem-bar" },
      el("span", { class: "saem-title" }, locale.say("compiled.title")),
      // Notebooks stored before there was this number have none.
      (model.devices ?? 1) > 1 &&
        el("span", { class: "saem-dim" }, locale.say("compiled.devices", { n: model.devices }))
    ),
    view.element
  );
}
