/* Numbered fault points: every call of a process below FAULT_ROOT that writes, renames, unlinks, makes or locks a file there, or
   starts a program, is counted over all processes in one shared page; at the chosen number the process group is killed before or
   after the call, or the call fails. Loaded with LD_PRELOAD into ddpfix and into the git that it starts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, KILL_AFTER, NO_SPACE, NO_ACCESS, FULL_FROM_HERE };
struct shared { atomic_int armed, count, at, how, hit, used; char log[1 << 20]; };
static struct shared *page;
static const char *root;
static size_t root_length;

__attribute__((constructor)) static void load(void) {
    const char *file = getenv("FAULT_FILE");
    root = getenv("FAULT_ROOT");
    if (!file || !root) return;
    root_length = strlen(root);
    int fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (at != MAP_FAILED) page = at;
}

static void absolute(int dir, const char *path, char *out, size_t size) {
    char link[64], base[4096];
    ssize_t n;
    if (path && path[0] == '/') { snprintf(out, size, "%s", path); return; }
    if (dir == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    n = readlink(link, base, sizeof base - 1);
    if (n < 0) { out[0] = 0; return; }
    base[n] = 0;
    snprintf(out, size, "%s%s%s", base, path ? "/" : "", path ? path : "");
}

/* 0: go on. Else: the errno to fail with. *after: kill when the call is done. */
static int point(const char *what, int dir, const char *path, int *after) {
    *after = 0;
    if (!page || !atomic_load(&page->armed)) return 0;
    char full[8192];
    absolute(dir, path, full, sizeof full);
    if (strcmp(what, "exec") && strncmp(full, root, root_length)) return 0;
    int number = atomic_fetch_add(&page->count, 1) + 1, how = atomic_load(&page->how), at = atomic_load(&page->at);
    if (how == COUNT) {
        char line[8400];
        int n = snprintf(line, sizeof line, "%s %s\n", what, full);
        int place = atomic_fetch_add(&page->used, n);
        if (place + n < (int)sizeof page->log) memcpy(page->log + place, line, n);
        return 0;
    }
    if (number != at && !(how == FULL_FROM_HERE && number > at)) return 0;
    if (number == at) atomic_store(&page->hit, 1);
    if (how == KILL_BEFORE) { kill(0, SIGKILL); pause(); }
    if (how == KILL_AFTER) { *after = 1; return 0; }
    if (how == NO_ACCESS) return EACCES;
    if (how == FULL_FROM_HERE && (!strcmp(what, "unlink") || !strcmp(what, "exec") || !strcmp(what, "rename"))) return 0;
    return ENOSPC;
}

static void end(int after) { if (after) { kill(0, SIGKILL); pause(); } }

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define GUARD(what, dir, path, fail, call) \
    int after, error = point(what, dir, path, &after); \
    if (error) { errno = error; return fail; } \
    __typeof__(call) result = call; int kept = errno; end(after); errno = kept; return result

#define WRITES(flags) (((flags) & O_ACCMODE) != O_RDONLY || ((flags) & (O_CREAT | O_TRUNC)))
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list l; va_start(l, flags); mode = va_arg(l, mode_t); va_end(l); }

int open(const char *path, int flags, ...) { MODE REAL(open); if (!WRITES(flags)) return real(path, flags, mode);
    GUARD("open", AT_FDCWD, path, -1, real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { MODE REAL(open64); if (!WRITES(flags)) return real(path, flags, mode);
    GUARD("open", AT_FDCWD, path, -1, real(path, flags, mode)); }
int openat(int dir, const char *path, int flags, ...) { MODE REAL(openat); if (!WRITES(flags)) return real(dir, path, flags, mode);
    GUARD("open", dir, path, -1, real(dir, path, flags, mode)); }
int openat64(int dir, const char *path, int flags, ...) { MODE REAL(openat64); if (!WRITES(flags)) return real(dir, path, flags, mode);
    GUARD("open", dir, path, -1, real(dir, path, flags, mode)); }
int mkstemp64(char *path) { REAL(mkstemp64); GUARD("open", AT_FDCWD, path, -1, real(path)); }
FILE *fopen(const char *path, const char *mode) { REAL(fopen); if (mode[0] == 'r' && !strchr(mode, '+')) return real(path, mode);
    GUARD("open", AT_FDCWD, path, NULL, real(path, mode)); }
FILE *fopen64(const char *path, const char *mode) { REAL(fopen64); if (mode[0] == 'r' && !strchr(mode, '+')) return real(path, mode);
    GUARD("open", AT_FDCWD, path, NULL, real(path, mode)); }
ssize_t write(int fd, const void *data, size_t size) { REAL(write); if (fd < 3) return real(fd, data, size);
    GUARD("write", fd, NULL, -1, real(fd, data, size)); }
int rename(const char *from, const char *to) { REAL(rename); GUARD("rename", AT_FDCWD, to, -1, real(from, to)); }
int renameat(int fd, const char *from, int td, const char *to) { REAL(renameat); GUARD("rename", td, to, -1, real(fd, from, td, to)); }
int link(const char *from, const char *to) { REAL(link); GUARD("link", AT_FDCWD, to, -1, real(from, to)); }
int symlink(const char *from, const char *to) { REAL(symlink); GUARD("link", AT_FDCWD, to, -1, real(from, to)); }
int unlink(const char *path) { REAL(unlink); GUARD("unlink", AT_FDCWD, path, -1, real(path)); }
int unlinkat(int dir, const char *path, int flags) { REAL(unlinkat); GUARD("unlink", dir, path, -1, real(dir, path, flags)); }
int rmdir(const char *path) { REAL(rmdir); GUARD("unlink", AT_FDCWD, path, -1, real(path)); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); GUARD("mkdir", AT_FDCWD, path, -1, real(path, mode)); }
int chmod(const char *path, mode_t mode) { REAL(chmod); GUARD("chmod", AT_FDCWD, path, -1, real(path, mode)); }
int fchmodat(int dir, const char *path, mode_t mode, int flags) { REAL(fchmodat); GUARD("chmod", dir, path, -1, real(dir, path, mode, flags)); }
int fsync(int fd) { REAL(fsync); GUARD("sync", fd, NULL, -1, real(fd)); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); GUARD("write", fd, NULL, -1, real(fd, size)); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); GUARD("write", fd, NULL, -1, real(fd, size)); }
/* the search along PATH tries names that are not there: no points */
int execve(const char *path, char *const argv[], char *const env[]) { REAL(execve); if (access(path, X_OK)) return real(path, argv, env);
    GUARD("exec", AT_FDCWD, path, -1, real(path, argv, env)); }
int execv(const char *path, char *const argv[]) { REAL(execv); if (access(path, X_OK)) return real(path, argv);
    GUARD("exec", AT_FDCWD, path, -1, real(path, argv)); }
