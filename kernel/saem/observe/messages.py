"""What words does the lens use, in English and in Korean?

``LABELS`` are the fixed labels of every view (text, HTML, panel); the TypeScript renderer gets
them as generated data.  ``REASONS`` and ``HEADLINES`` are sentence templates, filled here in the
kernel, so that no sentence is composed twice.  Korean templates put values where no particle must
agree with them: after a colon, or before 의 and 에서, which never change.

Read before: ``saem.observe.schema``.  Read after: ``saem.observe.reasons``.
Invariant: every key exists in both languages with the same fields (tests/lens/test_messages.py).
"""

from __future__ import annotations

from saem.observe.schema import Text

LANGUAGES = ("en", "ko")

LABELS: dict[str, Text] = {
    "jaxpr": Text("Jaxpr", "Jaxpr"),
    "text": Text("Text", "텍스트"),
    "graph": Text("Graph", "그래프"),
    "source": Text("Source", "소스"),
    "program": Text("StableHLO", "StableHLO"),
    "history": Text("Compile history", "컴파일 이력"),
    "function": Text("Function", "함수"),
    "what": Text("What happened", "일어난 일"),
    "why": Text("Why", "이유"),
    "advice": Text("What would avoid it", "피하는 방법"),
    "cost": Text("Cost", "비용"),
    "call": Text("Call", "호출"),
    "place": Text("Where", "위치"),
    "versions": Text("Versions", "버전"),
    "traces": Text("Traces", "추적"),
    "compiles": Text("Compiles", "컴파일"),
    "found": Text("Found", "재사용"),
    "hits": Text("Hits", "적중"),
    "calls": Text("Calls", "호출 수"),
    "seconds": Text("Time", "시간"),
    "kind.trace": Text("traced", "추적"),
    "kind.compile": Text("compiled", "컴파일"),
    "kind.found": Text("traced, same program", "추적, 같은 프로그램"),
    "kind.hit": Text("hit", "적중"),
    "kind.failed": Text("failed", "실패"),
    "seconds.trace": Text("trace", "추적"),
    "seconds.lower": Text("lower", "로어링"),
    "seconds.compile": Text("compile", "컴파일"),
    "cost.flops": Text("FLOPs", "FLOPs"),
    "cost.bytes_accessed": Text("bytes accessed", "접근 바이트"),
    "cost.code_bytes": Text("code", "코드 크기"),
    "cost.argument_bytes": Text("arguments", "인자"),
    "cost.output_bytes": Text("outputs", "출력"),
    "cost.temp_bytes": Text("temporaries", "임시 메모리"),
    "equation": Text("Equation", "방정식"),
    "equations": Text("Equations", "방정식"),
    "parameters": Text("Parameters", "매개변수"),
    "inputs": Text("Inputs", "입력"),
    "outputs": Text("Outputs", "출력"),
    "stack": Text("Transformations", "변환"),
    "forward": Text("forward", "순방향"),
    "backward": Text("backward", "역방향"),
    "environment": Text("Environment", "환경"),
    "devices": Text("Devices", "장치"),
    "empty": Text("Nothing was traced yet.", "아직 추적된 함수가 없습니다."),
    "dropped": Text("older marks were dropped", "이전 기록은 지워졌습니다"),
}
