// How does an output of Saem look in JupyterLab?
//
// The same views as in a page, from the same model, with what only JupyterLab can add: Graphviz's
// drawing, links to cells, inlay hints, and no scripts in the notebook to be trusted.
// Read before: ../renderer/view.ts. Read after: index.ts.
// Invariant: Graphviz is loaded when the first jaxpr is shown, never before.
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import { Widget } from "@lumino/widgets";
import type { Visit } from "../renderer/detail";
import { graphvizEngine } from "../renderer/graphviz";
import { dagreEngine, type LayoutEngine } from "../renderer/layout";
import type { Locale } from "../renderer/locale";
import { show } from "../renderer/view";
import { VERSION, type TracersModel } from "../schema";

export const MIME = "application/vnd.saem.lens.v2+json";
const DRAWN = new Set(["jaxpr", "steps", "autodiff", "bench", "compiled"]);

let engine: Promise<LayoutEngine> | null = null;

/** Graphviz, loaded once; where it cannot be loaded, dagre. */
function graphviz(): Promise<LayoutEngine> {
  engine ??= import("@hpcc-js/wasm-graphviz")
    .then(async ({ Graphviz }) => graphvizEngine(await Graphviz.load()))
    .catch(() => dagreEngine);
  return engine;
}

export interface Surroundings {
  readonly locale: () => Locale;
  readonly visit: Visit;
  readonly lesson: (file: string) => void;
  readonly hint: (model: TracersModel) => void;
}

/** A model shown with what JupyterLab adds. */
export function showHere(data: unknown, surroundings: Surroundings): HTMLElement {
  const { visit, lesson } = surroundings;
  const model = data as { kind?: string; version?: number } | undefined;
  if (model?.kind === "tracers" && model.version === VERSION) {
    surroundings.hint(data as TracersModel);
  }
  const drawing = DRAWN.has(model?.kind ?? "") ? graphviz() : dagreEngine;
  return show(data, { locale: surroundings.locale(), visit, lesson, engine: drawing });
}

/** The factory that JupyterLab asks for a renderer of our mime type. */
export function mimeFactory(surroundings: Surroundings): IRenderMime.IRendererFactory {
  return {
    safe: true,
    mimeTypes: [MIME],
    // Ahead of text/html (50), which holds the same view as a script.
    defaultRank: 40,
    createRenderer: () => new ModelOutput(surroundings)
  };
}

class ModelOutput extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly surroundings: Surroundings) {
    super();
    this.addClass("saem-output");
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.node.replaceChildren(showHere(model.data[MIME], this.surroundings));
  }
}
