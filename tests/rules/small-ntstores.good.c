/* The same counters are stored through the caches and flushed. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 1 * MIB; at += LINE) {
        uint64_t old = *(volatile uint64_t *)(memory + at);
        store(memory + at, LINE, old + 1);
        flush_line(memory + at);
        fence();
    }
}
