// Images read through samplers of every kind, with coordinates of both types.

#define NORMALIZED(NAME, ADDRESS, FILTER) \
    kernel void NAME(global float4 *out, read_only image2d_t image, global const float2 *at) { \
        const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | ADDRESS | FILTER; \
        int i = get_global_id(0); \
        out[i] = read_imagef(image, s, at[i]); \
    }
#define PLAIN(NAME, ADDRESS, FILTER) \
    kernel void NAME(global float4 *out, read_only image2d_t image, global const float2 *at) { \
        const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | ADDRESS | FILTER; \
        int i = get_global_id(0); \
        out[i] = read_imagef(image, s, at[i]); \
    }

NORMALIZED(linear_repeat, CLK_ADDRESS_REPEAT, CLK_FILTER_LINEAR)
NORMALIZED(nearest_clamp_edge, CLK_ADDRESS_CLAMP_TO_EDGE, CLK_FILTER_NEAREST)
PLAIN(plain_linear_clamp, CLK_ADDRESS_CLAMP, CLK_FILTER_LINEAR)
PLAIN(plain_nearest_none, CLK_ADDRESS_NONE, CLK_FILTER_NEAREST)
PLAIN(plain_nearest_clamp, CLK_ADDRESS_CLAMP, CLK_FILTER_NEAREST)

kernel void sample_argument(global float4 *out, read_only image2d_t image, sampler_t s, global const float2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, s, at[i]);
}
kernel void sample_integers(global int4 *out, read_only image2d_t image, sampler_t s, global const int2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagei(image, s, at[i]);
}
kernel void sample_unsigned(global uint4 *out, read_only image2d_t image, sampler_t s, global const float2 *at) {
    int i = get_global_id(0);
    out[i] = read_imageui(image, s, at[i]);
}
kernel void sample_1d(global float4 *out, read_only image1d_t image, sampler_t s, global const float *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, s, at[i]);
}
kernel void sample_3d(global float4 *out, read_only image3d_t image, sampler_t s, global const float4 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, s, at[i]);
}
kernel void sample_2d_array(global float4 *out, read_only image2d_array_t image, sampler_t s, global const float4 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, s, at[i]);
}
kernel void sample_1d_array(global float4 *out, read_only image1d_array_t image, sampler_t s, global const float2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, s, at[i]);
}
