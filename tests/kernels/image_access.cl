// Images read and written at integer coordinates: every kind, every type, and their sizes.

kernel void load_float(global float4 *out, read_only image2d_t image, global const int2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i]);
}
kernel void load_int(global int4 *out, read_only image2d_t image, global const int2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagei(image, at[i]);
}
kernel void load_uint(global uint4 *out, read_only image2d_t image, global const int2 *at) {
    int i = get_global_id(0);
    out[i] = read_imageui(image, at[i]);
}
kernel void load_1d(global float4 *out, read_only image1d_t image) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, i);
}
kernel void load_3d(global float4 *out, read_only image3d_t image, global const int4 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i]);
}
kernel void load_2d_array(global uint4 *out, read_only image2d_array_t image, global const int4 *at) {
    int i = get_global_id(0);
    out[i] = read_imageui(image, at[i]);
}
kernel void load_1d_array(global float4 *out, read_only image1d_array_t image, global const int2 *at) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i]);
}
kernel void load_buffer(global float4 *out, read_only image1d_buffer_t image) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, i);
}
kernel void store_float(write_only image2d_t image, global const int2 *at, global const float4 *values) {
    int i = get_global_id(0);
    write_imagef(image, at[i], values[i]);
}
kernel void store_int(write_only image2d_t image, global const int2 *at, global const int4 *values) {
    int i = get_global_id(0);
    write_imagei(image, at[i], values[i]);
}
kernel void store_uint(write_only image2d_t image, global const int2 *at, global const uint4 *values) {
    int i = get_global_id(0);
    write_imageui(image, at[i], values[i]);
}
kernel void store_1d(write_only image1d_t image, global const float4 *values) {
    int i = get_global_id(0);
    write_imagef(image, i, values[i]);
}
kernel void store_3d(write_only image3d_t image, global const int4 *at, global const float4 *values) {
    int i = get_global_id(0);
    write_imagef(image, at[i], values[i]);
}
kernel void store_2d_array(write_only image2d_array_t image, global const int4 *at, global const uint4 *values) {
    int i = get_global_id(0);
    write_imageui(image, at[i], values[i]);
}
kernel void sizes(global int *out, read_only image3d_t a, read_only image2d_array_t b, read_only image2d_t c, read_only image1d_t d) {
    out[0] = get_image_width(a);
    out[1] = get_image_height(a);
    out[2] = get_image_depth(a);
    out[3] = get_image_width(b);
    out[4] = get_image_height(b);
    out[5] = get_image_array_size(b);
    out[6] = get_image_width(c);
    out[7] = get_image_height(c);
    out[8] = get_image_width(d);
    out[9] = get_image_channel_data_type(c);
    out[10] = get_image_channel_order(c);
}
kernel void brighten(read_write image2d_t image, float by) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(image, at, read_imagef(image, at) + by);
}
