"""What does an error mean, and how is it fixed, in the learner's language?

The engine's messages are English, as JAX's are.  A card says the same in the learner's language:
what was needed, what came, the way of the value through the learner's own lines, two ways to mend
it, and the lesson to read.  Cards are found by the error's tag, then by its class and bases.

Read before: ``core.errors``, ``core.paths``.  Read after: ``observe.tracebacks``.
Invariant: every error of the engine has a card (tests/lens/test_cards.py).
"""

from __future__ import annotations

import dataclasses
import re
from types import TracebackType

from saem.core import errors, source
from saem.observe.places import Places, places
from saem.observe.schema import VERSION, ErrorModel, Lesson, PathStep, Place, Text


@dataclasses.dataclass(frozen=True)
class Card:
    """What is said of one kind of error.  ``lesson`` is the number of the lesson to read."""

    title: Text
    needed: Text
    mends: tuple[Text, Text]
    lesson: str


_CONTROL = Text(
    "Let the array decide: `jnp.where(condition, a, b)`, `lax.cond` or `lax.while_loop`.",
    "배열이 정하게 하십시오. `jnp.where(조건, a, b)`, `lax.cond`, `lax.while_loop`를 씁니다.",
)
_STATIC = Text(
    "If the value is not computed from data, mark the argument static: "
    "`jax.jit(f, static_argnames='n')`. Each value is then compiled once.",
    "데이터로 계산하는 값이 아니라면 정적 인자로 만드십시오. `jax.jit(f, static_argnames='n')`. "
    "값마다 한 번씩 컴파일합니다.",
)
_KEEP = Text(
    "Keep it an array: `x.astype(float)` and the functions of `jnp` stay inside the trace.",
    "배열로 두십시오. `x.astype(float)`과 `jnp`의 함수는 추적 안에 머무릅니다.",
)
_OUTSIDE = Text(
    "Return the value, and ask for its numbers outside the transformed function.",
    "값을 결과로 돌려주고, 수는 변환한 함수 밖에서 꺼내십시오.",
)
_RETURN = Text(
    "Return the value from the function instead of storing it outside.",
    "값을 바깥에 저장하지 말고 함수의 결과로 돌려주십시오.",
)
_SCALAR = Text(
    "Make one number of it: `jax.grad(lambda x: f(x).sum())`, or return the loss alone and the "
    "rest with `has_aux=True`.",
    "수 하나로 만드십시오. `jax.grad(lambda x: f(x).sum())`. 다른 값도 돌려주려면 `has_aux=True`를 "
    "씁니다.",
)
_LOSS_ALONE = Text(
    "Return the loss alone; other results come back beside the gradient with `has_aux=True`.",
    "손실만 돌려주십시오. 다른 값도 함께 받으려면 `has_aux=True`를 씁니다.",
)
_JACOBIAN = Text(
    "For all derivatives of several outputs use `jax.jacrev`, `jax.jacfwd` or `jax.vjp`.",
    "출력이 여럿이면 `jax.jacrev`, `jax.jacfwd`, `jax.vjp`를 쓰십시오.",
)
_FLOAT = Text(
    "Write the number with a point (`3.` instead of `3`), or convert: `x.astype(float)`.",
    "수에 소수점을 붙이십시오(`3` 대신 `3.`). 또는 `x.astype(float)`으로 바꾸십시오.",
)
_ARGNUMS = Text(
    "Differentiate in another argument: `jax.grad(f, argnums=1)`.",
    "다른 인자로 미분하십시오. `jax.grad(f, argnums=1)`.",
)
_LINES = Text(
    "Print the shapes before that line: `print(x.shape, y.shape)` works while tracing too.",
    "그 줄 앞에서 형상을 출력해 보십시오. `print(x.shape, y.shape)`는 추적하는 동안에도 "
    "실행됩니다.",
)
_DTYPES = Text(
    "Print the dtypes before that line: `print(x.dtype, y.dtype)` works while tracing too.",
    "그 줄 앞에서 자료형을 출력해 보십시오. `print(x.dtype, y.dtype)`는 추적하는 동안에도 "
    "실행됩니다.",
)
_READ = Text(
    "Read the engine's message below: its last lines say what to try.",
    "아래 엔진의 메시지를 읽어 보십시오. 마지막 줄이 해 볼 일을 알려 줍니다.",
)

