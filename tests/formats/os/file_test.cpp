// SPDX-License-Identifier: Apache-2.0
#include "formats/os/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::bytes_of;
using test::TempFolder;

TEST_CASE("a file reads back what was written at any offset", "[formats][file][roundtrip]") {
  const TempFolder folder;
  File file(folder / "f", O_RDWR | O_CREAT);
  file.write_at(10, bytes_of("world"));
  file.write_at(4, bytes_of("hello "));
  CHECK(file.size() == 15);
  Bytes bytes(11);
  file.read_at(4, bytes);
  CHECK(test::text_of(bytes) == "hello world");
  Bytes hole(4);
  file.read_at(0, hole);
  CHECK(test::all_zero(hole));
  file.read_at(15, {});  // reading nothing succeeds
}

TEST_CASE("reading past the end of a file is corrupt data that names the offset",
          "[formats][file]") {
  const TempFolder folder;
  File file(folder / "f", O_RDWR | O_CREAT);
  file.write_at(0, bytes_of("0123456789"));
  Bytes bytes(4);
  CHECK_NOTHROW(file.read_at(6, bytes));
  try {
    file.read_at(7, bytes);
    FAIL("no error");
  } catch (const CorruptData& error) {
    CHECK(error.path() == folder / "f");
    CHECK(error.offset() == 10);
  }
  CHECK_THROWS_AS(file.read_at(1000, bytes), CorruptData);
}

TEST_CASE("a failed system call becomes an IoError with path and errno", "[formats][file]") {
  const TempFolder folder;
  try {
    const File file(folder / "missing", O_RDONLY);
    FAIL("no error");
  } catch (const IoError& error) {
    CHECK(error.code() == ENOENT);
    CHECK(error.path() == folder / "missing");
    CHECK_THAT(error.what(), test::contains("cannot open"));
    CHECK_THAT(error.what(), test::contains("missing': No such file or directory"));
  }
  CHECK_THAT(
      test::message_of<IoError>([&] { File(folder / "no/such/folder", O_WRONLY | O_CREAT); }),
      test::contains("cannot create"));
  test::write_text(folder / "f", "text");
  File read_only(folder / "f", O_RDONLY);
  CHECK_THROWS_AS(read_only.write_at(0, bytes_of("x")), IoError);
  CHECK_THROWS_AS(read_only.truncate(0), IoError);
  CHECK_THROWS_AS(read_file(folder.path()), IoError);
  CHECK_THROWS_AS(read_file(folder / "missing"), IoError);
}

TEST_CASE("a file closes when it is destroyed and moves without a leak", "[formats][file]") {
  const TempFolder folder;
  int descriptor = -1;
  {
    File file(folder / "f", O_RDWR | O_CREAT);
    descriptor = file.descriptor();
    CHECK((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    File moved(std::move(file));
    CHECK(moved.descriptor() == descriptor);
    CHECK(moved.path() == folder / "f");
    File assigned;
    CHECK_FALSE(assigned.is_open());
    assigned = std::move(moved);
    CHECK(assigned.is_open());
    CHECK(::fcntl(descriptor, F_GETFD) != -1);
  }
  CHECK(::fcntl(descriptor, F_GETFD) == -1);
}

TEST_CASE("preallocation and truncation set the length and keep the bytes", "[formats][file]") {
  const TempFolder folder;
  File file(folder / "f", O_RDWR | O_CREAT);
  file.preallocate(0);
  CHECK(file.size() == 0);
  file.write_at(0, bytes_of("abc"));
  file.preallocate(100'000);
  CHECK(file.size() == 100'000);
  file.truncate(3);
  CHECK(test::text_of(read_file(folder / "f")) == "abc");
  CHECK_NOTHROW(file.sync());
  // More than any file system has: the error of the system is passed on.
  CHECK_THROWS_AS(file.preallocate(std::uint64_t{1} << 62), IoError);
}

TEST_CASE("locks exclude each other as shared and exclusive ones do", "[formats][file]") {
  const TempFolder folder;
  const auto path = folder / "lock";
  File first(path, O_RDWR | O_CREAT);
  {
    File second(path, O_RDWR);
    File third(path, O_RDWR);
    CHECK(first.try_lock(false));
    CHECK(second.try_lock(false));
    CHECK_FALSE(third.try_lock(true));
  }
  CHECK(first.try_lock(true));  // the others are closed, so it may become exclusive
  File other(path, O_RDWR);
  CHECK_FALSE(other.try_lock(false));
  CHECK_FALSE(other.try_lock(true));
  first = File();
  CHECK(other.try_lock(true));
  other = File();
  File last(path, O_RDWR);
  last.lock();
  CHECK_FALSE(File(path, O_RDWR).try_lock(true));
}

TEST_CASE("a file knows whether it is still at its path", "[formats][file]") {
  const TempFolder folder;
  const File file(folder / "a", O_RDWR | O_CREAT);
  CHECK(file.is_at_path());
  fs::rename(folder / "a", folder / "b");
  CHECK_FALSE(file.is_at_path());
  test::write_text(folder / "a", "another file");
  CHECK_FALSE(file.is_at_path());
}

TEST_CASE("rename_durably replaces the target or throws", "[formats][file]") {
  const TempFolder folder;
  test::write_text(folder / "from", "new");
  test::write_text(folder / "to", "old");
  rename_durably(folder / "from", folder / "to");
  CHECK(test::read_text(folder / "to") == "new");
  CHECK_FALSE(fs::exists(folder / "from"));
  CHECK_THROWS_AS(rename_durably(folder / "from", folder / "to"), IoError);
}

}  // namespace
}  // namespace precache
