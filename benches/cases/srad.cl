// Speckle-reducing anisotropic diffusion of an image

kernel void gradients(global const float *j, global float *dn, global float *ds, global float *dw, global float *de,
                      global float *c, int cols, int rows, float q0sqr) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= cols || y >= rows)
        return;
    int id = y * cols + x;
    int north = y == 0 ? 0 : y - 1;
    int south = y == rows - 1 ? rows - 1 : y + 1;
    int west = x == 0 ? 0 : x - 1;
    int east = x == cols - 1 ? cols - 1 : x + 1;

    float jc = j[id];
    float n = j[north * cols + x] - jc;
    float s = j[south * cols + x] - jc;
    float w = j[y * cols + west] - jc;
    float e = j[y * cols + east] - jc;

    float g2 = (n * n + s * s + w * w + e * e) / (jc * jc);
    float l = (n + s + w + e) / jc;
    float num = 0.5f * g2 - (1.0f / 16.0f) * (l * l);
    float den = 1.0f + 0.25f * l;
    float qsqr = num / (den * den);
    den = (qsqr - q0sqr) / (q0sqr * (1.0f + q0sqr));
    float coeff = 1.0f / (1.0f + den);
    if (coeff < 0.0f)
        coeff = 0.0f;
    else if (coeff > 1.0f)
        coeff = 1.0f;

    dn[id] = n;
    ds[id] = s;
    dw[id] = w;
    de[id] = e;
    c[id] = coeff;
}

kernel void diffuse(global float *j, global const float *dn, global const float *ds, global const float *dw,
                    global const float *de, global const float *c, int cols, int rows, float lambda) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= cols || y >= rows)
        return;
    int id = y * cols + x;
    int south = y == rows - 1 ? rows - 1 : y + 1;
    int east = x == cols - 1 ? cols - 1 : x + 1;
    float cn = c[id];
    float cs = c[south * cols + x];
    float cw = c[id];
    float ce = c[y * cols + east];
    float d = cn * dn[id] + cs * ds[id] + cw * dw[id] + ce * de[id];
    j[id] += 0.25f * lambda * d;
}