CARDS: dict[str, Card] = {
    "TracerBoolConversionError": Card(
        Text("Python asked a traced value: true or false?",
             "Python이 추적 중인 값에 참인지 거짓인지 물었습니다"),
        Text("`if`, `while`, `and`, `or` and `not` need numbers. While a function is traced, an "
             "array is known by its shape and dtype alone.",
             "`if`, `while`, `and`, `or`, `not`에는 수가 필요합니다. 함수를 추적하는 동안에는 "
             "배열의 형상과 자료형만 압니다."),
        (_CONTROL, _STATIC), "06"),
    "TracerIntegerConversionError": Card(
        Text("Python needed a whole number and got a traced value",
             "Python에 정수가 필요한데 추적 중인 값이 왔습니다"),
        Text("`range(n)`, a list's index and a shape need a number that is known while tracing.",
             "`range(n)`, 리스트 인덱스, 형상에는 추적하는 동안 이미 아는 수가 필요합니다."),
        (Text("Index an array instead of a list: `jnp.asarray(values)[i]`; loop with "
              "`lax.fori_loop`.",
              "리스트 대신 배열에 인덱스를 쓰십시오. `jnp.asarray(values)[i]`. 반복은 "
              "`lax.fori_loop`로 합니다."), _STATIC), "06"),
    "TracerArrayConversionError": Card(
        Text("NumPy was given a traced value", "NumPy가 추적 중인 값을 받았습니다"),
        Text("NumPy computes with numbers, which are not known while a function is traced.",
             "NumPy는 수로 계산하는데, 함수를 추적하는 동안에는 수를 모릅니다."),
        (Text("Use the function of the same name of `jax.numpy`: `jnp.sin` for `np.sin`.",
              "`jax.numpy`의 같은 이름 함수를 쓰십시오. `np.sin` 대신 `jnp.sin`."),
         Text("To call NumPy while the program runs, use `jax.pure_callback`.",
              "프로그램이 실행되는 동안 NumPy를 부르려면 `jax.pure_callback`을 쓰십시오.")), "05"),
    "ConcretizationTypeError": Card(
        Text("Numbers of a traced value were needed", "추적 중인 값의 수가 필요했습니다"),
        Text("`float(x)`, `int(x)`, `x.item()` and shapes that depend on values need numbers. "
             "While a function is traced only shape and dtype are known.",
             "`float(x)`, `int(x)`, `x.item()`, 값에 따라 정해지는 형상에는 수가 필요합니다. "
             "함수를 추적하는 동안에는 형상과 자료형만 압니다."),
        (_KEEP, _OUTSIDE), "05"),
    "NonConcreteBooleanIndexError": Card(
        Text("The shape of the result would depend on values",
             "결과의 형상이 값에 따라 달라집니다"),
        Text("`x[mask]` has as many elements as `mask` has True; a program's shapes are fixed.",
             "`x[mask]`의 원소 수는 `mask`의 True 개수입니다. "
             "프로그램의 형상은 고정되어 있습니다."),
        (Text("Keep the shape and choose values: `jnp.where(mask, x, 0)`.",
              "형상은 그대로 두고 값을 고르십시오. `jnp.where(mask, x, 0)`."),
         Text("Give the size: `jnp.nonzero(mask, size=n)`.",
              "크기를 정해 주십시오. `jnp.nonzero(mask, size=n)`.")), "06"),
    "UnexpectedTracerError": Card(
        Text("A traced value escaped from its trace", "추적 중인 값이 추적 밖으로 새어 나갔습니다"),
        Text("A tracer lives only while its function is traced. It was stored outside and used "
             "later.",
             "트레이서는 함수를 추적하는 동안에만 쓸 수 있습니다. 그런데 바깥에 저장해 두었다가 "
             "나중에 썼습니다."),
        (_RETURN, Text("Find the place: `with jax.checking_leaks(): ...` stops where it leaks.",
                       "새는 곳을 찾으십시오. `with jax.checking_leaks(): ...` 안에서 실행하면 "
                       "새는 곳에서 멈춥니다.")), "05"),
    "KeyReuseError": Card(
        Text("A random key was used twice", "난수 키를 두 번 썼습니다"),
        Text("A key gives the same numbers each time. Two uses give the same random numbers twice.",
             "같은 키는 늘 같은 수를 줍니다. 두 번 쓰면 같은 난수가 두 번 나옵니다."),
        (Text("Make new keys: `key, sub = jax.random.split(key)`, and use `sub` once.",
              "새 키를 만드십시오. `key, sub = jax.random.split(key)`으로 나누고 `sub`는 한 번만 "
              "씁니다."),
         Text("For numbered steps: `jax.random.fold_in(key, step)`.",
              "단계마다 쓸 키는 `jax.random.fold_in(key, step)`으로 만드십시오.")), "09"),
    "array.immutable": Card(
        Text("Arrays cannot be changed in place", "배열은 제자리에서 바꿀 수 없습니다"),
        Text("`x[i] = v` would change `x`. A transformed function may not change its arguments.",
             "`x[i] = v`는 `x`를 바꿉니다. 변환을 거치는 함수는 인자를 바꿀 수 없습니다."),
        (Text("Make a new array: `x = x.at[i].set(v)`. Under `jit` no copy is made.",
              "새 배열을 만드십시오. `x = x.at[i].set(v)`. `jit` 안에서는 복사하지 않습니다."),
         Text("Work on a NumPy copy outside: `y = np.array(x); y[i] = v`.",
              "변환 밖에서는 NumPy 사본으로 작업하십시오. `y = np.array(x); y[i] = v`.")), "01"),
    "array.deleted": Card(
        Text("The array was given away", "이미 메모리를 넘겨준 배열입니다"),
        Text("Its memory was donated to a call (`donate_argnums`) and holds another result now.",
             "이 배열의 메모리를 호출에 넘겨주어(`donate_argnums`) 지금은 다른 결과가 "
             "들어 있습니다."),
        (Text("Use the result of that call instead: `x = f(x)`.",
              "그 호출의 결과를 쓰십시오. `x = f(x)`."),
         Text("Do not donate what you still need, or copy it before: `jnp.array(x)`.",
              "아직 필요한 배열의 메모리는 넘겨주지 마십시오. 아니면 먼저 `jnp.array(x)`로 "
              "복사하십시오.")),
        "11"),
    "jit.static": Card(
        Text("A static argument cannot be a key of the cache",
             "정적 인자를 캐시의 키로 쓸 수 없습니다"),
        Text("Programs are kept by the values of static arguments, which must have a hash.",
             "프로그램은 정적 인자의 값으로 보관하므로, 값에 해시가 있어야 합니다."),
        (Text("Pass a tuple instead of a list, a frozen dataclass instead of a mutable one.",
              "리스트 대신 튜플을, 바뀌는 객체 대신 동결된 데이터클래스를 넘기십시오."),
         Text("Pass arrays as ordinary arguments: remove it from `static_argnums`.",
              "배열이라면 `static_argnums`에서 빼고 보통 인자로 넘기십시오.")), "04"),
    "jit.argument": Card(
        Text("A jitted function got something that is not an array",
             "jit 함수가 배열이 아닌 것을 받았습니다"),
        Text("Arguments are arrays, numbers, and containers of them.",
             "인자는 배열, 수, 그리고 이들을 담은 컨테이너입니다."),
        (_STATIC, Text("Or close over it: define the function where the object is known.",
                       "또는 그 객체를 아는 곳에서 함수를 정의해 클로저로 쓰십시오.")), "02"),
    "grad.C2": Card(
        Text("A whole number cannot be varied a little", "정수는 조금씩 바꿀 수 없습니다"),
        Text("`grad` differentiates in real numbers; the argument is an integer or a boolean.",
             "`grad`는 실수로 미분합니다. 이 인자는 정수나 불리언입니다."),
        (_FLOAT, _ARGNUMS), "01"),
    "grad.C3": Card(
        Text("The function returns more than one number",
             "함수가 값을 하나가 아니라 여러 개 돌려줍니다"),
        Text("`grad` needs a function that returns one real number.",
             "`grad`에는 실수 하나를 돌려주는 함수가 필요합니다."),
        (_LOSS_ALONE, _JACOBIAN), "01"),
    "grad.C4": Card(
        Text("The function returns an array, not one number",
             "함수가 수 하나가 아니라 배열을 돌려줍니다"),
        Text("`grad` needs a function that returns one real number.",
             "`grad`에는 실수 하나를 돌려주는 함수가 필요합니다."),
        (_SCALAR, _JACOBIAN), "01"),
    "grad.C6": Card(
        Text("The function returns a complex number", "함수가 복소수를 돌려줍니다"),
        Text("`grad` needs a real number; of a complex function there are several derivatives.",
             "`grad`에는 실수가 필요합니다. 복소 함수의 도함수는 여러 가지입니다."),
        (Text("For a holomorphic function: `jax.grad(f, holomorphic=True)`.",
              "정칙 함수라면 `jax.grad(f, holomorphic=True)`."), _JACOBIAN), "07"),
    "grad.C7": Card(
        Text("The function returns a whole number", "함수가 정수를 돌려줍니다"),
        Text("An integer output does not change a little when the input does.",
             "출력이 정수이면 입력이 조금 바뀌어도 따라 바뀌지 않습니다."),
        (Text("Return a real number: compute with `float` arrays to the end.",
              "실수를 돌려주십시오. 끝까지 `float` 배열로 계산합니다."), _JACOBIAN), "01"),
    "vmap.C1": Card(
        Text("`vmap` got something that is not an array", "`vmap`이 배열이 아닌 것을 받았습니다"),
        Text("It maps over an axis of arrays.", "`vmap`은 배열의 축을 따라 함수를 적용합니다."),
        (Text("Leave the argument out of the mapping: `in_axes=(0, None)`.",
              "그 인자에는 `None`을 주십시오. `in_axes=(0, None)`."),
         Text("Make it an array: `jnp.asarray(values)`.",
              "배열로 만드십시오. `jnp.asarray(values)`.")), "08"),
    "vmap.C2": Card(
        Text("Axes that are mapped together have different lengths",
             "함께 따라가는 축의 길이가 서로 다릅니다"),
        Text("`vmap` goes along all mapped axes at the same time, so they must be equally long.",
             "`vmap`은 이 축들을 동시에 따라가므로 길이가 같아야 합니다."),
        (Text("Leave an argument out that is the same for all: `in_axes=(0, None)`.",
              "모든 예제가 함께 쓰는 인자에는 `None`을 주십시오. `in_axes=(0, None)`."),
         Text("Map over another axis of an argument: `in_axes=(0, 1)`.",
              "인자의 다른 축을 따라가게 하십시오. `in_axes=(0, 1)`.")), "08"),
    "axis.unbound": Card(
        Text("There is no axis of this name here", "여기에는 그런 이름의 축이 없습니다"),
        Text("A collective combines values along an axis that a transformation has named.",
             "집합 연산은 변환에서 이름을 붙인 축을 따라 값을 모읍니다."),
        (Text("Call the function under a transformation that names the axis: "
              "`jax.vmap(f, axis_name='i')`.",
              "축에 이름을 붙이는 변환 안에서 함수를 호출하십시오. `jax.vmap(f, axis_name='i')`."),
         Text("Is the name spelled right? The message lists the names in force.",
              "이름의 철자가 맞는지 보십시오. 지금 쓸 수 있는 이름은 메시지에 있습니다.")), "08"),
    "primitive.rules": Card(
        Text("A rule of the primitive is missing", "기본 연산의 규칙이 빠졌습니다"),
        Text("A primitive answers six questions, one rule each: `typing`, `evaluate`, `lower`, "
             "`jvp`, `transpose`, `batch`. The message names those that are missing.",
             "기본 연산은 질문 여섯 가지에 규칙 하나씩으로 답합니다. `typing`, `evaluate`, "
             "`lower`, `jvp`, `transpose`, `batch`입니다. 메시지에 빠진 규칙이 나옵니다."),
        (Text("Write the rule as a method of the class.", "그 규칙을 클래스의 메서드로 쓰십시오."),
         Text("If it cannot exist, say why: `transpose = NOT_LINEAR` or "
              "`batch = absent('reason')`.",
              "있을 수 없는 규칙이라면 까닭을 적으십시오. `transpose = NOT_LINEAR`, 또는 "
              "`batch = absent('까닭')`.")), "16"),
    "ShapeError": Card(
        Text("Shapes do not fit", "형상이 맞지 않습니다"),
        Text("The operation needs shapes that fit each other; the message names both.",
             "연산에는 서로 맞는 형상이 필요합니다. 메시지에 두 형상이 나옵니다."),
        (Text("Add or move an axis: `x[:, None]`, `x.reshape(...)`, `x.T`.",
              "축을 더하거나 옮기십시오. `x[:, None]`, `x.reshape(...)`, `x.T`."), _LINES), "01"),
    "DTypeError": Card(
        Text("The dtypes do not fit", "자료형이 맞지 않습니다"),
        Text("The operation does not take these dtypes, or not both at once.",
             "이 연산은 이런 자료형을 받지 않거나, 둘을 함께 받지 않습니다."),
        (Text("Convert: `x.astype(y.dtype)`. The functions of `jnp` do so themselves, those of "
              "`lax` do not.",
              "`x.astype(y.dtype)`으로 바꾸십시오. `jnp`의 함수는 스스로 바꾸지만 `lax`의 함수는 "
              "바꾸지 않습니다."), _DTYPES),
        "02"),
    "TypePromotionError": Card(
        Text("These dtypes have no common dtype", "두 자료형을 하나로 맞출 수 없습니다"),
        Text("There must be one dtype to which both operands are converted on their own.",
             "두 피연산자가 저절로 바뀔 수 있는 공통 자료형이 있어야 합니다."),
        (Text("Convert one of them: `x.astype(y.dtype)`.",
              "한쪽을 바꾸십시오. `x.astype(y.dtype)`."), _DTYPES), "02"),
    "ArgumentError": Card(
        Text("An argument has a value that cannot be used", "인자의 값을 쓸 수 없습니다"),
        Text("The function was called with a value that it does not take.",
             "함수가 받지 않는 값을 넘겼습니다."),
        (_READ, Text("Look at the function's help: `help(f)` or `f?` in a cell.",
                     "도움말을 보십시오. 셀에서 `help(f)` 또는 `f?`.")), "17"),
    "ArgumentTypeError": Card(
        Text("An argument has a type that cannot be used", "인자의 타입을 쓸 수 없습니다"),
        Text("The function was called with something that it does not take.",
             "함수가 받지 않는 것을 넘겼습니다."),
        (_READ, Text("Lists and tuples of numbers are not arrays: `jnp.asarray(values)`.",
                     "수의 리스트나 튜플은 배열이 아닙니다. `jnp.asarray(values)`로 바꾸십시오.")),
        "02"),
    "FloatingPointError": Card(
        Text("The result is NaN or infinite", "결과가 NaN이거나 무한대입니다"),
        Text("`debug_nans` or `debug_infs` is on: every result is checked, and this operation gave "
             "the first bad one.",
             "`debug_nans`나 `debug_infs`가 켜져 있어서 모든 결과를 검사합니다. "
             "이 연산에서 처음으로 NaN이나 무한대가 나왔습니다."),
        (Text("See what went in: `saem.lens.steps(f)(x)` keeps every value and marks the equation.",
              "무엇이 들어갔는지 보십시오. `saem.lens.steps(f)(x)`는 값을 모두 남기고 그 식에 "
              "표시합니다."),
         Text("Put a harmless number in before the dangerous operation: "
              "`jnp.where(x > 0, x, 1.0)`.",
              "위험한 연산 앞에서 해가 없는 수로 바꾸십시오. `jnp.where(x > 0, x, 1.0)`.")), "13"),
    "trace.leaked": Card(
        Text("Something still holds a value of a trace that has ended",
             "추적이 끝났는데도 그 추적의 값이 남아 있습니다"),
        Text("`jax.checking_leaks()` looks for such values at the end of each trace.",
             "`jax.checking_leaks()`는 추적이 끝날 때마다 그런 값이 있는지 찾습니다."),
        (_RETURN,
         Text("Look at what the message names: a global variable, an attribute or a list.",
              "메시지가 가리키는 전역 변수나 속성, 리스트를 보십시오.")), "05"),
    "IncompatiblePlaces": Card(
        Text("The arrays are on different devices", "배열들이 서로 다른 장치에 있습니다"),
        Text("One operation needs all its committed arrays on the same devices.",
             "한 연산에 쓰는 고정된 배열은 모두 같은 장치에 있어야 합니다."),
        (Text("Move one of them: `jax.device_put(x, y.sharding)`.",
              "한쪽을 옮기십시오. `jax.device_put(x, y.sharding)`."),
         Text("Leave arrays uncommitted: what was never put on a device follows the others.",
              "배열을 고정하지 마십시오. 장치를 정해 주지 않은 배열은 다른 배열을 따라갑니다.")),
        "11"),
    "transfer.guard": Card(
        Text("A transfer guard stopped a copy", "전송 감시가 복사를 막았습니다"),
        Text("Inside `jax.transfer_guard(\"disallow\")` numbers move between Python and a device "
             "only where you ask for it.",
             "`jax.transfer_guard(\"disallow\")` 안에서는 직접 요청할 때만 수가 Python과 장치 "
             "사이를 오갑니다."),
        (Text("Ask for the copy: `jax.device_put(x)` to the device, `jax.device_get(x)` from it.",
              "복사를 직접 요청하십시오. 장치로 보낼 때는 `jax.device_put(x)`, 장치에서 가져올 "
              "때는 `jax.device_get(x)`을 씁니다."),
         Text("Copy once, before the loop, and keep the array on the device.",
              "루프 앞에서 한 번만 복사하고 배열을 장치에 두십시오.")), "11"),
    "IndivisibleError": Card(
        Text("An axis cannot be split evenly over the devices",
             "축을 장치들에 똑같이 나눌 수 없습니다"),
        Text("The length of an axis must be a multiple of the number of devices it is split over.",
             "샤딩하는 축의 길이는 그 축을 나누어 가지는 장치 수의 배수여야 합니다."),
        (Text("Pad the axis, or choose another length.",
              "축을 패딩하거나 길이를 바꾸십시오."),
         Text("Leave the axis whole: `None` in its place in `PartitionSpec`.",
              "그 축은 나누지 마십시오. `PartitionSpec`에서 그 자리에 `None`을 씁니다.")), "14"),
    "while.reverse": Card(
        Text("This loop has no backward pass", "이 루프는 역방향으로 미분할 수 없습니다"),
        Text("Going back needs the values of all steps, and how many there are is not known before "
             "it runs.",
             "거꾸로 가려면 모든 단계의 값이 필요한데, 단계가 몇 개인지 실행하기 전에는 모릅니다."),
        (Text("With a known number of steps: `lax.scan`, or `lax.fori_loop` with Python numbers.",
              "단계 수를 안다면 `lax.scan`을 쓰거나, `lax.fori_loop`에 Python 수를 주십시오."),
         Text("Use forward mode: `jax.jvp`, `jax.jacfwd`.",
              "순방향 모드를 쓰십시오. `jax.jvp`, `jax.jacfwd`.")), "06"),
    "cond.C3": Card(
        Text("The branches return different types", "갈래마다 결과의 타입이 다릅니다"),
        Text("Whichever branch runs, the program goes on with one shape and one dtype.",
             "어느 갈래로 가든 그다음 프로그램은 한 가지 형상과 자료형을 받아야 합니다."),
        (Text("Convert one result: `x.astype(y.dtype)`, `jnp.zeros_like(y)`.",
              "한쪽 결과를 바꾸십시오. `x.astype(y.dtype)`, `jnp.zeros_like(y)`."), _LINES), "06"),
    "tree.C1": Card(
        Text("The trees have different structures", "트리의 구조가 서로 다릅니다"),
        Text("Both need the same containers, with the same keys and lengths.",
             "양쪽의 컨테이너가 같고, 키와 길이도 같아야 합니다."),
        (Text("Look at both: `jax.tree.structure(a)`, `jax.tree.structure(b)`.",
              "둘을 견주어 보십시오. `jax.tree.structure(a)`, `jax.tree.structure(b)`."),
         Text("A list is not a tuple: `tuple(values)`, `list(values)`.",
              "리스트와 튜플은 다릅니다. `tuple(values)`이나 `list(values)`로 바꾸십시오.")), "10"),
    "Exception": Card(
        Text("The engine cannot do this", "엔진이 할 수 없는 일입니다"),
        Text("The message says what was needed.", "무엇이 필요했는지는 메시지에 있습니다."),
        (_READ, Text("Look at the function's help: `help(f)` or `f?` in a cell.",
                     "도움말을 보십시오. 셀에서 `help(f)` 또는 `f?`.")), "17"),
}
# The lessons that cards name, by number (tests/lens/test_cards.py compares them with the course).
LESSONS = {file[:2]: file for file in (
    "01-arrays", "02-pure-functions", "04-recompilation", "05-kinds-of-values", "06-control-flow",
    "07-derivatives", "08-vmap", "09-random", "10-pytrees", "11-devices", "13-looking-inside",
    "14-many-devices", "16-inside", "17-faq")}
