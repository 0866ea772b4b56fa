// Lattice Boltzmann, nine directions, pull and collide

constant int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constant float w[9] = {4.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};
kernel void lbm(global const float *in, global float *out, int nx, int ny) {
    int g = get_global_id(0), x = g % nx, y = g / nx;
    float f[9], rho = 0.0f, ux = 0.0f, uy = 0.0f;
    for (int i = 0; i < 9; i++) {
        int sx = (x - cx[i] + nx) % nx, sy = (y - cy[i] + ny) % ny;
        f[i] = in[i * nx * ny + sy * nx + sx];
        rho += f[i];
        ux += f[i] * cx[i];
        uy += f[i] * cy[i];
    }
    ux /= rho;
    uy /= rho;
    for (int i = 0; i < 9; i++) {
        float cu = 3.0f * (cx[i] * ux + cy[i] * uy);
        float eq = w[i] * rho * (1.0f + cu + 0.5f * cu * cu - 1.5f * (ux * ux + uy * uy));
        out[i * nx * ny + g] = f[i] + 0.6f * (eq - f[i]);
    }
}
