// What is shown of one equation?
//
// Read before: detail.ts. Read after: jaxpr.ts.
// Invariant: every field of the equation that says something is there (test/jaxpr.test.ts).
import type { Equation, JaxprModel } from "../schema";
import { placeLabel, type Visit } from "./detail";
import { el, type Child } from "./dom";
import type { Locale } from "./locale";
import { fact, facts } from "./parts";

/** The facts of one equation, as a list. */
export function card(
  equation: Equation,
  model: JaxprModel,
  locale: Locale,
  visit?: Visit
): HTMLElement {
  const { stack, parameters, inputs, outputs, primitive, colour, flops, bytes } = equation;
  const place = model.places[equation.place ?? -1];
  // Notebooks saved by earlier versions know no callers.
  const callers = (model.callers?.[equation.place ?? -1] ?? []).map(n => model.places[n]!);
  const kernels = (model.kernels ?? []).filter(k => k.equations.includes(equation.id));
  const atoms = (list: typeof inputs): Child[] =>
    list.map(a => el("code", { "data-var": a.id }, a.id === null ? a.text : `${a.text}:${a.type}`));
  return facts(
    fact(
      locale.say("equation"),
      el("code", { class: `saem-primitive saem-${colour}` }, primitive)
    ),
    fact(locale.say("inputs"), atoms(inputs)),
    fact(locale.say("outputs"), atoms(outputs)),
    parameters.length > 0 &&
      fact(
        locale.say("parameters"),
        parameters.map(p => el("code", {}, `${p.name}=${p.value}`))
      ),
    flops !== null && fact(locale.say("cost.flops"), locale.flops(flops)),
    bytes > 0 && fact(locale.say("bytes"), locale.bytes(bytes)),
    kernels.length > 0 &&
      fact(
        locale.say("kernel"),
        kernels.map(k => el("code", {}, k.name))
      ),
    stack.length > 0 && fact(locale.say("stack"), stack.join(" ▸ ")),
    place &&
      fact(
        locale.say("place"),
        placeLabel(place, locale, visit),
        place.function && el("code", {}, place.function),
        place.text && el("code", { class: "saem-source-line" }, place.text)
      ),
    callers.length > 0 &&
      fact(
        locale.say("callers"),
        el(
          "ol",
          { class: "saem-frames" },
          callers.map(caller =>
            el(
              "li",
              {},
              placeLabel(caller, locale, visit),
              el("code", { class: "saem-source-line" }, caller.text)
            )
          )
        )
      )
  );
}
