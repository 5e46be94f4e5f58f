// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that disturbs calls to the C library:
//   cc -shared -fPIC -o fail_io.so fail_io.c -ldl
//
// Which calls:
//   FAIL_IO_CALLS  their names, between commas (openat is an open; unlinkat and remove are unlinks)
//   FAIL_IO_PATH   part of the path that the call is about; without it every path
//   FAIL_IO_AFTER  so many of these calls pass first (0)
//   FAIL_IO_TIMES  so many are then disturbed (all)
// What happens to them, one of:
//   FAIL_IO_ERRNO  the call fails with this error
//   FAIL_IO_KILL   SIGKILL ends the process before the call
//   FAIL_IO_GATE   a folder: the call makes the file `reached` there and waits for a file `open`
//
// With -DFAIL_IO_MALLOC, which is not for programs that bring their own malloc (sanitizers do):
//   FAIL_IO_MALLOC_ABOVE  malloc of more bytes than this fails

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
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static atomic_long calls_seen;

static long number(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text == NULL ? otherwise : strtol(text, NULL, 10);
}

static int is_listed(const char *call) {
  const char *list = getenv("FAIL_IO_CALLS");
  const size_t length = strlen(call);
  while (list != NULL && *list != '\0') {
    if (strncmp(list, call, length) == 0 && (list[length] == ',' || list[length] == '\0')) return 1;
    list = strchr(list, ',');
    if (list != NULL) ++list;
  }
  return 0;
}

static void wait_at_gate(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/reached", folder);
  close(REAL(open)(path, O_WRONLY | O_CREAT, 0666));
  snprintf(path, sizeof path, "%s/open", folder);
  const struct timespec pause = {0, 1000 * 1000};
  while (access(path, F_OK) != 0) nanosleep(&pause, NULL);
}

/// Nonzero if the call is to fail; errno is set then.
static int disturbed(const char *call, const char *path) {
  if (!is_listed(call)) return 0;
  const char *part = getenv("FAIL_IO_PATH");
  if (part != NULL && strstr(path, part) == NULL) return 0;
  const long index = atomic_fetch_add(&calls_seen, 1) - number("FAIL_IO_AFTER", 0);
  if (index < 0 || index >= number("FAIL_IO_TIMES", LONG_MAX)) return 0;
  if (getenv("FAIL_IO_KILL") != NULL) raise(SIGKILL);
  const char *gate = getenv("FAIL_IO_GATE");
  if (gate != NULL) wait_at_gate(gate);
  const long code = number("FAIL_IO_ERRNO", 0);
  if (code != 0) errno = (int)code;
  return code != 0;
}

static void path_of(int descriptor, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = '\0';
}

static int disturbed_file(const char *call, int descriptor) {
  char path[PATH_MAX];
  path_of(descriptor, path);
  return disturbed(call, path);
}

static int disturbed_at(const char *call, int folder, const char *name) {
  char path[2 * PATH_MAX];
  if (folder == AT_FDCWD || name[0] == '/') return disturbed(call, name);
  path_of(folder, path);
  strcat(path, "/");
  strncat(path, name, PATH_MAX - 2);
  return disturbed(call, path);
}

#ifdef FAIL_IO_MALLOC
extern void *__libc_malloc(size_t size);

static size_t largest_malloc = SIZE_MAX;

__attribute__((constructor)) static void read_settings(void) {
  const char *above = getenv("FAIL_IO_MALLOC_ABOVE");
  if (above != NULL) largest_malloc = strtoull(above, NULL, 10);
}

void *malloc(size_t size) {
  if (size <= largest_malloc) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
#endif

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return disturbed("open", path) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return disturbed_at("open", folder, path) ? -1 : REAL(openat)(folder, path, flags, mode);
}

int mkstemp(char *path) { return disturbed("mkstemp", path) ? -1 : REAL(mkstemp)(path); }

DIR *opendir(const char *path) { return disturbed("opendir", path) ? NULL : REAL(opendir)(path); }

ssize_t read(int descriptor, void *bytes, size_t size) {
  return disturbed_file("read", descriptor) ? -1 : REAL(read)(descriptor, bytes, size);
}

ssize_t pread(int descriptor, void *bytes, size_t size, off_t offset) {
  return disturbed_file("pread", descriptor) ? -1 : REAL(pread)(descriptor, bytes, size, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset) {
  return disturbed_file("pwrite", descriptor) ? -1 : REAL(pwrite)(descriptor, bytes, size, offset);
}

int fsync(int descriptor) {
  return disturbed_file("fsync", descriptor) ? -1 : REAL(fsync)(descriptor);
}

int ftruncate(int descriptor, off_t size) {
  return disturbed_file("ftruncate", descriptor) ? -1 : REAL(ftruncate)(descriptor, size);
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  return disturbed_file("fallocate", descriptor) ? -1
                                                 : REAL(fallocate)(descriptor, mode, offset, size);
}

int rename(const char *from, const char *to) {
  return disturbed("rename", to) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
  return disturbed("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

int unlink(const char *path) { return disturbed("unlink", path) ? -1 : REAL(unlink)(path); }

int unlinkat(int folder, const char *path, int flags) {
  return disturbed_at("unlink", folder, path) ? -1 : REAL(unlinkat)(folder, path, flags);
}

int remove(const char *path) { return disturbed("unlink", path) ? -1 : REAL(remove)(path); }
