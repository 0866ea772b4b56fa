/* The edges of a process, one by name:
 *
 *   edges NAME MANDELBROT-ZEBIN
 *
 * Nothing is printed but one line where the other side has to know how far the process is. */
#define CL_TARGET_OPENCL_VERSION 300
#define _GNU_SOURCE
#include <CL/cl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ensure.h"

enum { SIDE = 1024, FORKS = 20 };

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel kernel;
static cl_mem buffer;

static void set_up(const char *path) {
    static unsigned char zebin[1 << 20];
    FILE *file = fopen(path, "rb");
    ENSURE(file);
    size_t size = fread(zebin, 1, sizeof(zebin), file);
    fclose(file);
    const unsigned char *bytes = zebin;
    cl_platform_id platform;
    cl_int code, status;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(code);
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    queue = clCreateCommandQueueWithProperties(context, device, list, &code);
    CHECK(code);
    program = clCreateProgramWithBinary(context, 1, &device, &size, &bytes, &status, &code);
    CHECK(code);
    CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    kernel = clCreateKernel(program, "mandelbrot", &code);
    CHECK(code);
    buffer = clCreateBuffer(context, 0, SIDE * SIDE * sizeof(cl_int), NULL, &code);
    CHECK(code);
}

/* A point in the middle of the set never leaves it: each work-item counts to the limit. */
static cl_event launch_on(cl_int limit, cl_int width) {
    cl_float zero = 0;
    size_t global[] = {SIDE, SIDE};
    cl_event event;
    CHECK(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    for (cl_uint i = 1; i < 5; i++) CHECK(clSetKernelArg(kernel, i, sizeof(zero), &zero));
    CHECK(clSetKernelArg(kernel, 5, sizeof(width), &width));
    CHECK(clSetKernelArg(kernel, 6, sizeof(limit), &limit));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, NULL, 0, NULL, &event));
    return event;
}

static cl_event launch(cl_int limit) { return launch_on(limit, SIDE); }

static cl_int status_of(cl_event event) {
    cl_int status;
    CHECK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
    return status;
}

/* Has a kernel that does not end in our time run on the queue's own thread. */
static cl_event run_for_ever(void) {
    cl_event event = launch(INT_MAX);
    CHECK(clFlush(queue));
    while (status_of(event) != CL_RUNNING) usleep(100);
    return event;
}

/* Runs once; the first element is what it counted to. */
static void ends_well(cl_int limit) {
    cl_int first = -1;
    cl_event event = launch(limit);
    CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(first), &first, 0, NULL, NULL));
    ENSURE(status_of(event) == CL_COMPLETE);
    ENSURE(first == limit);
    CHECK(clReleaseEvent(event));
}

static void release(void) {
    CHECK(clReleaseMemObject(buffer));
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseProgram(program));
    CHECK(clReleaseCommandQueue(queue));
    CHECK(clReleaseContext(context));
}

/* The same on the queue's own thread, as nothing waits here. */
static void ends_by_itself(cl_int limit) {
    cl_event event = launch(limit);
    CHECK(clFlush(queue));
    while (status_of(event) > CL_COMPLETE) usleep(100);
    ENSURE(status_of(event) == CL_COMPLETE);
    CHECK(clReleaseEvent(event));
}

/* The code with which a child process ends. */
static int code_of(pid_t child) {
    int status;
    ENSURE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A launch that the time limit ends. */
static void times_out(void) {
    cl_event event = launch(INT_MAX);
    ENSURE(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(clReleaseEvent(event));
}

static int edge(const char *name, const char *zebin) {
    /* A shell without job control has its background jobs ignore it, and they pass that on. */
    signal(SIGINT, SIG_DFL);
    set_up(zebin);
    if (!strcmp(name, "keep")) {
        ends_well(5);
    } else if (!strcmp(name, "exit")) {
        run_for_ever();
        exit(3);
    } else if (!strcmp(name, "return")) {
        run_for_ever();
        return 3;
    } else if (!strcmp(name, "quick_exit")) {
        run_for_ever();
        quick_exit(3);
    } else if (!strcmp(name, "released")) {
        /* Nothing of the program's is left, but for the kernel that runs. */
        CHECK(clReleaseEvent(run_for_ever()));
        release();
        return 3;
    } else if (!strcmp(name, "fork-running")) {
        run_for_ever();
        pid_t child = fork();
        if (child == 0) exit(3);
        return code_of(child);
    } else if (!strcmp(name, "fork-running-anew")) {
        run_for_ever();
        pid_t child = fork();
        if (child == 0) {
            /* What the parent ran does not run here. */
            set_up(zebin);
            ends_well(7);
            exit(3);
        }
        return code_of(child);
    } else if (!strcmp(name, "fork-running-wait")) {
        cl_event event = run_for_ever();
        pid_t child = fork();
        if (child == 0) {
            /* What the parent runs has failed here, and the queue, its kernel and their buffer can be used. */
            CHECK(clFinish(queue));
            ENSURE(status_of(event) == CL_OUT_OF_RESOURCES);
            ENSURE(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            ends_well(7);
            exit(3);
        }
        return code_of(child);
    } else if (!strcmp(name, "fork-running-poll")) {
        cl_event event = run_for_ever();
        pid_t child = fork();
        if (child == 0) {
            /* The child has to make the queue's own thread anew. */
            ends_by_itself(7);
            ENSURE(status_of(event) == CL_OUT_OF_RESOURCES);
            exit(3);
        }
        return code_of(child);
    } else if (!strcmp(name, "fork-timeout")) {
        times_out();
        pid_t child = fork();
        if (child == 0) {
            times_out();
            exit(3);
        }
        return code_of(child);
    } else if (!strcmp(name, "fork-flushed")) {
        /* The queue's own thread is on its way to sleep, each time at another place. */
        int code = 3;
        for (int i = 0; i < FORKS && code == 3; i++) {
            CHECK(clReleaseEvent(launch(5)));
            CHECK(clFlush(queue));
            if (i % 2) CHECK(clFinish(queue));
            pid_t child = fork();
            if (child == 0) {
                alarm(20);
                ends_by_itself(6);
                exit(3);
            }
            code = code_of(child);
        }
        ends_well(8);
        return code;
    } else if (!strcmp(name, "fork-anew")) {
        ends_well(5);
        pid_t child = fork();
        if (child == 0) {
            ends_well(6);
            release();
            set_up(zebin);
            ends_well(7);
            exit(3);
        }
        int code = code_of(child);
        ends_well(8);
        return code;
    } else if (!strcmp(name, "for-ever")) {
        run_for_ever();
        puts("running");
        fflush(stdout);
        clFinish(queue);
    } else if (!strcmp(name, "for-ever-here")) {
        /* On this thread, since the queue was not flushed. */
        launch(INT_MAX);
        puts("running");
        fflush(stdout);
        clFinish(queue);
    } else if (!strcmp(name, "timeout") || !strcmp(name, "trap")) {
        for (int i = 0; i < 2; i++) {
            /* Without an end, or far beyond the buffer. */
            cl_event event = strcmp(name, "trap") ? launch(INT_MAX) : launch_on(5, 1 << 20);
            ENSURE(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            ENSURE(status_of(event) < 0);
            CHECK(clReleaseEvent(event));
            CHECK(clFinish(queue));
            ends_well(5 + i);
        }
        release();
    } else {
        fail(name, 0, __LINE__);
    }
    return 0;
}

int main(int argc, char **argv) {
    ENSURE(argc == 3);
    return edge(argv[1], argv[2]);
}
