// A byte-code interpreter, the same program for all work-items

kernel void run(global const uchar *code, global const uint *x, global uint *out) {
    uint a = x[get_global_id(0)], b = 1;
    for (int pc = 0; pc < 64; pc++)
        switch (code[pc]) {
        case 0: a += b; break;
        case 1: a ^= b << 3; break;
        case 2: b = a * 5; break;
        case 3: a = rotate(a, 7u); break;
        case 4: if (a & 1) b++; break;
        case 5: a -= b; break;
        default: b ^= a; break;
        }
    out[get_global_id(0)] = a ^ b;
}
