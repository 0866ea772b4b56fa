// The work of the benched kernels as plain loops: what this processor does when the source is written for it, and not the
// same work everywhere: sums, sorts and counts need no barriers, local memory or atomics here.
#include <math.h>
#include <stdint.h>
#include <string.h>

void saxpy(float *restrict y, const float *restrict x, float a, int n) {
    for (int i = 0; i < n; ++i)
        y[i] = a * x[i] + y[i];
}

void gather(float *restrict out, const float *restrict table, const uint32_t *restrict index, int n) {
    for (int i = 0; i < n; ++i)
        out[i] = table[index[i]];
}

void scatter(uint32_t *restrict out, const uint32_t *restrict values, const uint32_t *restrict to, int n) {
    for (int i = 0; i < n; ++i)
        out[to[i]] = values[i];
}

typedef float f4 __attribute__((vector_size(16)));

void gather4(f4 *restrict out, const f4 *restrict table, const uint32_t *restrict index, int n) {
    for (int i = 0; i < n; ++i)
        out[i] = table[index[i]];
}

void copy16(float *restrict out, const float *restrict in, int n) {
    memcpy(out, in, (size_t)n * 64);
}

// In the order of the kernel: each half of a group onto the other.
void reduce_sum(float *restrict partial, const float *restrict in, int n, int group) {
    float tile[1024];
    for (int g = 0; g < n / group; ++g) {
        for (int i = 0; i < group; ++i)
            tile[i] = in[g * group + i];
        for (int half = group / 2; half > 0; half /= 2)
            for (int i = 0; i < half; ++i)
                tile[i] += tile[half + i];
        partial[g] = tile[0];
    }
}

void sgemm(float *restrict c, const float *restrict a, const float *restrict b, int n) {
    for (int i = 0; i < n; ++i) {
        float *row = c + (size_t)i * n;
        memset(row, 0, (size_t)n * 4);
        for (int k = 0; k < n; ++k) {
            float f = a[i * n + k];
            for (int j = 0; j < n; ++j)
                row[j] += f * b[k * n + j];
        }
    }
}

// Sixteen points at a time, as no compiler makes vectors of such a loop by itself.
typedef float f16v __attribute__((vector_size(64)));
typedef int32_t i16v __attribute__((vector_size(64)));

void mandelbrot(int32_t *restrict out, float x0, float y0, float dx, float dy, int width, int height, int limit) {
#pragma clang fp contract(off) reassociate(off)
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
                if (!__builtin_reduce_or(live))
                    break;
                count -= live;
                zy = __builtin_elementwise_fma(2.0f * zx, zy, cy);
                zx = xx - yy + cx;
            }
            for (int l = 0; l < 16; ++l)
                out[py * width + px + l] = count[l];
        }
    }
}

void histogram(uint32_t *restrict bins, const uint8_t *restrict in, int n) {
    uint32_t part[4][256] = {{0}};
    for (int i = 0; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; ++k)
            ++part[k][in[i + k]];
    for (int i = n & ~3; i < n; ++i)
        ++part[0][in[i]];
    for (int b = 0; b < 256; ++b)
        bins[b] += part[0][b] + part[1][b] + part[2][b] + part[3][b];
}

static inline float normal(float d) {
    float k = 1.0f / (0.2316419f * fabsf(d) + 1.0f);
    float p = ((((1.330274429f * k - 1.821255978f) * k + 1.781477937f) * k - 0.356563782f) * k + 0.319381530f) * k;
    float tail = 0.39894228040f * expf(-0.5f * d * d) * p;
    return d > 0.0f ? 1.0f - tail : tail;
}

