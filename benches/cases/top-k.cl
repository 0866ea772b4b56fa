// The 64 largest of each row, by selection of digits and packing in order

#define ROW 2048
#define EACH (ROW / 256)

uint ordered(float f) {
    uint bits = as_uint(f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

kernel void select_largest(global const float *in, uint k, global float *values, global int *places) {
    local uint counts[256], digit, wanted;
    int l = get_local_id(0), row = get_group_id(0);
    global const float *from = in + row * ROW;
    uint prefix = 0, mask = 0;
    if (l == 0)
        wanted = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        counts[l] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = l; i < ROW; i += 256) {
            uint key = ordered(from[i]);
            if ((key & mask) == prefix)
                atomic_inc(&counts[key >> shift & 255]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l == 0) {
            uint left = wanted, d = 255;
            while (counts[d] < left)
                left -= counts[d--];
            wanted = left;
            digit = d;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        prefix |= digit << shift;
        mask |= 255u << shift;
    }
    // The larger ones in the upper half, those that are equal to the limit in the lower.
    uint mine = 0;
    for (int i = 0; i < EACH; i++) {
        uint key = ordered(from[l * EACH + i]);
        mine += key > prefix ? 1u << 16 : key == prefix;
    }
    counts[l] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < 256; d *= 2) {
        uint add = l >= d ? counts[l - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        counts[l] += add;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    uint before = counts[l] - mine, larger = before >> 16, equal = before & 0xffff;
    for (int i = 0; i < EACH; i++) {
        float f = from[l * EACH + i];
        uint key = ordered(f), to = k;
        if (key > prefix)
            to = larger++ + min(equal, wanted);
        else if (key == prefix) {
            if (equal < wanted)
                to = larger + equal;
            equal++;
        }
        if (to < k) {
            values[row * k + to] = f;
            places[row * k + to] = l * EACH + i;
        }
    }
}
