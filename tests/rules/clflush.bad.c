/* Records of 192 B are flushed with clflush, which waits for each line. */
#include "pmem.h"

#define RECORD (3 * LINE)

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 3 * MIB; at += RECORD) {
        store(memory + at, RECORD, at);
        for (size_t line = 0; line < RECORD; line += LINE)
            _mm_clflush(memory + at + line);
        fence();
    }
}
