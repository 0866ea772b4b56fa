/* bindings.rs is made of this by bindgen 0.72.1, in this folder:
 *
 * bindgen headers.h --rust-target 1.85 --rust-edition 2024 --use-core --no-layout-tests --no-doc-comments --no-prepend-enum-name \
 *   --allowlist-var 'CL_.*' --allowlist-type '_?cl_icd_dispatch|cl_(bool|half|mem_.*|image_.*|buffer_.*|bitfield|properties|.*_info|version|name_version|command.*|device.*|sampler.*|queue_.*|program_.*|kernel.*|map_flags|svm.*|event|migrat.*|unified.*|addressing_mode|filter_mode|channel.*|profiling.*|build_status|context.*|platform.*|int|uint|long|ulong|khronos_vendor_id)'
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_ext_intel.h>
#include <CL/cl_icd.h>
