"""Which words does a reader see, in English and in Korean?

One table for text, HTML, panel, widgets and gates.  ``say`` fills a word's fields; the browser gets
the same table as generated data (``extension/src/schema.ts``) and fills it in the same way.
Sentences about a traced call are in ``observe.messages``.

Read before: ``saem.observe.schema`` (Text), ``saem.observe.language``.  Read after:
``saem.observe.messages``.
Invariant: every word exists in both languages with the same fields and code
(tests/lens/test_messages.py).
"""

from __future__ import annotations

from saem.observe.language import Language, current
from saem.observe.schema import Text

# ---- labels of models ---------------------------------------------------------------------------

_LABELS: dict[str, Text] = {
    "jaxpr": Text("Jaxpr", "Jaxpr"),
    "text": Text("Text", "텍스트"),
    "graph": Text("Graph", "그래프"),
    "source": Text("Source", "소스"),
    "program": Text("StableHLO", "StableHLO"),
    "history": Text("Compile history", "컴파일 이력"),
    "function": Text("Function", "함수"),
    # The one row of a history that is no function of the learner's (``schema.history.OPERATIONS``).
    "operations": Text("eager operations", "라이브러리 연산"),
    "what": Text("What happened", "일어난 일"),
    "why": Text("Why", "까닭"),
    "advice": Text("What would avoid it", "피하는 방법"),
    "cost": Text("Cost", "비용"),
    "call": Text("Call", "호출"),
    "place": Text("Where", "위치"),
    "callers": Text("Called from", "호출한 곳"),
    "versions": Text("Versions", "버전"),
    "traces": Text("Traces", "추적"),
    "compiles": Text("Compiles", "컴파일"),
    "found": Text("Found", "재사용"),
    "hits": Text("Hits", "적중"),
    "seconds": Text("Time", "시간"),
    "kind.trace": Text("traced", "추적"),
    "kind.compile": Text("compiled", "컴파일"),
    "kind.found": Text("found the same program", "같은 프로그램 재사용"),
    "kind.hit": Text("hit", "적중"),
    "kind.stale": Text("hit with an old value", "예전 값으로 적중"),
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
    "equation": Text("Equation", "식"),
    "equations": Text("Equations", "식"),
    "parameters": Text("Parameters", "파라미터"),
    "inputs": Text("Inputs", "입력"),
    "outputs": Text("Outputs", "출력"),
    "stack": Text("Transformations", "변환"),
    "forward": Text("forward", "순방향"),
    "backward": Text("backward", "역방향"),
    "devices": Text("Devices", "장치"),
    "keys": Text("Random keys", "난수 키"),
    "key.created": Text("made of a seed", "시드로 만든 키"),
    "key.split": Text("split", "split으로 나눈 키"),
    "key.folded": Text("fold_in", "fold_in으로 만든 키"),
    "key.returned": Text("returned by a jitted function", "jit 함수가 돌려준 키"),
    "key.unknown": Text("made before the recording", "기록을 시작하기 전에 만든 키"),
    "key.used": Text("numbers drawn", "난수를 뽑음"),
    "key.divided": Text("split into new keys", "새 키로 나눔"),
    "key.reused": Text(
        "used again: the same numbers come twice",
        "다시 씀: 같은 난수가 두 번 나옵니다",
    ),
    "key.none": Text("No random key was made yet.", "아직 만든 난수 키가 없습니다."),
    "empty": Text("Nothing was traced yet.", "아직 추적된 함수가 없습니다."),
    "older": Text("{n} older marks", "이전 표시 {n}개"),
    "dropped": Text("older marks were dropped", "이전 기록은 지워졌습니다"),
    "dropped.functions": Text(
        "functions not used for long were dropped", "오래 쓰이지 않은 함수의 기록은 지워졌습니다"),
}

# ---- buttons and messages of views --------------------------------------------------------------

