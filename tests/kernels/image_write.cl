// Images that are only written, for devices without a sampler too.

kernel void fill_float(write_only image2d_t image, global const int2 *at, global const float4 *values) {
    int i = get_global_id(0);
    write_imagef(image, at[i], values[i]);
}
kernel void fill_int(write_only image2d_array_t image, global const int4 *at, global const int4 *values) {
    int i = get_global_id(0);
    write_imagei(image, at[i], values[i]);
}
kernel void fill_uint(write_only image3d_t image, global const int4 *at, global const uint4 *values) {
    int i = get_global_id(0);
    write_imageui(image, at[i], values[i]);
}
kernel void width_height(global int *out, read_only image2d_t image) {
    out[0] = get_image_width(image);
    out[1] = get_image_height(image);
}
