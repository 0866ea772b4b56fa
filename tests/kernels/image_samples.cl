// Textures with samples (cl_khr_gl_msaa_sharing), of which there is one here.

#pragma OPENCL EXTENSION cl_khr_gl_msaa_sharing : enable

kernel void samples_float(global float4 *out, read_only image2d_msaa_t image, global const int2 *at, int sample) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i], sample + i) / get_image_num_samples(image);
}

kernel void samples_int(global int4 *out, read_only image2d_msaa_t image, global const int2 *at, int sample) {
    int i = get_global_id(0);
    out[i] = read_imagei(image, at[i], sample + i);
}

kernel void samples_array(global float4 *out, read_only image2d_array_msaa_t image, global const int4 *at, int sample) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i], sample);
}

kernel void samples_depth(global float *out, read_only image2d_msaa_depth_t image, global const int2 *at, int sample) {
    int i = get_global_id(0);
    out[i] = read_imagef(image, at[i], sample);
}
