// Five taps of a sampled picture with eight bits a channel

constant sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
kernel void blur(read_only image2d_t in, global float4 *out) {
    int x = get_global_id(0), y = get_global_id(1);
    float4 sum = read_imagef(in, s, (int2)(x, y));
    sum += read_imagef(in, s, (int2)(x - 1, y)) + read_imagef(in, s, (int2)(x + 1, y));
    sum += read_imagef(in, s, (int2)(x, y - 1)) + read_imagef(in, s, (int2)(x, y + 1));
    out[y * get_global_size(0) + x] = 0.2f * sum;
}
