// One digit of a radix sort: groups sort by the digit in local memory, then scatter

#define SIZE 256

kernel void count(global const uint *keys, global uint *counts, int shift) {
    local uint h[16];
    int l = get_local_id(0), groups = get_num_groups(0);
    if (l < 16)
        h[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&h[keys[get_global_id(0)] >> shift & 15]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < 16)
        counts[l * groups + get_group_id(0)] = h[l];
}

kernel void offsets(global uint *counts, int n) {
    uint sum = 0;
    for (int i = 0; i < n; i++) {
        uint c = counts[i];
        counts[i] = sum;
        sum += c;
    }
}

uint prefix(local uint *sums, uint value) {
    int l = get_local_id(0);
    sums[l] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < SIZE; d *= 2) {
        uint before = l >= d ? sums[l - d] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[l] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return sums[l] - value;
}

kernel void scatter(global const uint *keys, global const ushort *values, global const uint *offsets,
                    global uint *keys_out, global ushort *values_out, int shift) {
    local uint sums[SIZE], sorted[SIZE], first[16];
    local ushort payload[SIZE];
    int l = get_local_id(0);
    uint key = keys[get_global_id(0)];
    ushort value = values[get_global_id(0)];
    for (int bit = 0; bit < 4; bit++) {
        uint one = key >> (shift + bit) & 1;
        uint rank = prefix(sums, 1 - one);
        uint zeros = sums[SIZE - 1];
        uint to = one ? zeros + l - rank : rank;
        sorted[to] = key;
        payload[to] = value;
        barrier(CLK_LOCAL_MEM_FENCE);
        key = sorted[l];
        value = payload[l];
    }
    uint digit = key >> shift & 15;
    if (l == 0 || digit != (sorted[l - 1] >> shift & 15))
        first[digit] = l;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint place = offsets[digit * get_num_groups(0) + get_group_id(0)] + l - first[digit];
    keys_out[place] = key;
    values_out[place] = value;
}
