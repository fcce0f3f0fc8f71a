/* An append-only log in persistent memory: RECORDS FILE. A record is 64 B: eight words with a checksum, flushed and fenced. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPAN ((uint64_t)64 << 20)

int main(int count, char **words) {
    if (count != 3) return 2;
    uint64_t records = strtoull(words[1], NULL, 10), state = 1;
    int file = open(words[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)SPAN) != 0) {
        perror(words[2]);
        return 1;
    }
    char *memory = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 1;
    for (uint64_t record = 0; record < records; record++) {
        volatile uint64_t *line = (uint64_t *)(memory + record * 64 % SPAN);
        uint64_t sum = record;
        line[0] = record;
        for (int word = 1; word < 7; word++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            line[word] = state;
            sum = (sum ^ state) * 0x100000001b3u;
        }
        line[7] = sum;
        __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(line) : "memory");
    }
    return 0;
}
