// A picture of floats halved with a bilinear sampler

constant sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
kernel void resize(read_only image2d_t in, global float4 *out) {
    int x = get_global_id(0), y = get_global_id(1);
    float2 at = ((float2)((float)x, (float)y) + 0.5f) / (float2)(256.0f, 128.0f);
    out[y * get_global_size(0) + x] = read_imagef(in, s, at);
}