_TYPE = re.compile(
    r"\b(?:bool|[iu]\d+|[iu]nt\d+|uint\d+|bf16|bfloat16|f\d+|float\d+|c\d+|complex\d+|key<\w+>)"
    r"\[[\w, ]*\]|\(\d[\d, ]*\)")


# Errors that XLA raises by itself carry no tag: a part of the message, and the tag of its card.
_XLA = {"Disallowed host-to-device transfer": "transfer.guard",
        "Disallowed device-to-host transfer": "transfer.guard",
        "Disallowed device-to-device transfer": "transfer.guard",
        "Non-hashable static arguments are not supported": "jit.static"}


def is_engines(error: BaseException) -> bool:
    """Whether the engine raised this error and explained it, or knows what XLA's error means."""
    return (isinstance(error, errors.Explained) or hasattr(error, "saem_tag")
            or bool(_tag_from_xla(error)))


def tag_of(error: BaseException) -> str:
    """The tag by which an error's card is found; empty if it has none."""
    return (getattr(error, "tag", "") or getattr(error, "saem_tag", "")
            or _tag_from_xla(error))


def _tag_from_xla(error: BaseException) -> str:
    if type(error) not in (errors.JaxRuntimeError, ValueError):
        return ""
    message = " ".join(map(str, error.args))
    return next((tag for part, tag in _XLA.items() if part in message), "")


