"""Which sentences describe a call that was traced, in English and in Korean?

``REASONS`` and ``HEADLINES`` are sentence templates, filled here in the kernel, so that no
sentence is composed twice; fixed labels are in ``observe.words``.  Korean templates put values
where no particle must agree with them: after a colon, or before 의 and 에서, which never change.

Read before: ``saem.observe.schema``.  Read after: ``saem.observe.reasons``.
Invariant: every key exists in both languages with the same fields (tests/lens/test_messages.py).
"""

from __future__ import annotations

import string

from saem.observe.schema import Reason, Text


def _reason(en: str, ko: str, advice_en: str = "", advice_ko: str = "") -> tuple[Text, Text]:
    return Text(en, ko), Text(advice_en, advice_ko)


# Variant → (what happened, what would avoid it).  A variant is a tag, or a tag and a case of it.
REASONS: dict[str, tuple[Text, Text]] = {
    "first_call": _reason("first call of `{name}`", "`{name}`의 첫 호출입니다"),
    "nested": _reason(
        "`{name}` was traced before, but only as part of another function",
        "`{name}`: 이전에는 다른 함수의 일부로만 추적되었습니다",
    ),
    "dropped": _reason(
        "this call was traced before, but its program is no longer kept",
        "같은 호출을 추적한 적이 있지만 그 프로그램이 더는 보관되어 있지 않습니다",
        "The cache was cleared, or the function was wrapped by `jit` again. Wrap it once.",
        "캐시를 비웠거나 함수를 `jit`로 다시 감쌌기 때문입니다. 한 번만 감싸십시오.",
    ),
    "shape": _reason(
        "{subject}: `{old}` → `{new}`",
        "{subject}: `{old}` → `{new}` (형상이 바뀌었습니다)",
        "Each shape compiles once. Pad to one shape, or call with few different shapes.",
        "형상마다 한 번씩 컴파일합니다. 패딩으로 한 형상에 맞추거나 형상의 가짓수를 줄이십시오.",
    ),
    "dtype": _reason(
        "{subject}: `{old}` → `{new}`",
        "{subject}: `{old}` → `{new}` (자료형이 바뀌었습니다)",
        "Convert with `.astype` before the call, or pass a Python scalar, which adapts.",
        "호출하기 전에 `.astype`으로 맞추거나, 자료형이 저절로 맞춰지는 Python 스칼라를 "
        "넘기십시오.",
    ),
    "weak_type": _reason(
        "{subject}: `{old}` → `{new}` (`~` marks a weak type, which a Python scalar has)",
        "{subject}: `{old}` → `{new}` (`~`는 약한 타입을 뜻합니다. Python 스칼라의 타입입니다)",
        "Pass always a Python scalar, or always an array with an explicit dtype.",
        "항상 Python 스칼라를 넘기거나, 항상 자료형을 밝힌 배열을 넘기십시오.",
    ),
    "static_value": _reason(
        "static argument `{path}`: `{old}` → `{new}`",
        "정적 인자 `{path}`: `{old}` → `{new}`",
        "Each value of a static argument compiles once. Pass a number as an ordinary argument "
        "unless shapes or Python control flow depend on it.",
        "정적 인자는 값마다 한 번씩 컴파일합니다. 형상이나 Python 제어 흐름을 정하지 않는 수는 "
        "보통 인자로 넘기십시오.",
    ),
    "static_value.object": _reason(
        "static argument `{path}`: another object, not equal to the one before (`{new}`)",
        "정적 인자 `{path}`: 이전과 같지 않은 다른 객체입니다 (`{new}`)",
        "Keep one object, or give its class `__eq__` and `__hash__` by value, as a frozen "
        "dataclass has.",
        "객체 하나를 계속 쓰거나, 동결된 데이터클래스처럼 값으로 비교하는 `__eq__`와 `__hash__`를 "
        "정의하십시오.",
    ),
    "static_mutated": _reason(
        "static argument `{path}` changed after it was hashed: `{old}` → `{new}`",
        "정적 인자 `{path}`: 해시된 뒤에 바뀌었습니다. `{old}` → `{new}`",
        "Never change a static argument: make a new object instead (a frozen dataclass).",
        "정적 인자를 바꾸지 말고 새 객체를 만드십시오(동결된 데이터클래스).",
    ),
    "static_mutated.stale": _reason(
        "the static `{path}` changed after it was hashed: `{old}` → `{new}`; the program was kept "
        "and computes with the old value",
        "정적 인자 `{path}`: 해시된 뒤에 바뀌었습니다. `{old}` → `{new}`. 보관된 프로그램은 여전히 "
        "이전 값으로 계산합니다",
        "Never change a static argument: make a new object instead (a frozen dataclass).",
        "정적 인자를 바꾸지 말고 새 객체를 만드십시오(동결된 데이터클래스).",
    ),
    "structure.given": _reason(
        "argument `{path}` was None or not given, and now is `{new}`",
        "인자 `{path}`: 이전에는 None이거나 없었고, 이제 `{new}`",
        "Each structure of the arguments compiles once.",
        "인자의 구조마다 한 번씩 컴파일합니다.",
    ),
    "structure.omitted": _reason(
        "argument `{path}` was `{old}`, and now is None or not given",
        "인자 `{path}`: 이전에는 `{old}`, 이제는 None이거나 없습니다",
        "Each structure of the arguments compiles once.",
        "인자의 구조마다 한 번씩 컴파일합니다.",
    ),
    "structure.leaves": _reason(
        "argument `{path}` has other leaves: `{old}` → `{new}`",
        "인자 `{path}`의 잎이 다릅니다: `{old}` → `{new}`",
        "Each structure compiles once. Keep the same keys and lengths.",
        "구조마다 한 번씩 컴파일합니다. 같은 키와 길이를 유지하십시오.",
    ),
    "structure": _reason(
        "the containers of the arguments are of other types: `{old}` → `{new}`",
        "인자를 담은 컨테이너의 종류가 다릅니다: `{old}` → `{new}`",
        "A list, a tuple and a dict are different structures. Keep to one.",
        "리스트, 튜플, 딕셔너리는 서로 다른 구조입니다. 하나로 통일하십시오.",
    ),
    "position_keyword.keyword": _reason(
        "`{path}` was passed by position, now by keyword",
        "인자 `{path}`: 이전에는 위치로, 이제는 키워드로 넘겼습니다",
        "Pass it the same way each time.",
        "매번 같은 방식으로 넘기십시오.",
    ),
    "position_keyword.position": _reason(
        "`{path}` was passed by keyword, now by position",
        "인자 `{path}`: 이전에는 키워드로, 이제는 위치로 넘겼습니다",
        "Pass it the same way each time.",
        "매번 같은 방식으로 넘기십시오.",
    ),
    "committed": _reason(
        "{subject} is now committed to `{new}`; it was not committed before",
        "{subject}: 이제 `{new}`에 고정(committed)되어 있습니다. 이전에는 고정되지 않았습니다",
        "An array placed by `device_put` is committed, and programs are kept apart by it. "
        "Place it always, or never.",
        "`device_put`으로 놓은 배열은 고정되며, 프로그램은 이에 따라 따로 보관됩니다. "
        "항상 놓거나 전혀 놓지 마십시오.",
    ),
    "committed.no": _reason(
        "{subject} is not committed now; it was committed to `{old}` before",
        "{subject}: 이제 고정(committed)되지 않았습니다. 이전에는 `{old}`에 고정되어 있었습니다",
        "An array placed by `device_put` is committed, and programs are kept apart by it. "
        "Place it always, or never.",
        "`device_put`으로 놓은 배열은 고정되며, 프로그램은 이에 따라 따로 보관됩니다. "
        "항상 놓거나 전혀 놓지 마십시오.",
    ),
    "device": _reason(
        "{subject} was on `{old}`, now on `{new}`",
        "{subject}의 위치: `{old}` → `{new}`",
        "Each placement has its own program. Keep the array where it was.",
        "놓인 장치마다 프로그램이 따로 있습니다. 배열을 있던 곳에 두십시오.",
    ),
    "sharding": _reason(
        "{subject} was spread as `{old}`, now as `{new}`",
        "{subject}의 샤딩: `{old}` → `{new}`",
        "Each sharding has its own program. Place arguments the same way each time.",
        "샤딩마다 프로그램이 따로 있습니다. 인자를 매번 같은 방식으로 놓으십시오.",
    ),
    "mesh": _reason(
        "{subject} was on the mesh `{old}`, now on `{new}`",
        "{subject}의 메시: `{old}` → `{new}`",
        "Each mesh has its own program. Make one mesh and keep it.",
        "메시마다 프로그램이 따로 있습니다. 메시 하나를 만들어 계속 쓰십시오.",
    ),
    "mesh.context": _reason(
        "the mesh that is set: `{old}` → `{new}`",
        "설정된 메시: `{old}` → `{new}`",
        "Set the mesh once, around all calls.",
        "메시는 모든 호출을 감싸도록 한 번만 설정하십시오.",
    ),
    "redefinition": _reason(
        "you redefined `{name}` ({where_en})",
        "`{name}`: 다시 정의했습니다 ({where_ko})",
        "A redefined function is traced again; only a changed program is compiled.",
        "다시 정의한 함수는 다시 추적하며, 프로그램이 바뀐 때에만 컴파일합니다.",
    ),
    "redefinition.anew": _reason(
        "`{name}` is a new function object made at the same place ({where_en})",
        "`{name}`: 같은 곳에서 새로 만든 함수 객체입니다 ({where_ko})",
        "Each new function object is traced again. Make it once, outside the loop.",
        "새 함수 객체는 매번 다시 추적합니다. 루프 밖에서 한 번만 만드십시오.",
    ),
    "redefinition.transformed": _reason(
        "`{name}` is under other transformations: `{old}` → `{new}`",
        "`{name}`에 쓴 변환: `{old}` → `{new}`",
        "What a transformation returns is a function of its own, which is traced once.",
        "변환의 결과는 저마다 다른 함수이며, 각각 한 번 추적합니다.",
    ),
    "closure": _reason(
        "the new function closes over another `{path}`: `{old}` → `{new}`",
        "새 함수가 클로저로 쓰는 `{path}`: `{old}` → `{new}`",
        "A value that changes belongs among the arguments.",
        "바뀌는 값은 인자로 넘기십시오.",
    ),
    "closure.stale": _reason(
        "`{path}`, which `{name}` uses without taking it as an argument, changed after the trace: "
        "`{old}` → `{new}`; the program was kept and computes with the old value",
        "`{path}`: `{name}`의 인자가 아니며 추적한 뒤에 바뀌었습니다. `{old}` → `{new}`. "
        "보관된 프로그램은 여전히 이전 값으로 계산합니다",
        "A value that changes belongs among the arguments.",
        "바뀌는 값은 인자로 넘기십시오.",
    ),
    "options": _reason(
        "`jit` was given another `{path}`: `{old}` → `{new}`",
        "`jit`의 옵션 `{path}`: `{old}` → `{new}`",
        "Wrap the function once, with one set of options.",
        "함수를 한 가지 옵션으로 한 번만 감싸십시오.",
    ),
    "config": _reason(
        "setting `{path}`: `{old}` → `{new}`",
        "설정 `{path}`: `{old}` → `{new}`",
        "Choose settings once, before the first call.",
        "설정은 첫 호출 전에 한 번만 정하십시오.",
    ),
    "donation": _reason(
        "donated arguments: `{old}` → `{new}`",
        "메모리를 넘겨준(donated) 인자: `{old}` → `{new}`",
        "Donate the same arguments each time.",
        "매번 같은 인자의 메모리를 넘겨주십시오.",
    ),
}

