/* Two threads write the same bytes. Run it on one DIMM. */
#include "pmem.h"

#define SHARE (6 * MIB)
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
    memory = map_file(words[count - 1], 2 * SHARE);
    run_threads(2, work);
}
