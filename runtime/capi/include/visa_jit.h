/* Made by cbindgen from runtime/capi/src; do not edit. */

#ifndef VISA_JIT_H
#define VISA_JIT_H

#include <stddef.h>
#include <stdint.h>

// How the coordinates of an image count.
#define VISA_JIT_IMAGE_1D 0

// x, layer.
#define VISA_JIT_IMAGE_1D_ARRAY 1

// x; never filtered.
#define VISA_JIT_IMAGE_1D_BUFFER 2

// x, y.
#define VISA_JIT_IMAGE_2D 3

// x, y, layer.
#define VISA_JIT_IMAGE_2D_ARRAY 4

// x, y, z.
#define VISA_JIT_IMAGE_3D 5

// Channels run from 0 to 1.
#define VISA_JIT_UNORM 0

// Channels run from -1 to 1.
#define VISA_JIT_SNORM 1

// Channels are signed integers.
#define VISA_JIT_INT 2

// Channels are unsigned integers.
#define VISA_JIT_UINT 3

// Channels are floats.
#define VISA_JIT_FLOAT 4

// There are no coordinates beyond the edges.
#define VISA_JIT_ADDRESS_NONE 0

// Beyond the edges is the border.
#define VISA_JIT_ADDRESS_BORDER 1

// Beyond the edges is the texel at the edge.
#define VISA_JIT_ADDRESS_EDGE 2

// Beyond the edges is the image again.
#define VISA_JIT_ADDRESS_REPEAT 3

// Beyond the edges is the image again, every other time reversed.
#define VISA_JIT_ADDRESS_MIRROR 4

// Nothing compares.
#define VISA_JIT_COMPARE_NEVER 0

// The reference is less than the texel.
#define VISA_JIT_COMPARE_LESS 1

// They are equal.
#define VISA_JIT_COMPARE_EQUAL 2

// The reference is less, or they are equal.
#define VISA_JIT_COMPARE_LEQUAL 3

// The reference is greater than the texel.
#define VISA_JIT_COMPARE_GREATER 4

// They are not equal.
#define VISA_JIT_COMPARE_NOTEQUAL 5

// The reference is greater, or they are equal.
#define VISA_JIT_COMPARE_GEQUAL 6

// Everything compares.
#define VISA_JIT_COMPARE_ALWAYS 7

// How a call ended.
typedef enum visa_jit_status {
  // It did what it should.
  VISA_JIT_OK = 0,
  // It did not; `visa_jit_last_error` says why.
  VISA_JIT_FAILED = 1,
} visa_jit_status;

// How a launch ended.
typedef enum visa_jit_end {
  // All groups ran to their end.
  VISA_JIT_COMPLETED = 0,
  // An access out of bounds stopped it (kernels compiled with `--oob trap`), or an assertion of the kernel failed.
  VISA_JIT_FAULTED = 1,
  // Another thread stopped it.
  VISA_JIT_INTERRUPTED = 2,
} visa_jit_end;

// A buffer in device memory.
typedef struct visa_jit_buffer visa_jit_buffer;

// What an object file exports for each kernel: `visa_jit_kernel_NAME`, declared in the kernel's header. Opaque.
typedef struct visa_jit_descriptor visa_jit_descriptor;

// A kernel.
typedef struct visa_jit_kernel visa_jit_kernel;

// A kernel with a shape and arguments, which may run again and again, with other arguments too.
typedef struct visa_jit_launch visa_jit_launch;

// Device memory: an address range that kernels can reach. Memory is used as buffers are made. A program whose kernels are
// launched in it has its variables there, once, from the first such launch on.
typedef struct visa_jit_memory visa_jit_memory;

// Kind, format and size of an image.
typedef struct visa_jit_image {
  // `VISA_JIT_IMAGE_2D` and the like.
  uint32_t kind;
  // Channels of a texel: 1, 2 or 4.
  uint32_t channels;
  // Bits of a channel: 8, 16 or 32.
  uint32_t bits;
  // `VISA_JIT_UNORM` and the like.
  uint32_t channel;
  // Texels, or layers, along each coordinate in use.
  uint32_t extent[3];
} visa_jit_image;

