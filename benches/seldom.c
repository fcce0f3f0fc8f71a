/* A program that seldom touches persistent memory: THREADS ROUNDS FILE.
 * Each thread keeps a hash table in DRAM, and appends one record of 64 B to its part of the file every thousand rounds. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS ((uint64_t)1 << 16)
#define PART ((uint64_t)1 << 20)

static uint64_t rounds;
static char *memory;

static void persist(char *line) { __asm__ volatile("clwb (%0)\n\tsfence" : : "r"(line) : "memory"); }

static void *work(void *number) {
    uint64_t *table = calloc(SLOTS, sizeof *table), state = 1 + (uintptr_t)number, at = 0;
    char *part = memory + (uintptr_t)number * PART;
    for (uint64_t round = 0; round < rounds; round++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t slot = state >> 48;
        for (int step = 0; step < 8; step++) {
            slot = (slot * 31 + table[slot]) % SLOTS;
            table[slot] += state >> step;
        }
        if (round % 1000 == 0) {
            for (int word = 0; word < 8; word++) ((volatile uint64_t *)(part + at))[word] = table[slot] + word;
            persist(part + at);
            at = (at + 64) % PART;
        }
    }
    free(table);
    return NULL;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    uintptr_t threads = strtoul(words[1], NULL, 10);
    pthread_t others[64];
    if (threads < 1 || threads > 64) return 2;
    rounds = strtoull(words[2], NULL, 10);
    int file = open(words[3], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)(threads * PART)) != 0) {
        perror(words[3]);
        return 1;
    }
    memory = mmap(NULL, threads * PART, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 1;
    for (uintptr_t number = 0; number < threads; number++) pthread_create(&others[number], NULL, work, (void *)number);
    for (uintptr_t number = 0; number < threads; number++) pthread_join(others[number], NULL);
    return 0;
}
