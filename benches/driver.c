/* What one command costs in an OpenCL driver: every platform that the loader shows, in one run, medians.
 *
 *   gcc -O2 -o target/driver-bench benches/driver.c -lOpenCL
 *   target/release/visa-jit exec -- target/driver-bench
 *
 * A program with two kernels, an empty one and one that counts its runs, and transfers of a buffer of 64 MiB. The name of a
 * platform may be an argument: only platforms whose names contain it are measured. The first build of a process may run
 * the compiler; start the bench twice to see what a second process pays. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES = 4000, BUILDS = 15, COPIES = 9, MOST = 8 };
static const size_t BYTES = (size_t)64 << 20;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_size);
  return values[count / 2];
}

static void check(cl_int code, const char *what) {
  if (code != CL_SUCCESS) {
    fprintf(stderr, "%s: %d\n", what, code);
    exit(1);
  }
}

static cl_program build(cl_context context, cl_device_id device) {
  const char *text = "kernel void empty(void) {} kernel void count(global uint *p) { p[0] += 1; }";
  cl_int code;
  cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
  check(code, "clCreateProgramWithSource");
  check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
  return program;
}

static void enqueue(cl_command_queue queue, cl_kernel kernel) {
  size_t one = 1;
  check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static double launches(cl_command_queue queue, cl_kernel kernel, int count, double *times) {
  for (int i = 0; i < count; i++) {
    double start = now();
    enqueue(queue, kernel);
    check(clFinish(queue), "clFinish");
    times[i] = now() - start;
  }
  return median(times, count);
}

static void row(const char *platform, const char *what, double value, const char *unit) {
  printf("%-28.28s  %-28s %10.2f %s\n", platform, what, value, unit);
  fflush(stdout);
}

static void measure(cl_platform_id platform, const char *name) {
  static double times[TIMES];
  cl_device_id device;
  cl_int code;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) return;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  check(code, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
  check(code, "clCreateCommandQueue");

  double first = now();
  cl_program program = build(context, device);
  row(name, "first build of the process", now() - first, "us");
  for (int i = 0; i < BUILDS; i++) {
    double start = now();
    cl_program again = build(context, device);
    times[i] = now() - start;
    clReleaseProgram(again);
  }
  row(name, "same build again", median(times, BUILDS), "us");

  cl_kernel empty = clCreateKernel(program, "empty", &code);
  check(code, "clCreateKernel");
  cl_kernel count = clCreateKernel(program, "count", &code);
  check(code, "clCreateKernel");
  cl_uint runs = 0;
  cl_mem counter = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof runs, &runs, &code);
  check(code, "clCreateBuffer");
  check(clSetKernelArg(count, 0, sizeof counter, &counter), "clSetKernelArg");
  launches(queue, empty, 100, times);
  row(name, "empty kernel and finish", launches(queue, empty, TIMES, times), "us");
  launches(queue, count, 100, times);
  row(name, "counting kernel and finish", launches(queue, count, TIMES, times), "us");
  check(clEnqueueReadBuffer(queue, counter, CL_TRUE, 0, sizeof runs, &runs, 0, NULL, NULL), "clEnqueueReadBuffer");
  if (runs != TIMES + 100) {
    fprintf(stderr, "%s: the kernel ran %u times, not %d\n", name, runs, TIMES + 100);
    exit(1);
  }
  /* Few at a time: what is measured is the call, not a full queue. */
  for (int i = 0; i < TIMES; i++) {
    double start = now();
    enqueue(queue, count);
    times[i] = now() - start;
    if (i % 64 == 63) check(clFinish(queue), "clFinish");
  }
  row(name, "enqueue alone", median(times, TIMES), "us");
  check(clFinish(queue), "clFinish");

  char *host = malloc(BYTES), *other = malloc(BYTES);
  if (!host || !other) exit(1);
  memset(host, 1, BYTES);
  memset(other, 2, BYTES);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
  check(code, "clCreateBuffer");
  check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, host, 0, NULL, NULL), "clEnqueueWriteBuffer");
  double writes[COPIES], reads[COPIES], copies[COPIES];
  for (int i = 0; i < COPIES; i++) {
    double start = now();
    check(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, BYTES, host, 0, NULL, NULL), "clEnqueueWriteBuffer");
    writes[i] = now() - start;
    start = now();
    check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, host, 0, NULL, NULL), "clEnqueueReadBuffer");
    reads[i] = now() - start;
    start = now();
    memcpy(other, host, BYTES);
    __asm__ volatile("" ::"r"(other) : "memory");
    copies[i] = now() - start;
  }
  double bytes = (double)BYTES / 1e3; /* per us to GB/s */
  row(name, "write buffer", bytes / median(writes, COPIES), "GB/s");
  row(name, "read buffer", bytes / median(reads, COPIES), "GB/s");
  row(name, "memcpy beside it", bytes / median(copies, COPIES), "GB/s");
  free(host);
  free(other);
  clReleaseMemObject(buffer);
  clReleaseMemObject(counter);
  clReleaseKernel(empty);
  clReleaseKernel(count);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}

int main(int argc, char **argv) {
  cl_platform_id platforms[MOST];
  cl_uint count = 0;
  check(clGetPlatformIDs(MOST, platforms, &count), "clGetPlatformIDs");
  for (cl_uint i = 0; i < count && i < MOST; i++) {
    char name[256] = "";
    check(clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL), "clGetPlatformInfo");
    if (argc < 2 || strstr(name, argv[1])) measure(platforms[i], name);
  }
  return 0;
}
