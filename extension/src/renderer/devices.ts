// Where do arrays live, how are they sharded, what moved, and what was given away?
//
// Read before: dom.ts. Read after: view.ts.
// Invariant: every shard is drawn where it lies in its array (test/views.test.ts).
import type { DevicesModel, HeldArray } from "../schema";
import { placeLabel, type Visit } from "./detail";
import { el, svg, type Child } from "./dom";
import type { Locale } from "./locale";

const WIDE = 96;
const TALL = 56;
const TONES = 8;

export function drawDevices(model: DevicesModel, locale: Locale, visit?: Visit): HTMLElement {
  return el(
    "section",
    {},
    el(
      "ul",
      { class: "saem-legend" },
      model.devices.map(d =>
        el(
          "li",
          {},
          el("span", { class: `saem-swatch saem-device-${d.id % TONES}`, "aria-hidden": "true" }),
          d.description
        )
      )
    ),
    heading(locale.say("devices.arrays")),
    model.arrays.length === 0 && el("p", { class: "saem-hint" }, locale.say("devices.none")),
    el(
      "ul",
      { class: "saem-arrays" },
      model.arrays.map(a => drawArray(a, model.devices.length, locale))
    ),
    model.moved.length > 0 && [
      heading(locale.say("devices.moved")),
      el(
        "ul",
        {},
        model.moved.map(m =>
          el(
            "li",
            {},
            el("code", {}, `${m.source} → ${m.target}`),
            ` ${locale.say("times", { n: locale.count(m.count) })}, ${locale.bytes(m.bytes)} `,
            m.place && placeLabel(m.place, locale, visit)
          )
        )
      )
    ],
    model.donated.length > 0 && [
      heading(locale.say("devices.donated")),
      el(
        "ul",
        {},
        model.donated.map(d =>
          el(
            "li",
            {},
            el("code", {}, `${d.function}(${d.path})`),
            ` ${locale.say("times", { n: locale.count(d.count) })}, ${locale.bytes(d.bytes)}, `,
            locale.say("devices.reused", { n: d.reused })
          )
        )
      )
    ]
  );
}

function heading(text: string): HTMLElement {
  return el("h4", { class: "saem-heading" }, text);
}

function drawArray(array: HeldArray, devices: number, locale: Locale): HTMLElement {
  const whole = array.shards.length === 1 && array.shards[0]!.devices.length > 1;
  const marks: Child[] = [
    array.committed && locale.say("devices.committed"),
    whole && locale.say("devices.replicated")
  ];
  return el(
    "li",
    { class: "saem-array" },
    devices > 1 && shards(array),
    el(
      "div",
      {},
      el("code", { class: "saem-name" }, array.name),
      " ",
      el("code", { class: "saem-t-type" }, array.type),
      el(
        "p",
        { class: "saem-dim" },
        [locale.bytes(array.bytes), array.sharding, ...marks].filter(Boolean).join(" · ")
      )
    )
  );
}

function shards(array: HeldArray): SVGSVGElement {
  const label = array.shards.map(s => s.devices.join(", ")).join(" | ");
  return svg(
    "svg",
    { class: "saem-shards", width: WIDE, height: TALL, role: "img", "aria-label": label },
    array.shards.map(s => {
      const [x, y] = [s.left * WIDE, s.top * TALL];
      const [width, height] = [s.width * WIDE, s.height * TALL];
      return svg(
        "g",
        {},
        svg("rect", {
          class: `saem-device-${(s.devices[0] ?? 0) % TONES}`,
          x: x + 0.5,
          y: y + 0.5,
          width: Math.max(0, width - 1),
          height: Math.max(0, height - 1)
        }),
        svg(
          "text",
          { x: x + width / 2, y: y + height / 2 + 4, class: "saem-mid" },
          s.devices.join(",")
        )
      );
    })
  );
}
