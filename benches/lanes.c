// Indirect loads and stores as plain loops, each access checked against the size of its array as a kernel's are: what is
// outside reads zero and is not written. Sizes are in elements.
#include <stdint.h>

void gather(float *restrict out, uint32_t out_n, const float *restrict table, uint32_t table_n,
            const uint32_t *restrict index, uint32_t index_n, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t k = i < index_n ? index[i] : 0;
        float v = k < table_n ? table[k] : 0.0f;
        if (i < out_n)
            out[i] = v;
    }
}

void gather_kept(float *restrict out, uint32_t out_n, const float *restrict table, uint32_t table_n,
                 const uint32_t *restrict index, uint32_t index_n, uint32_t n,
                 const uint32_t *restrict keep, uint32_t keep_n) {
    for (uint32_t i = 0; i < n; ++i) {
        if (i < keep_n && keep[i]) {
            uint32_t k = i < index_n ? index[i] : 0;
            float v = k < table_n ? table[k] : 0.0f;
            if (i < out_n)
                out[i] = v;
        }
    }
}

void scatter(uint32_t *restrict out, uint32_t out_n, const uint32_t *restrict values, uint32_t values_n,
             const uint32_t *restrict index, uint32_t index_n, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t k = i < index_n ? index[i] : 0;
        uint32_t v = i < values_n ? values[i] : 0;
        if (k < out_n)
            out[k] = v;
    }
}

void scatter_kept(uint32_t *restrict out, uint32_t out_n, const uint32_t *restrict values, uint32_t values_n,
                  const uint32_t *restrict index, uint32_t index_n, uint32_t n,
                  const uint32_t *restrict keep, uint32_t keep_n) {
    for (uint32_t i = 0; i < n; ++i) {
        if (i < keep_n && keep[i]) {
            uint32_t k = i < index_n ? index[i] : 0;
            uint32_t v = i < values_n ? values[i] : 0;
            if (k < out_n)
                out[k] = v;
        }
    }
}

void saxpy(float *restrict y, uint32_t y_n, const float *restrict x, uint32_t x_n, float a, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
        float u = i < x_n ? x[i] : 0.0f;
        float v = i < y_n ? y[i] : 0.0f;
        if (i < y_n)
            y[i] = __builtin_fmaf(a, u, v);
    }
}
