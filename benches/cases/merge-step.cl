// Merge sort: each element finds its place in the merged run by a binary search in the other

kernel void merge_runs(global const uint *in, global uint *out, int width) {
    int g = get_global_id(0);
    uint key = in[g];
    int run = g / width;
    int other = (run ^ 1) * width;
    int low = 0, high = width;
    while (low < high) {
        int mid = (low + high) / 2;
        uint there = in[other + mid];
        bool before = run & 1 ? there <= key : there < key;
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    int start = (run & ~1) * width;
    out[start + g % width + low] = key;
}
