// How large is a drawing shown?
//
// At first as large as fits its frame (never larger than drawn, never too small to be read); then
// as the reader wishes: buttons, + and -, 0 for "fit", Ctrl and the wheel. Dragging moves it.
// Read before: draw.ts. Read after: jaxpr.ts.
// Invariant: the point under the pointer stays there while zooming.
import { el } from "./dom";
import type { Locale } from "./locale";
import { signButton } from "./parts";

const SMALLEST = 0.25;
const LARGEST = 3;
const STEP = 1.25;

export class Zoom {
  readonly element: HTMLElement;
  private readonly frame = el("div", { class: "saem-scroll saem-graph-box", tabindex: -1 });
  private readonly shown = el("output", { class: "saem-zoom-scale" });
  private readonly words = el("p", { class: "saem-zoom-note saem-dim" });
  private drawing: SVGSVGElement | null = null;
  private size = { width: 1, height: 1 };
  private scale = 1;
  private fits = true;

  constructor(locale: Locale) {
    this.element = el(
      "div",
      { class: "saem-zoom" },
      this.frame,
      this.words,
      el(
        "div",
        { class: "saem-tools saem-zoom-tools" },
        signButton("−", locale.say("zoom.out"), () => this.by(1 / STEP)),
        this.shown,
        signButton("+", locale.say("zoom.in"), () => this.by(STEP)),
        signButton("⤢", locale.say("zoom.fit"), () => this.fit())
      )
    );
    this.frame.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    this.frame.addEventListener("pointerdown", event => this.onDrag(event));
    this.element.addEventListener("keydown", event => this.onKey(event));
    if (typeof ResizeObserver !== "undefined") {
      new ResizeObserver(() => this.fits && this.fit()).observe(this.frame);
    }
  }

  /** Show a drawing whose natural size is written on it. */
  show(drawing: SVGSVGElement): void {
    this.drawing = drawing;
    this.size = {
      width: Number(drawing.getAttribute("width")) || 1,
      height: Number(drawing.getAttribute("height")) || 1
    };
    this.frame.replaceChildren(drawing);
    if (this.fits) {
      this.fit();
    } else {
      this.set(this.scale);
    }
  }

  /** Show words where the drawing would be. */
  say(text: string): void {
    this.drawing = null;
    this.frame.replaceChildren(el("p", { class: "saem-empty" }, text));
  }

  /** A remark in the corner. */
  note(text: string): void {
    this.words.textContent = text;
  }

  /** As large as the frame allows, at most as drawn. */
  fit(): void {
    this.fits = true;
    const room = this.frame.clientWidth - 28;
    this.set(room > 0 ? Math.min(1, Math.max(0.4, room / this.size.width)) : 1);
  }

  private by(factor: number, x = this.frame.clientWidth / 2, y = this.frame.clientHeight / 2) {
    const { frame } = this;
    const before = this.scale;
    this.fits = false;
    this.set(this.scale * factor);
    const ratio = this.scale / before;
    frame.scrollLeft = (frame.scrollLeft + x) * ratio - x;
    frame.scrollTop = (frame.scrollTop + y) * ratio - y;
  }

  private set(scale: number): void {
    this.scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    this.drawing?.setAttribute("width", String(Math.round(this.size.width * this.scale)));
    this.drawing?.setAttribute("height", String(Math.round(this.size.height * this.scale)));
    this.shown.textContent = `${Math.round(this.scale * 100)}%`;
  }

  private onWheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const box = this.frame.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY / 300);
      this.by(factor, event.clientX - box.left, event.clientY - box.top);
    }
  }

  private onDrag(event: PointerEvent): void {
    if (event.button !== 0 || (event.target as Element).closest(".saem-node, .saem-edge")) {
      return;
    }
    const { frame } = this;
    const start = { x: event.clientX + frame.scrollLeft, y: event.clientY + frame.scrollTop };
    const move = (moved: PointerEvent): void => {
      frame.scrollLeft = start.x - moved.clientX;
      frame.scrollTop = start.y - moved.clientY;
    };
    const end = (): void => {
      frame.removeEventListener("pointermove", move);
      frame.classList.remove("saem-dragging");
    };
    frame.setPointerCapture?.(event.pointerId);
    frame.classList.add("saem-dragging");
    frame.addEventListener("pointermove", move);
    frame.addEventListener("pointerup", end, { once: true });
    frame.addEventListener("pointercancel", end, { once: true });
  }

  private onKey(event: KeyboardEvent): void {
    const factor = { "+": STEP, "=": STEP, "-": 1 / STEP }[event.key];
    if (factor && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.by(factor);
    } else if (event.key === "0" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.fit();
    }
  }
}
