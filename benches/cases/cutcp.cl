// Electric potential of atoms on a grid, with a cutoff

kernel void potential(global const float4 *atoms, int count, float spacing, float cutoff, global float *grid) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    float px = x * spacing, py = y * spacing, pz = z * spacing;
    float cutoff2 = cutoff * cutoff;
    float energy = 0.0f;
    for (int i = 0; i < count; i++) {
        float4 atom = atoms[i];
        float dx = px - atom.x;
        float dy = py - atom.y;
        float dz = pz - atom.z;
        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < cutoff2) {
            float s = 1.0f - r2 / cutoff2;
            energy += atom.w * rsqrt(r2 + 0.01f) * s * s;
        }
    }
    grid[(z * get_global_size(1) + y) * get_global_size(0) + x] = energy;
}
