/* Values of 4 KiB are stored through the caches and flushed. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 4 * MIB; at += 4 * KIB) {
        store(memory + at, 4 * KIB, at);
        flush_range(memory + at, 4 * KIB);
        fence();
    }
}
