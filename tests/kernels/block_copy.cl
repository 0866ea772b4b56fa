// Contiguous loads and stores of every width.

kernel void copy16(global float *out, global const float *in) {
    size_t i = get_global_id(0);
    vstore16(vload16(i, in), i, out);
}

kernel void copy16_char(global char *out, global const char *in) {
    size_t i = get_global_id(0);
    vstore16(vload16(i, in), i, out);
}

kernel void copy16_short(global short *out, global const short *in) {
    size_t i = get_global_id(0);
    vstore16(vload16(i, in), i, out);
}

kernel void copy16_long(global long *out, global const long *in) {
    size_t i = get_global_id(0);
    vstore16(vload16(i, in), i, out);
}

kernel void copy8(global uint8 *out, global const uint8 *in) {
    size_t i = get_global_id(0);
    out[i] = in[i];
}

// Three-component vectors are packed in memory by vload3/vstore3.
kernel void copy3(global ushort *out, global const ushort *in) {
    size_t i = get_global_id(0);
    vstore3(vload3(i, in), i, out);
}

// Vectors that are only byte-aligned.
kernel void copy_unaligned(global uchar *out, global const uchar *in, uint shift) {
    size_t i = get_global_id(0);
    vstore4(vload4(i, in + shift), i, out);
}

struct record {
    char tag;
    ushort half_word;
    uint word;
    ulong quad;
    float4 vector;
};

// Aggregate copy with one field changed.
kernel void copy_struct(global struct record *out, global const struct record *in, uint bump) {
    size_t i = get_global_id(0);
    struct record r = in[i];
    r.word += bump;
    r.vector = r.vector.wzyx;
    out[i] = r;
}

kernel void transpose4(global float4 *out, global const float4 *in) {
    size_t i = get_global_id(0) * 4;
    float4 a = in[i], b = in[i + 1], c = in[i + 2], d = in[i + 3];
    out[i] = (float4)(a.x, b.x, c.x, d.x);
    out[i + 1] = (float4)(a.y, b.y, c.y, d.y);
    out[i + 2] = (float4)(a.z, b.z, c.z, d.z);
    out[i + 3] = (float4)(a.w, b.w, c.w, d.w);
}

kernel void fill(global uchar *out8, global ushort *out16, global uint *out32, global ulong *out64,
                 uchar a, ushort b, uint c, ulong d) {
    size_t i = get_global_id(0);
    out8[i] = a;
    out16[i] = b;
    out32[i] = c;
    out64[i] = d;
}
