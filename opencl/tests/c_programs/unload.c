/* Loads a driver, or a loader of drivers, uses it or not, and takes it away; some times.
 *
 *   unload LIBRARY idle|used */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ensure.h"

enum { BYTES = 64 << 20 };

static void *library;

static void *function(const char *name) {
    void *found = dlsym(library, name);
    ENSURE(found);
    return found;
}
#define FUNCTION(name) __typeof__(&name) name##_ = (__typeof__(&name))function(#name)

static void use(void) {
    FUNCTION(clGetPlatformIDs);
    FUNCTION(clGetDeviceIDs);
    FUNCTION(clCreateContext);
    FUNCTION(clCreateCommandQueueWithProperties);
    FUNCTION(clCreateBuffer);
    FUNCTION(clEnqueueFillBuffer);
    FUNCTION(clFlush);
    cl_platform_id platform;
    cl_device_id device;
    cl_int code, value = 7;
    ENSURE(!clGetPlatformIDs_(1, &platform, NULL));
    ENSURE(!clGetDeviceIDs_(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext_(NULL, 1, &device, NULL, NULL, &code);
    ENSURE(!code);
    cl_command_queue queue = clCreateCommandQueueWithProperties_(context, device, NULL, &code);
    ENSURE(!code);
    cl_mem mem = clCreateBuffer_(context, 0, BYTES, NULL, &code);
    ENSURE(!code);
    ENSURE(!clEnqueueFillBuffer_(queue, mem, &value, sizeof(value), 0, BYTES, 0, NULL, NULL));
    /* The queue's own thread has work when the library goes. */
    ENSURE(!clFlush_(queue));
}

int main(int argc, char **argv) {
    ENSURE(argc == 3);
    for (int i = 0; i < 3; i++) {
        library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        ENSURE(library);
        function("clGetExtensionFunctionAddress");
        if (!strcmp(argv[2], "used")) use();
        ENSURE(!dlclose(library));
        usleep(20000);
    }
    return 0;
}
