// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that disturbs calls to the C library:
//   cc -shared -fPIC -o fail_io.so fail_io.c -ldl
//
// Which calls:
//   FAIL_IO_CALLS  their names, between commas (openat is an open; unlinkat and remove are
//   unlinks),
//                  or `changing`: all calls that change files or sync them
//   FAIL_IO_PATH   part of the path that the call is about; without it every path
//   FAIL_IO_AFTER  so many of these calls pass first (0)
//   FAIL_IO_TIMES  so many are then disturbed (all)
// The effect on these calls, one of:
//   FAIL_IO_ERRNO  the call fails with this error
//   FAIL_IO_KILL   SIGKILL ends the process: `before` the call, `after` it, or `half`: after the
//   call
//                  with half of its bytes, if it is one that writes
//   FAIL_IO_GATE   a folder: the call makes the file `reached` there and waits for a file `open`
//
// FAIL_IO_LOG names a file that gets a line for each of these calls, disturbed or not: `rename
// PATH`.
//
// With -DFAIL_IO_MALLOC, which is not for programs that bring their own malloc (sanitizers do):
//   FAIL_IO_MALLOC_ABOVE  malloc of more bytes than this fails
//   FAIL_IO_MALLOC_AFTER  so many calls of malloc pass first; all later ones fail

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static atomic_long calls_seen;

// The effect on a call.
enum Fate { PASSES, FAILS, IS_LAST, IS_HALVED };

static long number(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text == NULL ? otherwise : strtol(text, NULL, 10);
}

static int is_in_list(const char *call) {
  const char *list = getenv("FAIL_IO_CALLS");
  const size_t length = strlen(call);
  while (list != NULL && *list != '\0') {
    if (strncmp(list, call, length) == 0 && (list[length] == ',' || list[length] == '\0')) return 1;
    list = strchr(list, ',');
    if (list != NULL) ++list;
  }
  return 0;
}

static int is_listed(const char *call) {
  static const char *const passive[] = {"open", "opendir", "read", "pread", "flock"};
  if (is_in_list(call)) return 1;
  for (size_t i = 0; i < sizeof passive / sizeof *passive; ++i) {
    if (strcmp(call, passive[i]) == 0) return 0;
  }
  return is_in_list("changing");
}

static void wait_at_gate(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/reached", folder);
  close(REAL(open)(path, O_WRONLY | O_CREAT, 0666));
  snprintf(path, sizeof path, "%s/open", folder);
  const struct timespec pause = {0, 1000 * 1000};
  while (access(path, F_OK) != 0) nanosleep(&pause, NULL);
}

