/* A fence before the stores and one after the flush: the first orders nothing. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 1 * MIB; at += LINE) {
        fence();
        store(memory + at, LINE, at);
        flush_line(memory + at);
        fence();
    }
}
