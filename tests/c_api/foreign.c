/* Calls a kernel's code as compiled for another processor, with the structures of runtime/src/abi.rs laid out by hand. `plan.h` is written
 * by the test from the object's record: PAYLOAD, SIMD, the kernel's variants, and the slots of the payload. Each variant gets the arguments
 * that standard input holds, BYTES for each, and what it leaves of them goes to standard output. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

typedef struct { uint8_t *base; uint64_t size; } Surface;
typedef struct {
    const Surface *surfaces;
    const uint8_t *payload;
    uint64_t flat_base, flat_size;
    const uint32_t *interrupt;
    void *const *helpers;
} LaunchCtx;
typedef struct {
    const uint16_t *local_ids;
    uint8_t *frame, *scratch;
    uint64_t scratch_size;
    uint32_t dispatch_mask, state, r0_2, r0_5, sr0, hw_id;
} ThreadCtx;
typedef struct {
    const LaunchCtx *launch;
    uint8_t *slm;
    uint64_t slm_size;
    ThreadCtx *threads;
    uint8_t *sink, *faults;
    uint32_t r0[16], thread_count, following;
} GroupCtx;

#define X(name) extern uint32_t name(GroupCtx *, uint32_t, uint32_t);
VARIANTS
#undef X

#define ITEMS 64
#define THREADS (ITEMS / SIMD)

static uint8_t input[ARGUMENTS][BYTES], arguments[ARGUMENTS][BYTES];

static void called(void) {
    fprintf(stderr, "another helper was called\n");
    exit(2);
}

/* Element by element, as the runtime's helpers do it: `shape` is of `abi::message`. */
static uint32_t message(const GroupCtx *group, uint32_t shape, uint32_t index, uint32_t lanes, uint8_t *block, int store) {
    uint32_t bytes = 1u << (shape & 3), place = shape >> 2 & 7, count = shape >> 8 & 0xFF, comps = shape >> 16 & 0xFF;
    uint32_t wide = place == 4 ? 8 : 4, faults = 0;
    uint8_t *data = block + (count * wide + 15) / 16 * 16;
    for (uint32_t c = 0; c < comps; c++, data += (count * bytes + 15) / 16 * 16)
        for (uint32_t lane = 0; lane < count; lane++) {
            if (!(lanes >> lane & 1))
                continue;
            uint64_t at = 0, size = group->launch->flat_size;
            uint8_t *base = (uint8_t *)group->launch->flat_base;
            memcpy(&at, block + lane * wide, wide);
            if (place == 4) {
                at -= group->launch->flat_base;
            } else {
                base = group->launch->surfaces[index & 0xFF].base;
                size = group->launch->surfaces[index & 0xFF].size;
            }
            at += c * bytes;
            int inside = bytes <= size && at <= size - bytes;
            faults |= (uint32_t)!inside << lane;
            if (!store)
                memset(data + lane * bytes, 0, bytes);
            if (inside)
                memcpy(store ? base + at : data + lane * bytes, store ? data + lane * bytes : base + at, bytes);
        }
    return faults;
}

static uint32_t load(const GroupCtx *g, const ThreadCtx *t, uint32_t s, uint32_t i, uint32_t l, uint8_t *b) {
    (void)t;
    return message(g, s, i, l, b, 0);
}

static uint32_t store(const GroupCtx *g, const ThreadCtx *t, uint32_t s, uint32_t i, uint32_t l, uint8_t *b) {
    (void)t;
    return message(g, s, i, l, b, 1);
}

static void run(uint32_t (*code)(GroupCtx *, uint32_t, uint32_t)) {
    static _Alignas(64) uint8_t payload[PAYLOAD + 64], sink[256], frame[THREADS][65536];
    static uint16_t ids[THREADS][3][32];
    static Surface surfaces[256];
    static ThreadCtx threads[THREADS];
    void *helpers[32];
    for (int i = 0; i < 32; i++)
        helpers[i] = (void *)called;
    helpers[LOAD] = helpers[LOAD_QUIET] = (void *)load;
    helpers[STORE] = helpers[STORE_QUIET] = (void *)store;
    memcpy(arguments, input, sizeof input);
    memset(frame, 0, sizeof frame);
    for (int i = 0; i < 256; i++)
        surfaces[i].base = sink;
    uint32_t interrupt = 0, sizes[3] = {ITEMS, 1, 1};
    for (int i = 0; i < THREADS; i++) {
        for (int lane = 0; lane < SIMD; lane++)
            ids[i][0][lane] = (uint16_t)(i * SIMD + lane);
        threads[i].local_ids = ids[i][0];
        threads[i].frame = threads[i].scratch = frame[i];
        threads[i].dispatch_mask = (uint32_t)((1ull << SIMD) - 1);
        threads[i].state = 0;
        threads[i].r0_2 = (uint32_t)i;
    }
    for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++) {
        uint8_t *to = payload + slots[i].offset, *argument = arguments[slots[i].argument];
        if (slots[i].kind == VALUE)
            memcpy(to, argument + slots[i].from, slots[i].size);
        else if (slots[i].kind == ADDRESS)
            memcpy(to, &argument, slots[i].size);
        else if (slots[i].kind == SIZE)
            memcpy(to, sizes, slots[i].size);
    }
    for (unsigned i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        surfaces[bindings[i][0]].base = arguments[bindings[i][1]];
        surfaces[bindings[i][0]].size = BYTES;
    }
    /* All of the address space, so that addresses need not be of one range. */
    LaunchCtx launch = {surfaces, payload, 0, 1ull << 47, &interrupt, helpers};
    GroupCtx group = {&launch, sink, 0, threads, sink, sink, {0}, THREADS, 0};
    if (code(&group, 0, THREADS) != 0) {
        fprintf(stderr, "the code did not finish\n");
        exit(3);
    }
    fwrite(arguments, sizeof arguments, 1, stdout);
}

int main(void) {
    if (fread(input, sizeof input, 1, stdin) != 1)
        return 1;
#define X(name) run(name);
    VARIANTS
    return 0;
}
