/* The same pages, one after another. */
#include "pmem.h"

#define THREADS 4
#define PAGES 512
static char *memory;

static void *work(void *number) {
    start_together();
    for (size_t page = (size_t)number; page < PAGES; page += THREADS) {
        store_past(memory + page * 4 * KIB, 4 * KIB, page);
        fence();
    }
    return NULL;
}

int main(int count, char **words) {
    memory = map_file(words[count - 1], PAGES * 4 * KIB);
    run_threads(THREADS, work);
}
