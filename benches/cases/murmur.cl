// A hash that multiplies and rotates words

uint mix(uint k) { return rotate(k * 0xcc9e2d51u, 15u) * 0x1b873593u; }
kernel void hash(global const uint *data, global uint *out) {
    int g = get_global_id(0);
    uint h = 42;
    for (int i = 0; i < 16; i++)
        h = rotate(h ^ mix(data[i * 65536 + g]), 13u) * 5 + 0xe6546b64u;
    h ^= 64;
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    out[g] = h ^ (h >> 16);
}
