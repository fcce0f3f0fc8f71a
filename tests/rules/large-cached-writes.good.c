/* The same values are written past the caches. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 4 * MIB; at += 4 * KIB) {
        store_past(memory + at, 4 * KIB, at);
        fence();
    }
}
