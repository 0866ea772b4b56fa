// Odd-even transposition of a few thousand keys, many launches

kernel void exchange(global int *keys, int odd, int n) {
    int i = 2 * get_global_id(0) + odd;
    if (i + 1 < n) {
        int a = keys[i], b = keys[i + 1];
        if (a > b) {
            keys[i] = b;
            keys[i + 1] = a;
        }
    }
}
