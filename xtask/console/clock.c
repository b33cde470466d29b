// A wall clock that the campaign moves: a library that is preloaded into a process. The first byte of the file CLOCK_FILE says how many
// hours the process is ahead of the machine. Only CLOCK_REALTIME is moved, as by an operator who sets the clock.
//
// Debian's libfaketime also replaces sleeps: its clock_nanosleep fails with EINVAL for absolute times once the offset changes. It reads its
// file again on each reading of the clock, or seconds late. Here the file is mapped: all threads see the change with their next reading.
// A single byte can't be read half written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int clock_reader(clockid_t, struct timespec *);

static const unsigned char unmoved = 0;
static const volatile unsigned char *hours = &unmoved;
static clock_reader *machine;

__attribute__((constructor)) static void map_file(void) {
  const char *path = getenv("CLOCK_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    perror("the file of the moved clock");
    abort();
  }
  close(file);
  hours = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  // Constructors of other libraries may ask before this one is ready.
  if (machine == NULL) machine = (clock_reader *)dlsym(RTLD_NEXT, "clock_gettime");
  int failed = machine(clock, time);
  if (failed == 0 && clock == CLOCK_REALTIME) time->tv_sec += 3600 * *hours;
  return failed;
}
