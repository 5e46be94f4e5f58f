// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/tfrecord/example_fields.hpp"

namespace precache::tfrecord {

/// Why a feature is no label, as in "'label' has 3 values". Empty if it is one: a single integer,
/// or a single text that is not longer than names of classes are.
[[nodiscard]] std::string unfit_label(const Feature& feature);

}  // namespace precache::tfrecord
