/* Four threads write the first 256 B of each of their pages. */
#include "pmem.h"

#define THREADS 4
#define PAGES 2048
/* Pages after which the threads wait for each other, however few of them the host runs at a time. */
#define TOGETHER 64
/* Of the parts of the threads: in step at this distance, they meet on the same banks. */
#define APART (1024 * 1024 * KIB)
static char *memory;

static void *work(void *number) {
    char *mine = memory + (size_t)number * APART;
    for (size_t page = 0; page < PAGES; page++) {
        if (page % TOGETHER == 0)
            start_together();
        store_past(mine + page * 4 * KIB, XPLINE, page);
    }
    fence();
    return NULL;
}

int main(int count, char **words) {
    memory = map_file(words[count - 1], THREADS * APART);
    run_threads(THREADS, work);
}
