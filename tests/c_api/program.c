/* Kernels that share variables, print, assert, and draw, from C.
 *
 * Linked with objects of global_state, printf, assert, image_filter and sample_compare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assertions.h"
#include "image_filter.h"
#include "sample_compare.h"
#include "state.h"
#include "texts.h"

static void check(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "%s: %s\n", what, visa_jit_last_error());
        exit(1);
    }
}

static visa_jit_launch *launch(visa_jit_memory *memory, const visa_jit_descriptor *descriptor, uint32_t x, uint32_t y) {
    visa_jit_kernel *kernel = visa_jit_kernel_new(descriptor);
    check(kernel != NULL, "kernel");
    uint32_t global[3] = {x, y, 1};
    visa_jit_launch *made = visa_jit_launch_new(kernel, memory, global, NULL);
    check(made != NULL, "launch");
    visa_jit_kernel_free(kernel);
    return made;
}

static void run(visa_jit_launch *launch, size_t threads) {
    check(visa_jit_launch_run(launch, threads, NULL) == VISA_JIT_OK, "run");
}

/* What the kernels of one program count, each launch sees; another memory has variables of its own. */
static void variables(visa_jit_memory *memory, int times) {
    float in[8], out[8];
    int counters[4];
    for (int i = 0; i < 8; i++)
        in[i] = (float)i;
    visa_jit_buffer *from = visa_jit_buffer_new(memory, sizeof in), *to = visa_jit_buffer_new(memory, sizeof out);
    check(from && to, "buffers");
    check(visa_jit_buffer_write(from, 0, in, sizeof in) == VISA_JIT_OK, "write");
    visa_jit_launch *count = launch(memory, &visa_jit_kernel_global_count, 8, 1);
    check(visa_jit_launch_buffer(count, GLOBAL_COUNT_ARG_OUT, to) == VISA_JIT_OK, "out");
    check(visa_jit_launch_buffer(count, GLOBAL_COUNT_ARG_IN, from) == VISA_JIT_OK, "in");
    for (int i = 0; i < times; i++)
        run(count, 1);
    check(visa_jit_buffer_read(to, 0, out, sizeof out) == VISA_JIT_OK, "read");
    visa_jit_launch *read = launch(memory, &visa_jit_kernel_global_read, 4, 1);
    check(visa_jit_launch_buffer(read, GLOBAL_READ_ARG_OUT, to) == VISA_JIT_OK, "out");
    run(read, 2);
    check(visa_jit_buffer_read(to, 0, counters, sizeof counters) == VISA_JIT_OK, "read");
    printf("counters %d %d %d %d, 7 times the scale is %g\n", counters[0], counters[1], counters[2], counters[3], out[7]);
    visa_jit_launch_free(count);
    visa_jit_launch_free(read);
    visa_jit_buffer_free(from);
    visa_jit_buffer_free(to);
}

static void text(visa_jit_memory *memory) {
    visa_jit_launch *hello = launch(memory, &visa_jit_kernel_print_hello, 7, 1);
    visa_jit_buffer *out = visa_jit_buffer_new(memory, 28);
    check(visa_jit_launch_buffer(hello, 0, out) == VISA_JIT_OK, "argument");
    check(visa_jit_launch_printed(hello)[0] == 0, "nothing is printed yet");
    for (int i = 0; i < 2; i++)
        run(hello, 4);
    printf("%s", visa_jit_launch_printed(hello));
    check(visa_jit_launch_print_problem(hello) == NULL, "all is printed");
    visa_jit_launch_free(hello);
    visa_jit_buffer_free(out);
}

/* Of seven items whose numbers are compared with the limit, those above it fail; the next run knows nothing of them. */
static void assertions(visa_jit_memory *memory) {
    int in[7], out[7] = {0};
    for (int i = 0; i < 7; i++)
        in[i] = i;
    visa_jit_buffer *from = visa_jit_buffer_new(memory, sizeof in), *to = visa_jit_buffer_new(memory, sizeof out);
    check(visa_jit_buffer_write(from, 0, in, sizeof in) == VISA_JIT_OK, "write");
    visa_jit_launch *range = launch(memory, &visa_jit_kernel_assert_range, 7, 1);
    check(visa_jit_launch_buffer(range, ASSERT_RANGE_ARG_OUT, to) == VISA_JIT_OK, "out");
    check(visa_jit_launch_buffer(range, ASSERT_RANGE_ARG_IN, from) == VISA_JIT_OK, "in");
    check(visa_jit_launch_failed_assertions(range) == NULL, "nothing has failed yet");
    for (int limit = 5; limit <= 6; limit++) {
        visa_jit_report report;
        check(visa_jit_launch_value(range, ASSERT_RANGE_ARG_LIMIT, &limit, sizeof limit) == VISA_JIT_OK, "limit");
        check(visa_jit_launch_run(range, 1, &report) == VISA_JIT_OK, "run");
        const char *failed = visa_jit_launch_failed_assertions(range);
        check(visa_jit_buffer_read(to, 0, out, sizeof out) == VISA_JIT_OK, "read");
        const char *end = report.end == VISA_JIT_FAULTED ? "faulted" : "not faulted";
        printf("limit %d: %s, the last result is %d\n%s", limit, end, out[6], failed ? failed : "");
    }
    check(visa_jit_launch_failed_assertions(NULL) == NULL, "no launch");
    visa_jit_launch_free(range);
    visa_jit_buffer_free(from);
    visa_jit_buffer_free(to);
}

