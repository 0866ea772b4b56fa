// The work of the benched kernels as plain loops: what this processor does when the source is written for it.
#include <stdint.h>

void saxpy(float *restrict y, const float *restrict x, float a, int n) {
    for (int i = 0; i < n; ++i)
        y[i] = __builtin_fmaf(a, x[i], y[i]);
}

void gather(float *restrict out, const float *restrict table, const uint32_t *restrict index, int n) {
    for (int i = 0; i < n; ++i)
        out[i] = table[index[i]];
}

// Sixteen points at a time, as the kernel's lanes: vectors of the compiler, widened as far as the target goes.
typedef float f16v __attribute__((vector_size(64)));
typedef int32_t i16v __attribute__((vector_size(64)));

void mandelbrot(int32_t *restrict out, float x0, float y0, float dx, float dy, int width, int height, int limit) {
    for (int py = 0; py < height; ++py) {
        for (int px = 0; px < width; px += 16) {
            f16v cx, cy, zx = {0}, zy = {0};
            i16v count = {0};
            for (int l = 0; l < 16; ++l) {
                cx[l] = __builtin_fmaf((float)(px + l), dx, x0);
                cy[l] = __builtin_fmaf((float)py, dy, y0);
            }
            i16v live = count == 0;
            for (int n = 0; n < limit; ++n) {
                f16v xx = zx * zx, yy = zy * zy;
                live &= (xx + yy <= 4.0f);
                int any = 0;
                for (int l = 0; l < 16; ++l)
                    any |= live[l];
                if (!any)
                    break;
                count -= live;
                f16v t = 2.0f * zx;
                zy = t * zy + cy;
                zx = xx - yy + cx;
            }
            for (int l = 0; l < 16; ++l)
                out[py * width + px + l] = count[l];
        }
    }
}

void sgemm(float *restrict c, const float *restrict a, const float *restrict b, int n) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j)
            c[i * n + j] = 0.0f;
        for (int k = 0; k < n; ++k) {
            float f = a[i * n + k];
            for (int j = 0; j < n; ++j)
                c[i * n + j] = __builtin_fmaf(f, b[k * n + j], c[i * n + j]);
        }
    }
}
