// Divergent control flow: nested loops, break, continue, early return.

// Steps of the Collatz sequence until 1, at most `limit`.
kernel void collatz(global uint *out, global const uint *in, uint limit) {
    uint i = get_global_id(0);
    ulong v = in[i];
    uint steps = 0;
    while (v > 1 && steps < limit) {
        v = (v & 1) ? 3 * v + 1 : v / 2;
        ++steps;
    }
    out[i] = steps;
}

kernel void nested(global uint *out, global const uint *in) {
    uint i = get_global_id(0);
    uint v = in[i];
    uint sum = 0;
    for (uint a = 0; a < (v & 15); ++a) {
        if (((v >> a) & 3) == 3)
            continue;
        for (uint b = a; b < 20; ++b) {
            if ((a * b + v) % 7 == 0)
                break;
            if (b & 1)
                continue;
            sum += a * 31 + b;
            uint c = v >> (b & 7);
            do {
                c = c / 3;
                sum ^= c;
                if (c == 5)
                    goto next_a;
            } while (c > 2);
        }
    next_a:
        sum += 1;
    }
    out[i] = sum;
}

kernel void early_return(global int *out, global const int *in, int n) {
    int i = get_global_id(0);
    if (i >= n)
        return;
    int v = in[i];
    out[i] = -1;
    if (v < 0)
        return;
    for (int k = 0; k < 100; ++k) {
        v -= k;
        if (v == 0) {
            out[i] = 1000 + k;
            return;
        }
        if (v < 0)
            break;
    }
    out[i] = v;
}

// Greatest common divisor by subtraction and by remainder, side by side.
kernel void gcd(global uint *out, global const uint *x, global const uint *y) {
    uint i = get_global_id(0);
    uint a = x[i], b = y[i];
    while (b != 0) {
        uint t = a % b;
        a = b;
        b = t;
    }
    out[i] = a;
}

// Irreducible-looking flow: a small state machine driven by the data.
kernel void machine(global uint *out, global const uchar *code, uint length) {
    uint i = get_global_id(0);
    uint acc = i, pc = 0, steps = 0;
    while (pc < length && steps < 200) {
        ++steps;
        uchar op = code[pc];
        if (op < 64) {
            acc += op;
            ++pc;
        } else if (op < 128) {
            acc = acc * 3 + (op & 7);
            pc += 1 + (acc & 1);
        } else if (op < 192) {
            if (acc % 3 == 0)
                pc += op & 7;
            ++pc;
        } else {
            if (acc & 4)
                pc = pc > (op & 15) ? pc - (op & 15) : 0;
            else
                ++pc;
            acc ^= steps;
        }
    }
    out[i * 2] = acc;
    out[i * 2 + 1] = steps;
}

// A uniform loop around a barrier with divergent work inside.
kernel void divergent_barrier(global uint *out, global const uint *in, local uint *tile, uint rounds) {
    uint lid = get_local_id(0), size = get_local_size(0);
    uint v = in[get_global_id(0)];
    for (uint r = 0; r < rounds; ++r) {
        uint w = v;
        for (uint k = 0; k < 9 && (w & 1); ++k)
            w = (w >> 1) + r;
        tile[lid] = w;
        barrier(CLK_LOCAL_MEM_FENCE);
        v = tile[(lid + 1) % size] + (v & 3);
        bool stop = tile[0] == 77;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (stop)
            break;
    }
    out[get_global_id(0)] = v;
}
