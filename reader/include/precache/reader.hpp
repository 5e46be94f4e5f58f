// SPDX-License-Identifier: Apache-2.0
/// Includes everything that a training program needs to read shards, except for batches on a GPU
/// (precache/reader/device_loader.hpp).
#pragma once

#include "precache/formats/dtype.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/augmentation.hpp"
#include "precache/reader/batch_transform.hpp"
#include "precache/reader/batch_view.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/loader.hpp"
#include "precache/reader/order.hpp"
#include "precache/version.hpp"
