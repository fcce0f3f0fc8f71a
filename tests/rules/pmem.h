/* What the rule programs share: a file of persistent memory, and the instructions that write to it. */
#ifndef PMEM_H
#define PMEM_H

#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define LINE 64
#define XPLINE 256

/* Map a new file of so many bytes. */
static char *map_file(const char *path, size_t size) {
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        perror(path);
        exit(1);
    }
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    close(file);
    return memory;
}

/* A number that looks random; the same each run. */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

static inline void flush_line(const char *place) { __asm__ volatile("clwb %0" : : "m"(*place) : "memory"); }

static inline void fence(void) { _mm_sfence(); }

/* Store so many bytes, a multiple of 16, through the caches. */
static inline void store(char *to, size_t bytes, uint64_t value) {
    __m128i piece = _mm_set1_epi64x((long long)value);
    for (size_t at = 0; at < bytes; at += 16)
        *(volatile __m128i *)(to + at) = piece;
}

/* The same past the caches. */
static inline void store_past(char *to, size_t bytes, uint64_t value) {
    __m128i piece = _mm_set1_epi64x((long long)value);
    for (size_t at = 0; at < bytes; at += 16)
        _mm_stream_si128((__m128i *)(to + at), piece);
}

/* Flush the lines of a range. */
static inline void flush_range(const char *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += LINE)
        flush_line(from + at);
}

static pthread_barrier_t all_there;

/* Wait until all threads are there; again and again, if they like. */
static inline void start_together(void) { pthread_barrier_wait(&all_there); }

/* Run so many threads to their ends. */
static inline void run_threads(int count, void *(*work)(void *)) {
    pthread_t threads[64];
    pthread_barrier_init(&all_there, NULL, (unsigned)count);
    for (long number = 0; number < count; number++)
        pthread_create(&threads[number], NULL, work, (void *)number);
    for (int number = 0; number < count; number++)
        pthread_join(threads[number], NULL);
}

#endif
