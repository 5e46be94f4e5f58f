// SPDX-License-Identifier: Apache-2.0
// The HDF5 library leaks on damaged files; users are kept from that by a process of its own.
// LeakSanitizer looks for this function by its name; without the sanitizer nobody calls it.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
