// Colours of a picture graded by a table of 16 slices, trilinear, into a picture of floats

constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
constant sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void grade(read_only image2d_t in, read_only image2d_t table, write_only image2d_t out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    float4 c = read_imagef(in, exact, at);
    float blue = c.z * 15.0f, slice = min(floor(blue), 14.0f);
    float2 place = c.xy * 15.0f + 0.5f;
    place.x += slice * 16.0f;
    float4 low = read_imagef(table, linear, place);
    float4 high = read_imagef(table, linear, (float2)(place.x + 16.0f, place.y));
    float4 graded = mix(low, high, blue - slice);
    graded.w = c.w;
    write_imagef(out, at, graded);
}
