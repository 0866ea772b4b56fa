"""A kernel in OpenCL C, compiled by Intel's compiler and launched through SYCL, on unified shared memory."""

import ctypes
import sys

import dpctl
import dpctl.memory
import dpctl.program
import numpy as np

SOURCE = """
kernel void smooth(global float *out, global const float *in, int n, float weight) {
    int i = get_global_id(0);
    float left = in[max(i - 1, 0)], right = in[min(i + 1, n - 1)];
    out[i] = fma(weight, left + right, in[i]);
}
"""

queue = dpctl.SyclQueue()
print(queue.sycl_device.name.strip())
kernel = dpctl.program.create_program_from_source(queue, SOURCE).get_sycl_kernel("smooth")

n, weight = 1 << 16, np.float32(0.25)
values = np.random.default_rng(7).standard_normal(n).astype(np.float32)
source = dpctl.memory.MemoryUSMShared(values.nbytes, queue=queue)
target = dpctl.memory.MemoryUSMDevice(values.nbytes, queue=queue)
queue.memcpy(source, values, values.nbytes)
arguments = [target, source, ctypes.c_int(n), ctypes.c_float(weight)]
queue.submit(kernel, arguments, [n], [256]).wait()
got = np.empty_like(values)
queue.memcpy(got, target, values.nbytes)

left, right = np.r_[values[:1], values[:-1]], np.r_[values[1:], values[-1:]]
# One rounding at the end, as `fma` has it.
wanted = (weight.astype(np.float64) * (left + right) + values).astype(np.float32)
different = int(np.count_nonzero(got != wanted))
print(f"smooth: {n - different} of {n} values are exact")
sys.exit(bool(different))
