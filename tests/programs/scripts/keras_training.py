"""keras with its JAX backend: training, convolution, recurrence, attention, a step of one's own."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from curves import record
from keras import layers, ops

keras.utils.set_random_seed(0)
numbers = np.random.default_rng(0)
x = numbers.normal(size=(64, 8)).astype("float32")
y = np.argmax(x @ numbers.normal(size=(8, 3)), axis=1)

model = keras.Sequential([
    layers.Input((8,)), layers.Dense(16, activation="relu"), layers.BatchNormalization(),
    layers.Dropout(0.1), layers.Dense(3, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy",
              metrics=["accuracy"])
history = model.fit(x, y, epochs=3, batch_size=16, verbose=0, validation_split=0.25).history
for name, curve in history.items():
    record(name, curve)
record("predicted", model.predict(x[:4], verbose=0))

image = keras.Input((8, 8, 1))
inner = layers.Conv2D(4, 3, activation="gelu", padding="same")(image)
inner = layers.SeparableConv2D(4, 3)(layers.MaxPooling2D()(inner))
judge = keras.Model(image, layers.Dense(1, activation="sigmoid")(
    layers.GlobalAveragePooling2D()(inner)))
judge.compile("rmsprop", "binary_crossentropy")
images = numbers.normal(size=(16, 8, 8, 1)).astype("float32")
record("images", judge.fit(images, numbers.integers(0, 2, 16), epochs=2, verbose=0).history["loss"])

words = keras.Input((6,), dtype="int32")
inner = layers.LSTM(4, return_sequences=True)(layers.Embedding(10, 4, mask_zero=True)(words))
inner = layers.MultiHeadAttention(2, 4)(inner, inner, use_causal_mask=True)
reader = keras.Model(words, layers.Dense(1)(layers.GlobalMaxPooling1D()(
    layers.LayerNormalization()(inner))))
reader.compile(keras.optimizers.SGD(0.05, momentum=0.9, clipnorm=1.0), "mse")
record("words", reader.fit(numbers.integers(0, 10, (16, 6)), numbers.normal(size=16), epochs=2,
                           verbose=0).history["loss"])

model = keras.Sequential([layers.Input((8,)), layers.Dense(8, activation="tanh"), layers.Dense(3)])
optimizer = keras.optimizers.AdamW(1e-2)
optimizer.build(model.trainable_variables)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def loss(trained, others, x, y):
    predicted, others = model.stateless_call(trained, others, x, training=True)
    return loss_of(y, predicted), others


@jax.jit
def step(state, x, y):
    trained, others, slots = state
    (value, others), grads = jax.value_and_grad(loss, has_aux=True)(trained, others, x, y)
    trained, slots = optimizer.stateless_apply(slots, grads, trained)
    return value, (trained, others, slots)


state = tuple([v.value for v in group] for group in (
    model.trainable_variables, model.non_trainable_variables, optimizer.variables))
curve = []
for _ in range(4):
    value, state = step(state, x, y)
    curve.append(value)
record("a step of one's own", curve)

record("scan", ops.scan(lambda c, r: (c + r, c), ops.zeros(8), x[:4])[1])
record("resized", ops.image.resize(images[:1], (4, 4)))
record("singular values", ops.svd(x[:4])[1])
record("sums of segments", ops.segment_sum(x[:4], np.array([0, 0, 1, 1]), 2))
record("drawn", keras.random.normal((3,), seed=1))
record("categories", keras.random.categorical(x[:4], 2, seed=3))
