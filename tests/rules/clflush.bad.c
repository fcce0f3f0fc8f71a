/* Records of 256 B are flushed with clflush, which waits for each line. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (size_t at = 0; at < 4 * MIB; at += XPLINE) {
        store(memory + at, XPLINE, at);
        for (size_t line = 0; line < XPLINE; line += LINE)
            _mm_clflush(memory + at + line);
        fence();
    }
}
