/* Threads use contexts, queues of both orders, programs, kernels, events, callbacks and user events at once. What each computes is
 * computed here as well, and must be the same.
 *
 *   stress ZEBIN THREADS ROUNDS SEED [MICROSECONDS]
 *
 * With a time the process ends after it, whatever its threads are doing. */
#define CL_TARGET_OPENCL_VERSION 300
#define _GNU_SOURCE
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ensure.h"

#define MOST_ELEMENTS 1200
#define MOST_COMMANDS 60

/* What threads share. */
static cl_device_id device;
static unsigned char *zebin;
static size_t zebin_size;
static cl_context shared_context;
static cl_command_queue shared_queue;
static cl_program shared_program;
static atomic_ulong commands;

struct thread {
    pthread_t id;
    unsigned long state;
    int rounds;
};

static unsigned below(struct thread *t, unsigned n) {
    t->state ^= t->state << 13;
    t->state ^= t->state >> 7;
    t->state ^= t->state << 17;
    return (unsigned)(t->state >> 16) % n;
}

static cl_program program_of(cl_context context) {
    cl_int status, code;
    const unsigned char *bytes = zebin;
    cl_program program = clCreateProgramWithBinary(context, 1, &device, &zebin_size, &bytes, &status, &code);
    CHECK(code);
    CHECK(status);
    CHECK(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
    return program;
}

static cl_command_queue queue_of(cl_context context, cl_command_queue_properties properties) {
    cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_int code;
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, list, &code);
    CHECK(code);
    return queue;
}

static void CL_CALLBACK count(cl_event event, cl_int status, void *data) {
    (void)event;
    ENSURE(status == CL_COMPLETE);
    atomic_fetch_add((atomic_int *)data, 1);
}

/* One round's objects, and what ought to be in them. */
struct round {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem x, y;
    cl_event gate, last;
    int ordered, profiled;
    size_t n;
    float want_x[MOST_ELEMENTS], want_y[MOST_ELEMENTS];
    /* Memory that commands read or write later, and what ought to be there. */
    float *host[MOST_COMMANDS], *want[MOST_COMMANDS];
    size_t host_n[MOST_COMMANDS];
    atomic_int calls;
    int callbacks;
};

static void open_round(struct thread *t, struct round *r) {
    cl_int code;
    int own = below(t, 2);
    r->context = own ? clCreateContext(NULL, 1, &device, NULL, NULL, &code) : shared_context;
    if (own) CHECK(code);
    r->program = own ? program_of(r->context) : shared_program;
    cl_command_queue_properties properties = 0;
    if (below(t, 2)) properties |= CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    if (below(t, 2)) properties |= CL_QUEUE_PROFILING_ENABLE;
    if (!own && below(t, 2)) {
        r->queue = shared_queue;
        CHECK(clRetainCommandQueue(r->queue));
        properties = 0;
    } else {
        r->queue = queue_of(r->context, properties);
    }
    r->ordered = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    r->profiled = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
    r->kernel = clCreateKernel(r->program, "saxpy", &code);
    CHECK(code);
    r->n = 16 + below(t, MOST_ELEMENTS - 16);
    for (size_t i = 0; i < r->n; i++) {
        r->want_x[i] = (float)below(t, 17) - 8;
        r->want_y[i] = (float)below(t, 1000);
    }
    size_t bytes = r->n * sizeof(float);
    r->x = clCreateBuffer(r->context, CL_MEM_COPY_HOST_PTR, bytes, r->want_x, &code);
    CHECK(code);
    r->y = clCreateBuffer(r->context, CL_MEM_COPY_HOST_PTR, bytes, r->want_y, &code);
    CHECK(code);
    CHECK(clSetKernelArg(r->kernel, 0, sizeof(cl_mem), &r->y));
    CHECK(clSetKernelArg(r->kernel, 1, sizeof(cl_mem), &r->x));
    if (below(t, 2)) {
        r->gate = clCreateUserEvent(r->context, &code);
        CHECK(code);
    }
}

