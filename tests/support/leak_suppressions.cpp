// SPDX-License-Identifier: Apache-2.0
// The HDF5 library leaks on damaged files; for users it runs in a separate process. LeakSanitizer
// finds this function by its name; without the sanitizer it is not called.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
