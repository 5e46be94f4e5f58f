// SPDX-License-Identifier: Apache-2.0
// Trains a linear classifier on a precache dataset, and resumes where it stopped.
//
//   train_loop DATASET CHECKPOINT [EPOCHS]
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <precache/reader.hpp>
#include <span>
#include <vector>

constexpr std::size_t kCells = 14;  // features: the means of 14 x 14 cells in each channel

std::vector<float> features_of(std::span<const float> pixels, const precache::TensorSpec& spec) {
  std::vector<float> cells(spec.channels * kCells * kCells);
  const float* pixel = pixels.data();
  const float share = float(kCells * kCells) / float(spec.height * spec.width);
  for (std::size_t row = 0; row < spec.channels * spec.height; ++row)
    for (std::size_t x = 0; x < spec.width; ++x)
      cells[row * kCells / spec.height * kCells + x * kCells / spec.width] += share * *pixel++;
  return cells;
}

/// One step of gradient descent on one image; returns its loss.
double learn(std::vector<float>& weights, const std::vector<float>& x, std::size_t label) {
  std::vector<double> p(weights.size() / x.size());
  double sum = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    for (std::size_t i = 0; i < x.size(); ++i) p[k] += weights[k * x.size() + i] * x[i];
    sum += p[k] = std::exp(std::clamp(p[k], -30.0, 30.0));
  }
  for (std::size_t k = 0; k < p.size(); ++k) {
    const double step = 0.0001 * (p[k] / sum - (k == label ? 1 : 0));
    for (std::size_t i = 0; i < x.size(); ++i) weights[k * x.size() + i] -= float(step * x[i]);
  }
  return -std::log(p.at(label) / sum);
}

int main(int argc, char** argv) try {
  if (argc < 3) throw precache::InvalidArgument("usage: train_loop DATASET CHECKPOINT [EPOCHS]");
  const auto dataset = precache::Dataset::open(argv[1]);
  precache::LoaderOptions options;  // float32 batches of random crops
  options.batch_size = 32;
  options.order.shuffle = precache::Shuffle::kBlock;
  const precache::RandomResizedCrop crop{dataset.spec().height, dataset.spec().width};
  options.transform.augmentation = {{crop, precache::RandomHorizontalFlip{}}};
  options.transform.normalize = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  options.transform.layout = precache::Layout::kChw;
  precache::Loader loader(dataset, options);
  if (dataset.classes().empty()) throw precache::InvalidArgument("the dataset names no classes");

  std::vector<float> weights(dataset.classes().size() * loader.spec().channels * kCells * kCells);
  if (std::ifstream checkpoint(argv[2]); checkpoint) {
    std::string state;
    std::getline(checkpoint, state);
    for (float& weight : weights) checkpoint >> weight;
    loader.resume(precache::OrderState::from_json(state));
  }
  for (const auto end = argc > 3 ? std::stoull(argv[3]) : 3; loader.epoch() < end;) {
    const auto epoch = loader.epoch();
    double loss = 0;
    std::size_t seen = 0;
    while (const auto batch = loader.next()) {  // none at the end of the epoch
      const auto images = batch->as<float>();
      for (std::size_t i = 0; i < batch->size(); ++i, ++seen) {
        const auto label = std::size_t(batch->labels()[i]);
        loss += learn(weights, features_of(images[i], batch->spec()), label);
      }
    }
    std::ofstream checkpoint(argv[2]);
    checkpoint << loader.state().to_json() << '\n';
    checkpoint.precision(9);  // every float is read back as it was
    for (const float weight : weights) checkpoint << weight << '\n';
    std::cout << "epoch " << epoch << ": " << seen << " images, loss " << loss / double(seen)
              << '\n';
  }
} catch (const precache::Error& error) {
  std::cerr << "train_loop: " << error.what() << '\n' << error.hint() << '\n';
  return 1;
}
