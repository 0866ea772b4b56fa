// The work of the benched kernels in ISPC, as far as it is written that way: no histograms.

export void saxpy(uniform float y[], const uniform float x[], uniform float a, uniform int n) {
    foreach (i = 0 ... n)
        y[i] = a * x[i] + y[i];
}

export void gather(uniform float out[], const uniform float table[], const uniform unsigned int index[], uniform int n) {
    foreach (i = 0 ... n)
        out[i] = table[index[i]];
}

export void scatter(uniform unsigned int out[], const uniform unsigned int values[], const uniform unsigned int to[],
                    uniform int n) {
    foreach (i = 0 ... n)
        out[to[i]] = values[i];
}

export void gather4(uniform float out[], const uniform float table[], const uniform unsigned int index[], uniform int n) {
    foreach (i = 0 ... n) {
        unsigned int k = index[i];
        for (uniform int c = 0; c < 4; ++c)
            out[4 * i + c] = table[4 * k + c];
    }
}

export void copy16(uniform float out[], const uniform float in[], uniform int n) {
    foreach (i = 0 ... 16 * n)
        out[i] = in[i];
}

export void reduce_sum(uniform float partial[], const uniform float in[], uniform int n, uniform int group) {
    for (uniform int g = 0; g < n / group; ++g) {
        float sum = 0;
        foreach (i = 0 ... group)
            sum += in[g * group + i];
        partial[g] = reduce_add(sum);
    }
}

export void sgemm(uniform float c[], const uniform float a[], const uniform float b[], uniform int n) {
    for (uniform int i = 0; i < n; ++i) {
        foreach (j = 0 ... n)
            c[i * n + j] = 0;
        for (uniform int k = 0; k < n; ++k) {
            uniform float f = a[i * n + k];
            foreach (j = 0 ... n)
                c[i * n + j] += f * b[k * n + j];
        }
    }
}

export void mandelbrot(uniform int out[], uniform float x0, uniform float y0, uniform float dx, uniform float dy,
                       uniform int width, uniform int height, uniform int limit) {
    for (uniform int py = 0; py < height; ++py) {
        foreach (px = 0 ... width) {
            float cx = px * dx + x0, cy = py * dy + y0;
            float zx = 0, zy = 0;
            int n = 0;
            while (n < limit) {
                float xx = zx * zx, yy = zy * zy;
                if (xx + yy > 4)
                    break;
                zy = 2 * zx * zy + cy;
                zx = xx - yy + cx;
                ++n;
            }
            out[py * width + px] = n;
        }
    }
}

static inline float normal(float d) {
    float k = 1 / (0.2316419f * abs(d) + 1);
    float p = ((((1.330274429f * k - 1.821255978f) * k + 1.781477937f) * k - 0.356563782f) * k + 0.319381530f) * k;
    float tail = 0.39894228040f * exp(-0.5f * d * d) * p;
    return d > 0 ? 1 - tail : tail;
}

export void black_scholes(uniform float call[], uniform float put[], const uniform float spot[],
                          const uniform float strike[], const uniform float years[], uniform float rate,
                          uniform float volatility, uniform int n) {
    foreach (i = 0 ... n) {
        float s = spot[i], x = strike[i], t = years[i];
        float root = sqrt(t);
        float d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal(d1), n2 = normal(d2);
        float discounted = x * exp(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1 - n2) - s * (1 - n1);
    }
}

export void nbody(uniform float to[], uniform float velocity[], const uniform float position[], uniform int n,
                  uniform float dt, uniform float softening) {
    foreach (i = 0 ... n) {
        float x = position[4 * i], y = position[4 * i + 1], z = position[4 * i + 2];
        float ax = 0, ay = 0, az = 0;
        for (uniform int j = 0; j < n; ++j) {
            float rx = position[4 * j] - x, ry = position[4 * j + 1] - y, rz = position[4 * j + 2] - z;
            float inv = rsqrt(rx * rx + ry * ry + rz * rz + softening);
            float f = position[4 * j + 3] * inv * inv * inv;
            ax += rx * f;
            ay += ry * f;
            az += rz * f;
        }
        float vx = velocity[4 * i] + ax * dt;
        float vy = velocity[4 * i + 1] + ay * dt;
        float vz = velocity[4 * i + 2] + az * dt;
        velocity[4 * i] = vx;
        velocity[4 * i + 1] = vy;
        velocity[4 * i + 2] = vz;
        velocity[4 * i + 3] = 0;
        to[4 * i] = x + vx * dt;
        to[4 * i + 1] = y + vy * dt;
        to[4 * i + 2] = z + vz * dt;
        to[4 * i + 3] = position[4 * i + 3];
    }
}

export void stencil_mean(uniform int out[], const uniform int in[], uniform int width, uniform int height) {
    for (uniform int y = 0; y < height; ++y) {
        foreach (x = 0 ... width) {
            int sum = 0, count = 0;
            for (uniform int dy = -1; dy <= 1; ++dy) {
                for (uniform int dx = -1; dx <= 1; ++dx) {
                    int xx = x + dx;
                    uniform int yy = y + dy;
                    if (xx >= 0 && yy >= 0 && xx < width && yy < height) {
                        sum += in[yy * width + xx];
                        ++count;
                    }
                }
            }
            out[y * width + x] = sum / count;
        }
    }
}

export void bitonic_step(uniform unsigned int data[], uniform unsigned int j, uniform unsigned int k, uniform int n) {
    foreach (i = 0 ... n) {
        unsigned int here = i;
        unsigned int partner = here ^ j;
        if (partner > here) {
            unsigned int a = data[here], b = data[partner];
            bool ascending = (here & k) == 0;
            if ((a > b) == ascending) {
                data[here] = b;
                data[partner] = a;
            }
        }
    }
}
