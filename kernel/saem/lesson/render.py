"""What does a gate look like, as text and as HTML that needs no program to be read?

Read before: ``saem.lesson.gates``.  Read after: ``saem.lesson.screen``, ``saem.lesson.notebook``.
Invariant: what came from a lesson or a learner is escaped (tests/notebooks/test_gates.py).
"""

from __future__ import annotations

from saem.lesson.gates import Choice, Gate
from saem.lesson.words import language, say
from saem.observe.markup import code_spans, escaped

STYLE = """
.saem-gate, .saem-gate-verdict {
  color-scheme: light dark; --saem-gate-accent: light-dark(#1f6b87, #66bfdc);
}
:is([data-jp-theme-light="true"], .vscode-light, [theme="light"])
  :is(.saem-gate, .saem-gate-verdict) { color-scheme: light; }
:is([data-jp-theme-light="false"], .vscode-dark, [theme="dark"])
  :is(.saem-gate, .saem-gate-verdict) { color-scheme: dark; }
.saem-gate {
  border-left: 4px solid var(--saem-gate-accent); border-radius: 4px; padding: 0.6em 1em;
  margin: 0.4em 0; background: color-mix(in srgb, var(--saem-gate-accent) 6%, transparent);
}
.saem-box { width: 12px; height: 12px; background: var(--saem-gate-accent); border-radius: 2px; }
.saem-drawn { display: flex; align-items: center; gap: 0.6em; margin: 0.4em 2px; }
.saem-gate-title { font-weight: 600; color: var(--saem-gate-accent); }
.saem-gate .widget-radio-box { display: flex; flex-direction: column; }
.saem-gate .widget-radio-box label { display: flex; gap: 0.5em; align-items: center; }
.saem-gate .widget-radio-box input { order: -1; margin: 0; }
.saem-gate .saem-gate-option label { white-space: pre-wrap; font-variant-numeric: tabular-nums; }
.saem-gate :is(.widget-text, input[type="text"]) { max-width: 100%; box-sizing: border-box; }
.saem-gate .saem-gate-commit { padding: 0 1.2em; margin: 0.2em 2px; }
.saem-gate .saem-gate-commit.mod-active:not(:active) {
  background-color: var(--jp-brand-color1); box-shadow: none;
}
.saem-gate :is(.saem-gate-commit, .saem-gate-reset, input):focus-visible {
  outline: 2px solid var(--saem-gate-accent); outline-offset: 2px;
}
.saem-gate-verdict { white-space: pre-wrap; }
.saem-gate-verdict[data-state="right"] { color: light-dark(#1b703a, #6fce8d); }
.saem-gate-verdict[data-state="wrong"] { color: light-dark(#a63f1b, #ff9a6b); }
.saem-gate code, .saem-gate-verdict code { font-family: var(--jp-code-font-family, monospace); }
"""


def question_text(gate: Gate) -> str:
    """The question and its options, to be printed."""
    lines = [f"[{say('title')}] {gate.question}"]
    if isinstance(gate.kind, Choice):
        lines += [f"  ( ) {label}" for label in gate.kind.options.values()]
    return "\n".join([*lines, say("how_to_answer", name=gate.name)])


def question_html(gate: Gate) -> str:
    """The question as a page without a kernel shows it."""
    options = ""
    if isinstance(gate.kind, Choice):
        items = "".join(
            f'<li class="saem-gate-option">{code_spans(label)}</li>'
            for label in gate.kind.options.values()
        )
        options = f"<ul>{items}</ul>"
    return (
        f'<div class="saem-gate" lang="{language()}" data-gate="{escaped(gate.name)}">'
        f'{heading(gate)}{options}'
        f'<p class="saem-gate-hint">{code_spans(say("run_to_answer"))}</p></div>'
    )


def heading(gate: Gate) -> str:
    """The title and the question, without options."""
    return (
        f'<div class="saem-gate-title">{code_spans(say("title"))}</div>'
        f'<div class="saem-gate-question">{code_spans(gate.question)}</div>'
    )


