/* The same records are flushed with clwb. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 4 * MIB; at += XPLINE) {
        store(memory + at, XPLINE, at);
        flush_range(memory + at, XPLINE);
        fence();
    }
}
