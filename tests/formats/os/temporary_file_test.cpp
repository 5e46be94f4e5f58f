// SPDX-License-Identifier: Apache-2.0
#include "formats/os/temporary_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "formats/os/folder.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

/// The name of an attempt of a process that has ended.
std::string ended_attempt() {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string name = attempt_name();
    const bool written = ::write(pipe[1], name.data(), name.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(pipe[1]);
  std::array<char, 256> text{};
  const ssize_t count = ::read(pipe[0], text.data(), text.size());
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(count > 0);
  return {text.data(), static_cast<std::size_t>(count)};
}

TEST_CASE("each attempt has a different name", "[formats][temporary]") {
  CHECK(attempt_name() != attempt_name());
  CHECK(has_attempt_name("x." + attempt_name()));
  CHECK(has_attempt_name("train-000000.tar." + attempt_name() + ".part"));
  for (const char* name :
       {"", "x", "dataset.json", "dataset.json.tmp", "a.b.c.d.e.f", "x.h.1.2.tmp",
        "x.host.1.-2.0123456789abcdef.tmp", "x.ho st.1.2.0123456789abcdef.tmp",
        "x.host.1.2.0123456789abcde.tmp", "x.host..2.0123456789abcdef.tmp",
        "x.host.1.99999999999999999999.0123456789abcdef"}) {
    CAPTURE(name);
    CHECK_FALSE(has_attempt_name(name));
  }
}

TEST_CASE("only files of ended processes of this machine are abandoned", "[formats][temporary]") {
  CHECK_FALSE(is_abandoned("x." + attempt_name() + ".tmp"));
  const std::string ended = ended_attempt();
  CHECK(is_abandoned("x." + ended + ".tmp"));
  CHECK(is_abandoned("x." + ended));
  CHECK_FALSE(is_abandoned("x.another-" + ended + ".tmp"));  // another host
  CHECK_FALSE(is_abandoned("x.tmp"));
}

TEST_CASE("a temporary file appears when it is committed, or not at all", "[formats][temporary]") {
  const TempFolder folder;
  {
    TemporaryFile given_up(folder / "file");
    CHECK(fs::exists(given_up.path()));
  }
  CHECK(fs::is_empty(folder.path()));
  TemporaryFile one(folder / "file");
  TemporaryFile two(folder / "file");  // another attempt at the same time
  one.file().write_at(0, as_bytes("one"));
  two.file().write_at(0, as_bytes("two"));
  CHECK_FALSE(fs::exists(folder / "file"));
  one.commit();
  CHECK(test::read_text(folder / "file") == "one");
  two.commit();
  CHECK(test::read_text(folder / "file") == "two");  // the last rename wins
}

TEST_CASE("an atomic write replaces the whole file and leaves no temporary",
          "[formats][temporary]") {
  const TempFolder folder;
  const auto path = folder / "f.json";
  write_file_atomically(path, "a longer first text");
  CHECK(test::read_text(path) == "a longer first text");
  struct stat before {};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  const File old(path, O_RDONLY);
  write_file_atomically(path, "second");
  CHECK(test::read_text(path) == "second");
  struct stat after {};
  REQUIRE(::stat(path.c_str(), &after) == 0);
  CHECK(before.st_ino != after.st_ino);  // a reader of the old file still sees all of it
  CHECK(old.size() == 19);
  CHECK_FALSE(old.is_at_path());
  write_file_atomically(path, "");
  CHECK(test::read_text(path).empty());
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a failed atomic write leaves the old file as it was", "[formats][temporary]") {
  const TempFolder folder;
  CHECK_THROWS_AS(write_file_atomically(folder / "no/folder/f", "x"), IoError);
  fs::create_directory(folder / "taken");
  CHECK_THROWS_AS(write_file_atomically(folder / "taken", "x"), IoError);
  CHECK(fs::is_directory(folder / "taken"));
}

TEST_CASE("an atomic write also works with a relative path without a folder",
          "[formats][temporary]") {
  const TempFolder folder;
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("plain", "text");
  fs::current_path(before);
  CHECK(test::read_text(folder / "plain") == "text");
}

TEST_CASE("a temporary file fits even the longest final name", "[formats][temporary]") {
  const TempFolder folder;
  const std::string name(255, 'n');
  write_file_atomically(folder / name, "text");
  CHECK(test::read_text(folder / name) == "text");
}

TEST_CASE("a write replaces a symbolic link, not its target", "[formats][temporary]") {
  const TempFolder folder;
  test::write_text(folder / "precious", "text");
  fs::create_symlink(folder / "precious", folder / "link");
  write_file_atomically(folder / "link", "other");
  CHECK(test::read_text(folder / "precious") == "text");
  CHECK(test::read_text(folder / "link") == "other");
}

TEST_CASE("a folder is not opened through a symbolic link", "[formats][folder]") {
  const TempFolder folder;
  fs::create_directory(folder / "real");
  test::write_text(folder / "real/file", "text");
  fs::create_directory_symlink(folder / "real", folder / "link");
  CHECK_THROWS_AS(Folder(folder / "link"), IoError);
  const Folder parent(folder.path());
  CHECK_THROWS_AS(Folder(parent, "link"), IoError);
  CHECK_THROWS_AS(Folder(parent, "missing"), IoError);
  const Folder real(parent, "real");
  REQUIRE(real.entries().size() == 1);
  CHECK(real.entries().front().name == "file");
  CHECK(real.entries().front().is_file);
  CHECK_FALSE(parent.remove_folder("real"));  // it is not empty
  CHECK(parent.remove_file("link"));          // only the link
  CHECK(fs::exists(folder / "real/file"));
  CHECK(real.remove_file("file"));
  CHECK(parent.remove_folder("real"));
  CHECK(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace precache
