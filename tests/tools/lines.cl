// Compiled with debug information, and the function to a section of its own:
//   IGC_FunctionControl=3 ocloc compile -file lines.cl -device acm-g10 --format zebin -options -g \
//       -internal_options -ze-emit-zebin-visa-sections
// in a directory `/src`, which is in the file then, and `python3 tests/kernels/slim.py` made it smaller.
__attribute__((noinline)) int mix(int v, int k) {
    int r = v * 5;
    return r ^ (v >> k);
}

kernel void lines(global int *out, global const int *in) {
    int i = get_global_id(0);
    out[i] = mix(in[i], i & 3);
}