static void write_log(const char *call, const char *path) {
  const char *name = getenv("FAIL_IO_LOG");
  if (name == NULL) return;
  char line[2 * PATH_MAX];
  const int size = snprintf(line, sizeof line, "%s %s\n", call, path);
  const int log = REAL(open)(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (REAL(write)(log, line, (size_t)size) != size) abort();
  close(log);
}

static enum Fate kill_now(const char *when) {
  if (strcmp(when, "after") == 0) return IS_LAST;
  if (strcmp(when, "half") == 0) return IS_HALVED;
  raise(SIGKILL);
  return IS_LAST;
}

/// errno is set if the call is to fail.
static enum Fate fate_of(const char *call, const char *path) {
  if (!is_listed(call)) return PASSES;
  const char *part = getenv("FAIL_IO_PATH");
  if (part != NULL && strstr(path, part) == NULL) return PASSES;
  const long index = atomic_fetch_add(&calls_seen, 1) - number("FAIL_IO_AFTER", 0);
  write_log(call, path);
  if (index < 0 || index >= number("FAIL_IO_TIMES", LONG_MAX)) return PASSES;
  const char *when = getenv("FAIL_IO_KILL");
  if (when != NULL) return kill_now(when);
  const char *gate = getenv("FAIL_IO_GATE");
  if (gate != NULL) wait_at_gate(gate);
  const long code = number("FAIL_IO_ERRNO", 0);
  if (code == 0) return PASSES;
  errno = (int)code;
  return FAILS;
}

static void path_of(int descriptor, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = '\0';
}

static enum Fate fate_of_file(const char *call, int descriptor) {
  char path[PATH_MAX];
  path_of(descriptor, path);
  return fate_of(call, path);
}

static enum Fate fate_at(const char *call, int folder, const char *name) {
  char path[2 * PATH_MAX];
  if (folder == AT_FDCWD || name[0] == '/') return fate_of(call, name);
  path_of(folder, path);
  strcat(path, "/");
  strncat(path, name, PATH_MAX - 2);
  return fate_of(call, path);
}

/// An open that may create or truncate a file is a change too.
static const char *name_of_open(int flags) {
  const int changes = (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return changes && !is_in_list("open") ? "create" : "open";
}

/// Makes the call, or not, and returns from the function.
#define MAKE(type, failure, fate_expression, real_call) \
  const enum Fate fate = (fate_expression);             \
  if (fate == FAILS) return failure;                    \
  type const result = (real_call);                      \
  if (fate != PASSES) raise(SIGKILL);                   \
  return result

#define PART_OF(size) (fate == IS_HALVED ? (size) / 2 : (size))

#ifdef FAIL_IO_MALLOC
extern void *__libc_malloc(size_t size);

static size_t largest_malloc = SIZE_MAX;
static atomic_long mallocs_left = LONG_MAX;

__attribute__((constructor)) static void read_settings(void) {
  const char *above = getenv("FAIL_IO_MALLOC_ABOVE");
  if (above != NULL) largest_malloc = strtoull(above, NULL, 10);
  mallocs_left = number("FAIL_IO_MALLOC_AFTER", LONG_MAX);
}

void *malloc(size_t size) {
  if (size <= largest_malloc && atomic_fetch_sub(&mallocs_left, 1) > 0) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
#endif

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  MAKE(int, -1, fate_of(name_of_open(flags), path), REAL(open)(path, flags, mode));
}

int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  MAKE(int, -1, fate_at(name_of_open(flags), folder, path),
       REAL(openat)(folder, path, flags, mode));
}

int mkstemp(char *path) { MAKE(int, -1, fate_of("mkstemp", path), REAL(mkstemp)(path)); }

char *mkdtemp(char *path) { MAKE(char *, NULL, fate_of("mkdir", path), REAL(mkdtemp)(path)); }

DIR *opendir(const char *path) { MAKE(DIR *, NULL, fate_of("opendir", path), REAL(opendir)(path)); }

ssize_t read(int descriptor, void *bytes, size_t size) {
  MAKE(ssize_t, -1, fate_of_file("read", descriptor), REAL(read)(descriptor, bytes, size));
}

ssize_t pread(int descriptor, void *bytes, size_t size, off_t offset) {
  MAKE(ssize_t, -1, fate_of_file("pread", descriptor),
       REAL(pread)(descriptor, bytes, size, offset));
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
  MAKE(ssize_t, -1, fate_of_file("write", descriptor),
       REAL(write)(descriptor, bytes, PART_OF(size)));
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset) {
  MAKE(ssize_t, -1, fate_of_file("pwrite", descriptor),
       REAL(pwrite)(descriptor, bytes, PART_OF(size), offset));
}

int fsync(int descriptor) {
  MAKE(int, -1, fate_of_file("fsync", descriptor), REAL(fsync)(descriptor));
}

int flock(int descriptor, int operation) {
  MAKE(int, -1, fate_of_file("flock", descriptor), REAL(flock)(descriptor, operation));
}

int ftruncate(int descriptor, off_t size) {
  MAKE(int, -1, fate_of_file("ftruncate", descriptor), REAL(ftruncate)(descriptor, size));
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  MAKE(int, -1, fate_of_file("fallocate", descriptor),
       REAL(fallocate)(descriptor, mode, offset, size));
}

int rename(const char *from, const char *to) {
  MAKE(int, -1, fate_of("rename", to), REAL(rename)(from, to));
}

int renameat(int from_folder, const char *from, int folder, const char *to) {
  MAKE(int, -1, fate_at("rename", folder, to), REAL(renameat)(from_folder, from, folder, to));
}

int renameat2(int from_folder, const char *from, int folder, const char *to, unsigned flags) {
  MAKE(int, -1, fate_at("rename", folder, to),
       REAL(renameat2)(from_folder, from, folder, to, flags));
}

int link(const char *from, const char *to) {
  MAKE(int, -1, fate_of("link", to), REAL(link)(from, to));
}

int linkat(int from_folder, const char *from, int folder, const char *to, int flags) {
  MAKE(int, -1, fate_at("link", folder, to), REAL(linkat)(from_folder, from, folder, to, flags));
}

int symlink(const char *target, const char *path) {
  MAKE(int, -1, fate_of("symlink", path), REAL(symlink)(target, path));
}

int mkdir(const char *path, mode_t mode) {
  MAKE(int, -1, fate_of("mkdir", path), REAL(mkdir)(path, mode));
}

int mkdirat(int folder, const char *path, mode_t mode) {
  MAKE(int, -1, fate_at("mkdir", folder, path), REAL(mkdirat)(folder, path, mode));
}

int rmdir(const char *path) { MAKE(int, -1, fate_of("rmdir", path), REAL(rmdir)(path)); }

int unlink(const char *path) { MAKE(int, -1, fate_of("unlink", path), REAL(unlink)(path)); }

int unlinkat(int folder, const char *path, int flags) {
  MAKE(int, -1, fate_at("unlink", folder, path), REAL(unlinkat)(folder, path, flags));
}

int remove(const char *path) { MAKE(int, -1, fate_of("unlink", path), REAL(remove)(path)); }
