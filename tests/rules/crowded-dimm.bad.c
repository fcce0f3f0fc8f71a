/* Twelve threads write at once. Run it on one DIMM. */
#include "pmem.h"

#define SHARE (1 * MIB)
static char *memory;

static void *work(void *number) {
    start_together();
    char *mine = memory + (size_t)number * SHARE;
    for (size_t at = 0; at < SHARE; at += 4 * KIB) {
        store_past(mine + at, 4 * KIB, at);
        fence();
    }
    return NULL;
}

int main(int count, char **words) {
    memory = map_file(words[count - 1], 12 * SHARE);
    run_threads(12, work);
}
