// Places in a sorted table

kernel void find(global const uint *table, global const uint *keys, global uint *out) {
    uint key = keys[get_global_id(0)], low = 0, high = 65536;
    while (low < high) {
        uint middle = (low + high) / 2;
        if (table[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    out[get_global_id(0)] = low;
}
