// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace precache::hdf5 {

/// Keeps the HDF5 library from its work at the end of the process, where it crashes (1.10.8) after
/// a failure to write. Only the first call in a process has an effect, and only if nothing has used
/// the library before. Readers do not call it: their program may have files of its own to close.
void forgo_exit_handler();

}  // namespace precache::hdf5
