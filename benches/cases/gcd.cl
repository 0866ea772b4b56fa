// Greatest common divisors by remainders

kernel void gcd(global const uint *a, global const uint *b, global uint *out) {
    uint x = a[get_global_id(0)], y = b[get_global_id(0)];
    while (y) {
        uint r = x % y;
        x = y;
        y = r;
    }
    out[get_global_id(0)] = x;
}