/* The next command. A queue out of order is told what comes before it. */
static void command(struct thread *t, struct round *r, int number) {
    cl_event waits[2], event = NULL;
    cl_uint n = 0;
    if (r->last && (!r->ordered || below(t, 3) == 0)) waits[n++] = r->last;
    if (r->gate && number == 0) waits[n++] = r->gate;
    const cl_event *list = n ? waits : NULL;
    size_t at = below(t, (unsigned)r->n), len = 1 + below(t, (unsigned)(r->n - at));
    size_t from = at * sizeof(float), bytes = len * sizeof(float);
    float value = (float)below(t, 9) - 4;
    switch (below(t, 8)) {
    case 0:
    case 1: {
        cl_kernel kernel = r->kernel;
        cl_int code;
        if (below(t, 4) == 0) {
            kernel = clCloneKernel(r->kernel, &code);
            CHECK(code);
        }
        CHECK(clSetKernelArg(kernel, 2, sizeof(value), &value));
        CHECK(clEnqueueNDRangeKernel(r->queue, kernel, 1, NULL, &r->n, NULL, n, list, &event));
        if (kernel != r->kernel) CHECK(clReleaseKernel(kernel));
        for (size_t i = 0; i < r->n; i++) r->want_y[i] += value * r->want_x[i];
        break;
    }
    case 2: {
        int into_x = below(t, 2);
        float *want = into_x ? r->want_x : r->want_y;
        CHECK(clEnqueueFillBuffer(r->queue, into_x ? r->x : r->y, &value, sizeof(value), from, bytes, n, list, &event));
        for (size_t i = at; i < at + len; i++) want[i] = value;
        break;
    }
    case 3:
        CHECK(clEnqueueCopyBuffer(r->queue, r->x, r->y, from, from, bytes, n, list, &event));
        memcpy(r->want_y + at, r->want_x + at, bytes);
        break;
    case 4: {
        float *host = r->host[number] = malloc(bytes);
        for (size_t i = 0; i < len; i++) host[i] = r->want_x[at + i] = (float)below(t, 17) - 8;
        CHECK(clEnqueueWriteBuffer(r->queue, r->x, CL_FALSE, from, bytes, host, n, list, &event));
        break;
    }
    case 5: {
        r->host[number] = malloc(bytes);
        r->want[number] = malloc(bytes);
        r->host_n[number] = len;
        memcpy(r->want[number], r->want_y + at, bytes);
        CHECK(clEnqueueReadBuffer(r->queue, r->y, CL_FALSE, from, bytes, r->host[number], n, list, &event));
        break;
    }
    case 6:
        CHECK(below(t, 2) ? clEnqueueMarkerWithWaitList(r->queue, n, list, &event)
                          : clEnqueueBarrierWithWaitList(r->queue, n, list, &event));
        break;
    default: {
        /* Waits, so nothing may be held up. */
        if (r->gate && number > 0) {
            CHECK(clSetUserEventStatus(r->gate, CL_COMPLETE));
            CHECK(clReleaseEvent(r->gate));
            r->gate = NULL;
        } else if (r->gate) {
            CHECK(clEnqueueMarkerWithWaitList(r->queue, n, list, &event));
            break;
        }
        cl_int code;
        float *mapped = clEnqueueMapBuffer(r->queue, r->y, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, from, bytes, n, list, NULL, &code);
        CHECK(code);
        ENSURE(memcmp(mapped, r->want_y + at, bytes) == 0);
        mapped[0] = r->want_y[at] = value;
        CHECK(clEnqueueUnmapMemObject(r->queue, r->y, mapped, 0, NULL, &event));
    }
    }
    if (below(t, 4) == 0) {
        CHECK(clSetEventCallback(event, CL_COMPLETE, count, &r->calls));
        r->callbacks++;
    }
    if (below(t, 8) == 0) CHECK(clFlush(r->queue));
    if (r->last) CHECK(clReleaseEvent(r->last));
    r->last = event;
    atomic_fetch_add(&commands, 1);
}

