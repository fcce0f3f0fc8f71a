/* Counters in lines that were read just before are written past the caches. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 1 * MIB; at += LINE) {
        uint64_t old = *(volatile uint64_t *)(memory + at);
        store_past(memory + at, LINE, old + 1);
        fence();
    }
}
