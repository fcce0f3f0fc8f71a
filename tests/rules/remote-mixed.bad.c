/* Four threads read and write records by turns. Run it on memory of the other socket. */
#include "pmem.h"

#define THREADS 4
#define SHARE (1 * MIB)
static char *memory;

static void *work(void *number) {
    start_together();
    char *mine = memory + 2 * (size_t)number * SHARE;
    uint64_t sum = 0;
    for (size_t at = 0; at < SHARE; at += XPLINE) {
        for (size_t line = 0; line < XPLINE; line += LINE)
            sum += *(volatile uint64_t *)(mine + at + line);
        store_past(mine + SHARE + at, XPLINE, sum);
    }
    fence();
    return NULL;
}

int main(int count, char **words) {
    memory = map_file(words[count - 1], 2 * THREADS * SHARE);
    run_threads(THREADS, work);
}
