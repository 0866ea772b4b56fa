// Matrix products as libraries for matrix engines write them: two-dimensional block loads feed dpas. A sub-group of 16 makes
// a tile of 8 x 16; loads past the edges of a matrix give zeros, so that no size has to be a multiple of anything.
//
// The block loads are the compiler's own built-in functions; this version has no others for them.

ushort16 __builtin_IB_subgroup_block_read_flat_u16_m8k16v2(long base, int width, int height, int pitch, int2 at);
ushort16 __builtin_IB_subgroup_block_read_flat_u8_m8k32v2(long base, int width, int height, int pitch, int2 at);
uint8 __builtin_IB_subgroup_block_read_flat_transform_u16_k16(long base, int width, int height, int pitch, int2 at);
uint8 __builtin_IB_subgroup_block_read_flat_transform_u8_k32(long base, int width, int height, int pitch, int2 at);

// Not declared by this version of the compiler either, as it keeps the extension to itself.
__attribute__((overloadable)) float8 intel_sub_group_bf16_bf16_matrix_mad_k16(short8 a, int8 b, float8 sum);
__attribute__((overloadable)) int8 intel_sub_group_i8_i8_matrix_mad_k32(short8 a, int8 b, int8 sum);

// c (m x n) = a (m x k) * b (k x n)
__attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(16, 1, 1)))
kernel void gemm_bf16(global float *c, global ushort *a, global ushort *b, int m, int n, int k)
{
    int row = get_group_id(1) * 8, column = get_group_id(0) * 16;
    float8 sum = 0;
    for (int i = 0; i < k; i += 32) {
        ushort16 left = __builtin_IB_subgroup_block_read_flat_u16_m8k16v2(
            (long)a, k * 2 - 1, m - 1, k * 2 - 1, (int2)(i, row));
        uint8 upper = __builtin_IB_subgroup_block_read_flat_transform_u16_k16(
            (long)b, n * 2 - 1, k - 1, n * 2 - 1, (int2)(column, i));
        uint8 lower = __builtin_IB_subgroup_block_read_flat_transform_u16_k16(
            (long)b, n * 2 - 1, k - 1, n * 2 - 1, (int2)(column, i + 16));
        sum = intel_sub_group_bf16_bf16_matrix_mad_k16(as_short8(left.lo), as_int8(upper), sum);
        sum = intel_sub_group_bf16_bf16_matrix_mad_k16(as_short8(left.hi), as_int8(lower), sum);
    }
    column += get_sub_group_local_id();
    float out[8] = {sum.s0, sum.s1, sum.s2, sum.s3, sum.s4, sum.s5, sum.s6, sum.s7};
    for (int i = 0; i < 8; i++)
        if (row + i < m && column < n)
            c[(row + i) * n + column] = out[i];
}

__attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(16, 1, 1)))
kernel void gemm_int8(global int *c, global char *a, global char *b, int m, int n, int k)
{
    int row = get_group_id(1) * 8, column = get_group_id(0) * 16;
    int8 sum = 0;
    for (int i = 0; i < k; i += 64) {
        ushort16 left = __builtin_IB_subgroup_block_read_flat_u8_m8k32v2(
            (long)a, k - 1, m - 1, k - 1, (int2)(i, row));
        uint8 upper = __builtin_IB_subgroup_block_read_flat_transform_u8_k32(
            (long)b, n - 1, k - 1, n - 1, (int2)(column, i));
        uint8 lower = __builtin_IB_subgroup_block_read_flat_transform_u8_k32(
            (long)b, n - 1, k - 1, n - 1, (int2)(column, i + 32));
        sum = intel_sub_group_i8_i8_matrix_mad_k32(as_short8(left.lo), as_int8(upper), sum);
        sum = intel_sub_group_i8_i8_matrix_mad_k32(as_short8(left.hi), as_int8(lower), sum);
    }
    column += get_sub_group_local_id();
    int out[8] = {sum.s0, sum.s1, sum.s2, sum.s3, sum.s4, sum.s5, sum.s6, sum.s7};
    for (int i = 0; i < 8; i++)
        if (row + i < m && column < n)
            c[(row + i) * n + column] = out[i];
}
