// Eight mathematical functions

kernel void math(global const float *x, global float *out) {
    float v = x[get_global_id(0)];
    out[get_global_id(0)] = sin(v) + cos(v) + exp(v) + log(v) + pow(v, 1.5f) + sqrt(v) + tanh(v) + atan(v);
}
