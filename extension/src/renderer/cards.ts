// How is an error explained, and what did learners answer?
//
// Read before: detail.ts. Read after: view.ts.
// Invariant: the engine's own message is there too, as it was (test/views.test.ts).
import type { ErrorModel, GatesModel, Lesson } from "../schema";
import { placeLabel, type Visit } from "./detail";
import { el, prose, type Child } from "./dom";
import type { Locale } from "./locale";

/** Called with the file of a lesson that the reader wants to open. */
export type OpenLesson = (file: string) => void;

export function drawError(
  model: ErrorModel,
  locale: Locale,
  visit?: Visit,
  open?: OpenLesson
): HTMLElement {
  return el(
    "section",
    { class: "saem-error" },
    errorMeaning(model, locale, visit),
    model.got.length > 0 &&
      el(
        "p",
        {},
        el("span", { class: "saem-key" }, `${locale.say("error.got")} `),
        model.got.map((got, i) => [i > 0 && ", ", el("code", {}, got)])
      ),
    model.path.length > 0 &&
      el(
        "div",
        {},
        el("span", { class: "saem-key" }, locale.say("error.path")),
        el(
          "ol",
          { class: "saem-path-steps" },
          model.path.map(step =>
            el(
              "li",
              {},
              el("b", {}, step.name),
              step.place && [
                placeLabel(step.place, locale, visit),
                el("code", { class: "saem-dim" }, step.place.text)
              ]
            )
          )
        )
      ),
    el("span", { class: "saem-key" }, locale.say("error.mends")),
    el(
      "ol",
      { class: "saem-mends" },
      model.mends.map(mend => el("li", {}, prose(locale.pick(mend))))
    ),
    el(
      "p",
      { class: "saem-dim" },
      `${locale.say("error.lesson")}: `,
      lessonLink(model.lesson, locale, open)
    ),
    engineMessage(model, locale)
  );
}

/** What an error is called in the reader's language, where it arose, and what was needed. */
export function errorMeaning(model: ErrorModel, locale: Locale, visit?: Visit): Child {
  return [
    el(
      "header",
      {},
      el("b", { class: "saem-error-title" }, prose(locale.pick(model.title))),
      el("code", { class: "saem-dim" }, model.name),
      model.place && placeLabel(model.place, locale, visit)
    ),
    model.place?.text && el("code", { class: "saem-source-line" }, model.place.text),
    el("p", {}, prose(locale.pick(model.needed)))
  ];
}

/** The engine's own message, which is English, folded. */
export function engineMessage(model: ErrorModel, locale: Locale): HTMLElement {
  return el(
    "details",
    {},
    el("summary", {}, locale.say("error.message")),
    el("pre", { class: "saem-message" }, model.message)
  );
}

/** Opens the lesson in JupyterLab; in a page, leads to the lesson beside it. */
function lessonLink(lesson: Lesson, locale: Locale, open?: OpenLesson): HTMLElement {
  const name = locale.pick(lesson.label);
  if (open) {
    const act = (): void => open(lesson.file);
    return el("button", { type: "button", class: "saem-lesson saem-link", onclick: act }, name);
  }
  const page = /\.html?$/.test(document.location.pathname) ? "html" : "ipynb";
  return el("a", { class: "saem-lesson", href: `./${lesson.file}.${page}` }, name);
}

export function drawGates(model: GatesModel, locale: Locale): HTMLElement {
  const counts = (["right", "wrong", "waiting", "unanswered"] as const).map(
    state => [state, model.rows.filter(r => r.state === state).length] as const
  );
  const heads = ["gates.notebook", "gates.gate", "gates.guess", "gates.truth"] as const;
  return el(
    "section",
    { class: "saem-gates" },
    el(
      "header",
      { class: "saem-bar" },
      el("span", { class: "saem-title" }, locale.say("gates.title")),
      counts
        .filter(([, n]) => n > 0)
        .map(([state, n]) =>
          el("span", { class: `saem-gate-${state}` }, `${locale.say(`gates.${state}`)} ${n}`)
        )
    ),
    model.rows.length === 0
      ? el("p", { class: "saem-hint" }, locale.say("gates.none"))
      : el(
          "div",
          { class: "saem-scroll", tabindex: 0 },
          el(
            "table",
            { class: "saem-table" },
            el(
              "thead",
              {},
              el(
                "tr",
                {},
                heads.map(word => el("th", { scope: "col" }, locale.say(word))),
                el("th", { scope: "col" }, locale.say("gates.state"))
              )
            ),
            el(
              "tbody",
              {},
              model.rows.map(row =>
                el(
                  "tr",
                  {},
                  el("td", {}, row.notebook),
                  el("td", { title: row.question }, row.gate),
                  el("td", {}, prose(row.guess)),
                  el("td", {}, prose(row.truth)),
                  el(
                    "td",
                    { class: `saem-gate-${row.state}` },
                    locale.say(`gates.${row.state}`)
                  )
                )
              )
            )
          )
        ),
    model.unreadable.length > 0 &&
      el(
        "p",
        { class: "saem-dim" },
        locale.say("gates.unreadable", { names: model.unreadable.join(", ") })
      )
  );
}
