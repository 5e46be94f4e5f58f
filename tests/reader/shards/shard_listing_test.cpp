// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/shard_listing.hpp"

#include "tests/support/catch.hpp"

namespace precache {

TEST_CASE("shards are recognised by their names", "[reader][listing]") {
  for (const char* name :
       {"a.tar", "a.tar.gz", "a.tgz", "train-000000.tfrecord", "a.tfrecords", "a.tfrecord.gz",
        "a.record", "a.h5", "a.hdf5", "train-00000-of-01024", "a.tfrecord-00000-of-00002",
        "a.tfrecord-00000", "imagenet-00001-of-00003.tar"}) {
    CAPTURE(name);
    CHECK(is_shard_name(name));
  }
  for (const char* name : {"a", "tar", ".tar", "a.jpg", "dataset.json", "king-of-7", "a1-of-",
                           "-of-3", "a-of-b", "train-00000-of-01024.idx", "train.vds"}) {
    CAPTURE(name);
    CHECK_FALSE(is_shard_name(name));
  }
}

TEST_CASE("the prefix of a shard's name", "[reader][listing]") {
  CHECK(shard_prefix("out/train-000012.tar") == "train");
  CHECK(shard_prefix("train_7.tfrecord") == "train");
  CHECK(shard_prefix("train-00012-of-01024") == "train");
  CHECK(shard_prefix("imagenet-00012-of-01024.tar") == "imagenet");
  CHECK(shard_prefix("data.tfrecord-00000-of-00002") == "data");
  CHECK(shard_prefix("val-0.tar.gz") == "val");
  CHECK(shard_prefix("val.h5") == "val");
  CHECK(shard_prefix("0001.tar") == "0001");
  CHECK(shard_prefix("a-3.bin") == "a");
}

TEST_CASE("names have splits if they contain a word like train or test", "[reader][listing]") {
  const auto groups = [](const std::vector<std::filesystem::path>& shards) {
    std::vector<std::string> names;
    for (const auto& [name, paths] : groups_by_name(shards)) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(groups({"mnist-train.tfrecord-00000-of-00001", "mnist-test.tfrecord-00000-of-00001"}) ==
        Names{"mnist-test", "mnist-train"});
  CHECK(groups({"cars-train-000000.tar", "cars-train-000001.tar", "cars-val-000000.tar"}) ==
        Names{"cars-train", "cars-val"});
  CHECK(groups({"train_2014-0.tar", "val_2014-0.tar"}) == Names{"train_2014", "val_2014"});
  CHECK(groups({"00000.tar", "00001.tar"}) == Names{""});
  CHECK(groups({"cats-0.tar", "trainer-0.tar", "contest-0.tar"}) == Names{""});
  CHECK(groups({}).empty());
}

}  // namespace precache