/* A picture of one colour has that colour when it is blurred. */
static void picture(visa_jit_memory *memory) {
    unsigned char texels[8 * 4];
    visa_jit_image image = {VISA_JIT_IMAGE_2D, 4, 8, VISA_JIT_UNORM, {4, 2, 1}};
    for (size_t i = 0; i < sizeof texels; i++)
        texels[i] = (unsigned char)(10 + 60 * (i % 4));
    visa_jit_buffer *from = visa_jit_buffer_new(memory, sizeof texels), *to = visa_jit_buffer_new(memory, sizeof texels);
    check(visa_jit_buffer_write(from, 0, texels, sizeof texels) == VISA_JIT_OK, "write");
    visa_jit_launch *blur = launch(memory, &visa_jit_kernel_blur, 4, 2);
    check(visa_jit_launch_image(blur, 0, from, &image) == VISA_JIT_OK, "from");
    visa_jit_image wrong = image;
    wrong.bits = 7;
    check(visa_jit_launch_image(blur, 1, to, &wrong) == VISA_JIT_FAILED, "wrong");
    printf("%s\n", visa_jit_last_error());
    check(visa_jit_launch_run(blur, 1, NULL) == VISA_JIT_FAILED, "one is missing");
    printf("%s\n", visa_jit_last_error());
    check(visa_jit_launch_image(blur, 1, to, &image) == VISA_JIT_OK, "to");
    run(blur, 1);
    unsigned char result[sizeof texels];
    check(visa_jit_buffer_read(to, 0, result, sizeof result) == VISA_JIT_OK, "read");
    printf("the picture is %s\n", memcmp(result, texels, sizeof texels) ? "another" : "the same");
    visa_jit_sampler sampler = {VISA_JIT_ADDRESS_EDGE, 1, 1, VISA_JIT_COMPARE_NEVER};
    check(visa_jit_launch_sampler(blur, 0, &sampler) == VISA_JIT_OK, "set");
    check(visa_jit_launch_run(blur, 1, NULL) == VISA_JIT_FAILED, "a sampler is no image");
    visa_jit_launch_free(blur);
    visa_jit_buffer_free(from);
    visa_jit_buffer_free(to);
}

/* Texels compared with 1/2, by a kernel that was written in vISA. */
static void compare(visa_jit_memory *memory, uint32_t comparison, float result[8]) {
    float texels[4] = {0.25f, 0.5f, 0.75f, 1.0f};
    visa_jit_image image = {VISA_JIT_IMAGE_1D, 1, 32, VISA_JIT_FLOAT, {4, 1, 1}};
    visa_jit_buffer *from = visa_jit_buffer_new(memory, sizeof texels), *to = visa_jit_buffer_new(memory, 640);
    check(visa_jit_buffer_write(from, 0, texels, sizeof texels) == VISA_JIT_OK, "write");
    visa_jit_launch *made = launch(memory, &visa_jit_kernel_sample_compare, 8, 1);
    check(visa_jit_launch_image(made, 0, from, &image) == VISA_JIT_OK, "image");
    check(visa_jit_launch_surface(made, 1, to) == VISA_JIT_OK, "buffer");
    visa_jit_sampler sampler = {VISA_JIT_ADDRESS_EDGE, 0, 0, 9};
    if (comparison == VISA_JIT_COMPARE_LESS) {
        check(visa_jit_launch_sampler(made, 0, &sampler) == VISA_JIT_FAILED, "wrong");
        printf("%s\n", visa_jit_last_error());
    }
    sampler.comparison = comparison;
    check(visa_jit_launch_sampler(made, 0, &sampler) == VISA_JIT_OK, "sampler");
    run(made, 1);
    check(visa_jit_buffer_read(to, 0, result, 8 * sizeof *result) == VISA_JIT_OK, "read");
    visa_jit_launch_free(made);
    visa_jit_buffer_free(from);
    visa_jit_buffer_free(to);
}

static void comparisons(visa_jit_memory *memory) {
    float less[8], greater[8];
    compare(memory, VISA_JIT_COMPARE_LESS, less);
    compare(memory, VISA_JIT_COMPARE_GREATER, greater);
    printf("less:");
    for (int i = 0; i < 8; i++)
        printf(" %g", less[i]);
    printf(", greater:");
    for (int i = 0; i < 8; i++)
        printf(" %g", greater[i]);
    printf("\n");
}

int main(void) {
    visa_jit_memory *memory = visa_jit_memory_new(1 << 26), *other = visa_jit_memory_new(1 << 26);
    check(memory && other, "memory");
    variables(memory, 1);
    variables(memory, 2);
    variables(other, 1);
    text(memory);
    assertions(memory);
    picture(memory);
    comparisons(memory);
    visa_jit_memory_free(memory);
    visa_jit_memory_free(other);
    return 0;
}