_VIEWS: dict[str, Text] = {
    "fold": Text("Fold", "접기"),
    "unfold": Text("Unfold", "펼치기"),
    "fold.count": Text("{n} equations folded", "식 {n}개 접힘"),
    "fold.all": Text("Fold all", "모두 접기"),
    "unfold.all": Text("Unfold all", "모두 펼치기"),
    "times": Text("{n}×", "{n}번"),
    "marks": Text("What happened to {name}, oldest first", "{name}: 일어난 일, 오래된 순"),
    "close": Text("Close details", "상세 닫기"),
    "legend": Text("Legend", "범례"),
    "signature": Text("Called with", "호출한 값"),
    "programId": Text("Program", "프로그램"),
    "version": Text("version {n}", "버전 {n}"),
    "old": Text("before", "이전"),
    "new": Text("now", "지금"),
    "type": Text("Type", "타입"),
    "pick": Text(
        "Point at a line, an equation or a node to see where it comes from and goes to. Click "
        "to keep it.",
        "줄, 식, 노드를 가리키면 어디서 왔고 어디로 가는지 보입니다. 누르면 고정됩니다.",
    ),
    "input": Text("input", "입력"),
    "constant": Text("constant", "상수"),
    "output": Text("output", "출력"),
    "layingOut": Text("Drawing the graph …", "그래프를 그리는 중 …"),
    "noLayout": Text("The graph could not be drawn: {why}", "그래프를 그리지 못했습니다: {why}"),
    "unknownModel": Text(
        "This view understands version {have} of Saem's data, but got {got}. Update the older "
        "of the two: run `pip install -U saem`, then reload the page.",
        "이 화면이 읽는 Saem 데이터 버전: {have}, 받은 버전: {got}. `pip install -U saem`을 "
        "실행한 뒤 페이지를 새로 고치십시오.",
    ),
    "badModel": Text(
        "Saem's data could not be read here: {why}",
        "Saem 데이터를 읽지 못했습니다: {why}",
    ),
    "zoom.in": Text("Zoom in", "확대"),
    "zoom.out": Text("Zoom out", "축소"),
    "zoom.fit": Text("Fit to the frame", "창에 맞추기"),
    "xray.plain": Text("Python value", "Python 값"),
    "xray.array": Text("array", "배열"),
    "xray.abstract": Text("abstract tracer", "추상 트레이서"),
    "xray.concrete": Text("concrete tracer", "구체 트레이서"),
    "xray.allowed": Text(
        "`{what}` of `{type}` was allowed: under {stack} the numbers are known",
        "`{what}` 허용: {stack} 아래에서 `{type}`의 값을 알고 있습니다",
    ),
    "xray.refused": Text(
        "`{what}` of `{type}` was refused: under {stack} only the type is known",
        "`{what}` 거부: {stack} 아래에서는 `{type}`의 타입만 압니다",
    ),
    "xray.loop": Text(
        "unrolled: went round {times} times and wrote {equations} equations, {share}% of this "
        "function's",
        "펼쳐짐: {times}번 돌며 식 {equations}개 기록, 이 함수의 {share}%",
    ),
    "xray.title": Text("X-ray", "엑스레이"),
    "xray.runs": Text("ran {n} times", "{n}번 실행"),
    "xray.calls": Text("traced {n} times", "{n}번 추적"),
    "xray.none": Text(
        "No function of yours ran under a trace here. Call one through `jit`, `grad` or `vmap`.",
        "여기에서 추적된 함수가 없습니다. `jit`, `grad`, `vmap`을 거쳐 함수를 호출하십시오.",
    ),
    "xray.returns": Text("returns", "반환"),
    "xray.legend": Text("Whose numbers are known", "값을 아는 정도"),
    "xray.ended": Text("The call ended with an error", "호출이 오류로 끝났습니다"),
    "progress.trace": Text("Tracing `{name}`", "`{name}` 추적 중"),
    "progress.lower": Text("Lowering `{name}`", "`{name}` 로어링 중"),
    "progress.compile": Text("Compiling `{name}`", "`{name}` 컴파일 중"),
    "progress.transfer": Text("Copying `{name}` to a device", "`{name}`: 장치로 복사 중"),
    "progress.copied": Text(
        "{size} go to the device. Copy data once, and keep it there between calls.",
        "{size}를 장치로 옮기고 있습니다. 데이터는 한 번만 복사하고 호출 사이에는 장치에 두십시오.",
    ),
    "progress.constant": Text(
        "An array of {size} depends on no argument, and XLA may compute it while it compiles. "
        "Compute it before, outside the function, and pass it as an argument.",
        "{size} 배열이 어느 인자에도 달려 있지 않아 XLA가 컴파일하면서 계산할 수 있습니다. 함수 "
        "밖에서 미리 계산해서 인자로 넘기십시오.",
    ),
    "progress.constant_at": Text(
        "A constant of {size} at {where_en}: it depends on no argument, and XLA may compute it "
        "while it compiles. Compute it before, outside the function, and pass it as an argument.",
        "{where_ko}의 상수 {size}: 어느 인자에도 달려 있지 않아 XLA가 컴파일하면서 계산할 수 "
        "있습니다. 함수 밖에서 미리 계산해서 인자로 넘기십시오.",
    ),
    "progress.large": Text(
        "The program has {lines} lines of StableHLO; XLA's time grows with them. A loop in "
        "Python may have been unrolled: `lax.scan` or `lax.fori_loop` writes its body once.",
        "프로그램이 StableHLO {lines}줄입니다. 줄이 많을수록 XLA가 오래 걸립니다. Python "
        "루프가 펼쳐졌을 수 있습니다. `lax.scan`이나 `lax.fori_loop`는 본문을 한 번만 "
        "적습니다.",
    ),
    "progress.unrolled": Text(
        "A Python loop at {where_en} is being unrolled: {times} times so far, {share}% of "
        "{equations} equations. `lax.scan` or `lax.fori_loop` would write its body once.",
        "{where_ko}에서 Python 루프가 펼쳐지고 있습니다. 지금까지 {times}번, 식 "
        "{equations}개의 {share}%입니다. `lax.scan`이나 `lax.fori_loop`는 본문을 한 번만 "
        "적습니다.",
    ),
    "steps.born": Text(
        "NaN or infinity first appears here",
        "여기에서 처음으로 NaN이나 무한대가 나타납니다",
    ),
    "steps.title": Text("Step through", "한 단계씩 실행"),
    "steps.at": Text("Equation {n} of {all}", "식 {n} / {all}"),
    "steps.start": Text("Inputs", "입력"),
    "steps.next": Text("Next equation", "다음 식"),
    "steps.back": Text("Previous equation", "이전 식"),
    "steps.play": Text("Play", "재생"),
    "steps.stop": Text("Stop", "멈춤"),
    "steps.none": Text("No NaN and no infinity appeared.", "NaN도 무한대도 나타나지 않았습니다."),
    "steps.go": Text("Go to where it appears", "나타난 곳으로 가기"),
    "stat.minimum": Text("min", "최솟값"),
    "stat.maximum": Text("max", "최댓값"),
    "stat.mean": Text("mean", "평균"),
    "stat.deviation": Text("std", "표준편차"),
    "autodiff.title": Text("Reverse mode", "역방향 모드"),
    "autodiff.total": Text(
        "Kept for the backward pass: {bytes}",
        "역방향 계산에 쓰려고 보관한 값: {bytes}",
    ),
    "autodiff.forward": Text("Forward", "순방향"),
    "autodiff.backward": Text("Backward", "역방향"),
    "autodiff.kept": Text("Kept", "보관한 값"),
    "autodiff.given": Text("an argument", "인자"),
    "autodiff.none": Text(
        "The backward pass needs nothing from the forward pass.",
        "역방향 계산에 순방향의 값이 필요하지 않아 아무것도 보관하지 않았습니다.",
    ),
    "bench.title": Text("Transformation bench", "변환 실험대"),
    "bench.remove": Text("Remove {name}", "{name} 빼기"),
    "bench.earlier": Text("Apply {name} earlier", "{name} 먼저 적용"),
    "bench.later": Text("Apply {name} later", "{name} 나중에 적용"),
    "bench.own": Text(
        "Another transformation, such as vmap(in_axes=(None, 0))",
        "다른 변환(예: vmap(in_axes=(None, 0)))",
    ),
    "bench.static": Text(
        "Run the cell in a kernel to change the transformations.",
        "변환을 바꾸려면 커널에서 셀을 실행하십시오.",
    ),
    "bench.gone": Text("before only", "이전에만"),
    "bench.new": Text("new", "새로 생김"),
    "compiled.title": Text("Compiled program", "컴파일된 프로그램"),
    "compiled.kernels": Text("Kernels", "커널"),
    "compiled.devices": Text("on {n} devices; the figures are those of one",
                             "장치 {n}개에서 실행합니다. 수치는 장치 하나의 것입니다"),
    "compiled.share": Text("Share of bytes", "바이트 비중"),
    "compiled.memory": Text("Memory", "메모리"),
    "compiled.fused": Text(
        "{n} equations became one kernel",
        "식 {n}개가 커널 하나로 합쳐졌습니다",
    ),
    "compiled.copy": Text("made by XLA alone", "XLA가 스스로 만든 것"),
    "devices.arrays": Text("Arrays", "배열"),
    "devices.none": Text("No array has a name here.", "이름이 붙은 배열이 없습니다."),
    "devices.moved": Text("Transfers", "전송"),
    "devices.donated": Text("Donations", "넘겨준 메모리"),
    "devices.committed": Text("committed", "고정됨"),
    "devices.replicated": Text("whole on each device", "장치마다 전체"),
    "devices.reused": Text("{n} reused", "{n}개 재사용"),
    "gates.right": Text("right", "맞음"),
    "gates.wrong": Text("wrong", "틀림"),
    "gates.waiting": Text("guessed, not run", "예측만 함"),
    "gates.unanswered": Text("no guess", "예측 없음"),
    "gates.title": Text("Gates", "예측 질문"),
    "gates.notebook": Text("Notebook", "노트북"),
    "gates.gate": Text("Question", "질문"),
    "gates.guess": Text("Guess", "예측"),
    "gates.state": Text("Verdict", "판정"),
    "gates.truth": Text("What happened", "실제 결과"),
    "gates.unreadable": Text("Not readable: {names}", "읽을 수 없음: {names}"),
    "gates.none": Text(
        "No gate was found in these notebooks.",
        "이 노트북들에는 예측 질문이 없습니다.",
    ),
    "keys.reused": Text(
        "Keys used again: {n}. The same random numbers came twice.",
        "다시 쓴 키: {n}개. 같은 난수가 두 번 나왔습니다.",
    ),
    "keys.fine": Text("No key was used twice.", "두 번 쓴 키가 없습니다."),
    "error.got": Text("What came", "실제로 온 것"),
    "error.path": Text("How the value came about", "값이 지나온 길"),
    "error.mends": Text("Ways to mend it", "고치는 방법"),
    "error.lesson": Text("Read more", "더 읽기"),
    "error.message": Text("The engine's message", "엔진의 메시지"),
    "search": Text("Search", "검색"),
    "search.found": Text("{n} found", "{n}개 찾음"),
    "columns": Text("Columns", "열"),
    "kernel": Text("Kernel", "커널"),
    "bytes": Text("Bytes", "바이트"),
    "variable": Text("Variable", "변수"),
    "colour.stack": Text("transformations", "변환"),
    "export.json": Text("Save as JSON", "JSON으로 저장"),
    "export.csv": Text("Save as CSV", "CSV로 저장"),
    "view.function": Text(
        "lens.{view} needs a function, but got {got}. Give the function itself, then its "
        "arguments: `lens.{view}(f)(x)`.",
        "lens.{view}에는 함수가 필요합니다. 받은 것: {got}. 함수 자체를 주고 인자는 그다음에 "
        "주십시오: `lens.{view}(f)(x)`.",
    ),
    "view.arguments": Text(
        "lens.{view} takes a function alone, but got more: {got}. The arguments of the function "
        "come after it: `lens.{view}(f)(x)`.",
        "lens.{view}에는 함수만 주십시오. 더 받은 것: {got}. 함수의 인자는 그다음에 줍니다: "
        "`lens.{view}(f)(x)`.",
    ),
    "view.waiting": Text(
        "A view that waits for the arguments of the function: `lens.{view}({name})(x)`",
        "함수의 인자를 기다리는 화면: `lens.{view}({name})(x)`",
    ),
    "gates.folder": Text(
        "There is no folder {folder}. Give the one in which the notebooks are, such as "
        "`lens.gates('.')`.",
        "{folder} 폴더가 없습니다. 노트북이 있는 폴더를 주십시오(예: `lens.gates('.')`).",
    ),
    "magic.call": Text(
        "The last line of the cell needs to be a call, such as `f(x)`, whose function is shown.",
        "셀의 마지막 줄은 `f(x)` 같은 호출이어야 하며, 그 함수를 보여 줍니다.",
    ),
    "graph.part": Text(
        "{n} of {all} equations, around the chosen one",
        "고른 식 주변 {n}개 (전체 {all}개)",
    ),
    "colour.none": Text("none", "없음"),
}

