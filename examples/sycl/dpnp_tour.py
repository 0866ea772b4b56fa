"""NumPy's functions on the virtual GPU, each compared with NumPy: linear algebra, reductions, sorting, random numbers."""

import sys

import dpnp
import numpy as np

rng = np.random.default_rng(7)
n = 200
a = rng.standard_normal((n, n)) + n * np.eye(n)
b = rng.standard_normal(n)
x = rng.standard_normal(100_000)
on_device = {name: dpnp.asarray(value) for name, value in {"a": a, "b": b, "x": x}.items()}
da, db, dx = on_device["a"], on_device["b"], on_device["x"]

cases = [
    ("linalg.solve", dpnp.linalg.solve(da, db), np.linalg.solve(a, b)),
    ("matmul", da @ da, a @ a),
    ("sum", dx.sum(), x.sum()),
    ("max", dx.max(), x.max()),
    ("cumsum", dpnp.cumsum(dx), np.cumsum(x)),
    ("sort", dpnp.sort(dx), np.sort(x)),
    ("sin(x) * 2 + exp(x)", dpnp.sin(dx) * 2 + dpnp.exp(dx), np.sin(x) * 2 + np.exp(x)),
    ("fft", dpnp.fft.fft(dx), np.fft.fft(x)),
]

print(da.sycl_device.name.strip())
failed = 0
for name, got, wanted in cases:
    same = np.allclose(dpnp.asnumpy(got), wanted, rtol=1e-9, atol=1e-9)
    failed += not same
    print(f"{name}: {'as NumPy' if same else 'DIFFERENT'}")

# Numbers of another generator than NumPy's: their mean and spread are compared with what they must be.
dpnp.random.seed(1)
r = dpnp.asnumpy(dpnp.random.normal(3.0, 2.0, size=100_000))
same = abs(r.mean() - 3) < 0.05 and abs(r.std() - 2) < 0.05
failed += not same
print(f"random.normal: {'mean and spread fit' if same else 'DIFFERENT'}")
sys.exit(bool(failed))
