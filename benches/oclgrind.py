#!/usr/bin/env python3
"""Times kernels on whatever OpenCL device there is, to compare checkers. Run once under each, and divide:

    oclgrind --data-races python3 benches/oclgrind.py
    visa-jit exec --check memory,race,barrier -- python3 benches/oclgrind.py

Needs PyOpenCL. Prints milliseconds of the second of two launches of each kernel, from the call to the end."""

import time

import numpy as np
import pyopencl as cl

SOURCE = """
kernel void saxpy(global float *y, global const float *x, float a) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}

kernel void sum(global float *o, global const float *x) {
    local float part[64];
    size_t l = get_local_id(0);
    part[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t s = 32; s > 0; s >>= 1) {
        if (l < s)
            part[l] += part[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        o[get_group_id(0)] = part[0];
}

kernel void product(global float *c, global const float *a, global const float *b, int n) {
    local float ta[8][8], tb[8][8];
    size_t x = get_local_id(0), y = get_local_id(1), gx = get_global_id(0), gy = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += 8) {
        ta[y][x] = a[gy * n + k + x];
        tb[y][x] = b[(k + y) * n + gx];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 8; j++)
            sum += ta[y][j] * tb[j][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[gy * n + gx] = sum;
}

kernel void stencil(global float *o, global const float *x, int n) {
    int i = get_global_id(0) + 1, j = get_global_id(1) + 1, w = n + 2;
    float sum = 0;
    for (int b = -1; b <= 1; b++)
        for (int a = -1; a <= 1; a++)
            sum += x[(j + b) * w + i + a];
    o[j * w + i] = sum / 9;
}

kernel void histogram(global int *o, global const uchar *x, int n) {
    local int bins[256];
    size_t l = get_local_id(0);
    for (size_t i = l; i < 256; i += 64)
        bins[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < n; i++)
        atomic_inc(&bins[x[get_group_id(0) * 64 * n + i * 64 + l]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = l; i < 256; i += 64)
        atomic_add(&o[i], bins[i]);
}

kernel void bodies(global float4 *o, global const float4 *x, int n) {
    size_t i = get_global_id(0);
    float4 me = x[i];
    float3 f = (float3)(0);
    for (int k = 0; k < n; k++) {
        float3 d = x[k].xyz - me.xyz;
        float r = rsqrt(dot(d, d) + 0.01f);
        f += d * (x[k].w * r * r * r);
    }
    o[i] = (float4)(f, me.w);
}
"""


def main():
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    print(context.devices[0].name)
    program = cl.Program(context, SOURCE).build()
    rng = np.random.default_rng(1)

    def floats(n):
        data = rng.random(n, dtype=np.float32)
        return cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=data)

    n, m = np.int32(64), np.int32(512)
    zeros = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(256, np.int32))
    pixels = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=rng.integers(0, 256, 65536, np.uint8))
    launches = [
        ("saxpy", (65536,), (64,), (floats(65536), floats(65536), np.float32(2))),
        ("sum", (65536,), (64,), (floats(1024), floats(65536))),
        ("product", (64, 64), (8, 8), (floats(4096), floats(4096), floats(4096), n)),
        ("stencil", (128, 128), (16, 4), (floats(130 * 130), floats(130 * 130), np.int32(128))),
        ("histogram", (4096,), (64,), (zeros, pixels, np.int32(16))),
        ("bodies", (512,), (64,), (floats(2048), floats(2048), m)),
    ]
    for name, shape, local, arguments in launches:
        kernel = cl.Kernel(program, name)
        kernel.set_args(*arguments)
        for _ in range(2):
            queue.finish()
            start = time.perf_counter()
            cl.enqueue_nd_range_kernel(queue, kernel, shape, local)
            queue.finish()
            took = time.perf_counter() - start
        print(f"{name:10} {1000 * took:10.3f} ms")


main()
