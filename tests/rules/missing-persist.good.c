/* The count is made persistent after the records that it counts, once for each thousand. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = LINE; at < 1 * MIB; at += LINE) {
        store(memory + at, LINE, at);
        flush_line(memory + at);
        fence();
        if (at % (64 * KIB) == 0 || at == 1 * MIB - LINE) {
            *(volatile uint64_t *)memory = at;
            flush_line(memory);
            fence();
        }
    }
}
