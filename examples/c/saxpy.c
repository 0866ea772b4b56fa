/* y = a * x + y by a kernel that visa-jit compiled ahead of time. No Rust and no compiler of kernels is needed to build or run it:
 *
 *   visa-jit compile tests/kernels/bin/skl/saxpy.zebin -o saxpy.o
 *   visa-jit compile tests/kernels/bin/skl/saxpy.zebin -o saxpy.h
 *   cc -Iruntime/capi/include -I. examples/c/saxpy.c saxpy.o libvisa_jit_runtime.a -lpthread -ldl -lm -o saxpy
 *
 * The library comes from `cargo build --release -p visa-runtime-c`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "saxpy.h"

#define COUNT 1000

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "%s: %s\n", what, visa_jit_last_error());
        exit(1);
    }
}

static visa_jit_buffer *filled(visa_jit_memory *memory, float scale) {
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = scale * (float)i;
    visa_jit_buffer *buffer = visa_jit_buffer_new(memory, sizeof values);
    check(buffer != NULL, "buffer");
    visa_jit_status done = visa_jit_buffer_write(buffer, 0, values, sizeof values);
    check(done == VISA_JIT_OK, "write");
    return buffer;
}

int main(int argc, char **argv) {
    size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    visa_jit_memory *memory = visa_jit_memory_new(1 << 26);
    check(memory != NULL, "memory");
    visa_jit_kernel *kernel = visa_jit_kernel_new(&visa_jit_kernel_saxpy);
    check(kernel != NULL, "kernel");
    visa_jit_buffer *y = filled(memory, 1), *x = filled(memory, 10);

    uint32_t global[3] = {COUNT, 1, 1};
    visa_jit_launch *launch = visa_jit_launch_new(kernel, memory, global, NULL);
    check(launch != NULL, "launch");
    float a = 2;
    check(visa_jit_launch_buffer(launch, SAXPY_ARG_Y, y) == VISA_JIT_OK, "y");
    check(visa_jit_launch_buffer(launch, SAXPY_ARG_X, x) == VISA_JIT_OK, "x");
    check(visa_jit_launch_value(launch, SAXPY_ARG_A, &a, sizeof a) == VISA_JIT_OK, "a");
    visa_jit_report report;
    check(visa_jit_launch_run(launch, threads, &report) == VISA_JIT_OK, "run");

    float result[COUNT];
    check(visa_jit_buffer_read(y, 0, result, sizeof result) == VISA_JIT_OK, "read");
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += result[i] != (float)(21 * i);
    printf("%s: %llu groups, %llu faults, y[999] = %g, %d wrong\n", visa_jit_kernel_name(kernel),
           (unsigned long long)report.groups, (unsigned long long)report.faults, result[COUNT - 1], wrong);

    /* A mistake is a message, not a crash. */
    if (visa_jit_launch_value(launch, 7, &a, sizeof a) == VISA_JIT_OK)
        wrong = 1;
    printf("argument 7: %s\n", visa_jit_last_error());

    visa_jit_launch_free(launch);
    visa_jit_kernel_free(kernel);
    visa_jit_buffer_free(x);
    visa_jit_buffer_free(y);
    visa_jit_memory_free(memory);
    return wrong != 0 || report.end != VISA_JIT_COMPLETED;
}
