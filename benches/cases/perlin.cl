// Gradient noise of several octaves

float fade(float t) {
    return t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f);
}

float grad(int hash, float x, float y, float z) {
    int h = hash & 15;
    float u = h < 8 ? x : y;
    float v = h < 4 ? y : h == 12 || h == 14 ? x : z;
    return ((h & 1) == 0 ? u : -u) + ((h & 2) == 0 ? v : -v);
}

float noise(constant int *p, float x, float y, float z) {
    int X = (int)floor(x) & 255, Y = (int)floor(y) & 255, Z = (int)floor(z) & 255;
    x -= floor(x);
    y -= floor(y);
    z -= floor(z);
    float u = fade(x), v = fade(y), w = fade(z);
    int A = p[X] + Y, AA = p[A & 255] + Z, AB = p[(A + 1) & 255] + Z;
    int B = p[(X + 1) & 255] + Y, BA = p[B & 255] + Z, BB = p[(B + 1) & 255] + Z;
    return mix(mix(mix(grad(p[AA & 255], x, y, z), grad(p[BA & 255], x - 1, y, z), u),
                   mix(grad(p[AB & 255], x, y - 1, z), grad(p[BB & 255], x - 1, y - 1, z), u), v),
               mix(mix(grad(p[(AA + 1) & 255], x, y, z - 1), grad(p[(BA + 1) & 255], x - 1, y, z - 1), u),
                   mix(grad(p[(AB + 1) & 255], x, y - 1, z - 1), grad(p[(BB + 1) & 255], x - 1, y - 1, z - 1), u), v), w);
}

kernel void clouds(constant int *p, global float *out, float scale, float z, int octaves) {
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f, amplitude = 1.0f, frequency = scale;
    for (int o = 0; o < octaves; o++) {
        sum += amplitude * noise(p, x * frequency, y * frequency, z * frequency);
        amplitude *= 0.5f;
        frequency *= 2.0f;
    }
    out[y * get_global_size(0) + x] = sum;
}
