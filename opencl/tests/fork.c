/* Uses a queue that has a thread, before and after fork. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
static cl_context c; static cl_command_queue q; static cl_mem m; static cl_device_id d;
static int use(int v) { cl_event ev; int out = -1; cl_int st;
  clEnqueueFillBuffer(q, m, &v, 4, 0, 256, 0, 0, &ev); clFlush(q);
  do clGetEventInfo(ev, CL_EVENT_COMMAND_EXECUTION_STATUS, 4, &st, 0); while (st > 0);
  clEnqueueReadBuffer(q, m, 1, 0, 4, &out, 0, 0, 0); return out == v; }
int main(void) { cl_platform_id p; cl_int e;
  clGetPlatformIDs(1, &p, 0); clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 1, &d, 0);
  c = clCreateContext(0, 1, &d, 0, 0, &e); q = clCreateCommandQueueWithProperties(c, d, 0, &e);
  m = clCreateBuffer(c, 0, 256, 0, &e);
  int a = use(7); pid_t k = fork(); if (!k) { alarm(5); _exit(use(8) ? 0 : 1); }
  int s; waitpid(k, &s, 0); return !(a && s == 0 && use(9)); }
