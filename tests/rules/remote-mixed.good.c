/* Four threads only read. Run it on memory of the other socket. */
#include "pmem.h"

#define THREADS 4
#define SHARE (1 * MIB)
static char *memory;

static void *work(void *number) {
    start_together();
    char *mine = memory + (size_t)number * SHARE;
    volatile uint64_t sum = 0;
    for (size_t at = 0; at < SHARE; at += LINE)
        sum += *(volatile uint64_t *)(mine + at);
    return NULL;
}

int main(int count, char **words) {
    memory = map_file(words[count - 1], THREADS * SHARE);
    run_threads(THREADS, work);
}