// How an image is sampled. The library reads all of it, and `comparison` came with version 14 of the ABI: callers compare
// `visa_jit_abi_version` with the version that they were written for before they pass one.
typedef struct visa_jit_sampler {
  // `VISA_JIT_ADDRESS_EDGE` and the like.
  uint32_t address;
  // 1 where neighbours are mixed, 0 where the nearest is taken.
  uint32_t linear;
  // 1 where coordinates run from 0 to 1, 0 where they run to the number of texels.
  uint32_t normalized;
  // `VISA_JIT_COMPARE_LESS` and the like: what comparing samples ask of texels.
  uint32_t comparison;
} visa_jit_sampler;

// What a launch did.
typedef struct visa_jit_report {
  // How it ended.
  enum visa_jit_end end;
  // Work-groups that ran to their end.
  uint64_t groups;
  // Hardware threads of those.
  uint64_t threads;
  // Accesses out of bounds, one for each lane; 0 for kernels compiled with `--oob zero`, which do not count them.
  uint64_t faults;
  // How many of them `visa_jit_launch_fault` describes.
  size_t described;
} visa_jit_report;

// An access out of bounds of one lane. The strings are valid until the launch runs again or is freed.
typedef struct visa_jit_fault {
  // Line in the vISA text.
  uint32_t line;
  // Instruction.
  const char *opcode;
  // Read, write or atomic.
  const char *access;
  // Address space.
  const char *space;
  // Binding-table index of accesses to surfaces, else -1.
  int64_t surface;
  // Byte offset, or address.
  uint64_t address;
  // Bytes of the element.
  uint32_t bytes;
  // Work-group.
  uint32_t group[3];
  // Local id of the lane.
  uint32_t local_id[3];
  // Global id of the lane.
  uint64_t global_id[3];
  // Hardware thread of the group.
  uint32_t thread;
  // Lane of it.
  uint32_t lane;
} visa_jit_fault;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the ABI between kernels and this library; kernels that were compiled for another one are refused.
uint32_t visa_jit_abi_version(void);

// What failed last in this thread, as text; empty if nothing did. Valid until the thread's next call of this library.
const char *visa_jit_last_error(void);

// Checks a linked kernel: that it was compiled for this library and for this processor, and is as it was compiled. Null if not.
//
// # Safety
// `descriptor` is one that an object file of visa-jit defines, and stays mapped as long as the kernel and its launches are used.
struct visa_jit_kernel *visa_jit_kernel_new(const struct visa_jit_descriptor *descriptor);

// Frees a kernel. Launches of it live on until they are freed themselves. Null is allowed.
//
// # Safety
// `kernel` is null or from `visa_jit_kernel_new`, and not used again.
void visa_jit_kernel_free(struct visa_jit_kernel *kernel);

// Name of a kernel, valid until it is freed; null for null.
//
// # Safety
// `kernel` is null or live.
const char *visa_jit_kernel_name(const struct visa_jit_kernel *kernel);

// Arguments of a kernel; 0 for null.
//
// # Safety
// `kernel` is null or live.
size_t visa_jit_kernel_argument_count(const struct visa_jit_kernel *kernel);

// A launch of `global` work-items in groups of `local`; a null `local` leaves the choice to the library. Null on failure.
//
// # Safety
// Handles are live; `global` has three numbers, `local` is null or has three.
struct visa_jit_launch *visa_jit_launch_new(const struct visa_jit_kernel *kernel,
                                            const struct visa_jit_memory *memory,
                                            const uint32_t *global,
                                            const uint32_t *local);

// Frees a launch. Null is allowed.
//
// # Safety
// `launch` is null or from `visa_jit_launch_new`, and not used again.
void visa_jit_launch_free(struct visa_jit_launch *launch);

// Sets an argument that is passed by value to `bytes` bytes.
//
// # Safety
// `launch` is live and used by no other thread; `from` has a given number of bytes.
enum visa_jit_status visa_jit_launch_value(struct visa_jit_launch *launch,
                                           uint32_t index,
                                           const void *from,
                                           size_t bytes);

// Sets an argument to a buffer; a null buffer is a null pointer.
//
// # Safety
// `launch` is live and used by no other thread; `buffer` is null or live.
enum visa_jit_status visa_jit_launch_buffer(struct visa_jit_launch *launch,
                                            uint32_t index,
                                            const struct visa_jit_buffer *buffer);

// Gives an argument in local memory its size.
//
// # Safety
// `launch` is live and used by no other thread.
enum visa_jit_status visa_jit_launch_local(struct visa_jit_launch *launch, uint32_t index, uint32_t bytes);

// Binds a surface by its index: for kernels that were written in vISA, which have surfaces where others have arguments.
//
// # Safety
// `launch` is live and used by no other thread; `buffer` is live.
enum visa_jit_status visa_jit_launch_surface(struct visa_jit_launch *launch,
                                             uint32_t index,
                                             const struct visa_jit_buffer *buffer);