static void close_round(struct thread *t, struct round *r) {
    if (r->gate) {
        CHECK(clSetUserEventStatus(r->gate, CL_COMPLETE));
        CHECK(clReleaseEvent(r->gate));
    }
    if (below(t, 2)) CHECK(clWaitForEvents(1, &r->last));
    else CHECK(clFinish(r->queue));
    size_t bytes = r->n * sizeof(float);
    float *got = malloc(bytes);
    CHECK(clEnqueueReadBuffer(r->queue, r->x, CL_TRUE, 0, bytes, got, 0, NULL, NULL));
    ENSURE(memcmp(got, r->want_x, bytes) == 0);
    CHECK(clEnqueueReadBuffer(r->queue, r->y, CL_TRUE, 0, bytes, got, 0, NULL, NULL));
    ENSURE(memcmp(got, r->want_y, bytes) == 0);
    free(got);
    for (int i = 0; i < MOST_COMMANDS; i++) {
        if (r->want[i]) ENSURE(memcmp(r->host[i], r->want[i], r->host_n[i] * sizeof(float)) == 0);
        free(r->host[i]);
        free(r->want[i]);
    }
    if (r->profiled) {
        cl_ulong times[4];
        for (cl_uint i = 0; i < 4; i++)
            CHECK(clGetEventProfilingInfo(r->last, CL_PROFILING_COMMAND_QUEUED + i, sizeof(cl_ulong), &times[i], NULL));
        ENSURE(times[0] > 0 && times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
    }
    /* Functions may be called a little after the command has ended. */
    for (int i = 0; atomic_load(&r->calls) < r->callbacks && i < 10000; i++) usleep(1000);
    ENSURE(atomic_load(&r->calls) == r->callbacks);
    CHECK(clReleaseEvent(r->last));
    CHECK(clReleaseMemObject(r->x));
    CHECK(clReleaseKernel(r->kernel));
    CHECK(clReleaseCommandQueue(r->queue));
    CHECK(clReleaseMemObject(r->y));
    if (r->context != shared_context) {
        CHECK(clReleaseProgram(r->program));
        CHECK(clReleaseContext(r->context));
    }
}

static void *work(void *data) {
    struct thread *t = data;
    for (int i = 0; i < t->rounds; i++) {
        struct round *r = calloc(1, sizeof(*r));
        open_round(t, r);
        int n = 10 + below(t, MOST_COMMANDS - 10);
        for (int c = 0; c < n; c++) command(t, r, c);
        close_round(t, r);
        free(r);
    }
    return NULL;
}

int main(int argc, char **argv) {
    ENSURE(argc >= 5);
    FILE *file = fopen(argv[1], "rb");
    ENSURE(file);
    zebin = malloc(1 << 20);
    zebin_size = fread(zebin, 1, 1 << 20, file);
    fclose(file);
    int n = atoi(argv[2]);
    cl_platform_id platform;
    cl_int code;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    shared_context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(code);
    shared_queue = queue_of(shared_context, 0);
    shared_program = program_of(shared_context);
    struct thread *threads = calloc(n, sizeof(*threads));
    for (int i = 0; i < n; i++) {
        threads[i].state = (strtoul(argv[4], NULL, 10) * 1000 + i + 1) * 0x9E3779B97F4A7C15ul;
        threads[i].rounds = atoi(argv[3]);
        ENSURE(pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0);
    }
    if (argc > 5) {
        usleep(atoi(argv[5]));
        exit(0);
    }
    for (int i = 0; i < n; i++) ENSURE(pthread_join(threads[i].id, NULL) == 0);
    free(threads);
    free(zebin);
    CHECK(clReleaseProgram(shared_program));
    CHECK(clReleaseCommandQueue(shared_queue));
    CHECK(clReleaseContext(shared_context));
    printf("%lu commands\n", atomic_load(&commands));
    return 0;
}
