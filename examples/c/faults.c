/* Reads fault records of a kernel that was compiled with `--oob report`: here with a `y` that is too small.
 *
 *   visa-jit compile tests/kernels/bin/skl/saxpy.zebin --oob report -o saxpy.o
 *
 * and on as in saxpy.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "saxpy.h"

int main(void) {
    visa_jit_memory *memory = visa_jit_memory_new(1 << 26);
    visa_jit_kernel *kernel = visa_jit_kernel_new(&visa_jit_kernel_saxpy);
    visa_jit_buffer *y = visa_jit_buffer_new(memory, 4 * sizeof(float));
    visa_jit_buffer *x = visa_jit_buffer_new(memory, 8 * sizeof(float));
    uint32_t global[3] = {8, 1, 1}, local[3] = {8, 1, 1};
    visa_jit_launch *launch = visa_jit_launch_new(kernel, memory, global, local);
    float a = 2;
    visa_jit_report report;
    if (visa_jit_launch_buffer(launch, SAXPY_ARG_Y, y) != VISA_JIT_OK ||
        visa_jit_launch_buffer(launch, SAXPY_ARG_X, x) != VISA_JIT_OK ||
        visa_jit_launch_value(launch, SAXPY_ARG_A, &a, sizeof a) != VISA_JIT_OK ||
        visa_jit_launch_run(launch, 1, &report) != VISA_JIT_OK) {
        fprintf(stderr, "%s\n", visa_jit_last_error());
        return 1;
    }
    printf("%llu faults\n", (unsigned long long)report.faults);
    int fine = report.described > 0;
    for (size_t i = 0; i < report.described; i++) {
        visa_jit_fault fault;
        if (visa_jit_launch_fault(launch, i, &fault) != VISA_JIT_OK)
            return 1;
        printf("line %u: %s, %s of %u bytes at %llu of %s %lld, lane %u\n", fault.line, fault.opcode, fault.access,
               fault.bytes, (unsigned long long)fault.address, fault.space, (long long)fault.surface, fault.lane);
        fine = fine && fault.bytes == 4 && fault.global_id[0] >= 4 && strcmp(fault.space, "surface") == 0;
    }
    visa_jit_launch_free(launch);
    visa_jit_buffer_free(x);
    visa_jit_buffer_free(y);
    visa_jit_kernel_free(kernel);
    visa_jit_memory_free(memory);
    return !fine;
}
