/* Records are made persistent, and the count of them that stands on another line never is. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = LINE; at < 1 * MIB; at += LINE) {
        store(memory + at, LINE, at);
        flush_line(memory + at);
        fence();
        *(volatile uint64_t *)memory = at;
    }
}