# ---- JupyterLab's side panel --------------------------------------------------------------------

_PANEL: dict[str, Text] = {
    "panel.title": Text("Saem lens", "Saem 렌즈"),
    "panel.toggle": Text("Show or Hide the Saem Lens", "Saem 렌즈 보이기/숨기기"),
    "panel.clear": Text("Forget the Compile History", "컴파일 이력 지우기"),
    "panel.clear.short": Text("Clear", "지우기"),
    "panel.connect": Text("Connect the Saem Lens Again", "Saem 렌즈 다시 연결"),
    "panel.connect.short": Text("Connect again", "다시 연결"),
    "panel.load": Text("Load the lens", "렌즈 불러오기"),
    "panel.none": Text(
        "Open a notebook: the lens follows the one you work in.",
        "노트북을 여십시오. 렌즈는 작업 중인 노트북을 따라갑니다.",
    ),
    "panel.noKernel": Text(
        "This notebook has no kernel. Choose one from the Kernel menu.",
        "이 노트북에 커널이 없습니다. 커널 메뉴에서 고르십시오.",
    ),
    "panel.language": Text(
        "This notebook's kernel is not Python. The lens shows what Saem does in a Python kernel.",
        "이 노트북의 커널은 Python이 아닙니다. 렌즈는 Python 커널에서 Saem이 하는 일을 "
        "보여 줍니다.",
    ),
    "panel.connecting": Text("Asking the kernel …", "커널에 묻는 중 …"),
    "panel.restarting": Text("The kernel is restarting …", "커널을 다시 시작하는 중 …"),
    "panel.dead": Text(
        "The kernel has died. Restart it from the Kernel menu; the history starts anew.",
        "커널이 멈췄습니다. 커널 메뉴에서 다시 시작하십시오. 이력은 처음부터 다시 쌓입니다.",
    ),
    "panel.absent": Text(
        "The lens is not loaded in this kernel. Run `%load_ext saem.lens` in a cell, or load it "
        "here:",
        "이 커널에는 렌즈가 없습니다. 셀에서 `%load_ext saem.lens`를 실행하거나 여기서 "
        "불러오십시오.",
    ),
    "panel.notInstalled": Text(
        "Saem could not be loaded in this kernel ({why}). Install it there: `%pip install "
        "'saem[lens]'`.",
        "이 커널에서 Saem을 불러오지 못했습니다({why}). 설치하십시오: `%pip install "
        "'saem[lens]'`",
    ),
    "panel.version": Text(
        "The kernel's Saem speaks protocol version {got}, this panel version {have}. Update the "
        "older one (`pip install -U saem` in both environments), restart the kernel and reload "
        "the page.",
        "프로토콜 버전이 다릅니다. 커널의 Saem: {got}, 이 패널: {have}. 두 환경에서 `pip install "
        "-U saem`을 실행한 뒤 커널을 다시 시작하고 페이지를 새로 고치십시오.",
    ),
    "panel.waiting": Text(
        "The lens is watching. Call a function under `jit`, `grad` or `vmap` and it appears "
        "here.",
        "렌즈가 지켜보고 있습니다. `jit`, `grad`, `vmap`을 거친 함수를 호출하면 여기에 "
        "나타납니다.",
    ),
    "panel.total": Text("{compiles} compiled · {seconds}", "컴파일 {compiles} · {seconds}"),
    "panel.badge": Text(
        "{n} traced and {compiles} compiled here, {seconds}. Show in the lens.",
        "여기서 추적 {n}번, 컴파일 {compiles}번, {seconds}. 렌즈에서 보기.",
    ),
    "panel.next": Text("Try next", "다음에 해 볼 것"),
    "panel.insert": Text("Put this into a new cell", "새 셀에 넣기"),
    "panel.status": Text(
        "Saem: {compiles} compiled, {seconds}",
        "Saem: 컴파일 {compiles}, {seconds}",
    ),
    "panel.jaxpr": Text(
        "Show the Jaxpr of the Cell's Last Call", "셀의 마지막 호출을 Jaxpr로 보기"
    ),
    "panel.xray": Text("X-Ray the Cell", "셀 엑스레이"),
    "panel.hints": Text("Show or Hide X-Ray Hints in Cells", "셀 안의 엑스레이 힌트 보이기/숨기기"),
    "panel.lessons": Text("Saem Lessons", "Saem 수업"),
    "panel.lessons.caption": Text("Open the lessons folder", "수업 폴더 열기"),
    "panel.lessons.none": Text(
        "No lessons were found below this server's folder. Run `saem lab` in a terminal: it "
        "puts them into a folder and opens JupyterLab there.",
        "이 서버의 폴더에서 수업을 찾지 못했습니다. 터미널에서 `saem lab`을 실행하면 수업을 "
        "폴더에 넣고 JupyterLab을 엽니다.",
    ),
    "panel.review": Text("Review Translations", "번역 검토"),
    "panel.review.caption": Text(
        "Read the lessons in both languages side by side, correct and accept them",
        "두 언어로 된 수업을 나란히 읽으며 고치고 승인합니다",
    ),
    "next.jaxpr": Text(
        "the jaxpr, its graph and what XLA makes of it",
        "jaxpr와 그래프, XLA가 만든 것",
    ),
    "next.tracers": Text("what each line sees while it is traced", "추적하는 동안 각 줄이 보는 값"),
    "next.steps": Text("the jaxpr on real numbers, step by step", "실제 수로 한 단계씩"),
    "next.autodiff": Text(
        "forward, backward, and what is kept between",
        "순방향, 역방향, 그 사이에 보관한 값",
    ),
    "next.compiled": Text("kernels, costs and memory", "커널, 비용, 메모리"),
    "next.keys": Text("random keys and their uses", "난수 키와 쓰임"),
    "next.devices": Text("where arrays live", "배열이 있는 곳"),
    "ask.jaxpr": Text("Jaxpr", "Jaxpr"),
    "ask.tracers": Text("X-ray", "엑스레이"),
}

