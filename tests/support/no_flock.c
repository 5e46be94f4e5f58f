// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that simulates a file system whose locks other machines do not see (s3fs, sshfs, Lustre
// mounted with localflock): every process gets every lock.
//   cc -shared -fPIC -o no_flock.so no_flock.c

#include <sys/file.h>

int flock(int descriptor, int operation) {
  (void)descriptor;
  (void)operation;
  return 0;
}
