// SPDX-License-Identifier: Apache-2.0
#include "convert/source/retry.hpp"

#include <cerrno>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("errors that may pass are those of the system and not of the request",
          "[convert][retry]") {
  for (const int code : {EIO, ESTALE, EMFILE, ENFILE, ENOMEM, ETIMEDOUT}) CHECK(may_pass(code));
  for (const int code : {0, ENOENT, EACCES, EPERM, ENOTDIR, ELOOP, ENAMETOOLONG, EISDIR, ENOSPC}) {
    CHECK_FALSE(may_pass(code));
  }
}

TEST_CASE("an action is tried again while its error may pass", "[convert][retry]") {
  int calls = 0;
  const int result = with_retries([&] {
    if (++calls == 1) throw IoError("cannot read", "f", EIO);
    return 42;
  });
  CHECK(result == 42);
  CHECK(calls == 2);
}

TEST_CASE("an action is not tried again after another error", "[convert][retry]") {
  int calls = 0;
  const auto fail = [&](const auto& error) {
    calls = 0;
    with_retries([&] {
      ++calls;
      throw error;
    });
  };
  CHECK_THROWS_AS(fail(IoError("cannot read", "f", ENOENT)), IoError);
  CHECK(calls == 1);
  CHECK_THROWS_AS(fail(InvalidArgument("wrong")), InvalidArgument);
  CHECK(calls == 1);
}

TEST_CASE("an error that persists is thrown in the end", "[convert][retry]") {
  int calls = 0;
  CHECK_THROWS_AS(with_retries([&] {
                    ++calls;
                    throw IoError("cannot read", "f", ESTALE);
                  }),
                  IoError);
  CHECK(calls == 4);
  CHECK_FALSE(pause_before_retry(3));
}

}  // namespace
}  // namespace precache
