// switch statements: dense, sparse, falling through, and uniform.

kernel void switch_dense(global int *out, global const int *selector, global const int *in) {
    int i = get_global_id(0);
    int v = in[i];
    switch (selector[i]) {
    case 0: v = v + 1; break;
    case 1: v = v * 3; break;
    case 2: v = v - 7; break;
    case 3: v = v ^ 0x55; break;
    case 4: v = v << 2; break;
    case 5: v = v >> 1; break;
    case 6: v = -v; break;
    case 7: v = ~v; break;
    case 8: v = v * v; break;
    case 9: v = v % 10; break;
    default: v = 0; break;
    }
    out[i] = v;
}

kernel void switch_sparse(global int *out, global const int *selector, global const int *in) {
    int i = get_global_id(0);
    int v = in[i];
    switch (selector[i]) {
    case -1000000: v += 1; break;
    case -3: v += 20; break;
    case 17: v += 300; break;
    case 4096: v += 4000; break;
    case 2147483647: v += 50000; break;
    }
    out[i] = v;
}

kernel void switch_fallthrough(global int *out, global const int *selector) {
    int i = get_global_id(0);
    int v = 0;
    switch (selector[i] & 7) {
    case 0: v += 1;
    case 1: v += 10;
    case 2: v += 100; break;
    case 5: v += 1000;
    default: v += 10000;
    case 3: v += 100000;
    }
    out[i] = v;
}

// The selector is the same for all lanes; the cases contain stores.
kernel void switch_uniform(global int *out, global const int *in, int selector) {
    int i = get_global_id(0);
    int v = in[i];
    switch (selector) {
    case 0: out[i] = v + 1; break;
    case 1: for (int k = 0; k < (v & 7); ++k) out[i] += k; break;
    case 2: out[i] = v > 0 ? v : -v; break;
    case 3: if (v & 1) out[i] = 3; break;
    case 4: out[i] = v / 3; break;
    case 5: out[i] = (v * v) ^ i; break;
    case 6: break;
    default: out[i] = selector;
    }
}
