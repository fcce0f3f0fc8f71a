// The lives of processes and threads: lives FILE WHAT. Each thread stores its own number of 8 B words to the file's mapping.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t *words;
static const char *file_name;

static void store(int from, int count) {
    for (int i = from; i < from + count; i++) words[i] = i;
}

static void *store_one(void *argument) {
    store((int)(intptr_t)argument, 1);
    return NULL;
}

static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    store(100 + signals++, 1);
}

static int wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int is(const char *what, const char *name) {
    return strcmp(what, name) == 0;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    file_name = arguments[1];
    const char *what = arguments[2];
    int file = open(file_name, O_RDWR);
    if (file < 0) return 2;
    words = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (words == MAP_FAILED) return 2;
    if (is(what, "descriptors")) {
        // Ours are 0 to 2 and the file; then none at all.
        printf("%d", file);
        DIR *open_files = opendir("/proc/self/fd");
        for (struct dirent *entry; (entry = readdir(open_files));)
            if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(open_files)) printf(" %s", entry->d_name);
        fflush(stdout);
        closedir(open_files);
        for (int i = 0; i < 1024; i++) close(i);
        close_range(0, ~0u, 0);
        store(0, 10000);
        return 0;
    }
    if (is(what, "fork")) {
        store(0, 3);
        pid_t child = fork();
        if (child == 0) {
            store(10, 5);
            _exit(7);
        }
        int status = wait_for(child);
        store(20, 4);
        return status;
    }
    if (is(what, "exec")) {
        store(0, 2);
        char *next[] = {"another name", arguments[1], "store", "a,b", NULL};
        execv("/proc/self/exe", next);
        return 9;
    }
    if (is(what, "store")) {
        store(50, 6);
        return strcmp(arguments[0], "another name") == 0 && strcmp(arguments[3], "a,b") == 0 ? 5 : 6;
    }
    if (is(what, "script")) {
        store(0, 1);
        execl(arguments[3], arguments[3], arguments[1], NULL);
        return 9;
    }
    if (is(what, "no-exec")) {
        store(0, 1);
        execl("/nowhere/at/all", "x", NULL);
        if (errno != ENOENT) return 9;
        // Memory that is not there.
        char *volatile nowhere = (char *)16;
        char *bad[] = {nowhere, NULL};
        if (execve(nowhere, bad, bad) == 0 || errno != EFAULT) return 7;
        if (execve("/proc/self/exe", bad, bad) == 0 || errno != EFAULT) return 6;
        // Too many bytes of arguments: it looks possible, and fails.
        static char long_argument[100000], *many[101];
        memset(long_argument, 'x', sizeof long_argument - 1);
        for (int i = 0; i < 100; i++) many[i] = long_argument;
        execv("/proc/self/exe", many);
        if (errno != E2BIG) return 8;
        store(1, 1);
        return 4;
    }
    if (is(what, "threads")) {
        for (int i = 0; i < 2000; i += 4) {
            pthread_t threads[4];
            for (int j = 0; j < 4; j++) pthread_create(&threads[j], NULL, store_one, (void *)(intptr_t)(i + j));
            for (int j = 0; j < 4; j++) pthread_join(threads[j], NULL);
        }
        return 0;
    }
    if (is(what, "signals")) {
        signal(SIGUSR1, on_signal);
        for (int i = 0; i < 50; i++) {
            store(i, 1);
            raise(SIGUSR1);
        }
        return signals == 50 ? 0 : 9;
    }
    if (is(what, "crash")) {
        store(0, 12);
        *(volatile int *)8 = 1;
    }
    if (is(what, "abort")) {
        store(0, 12);
        abort();
    }
    if (is(what, "kill")) {
        store(0, 12);
        kill(getpid(), SIGKILL);
    }
    if (is(what, "exit")) {
        // Other threads are in the middle of something when the process ends.
        for (int i = 1; i < 4; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, store_one, (void *)(intptr_t)(1000 * i));
            pthread_detach(thread);
        }
        store(0, 7);
        exit(11);
    }
    if (is(what, "copies")) {
        int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
        char *p = (char *)words + 60, buffer[8];
        struct iovec parts[2] = {{buffer, 8}, {p, 10}};
        if (read(zero, p, 100) != 100 || write(null, p, 10) != 10 || readv(zero, parts, 2) != 18) return 9;
        return pwrite(file, p, 4, 4096) != 4;
    }
    if (is(what, "calls")) {
        char buffer[100] = {0};
        struct iovec parts[2] = {{buffer, 10}, {buffer + 20, 30}};
        pwrite(file, buffer, 100, 4096);
        pread(file, buffer, 50, 8192);
        lseek(file, 1000, SEEK_SET);
        write(file, buffer, 20);
        read(file, buffer, 30);
        writev(file, parts, 2);
        preadv(file, parts, 2, 64);
        store(0, 1);
        msync((void *)words, 8192, MS_SYNC);
        fdatasync(file);
        fsync(file);
        ftruncate(file, 1 << 20);
        if (pwrite(-1, buffer, 1, 0) == 0) return 9;
        int other = open("/dev/null", O_WRONLY);
        write(other, buffer, 100);
        int copy = dup(file);
        pwrite(copy, buffer, 5, 0);
        return 0;
    }
    return 2;
}
