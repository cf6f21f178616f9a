/* glibc_compat.h: bind to the oldest symbol versions of glibc, so that a library built on a new system
 * runs on an old one. meson.build forces it into every file that is shipped; no file includes it.
 *
 * A symbol that glibc moved or changed carries a newer version than most callers need: dlopen and the
 * pthread calls went from libdl and libpthread into libc in 2.34. Names that a file does not use cost
 * nothing. tests/wheel reports which one is missing here when the limit is passed. */
#ifndef GPUGLUE_GLIBC_COMPAT_H
#define GPUGLUE_GLIBC_COMPAT_H

#include <sys/stat.h>

#if defined(__x86_64__)
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version);
#define OLD_AS(name, old, version) __asm__(".symver " #name "," #old "@GLIBC_" version);
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17");
#define OLD_AS(name, old, version) __asm__(".symver " #name "," #old "@GLIBC_2.17");
#define STAT_VERSION 0
#endif

#ifdef OLD
OLD(dladdr, "2.2.5")
OLD(dladdr1, "2.3.3")
OLD(dlclose, "2.2.5")
OLD(dlerror, "2.2.5")
OLD(dlinfo, "2.3.3")
OLD(dlopen, "2.2.5")
OLD(dlsym, "2.2.5")

OLD(pthread_attr_setaffinity_np, "2.3.4")
OLD(pthread_attr_setstacksize, "2.2.5")
OLD(pthread_condattr_setclock, "2.3.3")
OLD(pthread_create, "2.2.5")
OLD(pthread_getname_np, "2.12")
OLD(pthread_join, "2.2.5")
OLD(pthread_key_create, "2.2.5")
OLD(pthread_mutex_trylock, "2.2.5")
OLD(pthread_once, "2.2.5")
OLD(pthread_setaffinity_np, "2.3.4")
OLD(pthread_setname_np, "2.12")
OLD(pthread_setspecific, "2.2.5")
OLD(pthread_sigmask, "2.2.5")

OLD(glob, "2.2.5")
OLD(glob64, "2.2.5")
/* What headers put in the place of fcntl (2.28), and of strto* and *scanf (2.38, with _GNU_SOURCE). */
OLD_AS(fcntl64, fcntl, "2.2.5")
OLD_AS(__isoc23_fscanf, __isoc99_fscanf, "2.7")
OLD_AS(__isoc23_sscanf, __isoc99_sscanf, "2.7")
OLD_AS(__isoc23_strtol, strtol, "2.2.5")
OLD_AS(__isoc23_strtoll, strtoll, "2.2.5")
OLD_AS(__isoc23_strtoul, strtoul, "2.2.5")
OLD_AS(__isoc23_strtoull, strtoull, "2.2.5")

/* stat became a function in 2.33; before it was this inline call. */
extern int __xstat(int version, const char *path, struct stat *out);
extern int __lxstat(int version, const char *path, struct stat *out);
extern int __fxstat(int version, int fd, struct stat *out);
#define stat(path, out) __xstat(STAT_VERSION, path, out)
#define lstat(path, out) __lxstat(STAT_VERSION, path, out)
#define fstat(fd, out) __fxstat(STAT_VERSION, fd, out)

#undef OLD
#undef OLD_AS
#endif

#endif