SUBJECT = Text("argument `{path}`", "인자 `{path}`")
SUBJECT_MANY = Text(
    "argument `{path}` and {count} more of `{top}`", "인자 `{path}` 외 `{top}`의 잎 {count}개"
)
LAST_MOVED = Text(
    " (arrays were last moved there by {where_en})", " (마지막으로 옮긴 곳: {where_ko})"
)
RUN = Text("{label}, run {run}", "{label}, {run}번째 실행")

# Kind of record → what happened and what it cost.
HEADLINES: dict[str, Text] = {
    "compile": Text("compiled in {compile}; traced in {trace}", "컴파일 {compile}, 추적 {trace}"),
    "found": Text(
        "traced in {trace}; same program as before, so nothing was compiled",
        "추적 {trace}, 같은 프로그램이 이미 있어 컴파일하지 않았습니다",
    ),
    "found.again": Text(
        "traced again in {trace}; same program, so nothing was compiled",
        "다시 추적 {trace}, 같은 프로그램이므로 컴파일하지 않았습니다",
    ),
    "found.disk": Text(
        "traced in {trace}; loaded from the cache on disk in {load}, so nothing was compiled",
        "추적 {trace}, 디스크 캐시에서 불러오기 {load}, 컴파일하지 않았습니다",
    ),
    "loaded": Text(
        "operations of the library: {count} loaded from the cache on disk in {load}, so they were "
        "not compiled",
        "라이브러리 연산 {count}개를 디스크 캐시에서 불러왔습니다({load}). 컴파일하지 않았습니다",
    ),
    "trace": Text(
        "traced in {trace}; not compiled by itself", "추적 {trace}, 따로 컴파일하지 않았습니다"
    ),
    "trace.kept": Text(
        "the trace of an earlier call was kept; not compiled by itself",
        "앞선 추적 결과를 그대로 썼고, 따로 컴파일하지 않았습니다",
    ),
    "trace.open": Text("being traced", "추적하는 중"),
    "compile.kept": Text(
        "compiled in {compile}; the trace was kept", "컴파일 {compile}, 추적 결과는 그대로 썼습니다"
    ),
    "found.kept": Text(
        "nothing was traced or compiled: trace and program were kept",
        "추적도 컴파일도 하지 않고 있던 것을 그대로 썼습니다",
    ),
    "hit": Text(
        "nothing to do: the program was there (calls: {count})",
        "할 일이 없었습니다. 프로그램이 이미 있었습니다 (호출 {count}번)",
    ),
    "hit.stale": Text(
        "the kept program answered, though what it was traced with has changed (calls: {count})",
        "보관된 프로그램이 답했지만, 추적할 때 쓴 값이 바뀌었습니다 (호출 {count}번)",
    ),
    "failed": Text("tracing ended with an error", "추적이 오류로 끝났습니다"),
}


