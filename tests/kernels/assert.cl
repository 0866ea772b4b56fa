// The assert of SYCL kernels, which OpenCL C does not have: DPC++ makes a call of this function, and the compiler knows it.
void __devicelib_assert_fail(const char *expression, const char *file, int line, const char *function, ulong global_x,
                             ulong global_y, ulong global_z, ulong local_x, ulong local_y, ulong local_z);

#define assert(condition) \
    do { \
        if (!(condition)) { \
            static global const char expression[] = #condition, file[] = "assert.cl", function[] = FUNCTION; \
            __devicelib_assert_fail(expression, file, __LINE__, function, get_global_id(0), get_global_id(1), \
                                    get_global_id(2), get_local_id(0), get_local_id(1), get_local_id(2)); \
        } \
    } while (0)

#define FUNCTION "doubled"
__attribute__((noinline)) int doubled(int a, int limit)
{
    assert(a <= limit);
    return a < 3 ? a * 2 : doubled(a - 1, limit) + 2;
}

// The same from a function that calls itself, so through the stack.
kernel void assert_in_function(global int *out, global const int *in, int limit)
{
    size_t i = get_global_id(0);
    out[i] = doubled(in[i], limit);
}

#undef FUNCTION
#define FUNCTION "assert_range"
// Items above the limit fail; the others' results are there.
kernel void assert_range(global int *out, global const int *in, int limit)
{
    size_t i = get_global_id(0);
    assert(in[i] <= limit);
    out[i] = in[i] * 2;
}
