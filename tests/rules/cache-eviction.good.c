/* A table, each XPLine of which is flushed once it is written. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 8 * MIB);
    for (size_t at = 0; at < 8 * MIB; at += XPLINE) {
        store(memory + at, XPLINE, at);
        flush_range(memory + at, XPLINE);
        fence();
    }
}