// Sets an argument to an image that a buffer holds from its start, rows and slices without gaps. Of kernels that were
// written in vISA, `index` is that of the surface.
//
// # Safety
// `launch` is live and used by no other thread; `buffer` and `image` are live.
enum visa_jit_status visa_jit_launch_image(struct visa_jit_launch *launch,
                                           uint32_t index,
                                           const struct visa_jit_buffer *buffer,
                                           const struct visa_jit_image *image);

// Sets an argument to a sampler. Of kernels that were written in vISA, `index` is that of the sampler.
//
// # Safety
// `launch` is live and used by no other thread; `sampler` is live.
enum visa_jit_status visa_jit_launch_sampler(struct visa_jit_launch *launch,
                                             uint32_t index,
                                             const struct visa_jit_sampler *sampler);

// What the kernel printed in the last run, as text without NUL bytes; empty if nothing. Valid until the launch runs again or
// is freed; null for null.
//
// # Safety
// `launch` is null or live.
const char *visa_jit_launch_printed(const struct visa_jit_launch *launch);

// Why what the kernel printed is not all, or not what it meant; null if it is. Valid as [`visa_jit_launch_printed`] is.
//
// # Safety
// `launch` is null or live.
const char *visa_jit_launch_print_problem(const struct visa_jit_launch *launch);

// What the kernel's failed assertions said in the last run, a line each; null if none failed. Valid as
// [`visa_jit_launch_printed`] is. A run in which one fails ends with `VISA_JIT_FAULTED`.
//
// # Safety
// `launch` is null or live.
const char *visa_jit_launch_failed_assertions(const struct visa_jit_launch *launch);

// Runs a launch on `threads` threads of the system; 0 and 1 are the calling thread. Accesses out of bounds are no failure: they
// are in the report.
//
// # Safety
// `launch` is live and used by no other thread; `report` is null or has room for one.
enum visa_jit_status visa_jit_launch_run(struct visa_jit_launch *launch,
                                         size_t threads,
                                         struct visa_jit_report *report);

// Describes fault `number` of the last run, from 0 on.
//
// # Safety
// `launch` is live and used by no other thread; `fault` has room for one.
enum visa_jit_status visa_jit_launch_fault(struct visa_jit_launch *launch,
                                           size_t number,
                                           struct visa_jit_fault *fault);

// Device memory for at most `bytes` bytes of buffers; 0 for 64 GiB of addresses. Null on failure.
struct visa_jit_memory *visa_jit_memory_new(uint64_t bytes);

// Frees a memory. Buffers in it live on until they are freed themselves. Null is allowed.
//
// # Safety
// `memory` is null or from `visa_jit_memory_new`, and not used again.
void visa_jit_memory_free(struct visa_jit_memory *memory);

// A buffer of `bytes` zero bytes. Null on failure.
//
// # Safety
// `memory` is live.
struct visa_jit_buffer *visa_jit_buffer_new(const struct visa_jit_memory *memory, uint64_t bytes);

// Frees a buffer. Launches that were given it keep its memory. Null is allowed.
//
// # Safety
// `buffer` is null or from `visa_jit_buffer_new`, and not used again.
void visa_jit_buffer_free(struct visa_jit_buffer *buffer);

// Bytes of a buffer; 0 for null.
//
// # Safety
// `buffer` is null or live.
uint64_t visa_jit_buffer_size(const struct visa_jit_buffer *buffer);

// Address of a buffer as kernels see it; 0 for null.
//
// # Safety
// `buffer` is null or live.
uint64_t visa_jit_buffer_address(const struct visa_jit_buffer *buffer);

// Writes `bytes` bytes to a buffer from byte `offset` on.
//
// # Safety
// `buffer` is live, and `from` has a given number of bytes.
enum visa_jit_status visa_jit_buffer_write(const struct visa_jit_buffer *buffer,
                                           uint64_t offset,
                                           const void *from,
                                           size_t bytes);

// Reads `bytes` bytes of a buffer from byte `offset` on.
//
// # Safety
// `buffer` is live, and `to` has room for a given number of bytes.
enum visa_jit_status visa_jit_buffer_read(const struct visa_jit_buffer *buffer,
                                          uint64_t offset,
                                          void *to,
                                          size_t bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* VISA_JIT_H */
/* Sources: 0c82dd014e790e6f */
