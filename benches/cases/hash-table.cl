// A hash table with open addressing: keys are counted, then looked up

#define EMPTY 0xffffffffu

uint hash(uint k) {
    k ^= k >> 16;
    k *= 0x85ebca6bu;
    k ^= k >> 13;
    k *= 0xc2b2ae35u;
    return k ^ k >> 16;
}

kernel void insert(global const uint *keys, volatile global uint *slots, global uint *counts, uint mask) {
    uint key = keys[get_global_id(0)];
    uint at = hash(key) & mask;
    while (true) {
        uint old = atomic_cmpxchg(&slots[at], EMPTY, key);
        if (old == EMPTY || old == key) {
            atomic_inc(&counts[at]);
            return;
        }
        at = (at + 1) & mask;
    }
}

kernel void lookup(global const uint *queries, global const uint *slots, global const uint *counts, uint mask, global uint *out) {
    uint key = queries[get_global_id(0)];
    uint at = hash(key) & mask;
    uint found = 0;
    while (slots[at] != EMPTY) {
        if (slots[at] == key) {
            found = counts[at];
            break;
        }
        at = (at + 1) & mask;
    }
    out[get_global_id(0)] = found;
}
