/* Stores on known stacks: calls, a jump out of functions, a signal, a thread, a fork. FILE. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *memory;
static jmp_buf back;
#define AFTER __asm__ volatile("")

static void leaf(int line) {
    ((volatile long *)memory)[line * 8] = line;
    __asm__ volatile("clwb %0\n\tsfence" : "+m"(memory[line * 64]));
}
static void left(int line) { leaf(line); AFTER; }
static void right(int line) { leaf(line); left(line + 1); AFTER; }
static void deep(int depth) { if (depth == 0) longjmp(back, 1); deep(depth - 1); AFTER; }
static void on_signal(int number) { leaf(number); AFTER; }
static void *work(void *unused) { right(200); AFTER; return unused; }

int main(int count, char **words) {
    int file = open(words[1], O_RDWR | O_CREAT, 0600);
    if (count < 2 || file < 0 || ftruncate(file, 1 << 20) != 0) return 9;
    memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int line = 0; line < 100; line++) left(line);
    right(100);
    if (setjmp(back) == 0) deep(50);
    left(110);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    if (fork() == 0) { left(300); _exit(0); }
    wait(NULL);
}
