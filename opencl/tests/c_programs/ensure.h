/* What does not hold ends the process at once, and says where. */
#ifndef ENSURE_H
#define ENSURE_H

#include <CL/cl.h>
#include <stdio.h>
#include <unistd.h>

static void fail(const char *what, long code, int line) {
    fprintf(stderr, "line %d: %s: %ld\n", line, what, code);
    _exit(1);
}
#define ENSURE(what) ((what) ? (void)0 : fail(#what, 0, __LINE__))
#define CHECK(call) \
    do { \
        cl_int code_ = (call); \
        if (code_ != CL_SUCCESS) fail(#call, code_, __LINE__); \
    } while (0)

#endif
