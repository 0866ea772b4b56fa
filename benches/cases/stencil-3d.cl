// Seven points in three dimensions

kernel void heat(global const float *in, global float *out, float k) {
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    int w = get_global_size(0), h = get_global_size(1), d = get_global_size(2);
    int at = (z * h + y) * w + x;
    float c = in[at];
    float sum = -6.0f * c;
    sum += x > 0 ? in[at - 1] : c;
    sum += x < w - 1 ? in[at + 1] : c;
    sum += y > 0 ? in[at - w] : c;
    sum += y < h - 1 ? in[at + w] : c;
    sum += z > 0 ? in[at - w * h] : c;
    sum += z < d - 1 ? in[at + w * h] : c;
    out[at] = c + k * sum;
}