void black_scholes(float *restrict call, float *restrict put, const float *restrict spot, const float *restrict strike,
                   const float *restrict years, float rate, float volatility, int n) {
    for (int i = 0; i < n; ++i) {
        float s = spot[i], x = strike[i], t = years[i];
        float root = sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal(d1), n2 = normal(d2);
        float discounted = x * expf(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}

void nbody(float *restrict to, float *restrict velocity, const float *restrict position, int n, float dt, float softening) {
    static float x[65536], y[65536], z[65536], m[65536];
    for (int i = 0; i < n; ++i) {
        x[i] = position[4 * i], y[i] = position[4 * i + 1], z[i] = position[4 * i + 2], m[i] = position[4 * i + 3];
    }
    for (int i = 0; i < n; ++i) {
        float ax = 0, ay = 0, az = 0;
        for (int j = 0; j < n; ++j) {
            float rx = x[j] - x[i], ry = y[j] - y[i], rz = z[j] - z[i];
            float inv = 1.0f / sqrtf(rx * rx + ry * ry + rz * rz + softening);
            float f = m[j] * inv * inv * inv;
            ax += rx * f, ay += ry * f, az += rz * f;
        }
        float vx = velocity[4 * i] + ax * dt, vy = velocity[4 * i + 1] + ay * dt, vz = velocity[4 * i + 2] + az * dt;
        velocity[4 * i] = vx, velocity[4 * i + 1] = vy, velocity[4 * i + 2] = vz, velocity[4 * i + 3] = 0;
        to[4 * i] = x[i] + vx * dt, to[4 * i + 1] = y[i] + vy * dt, to[4 * i + 2] = z[i] + vz * dt, to[4 * i + 3] = m[i];
    }
}

void stencil_mean(int32_t *restrict out, const int32_t *restrict in, int width, int height) {
    for (int y = 0; y < height; ++y) {
        int low = y > 0 ? -1 : 0, high = y < height - 1 ? 1 : 0;
        int32_t sums[width];
        for (int x = 0; x < width; ++x)
            sums[x] = 0;
        for (int dy = low; dy <= high; ++dy)
            for (int x = 0; x < width; ++x)
                sums[x] += in[(y + dy) * width + x];
        int rows = high - low + 1;
        out[y * width] = (sums[0] + sums[1]) / (2 * rows);
        if (rows == 3)
            for (int x = 1; x < width - 1; ++x)
                out[y * width + x] = (sums[x - 1] + sums[x] + sums[x + 1]) / 9;
        else
            for (int x = 1; x < width - 1; ++x)
                out[y * width + x] = (sums[x - 1] + sums[x] + sums[x + 1]) / 6;
        out[y * width + width - 1] = (sums[width - 2] + sums[width - 1]) / (2 * rows);
    }
}

void bitonic_step(uint32_t *data, uint32_t j, uint32_t k, int n) {
    for (uint32_t base = 0; base < (uint32_t)n; base += 2 * j) {
        for (uint32_t i = base; i < base + j; ++i) {
            uint32_t a = data[i], b = data[i + j];
            uint32_t low = a < b ? a : b, high = a < b ? b : a;
            uint32_t up = (i & k) == 0;
            data[i] = up ? low : high;
            data[i + j] = up ? high : low;
        }
    }
}

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// Sixteen messages at a time.
typedef uint32_t u16v __attribute__((vector_size(64)));

static inline u16v rotated(u16v x, int n) {
    return x >> n | x << (32 - n);
}

void sha256(uint32_t *restrict digests, const uint32_t *restrict messages, int blocks, int n) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int m = 0; m < n; m += 16) {
        u16v state[8], w[16];
        for (int i = 0; i < 8; ++i)
            state[i] = (u16v){0} + first[i];
        for (int block = 0; block < blocks; ++block) {
            for (int k = 0; k < 16; ++k)
                for (int l = 0; l < 16; ++l)
                    w[k][l] = messages[((m + l) * blocks + block) * 16 + k];
            u16v a = state[0], b = state[1], c = state[2], d = state[3];
            u16v e = state[4], f = state[5], g = state[6], h = state[7];
#pragma unroll 16
            for (int t = 0; t < 64; ++t) {
                int i = t & 15;
                u16v t1 = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[i];
                u16v t2 = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
                h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
                u16v w1 = w[(i + 1) & 15], w14 = w[(i + 14) & 15];
                w[i] += (rotated(w1, 7) ^ rotated(w1, 18) ^ (w1 >> 3)) + w[(i + 9) & 15] + (rotated(w14, 17) ^ rotated(w14, 19) ^ (w14 >> 10));
            }
            state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
        }
        for (int l = 0; l < 16; ++l)
            for (int k = 0; k < 8; ++k)
                digests[(m + l) * 8 + k] = state[k][l];
    }
}
