"""The interpreters: staging, jvp, linearize and transpose, vmap; and what derives from them."""