# ---- predict gates ------------------------------------------------------------------------------

_GATES: dict[str, Text] = {
    "gate.title": Text("Predict", "예측해 봅시다"),
    "gate.commit": Text("Commit my guess", "예측 확정하기"),
    "gate.committed": Text(
        "You guessed: {guess}. Now run the next cells.",
        "예측: {guess}. 이제 다음 셀을 실행해 보십시오.",
    ),
    "gate.how_to_answer": Text(
        "To answer here: predict.answer({name!r}, …)",
        "여기에서 답하려면: predict.answer({name!r}, …)",
    ),
    "gate.run_to_answer": Text("Run this cell to answer.", "이 셀을 실행하면 답할 수 있습니다."),
    "gate.unanswered": Text(
        "No guess was made. Make one first, then open this.",
        "아직 예측하지 않았습니다. 먼저 예측한 다음 펼쳐 보십시오.",
    ),
    "gate.reveal": Text("Show what happened", "실제 결과 보기"),
    "gate.truth": Text("What happened: {truth}", "실제 결과: {truth}"),
    "gate.right": Text("Right! You guessed: {guess}.", "맞았습니다! 예측: {guess}."),
    "gate.wrong": Text(
        "You guessed: {guess}. What happened: {truth}.",
        "예측: {guess}. 실제 결과: {truth}.",
    ),
    "gate.after": Text(
        "(This guess was made after the result was known.)",
        "(결과가 나온 뒤에 한 예측입니다.)",
    ),
    "gate.rerun": Text(
        "This time: {truth}. The guess is judged by the first run.",
        "이번 결과: {truth}. 예측은 첫 실행의 결과로 판정합니다.",
    ),
    "gate.not_a_number": Text(
        "Please give a number, such as 2 or 0.5.",
        "2 또는 0.5 같은 수를 적어 주십시오.",
    ),
    "gate.empty": Text("Choose or write an answer first.", "먼저 답을 고르거나 적어 주십시오."),
    "gate.compiled": Text(
        "{function}({signature}): compiled", "{function}({signature}): 컴파일했습니다",
    ),
    "gate.found": Text(
        "{function}({signature}): traced, and the same program was found",
        "{function}({signature}): 추적했고, 같은 프로그램을 찾았습니다",
    ),
    "gate.loaded": Text(
        "{function}({signature}): traced, and loaded from the cache on disk",
        "{function}({signature}): 추적했고, 디스크 캐시에서 불러왔습니다",
    ),
    "gate.kept": Text(
        "{function}({signature}): not traced, since the same program was found",
        "{function}({signature}): 같은 프로그램을 찾아 추적하지 않았습니다",
    ),
    "gate.first": Text("first call", "첫 호출"),
    "gate.nothing": Text("nothing changed", "달라진 것 없음"),
    "gate.placeholder": Text("your guess", "예측한 값"),
    "gate.exercise": Text("Exercise", "연습 문제"),
    "gate.todo": Text(
        "Write your answer in place of exercise.todo(), then run this cell again.",
        "exercise.todo() 자리에 답을 적고 이 셀을 다시 실행해 주십시오.",
    ),
    "gate.exercise_unanswered": Text(
        "No answer yet. Write one above, run that cell, then this one.",
        "아직 답이 없습니다. 위 셀에 답을 적고 두 셀을 차례로 실행하십시오.",
    ),
    "gate.exercise_right": Text(
        "Right! Your function does all that was asked.",
        "맞았습니다! 함수가 문제에서 요구한 대로 동작합니다.",
    ),
    "gate.exercise_wrong": Text("Not yet.", "아직 아닙니다."),
    "gate.raised": Text("Your code raised `{error}`", "실행 중에 난 오류: `{error}`"),
    "gate.reset": Text("Guess again", "다시 예측하기"),
    "gate.not_a_shape": Text(
        "Please give a shape, such as (3, 4).",
        "(3, 4) 같은 형상을 적어 주십시오.",
    ),
}

WORDS: dict[str, Text] = {**_LABELS, **_VIEWS, **_PANEL, **_GATES}


def in_language(text: Text, language: Language | None = None) -> str:
    """The text in ``language``, or in the one chosen for this process."""
    return text.ko if (language or current()) == "ko" else text.en


def plain(text: Text, language: Language | None = None) -> str:
    """The text in one language without the backticks that mark code."""
    return in_language(text, language).replace("`", "")


def say_plainly(key: str, language: Language | None = None, **fields: object) -> str:
    """The word ``key`` with its fields filled in, without the backticks that mark code."""
    return plain(WORDS[key], language).format(**fields)


def say(key: str, language: Language | None = None, **fields: object) -> str:
    """The word ``key`` with its fields filled in."""
    text = in_language(WORDS[key], language)
    return text.format(**fields) if fields else text
