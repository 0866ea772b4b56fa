// Whole pictures: a blur through a sampler, conversions between formats, a change of size.

const sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

// 1 2 1 in both directions.
kernel void blur(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            float weight = (float)((2 - abs(dx)) * (2 - abs(dy)));
            sum += weight * read_imagef(from, edge, convert_float2(at + (int2)(dx, dy)) + 0.5f);
        }
    write_imagef(to, at, sum / 16.0f);
}

// Colours to grey, which another format may hold.
kernel void convert_image(read_only image2d_t from, write_only image2d_t to) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 c = read_imagef(from, at);
    float grey = 0.25f * c.x + 0.5f * c.y + 0.25f * c.z;
    write_imagef(to, at, (float4)(grey, grey, grey, c.w));
}

kernel void resize(read_only image2d_t from, write_only image2d_t to) {
    const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float2 size = (float2)(get_image_width(to), get_image_height(to));
    write_imagef(to, at, read_imagef(from, s, (convert_float2(at) + 0.5f) / size));
}