def verdict_lines(gate: Gate) -> list[str]:
    """What is to be said about guess and truth; without a guess, the truth alone."""
    if gate.truth is None:
        guess = gate.guess
        return [say("committed", guess=_named(gate, guess.value))] if guess else []
    truth = _named(gate, gate.truth.value)
    lines = []
    if gate.guess is None:
        lines.append(say("truth", truth=truth))
    else:
        key = "right" if gate.right else "wrong"
        lines.append(say(key, guess=_named(gate, gate.guess.value), truth=truth))
        if gate.guess.after:
            lines.append(say("after"))
    lines += gate.truth.lines
    if gate.latest is not None and not gate.kind.same(gate.truth.value, gate.latest.value):
        lines.append(say("rerun", truth=_named(gate, gate.latest.value)))
    return lines


def _named(gate: Gate, value: object) -> str:
    """An answer inside a sentence, which brings its own full stop."""
    return gate.kind.label(value).removesuffix(".")


def verdict_text(gate: Gate) -> str:
    """The verdict, to be printed."""
    return "\n".join([f"[{say('title')}] {gate.question}", *verdict_lines(gate)])


def verdict_html(gate: Gate) -> str:
    """The verdict; folded away while there is no guess, so that no learner reads it by accident."""
    body = "".join(f"<div>{code_spans(line)}</div>" for line in verdict_lines(gate))
    name = escaped(gate.name)
    about = _about(gate)
    if gate.guess is None and gate.truth is not None:
        return (
            f'<div class="saem-gate-verdict" data-gate="{name}" data-state="unanswered"{about}>'
            f"<div>{code_spans(say('unanswered'))}</div>"
            f"<details><summary>{code_spans(say('reveal'))}</summary>{body}</details></div>"
        )
    state = {True: "right", False: "wrong", None: "waiting"}[gate.right]
    return (f'<div class="saem-gate-verdict" data-gate="{name}" data-state="{state}"{about}>'
            f"{body}</div>")


def _about(gate: Gate) -> str:
    """Question, guess and truth as attributes: what a session leader's overview reads."""
    known = {"question": gate.question,
             "guess": gate.kind.label(gate.guess.value) if gate.guess else "",
             # Without a guess the result stays folded away.
             "truth": gate.kind.label(gate.truth.value) if gate.guess and gate.truth else ""}
    return "".join(f' data-{key}="{escaped(text)}"' for key, text in known.items() if text)


def shape_html(sizes: tuple[int, ...]) -> str:
    """A shape drawn: the last two axes as a grid of boxes, at most 8 × 16, others in words."""
    rows, columns = ((1, 1, *sizes)[-2:] if sizes else (1, 1))
    boxes = "".join('<span class="saem-box"></span>' for _ in range(min(rows, 8)
                                                                 * min(columns, 16)))
    more = " × ".join(map(str, sizes[:-2]))
    cut = " …" if rows > 8 or columns > 16 else ""
    return (f'<div class="saem-drawn"><span>{more + " ×" if more else ""}</span>'
            f'<div style="display:inline-grid;gap:2px;grid-template-columns:repeat('
            f'{max(min(columns, 16), 1)},12px)">{boxes}</div><span>{cut} {sizes}</span></div>')


def exercise_lines(state: str, hint: str, details: tuple[str, ...]) -> list[str]:
    """What is to be said about the answer to an exercise."""
    return [say(f"exercise_{state}"), *([hint] if hint else []), *details]


def exercise_text(name: str, state: str, hint: str, details: tuple[str, ...]) -> str:
    """The result of an exercise, to be printed."""
    return "\n".join([f"[{say('exercise')}] {name}", *exercise_lines(state, hint, details)])


def exercise_html(name: str, state: str, hint: str, details: tuple[str, ...]) -> str:
    """The result of an exercise, as HTML."""
    lines = exercise_lines(state, hint, details)
    body = "".join(f"<div>{code_spans(line)}</div>" for line in lines)
    return (
        f'<style>{STYLE}</style><div class="saem-gate saem-exercise" lang="{language()}" '
        f'data-gate="{escaped(name)}" data-state="{state}">'
        f'<div class="saem-gate-title">{code_spans(say("exercise"))}</div>'
        f'<div class="saem-gate-verdict" data-state="{state}">{body}</div></div>'
    )
