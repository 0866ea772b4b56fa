// The matrix Q of magnetic resonance imaging

#define PIx2 6.2831853071795864769252867665590058f

struct sample {
    float kx, ky, kz, phi_mag;
};

kernel void phi_mag(global const float *phi_r, global const float *phi_i, global struct sample *samples) {
    int i = get_global_id(0);
    float re = phi_r[i], im = phi_i[i];
    samples[i].phi_mag = re * re + im * im;
}

kernel void compute_q(global const float *x, global const float *y, global const float *z,
                      constant struct sample *samples, int count, global float *qr, global float *qi) {
    int i = get_global_id(0);
    float sum_r = 0.0f, sum_i = 0.0f;
    for (int k = 0; k < count; k++) {
        float angle = PIx2 * (samples[k].kx * x[i] + samples[k].ky * y[i] + samples[k].kz * z[i]);
        sum_r += samples[k].phi_mag * cos(angle);
        sum_i += samples[k].phi_mag * sin(angle);
    }
    qr[i] = sum_r;
    qi[i] = sum_i;
}
