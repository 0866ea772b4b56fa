// Two-point angular correlation: a histogram of angles between galaxies

#define BINS 20

kernel void directions(global const float *theta, global const float *phi, global float *x, global float *y, global float *z) {
    int i = get_global_id(0);
    x[i] = sin(theta[i]) * cos(phi[i]);
    y[i] = sin(theta[i]) * sin(phi[i]);
    z[i] = cos(theta[i]);
}

kernel void histogram(global const float *x, global const float *y, global const float *z, constant float *bounds,
                      global uint *bins, int n) {
    local uint counts[BINS + 1];
    int l = get_local_id(0);
    for (int b = l; b <= BINS; b += get_local_size(0))
        counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    int i = get_global_id(0);
    for (int j = i + 1; j < n; j++) {
        float dot = x[i] * x[j] + y[i] * y[j] + z[i] * z[j];
        int low = 0, high = BINS;
        while (high > low) {
            int mid = (low + high) / 2;
            if (dot >= bounds[mid])
                high = mid;
            else
                low = mid + 1;
        }
        atomic_inc(&counts[low]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = l; b <= BINS; b += get_local_size(0))
        atomic_add(&bins[b], counts[b]);
}

kernel void share(global const uint *bins, global float *out, float pairs) {
    int b = get_global_id(0);
    out[b] = bins[b] / pairs;
}
