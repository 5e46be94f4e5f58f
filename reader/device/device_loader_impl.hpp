// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "precache/reader/device_loader.hpp"
#include "reader/device/sample_list.hpp"
#include "reader/device/transform_plan.hpp"
#include "reader/loader/loader_core.hpp"

namespace precache {

/// The implementation of a DeviceLoader on one of its paths.
class DeviceLoader::Impl : public LoaderCore {
 public:
  using LoaderCore::LoaderCore;
  /// Throws the exceptions of DeviceLoader's constructor.
  static std::unique_ptr<LoaderCore> make_resident(const Dataset& dataset,
                                                   const LoaderOptions& options,
                                                   const DeviceOptions& device);
  [[nodiscard]] virtual std::optional<DeviceBatch> next() = 0;
  [[nodiscard]] virtual DeviceStats stats() const = 0;

 protected:
  static DeviceBatch lend(DeviceBatch::Parts parts, std::shared_ptr<DeviceLease> lease) {
    return {std::move(parts), std::move(lease)};
  }
  /// All views but the first, of a batch whose memory begins at `first`.
  static std::vector<DeviceBatch::View> more_views(const device::TransformPlan& plan,
                                                   std::size_t rows, std::byte* first) {
    std::vector<DeviceBatch::View> views;
    for (std::size_t i = 1; i < plan.passes().size(); ++i) {
      views.push_back({plan.passes().view(i).result(), first + plan.view_at(i, rows)});
    }
    return views;
  }
};

}  // namespace precache