WARNING = Text(
    "`{name}` was compiled {count} times for one cause: {says_en}. {advice_en}",
    "`{name}`: 같은 까닭으로 {count}번 컴파일했습니다. {says_ko}. {advice_ko}",
)


def warning(name: str, reason: Reason, count: int) -> Text:
    """What is said when one cause made a function compile ``count`` times."""
    return fill(WARNING, name=name, count=count, says_en=reason.says.en, says_ko=reason.says.ko,
                advice_en=reason.advice.en, advice_ko=reason.advice.ko)


def fill(template: Text, **values: object) -> Text:
    """The template in both languages with its fields filled.

    A value ``x_en`` or ``x_ko`` is one that differs between the languages.
    """
    return Text(_filled(template.en, values), _filled(template.ko, values))


def _filled(template: str, values: dict[str, object]) -> str:
    parts = []
    for literal, name, _spec, _conversion in _FORMATTER.parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(str(values[name]))
    return "".join(parts)


_FORMATTER = string.Formatter()

NOT_RECORDED = Text(
    "nothing was recorded: call saem.observe.start() or %load_ext saem.lens before the calls "
    "to be explained",
    "기록이 없습니다. 설명하려는 호출보다 먼저 saem.observe.start() 또는 %load_ext saem.lens를 "
    "실행하십시오",
)
