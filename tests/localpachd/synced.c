/* Records what a program makes durable, so that a test can drop all the rest: see unsynced.py.

   Preloaded, it copies a file's content, or the names in a directory, into SYNCED_TO before each fsync and fdatasync of
   something below SYNCED_FROM. Files are known by inode and time of birth: an inode is used again. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
    perror(what);
    abort();
}

static void key(int at, const char *path, int flags, char *found, unsigned *mode) {
    struct statx state;
    if (statx(at, path, flags | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_TYPE | STATX_BTIME, &state)) {
        *found = 0; /* deleted meanwhile */
        return;
    }
    *mode = state.stx_mode;
    sprintf(found, "%llu-%lld.%09u", (unsigned long long)state.stx_ino, (long long)state.stx_btime.tv_sec,
            state.stx_btime.tv_nsec);
}

static void copy_names(int handle, FILE *out) {
    int again = openat(handle, ".", O_RDONLY | O_DIRECTORY);
    DIR *names = again < 0 ? NULL : fdopendir(again);
    if (!names) fail("synced: cannot list a directory");
    for (struct dirent *entry; (entry = readdir(names));) {
        char found[80];
        unsigned mode = 0;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        key(handle, entry->d_name, 0, found, &mode);
        if (*found) fprintf(out, "%c %s %s\n", S_ISDIR(mode) ? 'd' : 'f', found, entry->d_name);
    }
    closedir(names);
}

static void copy_bytes(int handle, const char *itself, FILE *out) {
    static char block[1 << 16];
    /* Closing a second handle would release SQLite's locks: only one that cannot be read is opened again. */
    int own = (fcntl(handle, F_GETFL) & O_ACCMODE) == O_WRONLY ? open(itself, O_RDONLY) : handle;
    ssize_t got;
    for (off_t at = 0; (got = pread(own, block, sizeof block, at)) > 0; at += got) fwrite(block, 1, got, out);
    if (got < 0) fail("synced: cannot read a file");
    if (own != handle) close(own);
}

static void record(int handle) {
    const char *from = getenv("SYNCED_FROM"), *to = getenv("SYNCED_TO");
    char itself[64], path[PATH_MAX], found[80], draft[PATH_MAX], target[PATH_MAX];
    unsigned mode = 0;
    if (!from || !to) return;
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(itself, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    if (strncmp(path, from, strlen(from))) return;
    key(handle, "", AT_EMPTY_PATH, found, &mode);
    snprintf(draft, sizeof draft, "%s/.draft-%d", to, getpid());
    snprintf(target, sizeof target, "%s/%s", to, found);
    FILE *out = fopen(draft, "w");
    if (!out) fail("synced: cannot write a record");
    if (S_ISDIR(mode))
        copy_names(handle, out);
    else
        copy_bytes(handle, itself, out);
    if (fclose(out) || rename(draft, target)) fail("synced: cannot keep a record");
}

static int recorded(const char *name, int handle) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    pthread_mutex_lock(&turn);
    record(handle);
    pthread_mutex_unlock(&turn);
    return real(handle);
}

int fsync(int handle) { return recorded("fsync", handle); }

int fdatasync(int handle) { return recorded("fdatasync", handle); }
