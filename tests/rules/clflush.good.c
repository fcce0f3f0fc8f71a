/* The same records are flushed with clwb. */
#include "pmem.h"

#define RECORD (3 * LINE)

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 3 * MIB; at += RECORD) {
        store(memory + at, RECORD, at);
        flush_range(memory + at, RECORD);
        fence();
    }
}
