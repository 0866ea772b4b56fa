/* Has kernels write to what they only read and beyond the end of a buffer, and read shared memory that is freed:
 *
 *   allocated ZEBIN
 *
 * The test beside this file knows in which functions and lines memory is allocated and freed. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>

#include "ensure.h"

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

/* Not inlined: each is to be on the stack. */
#define OWN __attribute__((noinline))

OWN static cl_mem make_buffer(cl_mem_flags flags) {
    cl_int code;
    cl_mem made = clCreateBuffer(context, flags, 256, NULL, &code); /* buffers are made here */
    CHECK(code);
    return made;
}

OWN static void *make_shared(void) {
    void *made = clSVMAlloc(context, CL_MEM_READ_WRITE, 256, 0); /* shared memory is made here */
    ENSURE(made);
    return made;
}

OWN static void give_back(void *shared) {
    clSVMFree(context, shared); /* shared memory is freed here */
    ENSURE(shared);
}

static void launch(cl_uint last, cl_int far) {
    size_t global = 64;
    CHECK(clSetKernelArg(kernel, last, sizeof(far), &far));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
    CHECK(clFinish(queue));
}

int main(int count, char **arguments) {
    static unsigned char zebin[1 << 20];
    ENSURE(count == 2);
    FILE *file = fopen(arguments[1], "rb");
    ENSURE(file);
    size_t size = fread(zebin, 1, sizeof(zebin), file);
    fclose(file);
    const unsigned char *bytes = zebin;
    cl_platform_id platform;
    cl_device_id device;
    cl_int code, status;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(code);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
    CHECK(code);
    cl_program program = clCreateProgramWithBinary(context, 1, &device, &size, &bytes, &status, &code);
    CHECK(code);
    CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    kernel = clCreateKernel(program, "store_int", &code);
    CHECK(code);

    cl_mem kept = make_buffer(CL_MEM_READ_ONLY); /* the kept buffer is asked for here */
    CHECK(clSetKernelArg(kernel, 0, sizeof(kept), &kept));
    launch(1, 0);
    cl_mem missed = make_buffer(CL_MEM_READ_WRITE);
    CHECK(clSetKernelArg(kernel, 0, sizeof(missed), &missed));
    launch(1, 1);
    CHECK(clReleaseKernel(kernel));
    kernel = clCreateKernel(program, "linked", &code);
    CHECK(code);
    void *shared = make_shared();
    cl_mem pointers = make_buffer(CL_MEM_READ_WRITE);
    CHECK(clEnqueueWriteBuffer(queue, pointers, CL_TRUE, 0, sizeof(shared), &shared, 0, NULL, NULL));
    CHECK(clSetKernelArg(kernel, 0, sizeof(missed), &missed));
    CHECK(clSetKernelArg(kernel, 1, sizeof(pointers), &pointers));
    give_back(shared);
    launch(2, 0);

    clReleaseMemObject(kept);
    clReleaseMemObject(missed);
    clReleaseMemObject(pointers);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
