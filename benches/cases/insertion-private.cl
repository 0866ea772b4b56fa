// Sixteen keys sorted by insertion in private memory

kernel void sort(global const int *in, global int *out) {
    int k[16], g = get_global_id(0);
    for (int i = 0; i < 16; i++) {
        int v = in[g * 16 + i], j = i;
        while (j > 0 && k[j - 1] > v) {
            k[j] = k[j - 1];
            j--;
        }
        k[j] = v;
    }
    for (int i = 0; i < 16; i++)
        out[g * 16 + i] = k[i];
}
