// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/policies.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "reader/loader/augment/policy_tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"

namespace precache {
namespace {

constexpr ImageShape kShape{3, 48, 64};

template <typename Policy>
PolicyDraw drawn(const Policy& policy, std::uint64_t sample) {
  OperationRandom random({.seed = 9, .sample = sample}, {});
  return choose(policy, random, kShape);
}

TEST_CASE("TrivialAugmentWide draws every change and magnitude", "[reader][augment]") {
  std::map<PolicyChange, std::set<double>> magnitudes;
  std::map<PolicyChange, int> counts;
  const TrivialAugmentWide policy{.num_magnitude_bins = 5};
  for (std::uint64_t sample = 0; sample < 14000; ++sample) {
    const PolicyDraw draw = drawn(policy, sample);
    REQUIRE(draw.count == 1);
    magnitudes[draw.steps[0].change].insert(draw.steps[0].magnitude);
    ++counts[draw.steps[0].change];
  }
  CHECK(magnitudes.size() == 14);
  CHECK(magnitudes.count(PolicyChange::kInvert) == 0);
  for (const auto& [change, count] : counts) {
    CAPTURE(name_of(change));
    CHECK((count > 850 && count < 1150));  // 1,000, and a deviation of 31
  }
  // torchvision: TrivialAugmentWide()._augmentation_space(5)
  const double shear[] = {0, 0.24750000238418579, 0.49500000476837158, 0.7425000071525574,
                          0.99000000953674316};
  std::set<double> both;
  for (const double magnitude : shear) both.insert({magnitude, -magnitude});
  CHECK(magnitudes[PolicyChange::kShearX] == both);
  CHECK(magnitudes[PolicyChange::kTranslateY] ==
        std::set<double>{-32, -24, -16, -8, 0, 8, 16, 24, 32});
  CHECK(magnitudes[PolicyChange::kPosterize] == std::set<double>{2, 4, 5, 6, 8});
  CHECK(magnitudes[PolicyChange::kSolarize] == std::set<double>{0, 63.75, 127.5, 191.25, 255});
  CHECK(magnitudes[PolicyChange::kEqualize] == std::set<double>{0});
}

TEST_CASE("RandAugment draws as many changes as asked, of one magnitude", "[reader][augment]") {
  const RandAugment policy{.num_ops = 3, .magnitude = 9};
  std::set<std::string> names;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    const PolicyDraw draw = drawn(policy, sample);
    REQUIRE(draw.count == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const PolicyStep& step = draw.steps[i];
      names.insert(std::string(name_of(step.change)));
      if (step.change == PolicyChange::kRotate) REQUIRE(std::fabs(step.magnitude) == 9);
      if (step.change == PolicyChange::kTranslateX) {
        // torch.linspace(0, 150 / 331 * 64, 31)[9]
        REQUIRE(std::fabs(step.magnitude) == 8.7009067535400391);
      }
    }
  }
  CHECK(names.size() == 14);
}

TEST_CASE("AutoAugment draws both changes of a learned policy with their probabilities",
          "[reader][augment]") {
  for (const AutoAugmentPolicy policy :
       {AutoAugmentPolicy::kImageNet, AutoAugmentPolicy::kCifar10, AutoAugmentPolicy::kSvhn}) {
    double expected = 0;
    std::set<PolicyChange> changes;
    for (const SubPolicy& pair : learned_policy(policy)) {
      for (const LearnedStep& step : pair) {
        expected += step.p / 25;
        changes.insert(step.change);
      }
    }
    double steps = 0;
    std::set<PolicyChange> seen;
    for (std::uint64_t sample = 0; sample < 5000; ++sample) {
      const PolicyDraw draw = drawn(AutoAugment{.policy = policy}, sample);
      REQUIRE(draw.count <= 2);
      steps += static_cast<double>(draw.count) / 5000;
      for (std::size_t i = 0; i < draw.count; ++i) seen.insert(draw.steps[i].change);
    }
    CHECK(std::fabs(steps - expected) < 0.05);
    CHECK(seen == changes);
  }
}

TEST_CASE("a policy's draw is shown with the names and magnitudes of torchvision",
          "[reader][augment]") {
  PolicyDraw draw{.steps = {PolicyStep{PolicyChange::kShearX, -0.13}, {PolicyChange::kInvert, 0}},
                  .count = 2};
  const auto steps = std::get<std::vector<DrawnValue>>(shown(draw));
  REQUIRE(steps.size() == 2);
  const auto first = std::get<std::vector<DrawnValue>>(steps[0]);
  CHECK(std::get<std::string>(first[0]) == "ShearX");
  CHECK(std::get<double>(first[1]) == -0.13);
  draw.one = true;
  CHECK(std::get<std::string>(std::get<std::vector<DrawnValue>>(shown(draw))[0]) == "ShearX");
}

TEST_CASE("every change of a policy keeps the size of any image", "[reader][augment]") {
  test::Random random(3);
  PlanarImage image;
  PlanarImage spare;
  for (int change = 0; change < 15; ++change) {
    for (const ImageShape shape : {ImageShape{3, 1, 1}, {1, 2, 9}, {3, 33, 20}}) {
      test::fill_randomly(image, shape, random);
      apply(PolicyStep{static_cast<PolicyChange>(change), 2}, image, spare, {});
      CHECK(image.shape() == shape);
    }
  }
}

}  // namespace
}  // namespace precache
