// SPDX-License-Identifier: Apache-2.0
// Reads a precache dataset as the training recipes of ImageNet, CIFAR and DINO do.
//
//   recipes imagenet|cifar|dino DATASET [EPOCHS]
#include <array>
#include <cstdint>
#include <iostream>
#include <precache/reader.hpp>
#include <string>

namespace {

using namespace precache;

const Normalization kImageNetColours{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
const Normalization kCifarColours{{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}};

/// Random rectangles, at 7/8 of the stored size, as for training at 224 from 256.
BatchTransform imagenet(const TensorSpec& stored) {
  BatchTransform transform;
  transform.augmentation = {
      {RandomResizedCrop{.height = stored.height / 8 * 7, .width = stored.width / 8 * 7},
       RandomHorizontalFlip{}}};
  transform.normalize = kImageNetColours;
  return transform;
}

/// The image moves by up to four pixels, and is mirrored in every second epoch.
BatchTransform cifar(const TensorSpec& stored) {
  BatchTransform transform;
  transform.augmentation = {{RandomCrop{.height = stored.height,
                                        .width = stored.width,
                                        .padding = {4, 4, 4, 4},
                                        .padding_mode = PaddingMode::kReflect},
                             RandomHorizontalFlip{.alternate = true}}};
  transform.normalize = kCifarColours;
  return transform;
}

/// Two large and four small views of each image, which is read once.
BatchTransform dino(const TensorSpec& stored) {
  const auto view = [](std::uint32_t size, Range scale, double p_blur, double p_solarize) {
    const std::uint32_t kernel = size / 10 | 1;  // 23 for 224
    const ColorJitter colours{.brightness = Range{0.6, 1.4},
                              .contrast = Range{0.6, 1.4},
                              .saturation = Range{0.8, 1.2},
                              .hue = Range{-0.1, 0.1}};
    return Augmentation{{RandomResizedCrop{.height = size,
                                           .width = size,
                                           .scale = scale,
                                           .interpolation = Interpolation::kBicubic},
                         RandomHorizontalFlip{}, RandomApply{{colours}, 0.8},
                         RandomGrayscale{.p = 0.2},
                         RandomApply{{GaussianBlur{.kernel_size = {kernel, kernel}}}, p_blur},
                         RandomSolarize{.threshold = 128, .p = p_solarize}}};
  };
  BatchTransform transform;
  transform.views = {view(stored.height, {0.32, 1}, 1, 0),
                     view(stored.height, {0.32, 1}, 0.1, 0.2)};
  transform.views.resize(6, view(stored.height * 3 / 7, {0.05, 0.32}, 0.5, 0));
  transform.normalize = kImageNetColours;
  return transform;
}

BatchTransform recipe(const std::string& name, const TensorSpec& stored) {
  if (name == "imagenet") return imagenet(stored);
  if (name == "cifar") return cifar(stored);
  if (name == "dino") return dino(stored);
  throw InvalidArgument("there is no recipe '" + name + "'", "known are imagenet, cifar and dino");
}

/// Stands for the step of a network: the mean of what it would get.
double mean_of(const BatchView& view) {
  double sum = 0;
  for (std::size_t i = 0; i < view.size(); ++i)
    for (const float value : view.as<float>()[i]) sum += value;
  return sum / double(view.size() * view.spec().height * view.spec().width * view.spec().channels);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw InvalidArgument("usage: recipes imagenet|cifar|dino DATASET [EPOCHS]");
  const auto dataset = Dataset::open(argv[2]);
  LoaderOptions options;
  options.batch_size = 32;
  options.order.shuffle = Shuffle::kFull;
  options.transform = recipe(argv[1], dataset.spec());
  Loader loader(dataset, options);
  for (const auto end = argc > 3 ? std::stoull(argv[3]) : 2; loader.epoch() < end;) {
    const auto epoch = loader.epoch();
    std::size_t images = 0;
    double mean = 0;
    while (const auto batch = loader.next()) {
      for (std::size_t i = 0; i < batch->views(); ++i)
        mean += mean_of(batch->view(i)) / double(batch->views() * loader.batches_per_epoch());
      images += batch->size();
    }
    std::cout << "epoch " << epoch << ": " << images << " images, mean " << mean << ", views of";
    for (std::size_t i = 0; i < loader.views(); ++i)
      std::cout << ' ' << loader.view_spec(i).height << 'x' << loader.view_spec(i).width;
    std::cout << "; sample 0 drew";
    for (const OperationDraw& drawn : loader.draw(0, epoch))
      if (drawn.value.index() != 0) std::cout << ' ' << drawn.name;
    std::cout << '\n';
  }
} catch (const precache::Error& error) {
  std::cerr << "recipes: " << error.what() << '\n' << error.hint() << '\n';
  return 1;
}