def card_of(error: BaseException) -> Card:
    """The card of an error: by its tag, else by its class."""
    tag = tag_of(error)
    if tag in CARDS:
        return CARDS[tag]
    return next(CARDS[c.__name__] for c in type(error).__mro__ if c.__name__ in CARDS)


def title(tag: str, name: str) -> Text | None:
    """What an error with this tag, or of the class of this name, is called; None if unknown."""
    card = CARDS.get(tag) or CARDS.get(name)
    return None if card is None else card.title


def error_model(error: BaseException, trace: TracebackType | None = None, named: Places = places
                ) -> ErrorModel:
    """The card of an error of the engine, filled in."""
    card = card_of(error)
    message = str(error)
    first = message.splitlines()[0] if message else ""
    where = getattr(error, "where", None) or getattr(error, "saem_where", None)
    place = named.place(where) if where is not None else _users_place(trace, named)
    return ErrorModel(
        kind="error", version=VERSION,
        tag=tag_of(error), name=type(error).__name__, title=card.title, needed=card.needed,
        got=tuple(dict.fromkeys(_TYPE.findall(first))), place=place,
        path=_path(error, named), mends=card.mends,
        lesson=Lesson(Text(f"Lesson {card.lesson}", f"{int(card.lesson)}강"), LESSONS[card.lesson]),
        message=message)


def _users_place(trace: TracebackType | None, named: Places) -> Place | None:
    """The deepest line of a traceback that is the learner's."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if not source.is_internal(code.co_filename):
            found = source.position((code, trace.tb_lasti, code.co_filename))
        trace = trace.tb_next
    return named.place(found)


def _path(error: BaseException, named: Places) -> tuple[PathStep, ...]:
    """The way of the value, each step in the words of places; an argument has no place."""
    steps = error.path if isinstance(error, errors.Explained) else ()
    return tuple(PathStep(name, named.place(where)) for name, where in steps)
