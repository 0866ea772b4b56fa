// Two sorted tables of 64-bit keys with values merged, equal shares by a search along a diagonal

#define SHARE 16

kernel void merge(global const ulong *a, global const ulong *b, global const uint *va, global const uint *vb, uint na, uint nb,
                  global ulong *keys, global uint *values) {
    uint start = get_global_id(0) * SHARE;
    uint low = start > nb ? start - nb : 0, high = min(start, na);
    while (low < high) {
        uint middle = (low + high) / 2;
        if (a[middle] <= b[start - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    uint i = low, j = start - low;
    for (uint to = start; to < start + SHARE; to++) {
        bool from_a = j >= nb || (i < na && a[i] <= b[j]);
        keys[to] = from_a ? a[i] : b[j];
        values[to] = from_a ? va[i] : vb[j];
        if (from_a)
            i++;
        else
            j++;
    }
}
