#!/usr/bin/env python3
# crc_powers.py - print the constants of the CRC-32C kernels
# SPDX-License-Identifier: BSD-3-Clause
"""Print the powers of x in crc.inc.h's kernels, and the table of crc_scalar.c."""

POLYNOMIAL = 0x11EDC6F41
ORDER = 2**31 - 1  # x^ORDER = 1

# name: bytes of a vector, rounds and words of a step, steps of the blocks
KERNELS = {"clmul128_slow": (16, 1, 4, (42, 6)), "clmul128": (16, 1, 2, (63, 9)),
           "clmul256": (32, 1, 4, (31, 4)), "clmul512": (64, 2, 4, (12, 2))}


def times(a, b):
    """Return a * b mod P."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a <<= 1
        a ^= POLYNOMIAL if a >> 32 else 0
        b >>= 1
    return product


def power(n):
    """Return x^n mod P, reflected."""
    n %= ORDER
    result, square = 1, 2
    while n:
        result = times(result, square) if n & 1 else result
        square = times(square, square)
        n >>= 1
    return f"0x{int(f'{result:032b}'[::-1], 2):08x}"


def pair(n_bytes):
    return f"{{{power(8 * n_bytes + 31)}, {power(8 * n_bytes - 33)}}}"


def kernel(name, vector, rounds, words, blocks):
    print(f"{name}: POWERS", *(pair(vector * i) + "," for i in range(1, 5)))
    for steps in blocks:
        stream = 8 * words * steps
        folded = 4 * vector * rounds * steps  # after the vectors' first round
        joins = [power(8 * ((3 - i) * stream + folded + 8) - 33)
                 for i in range(4)]
        print(f"{{{steps}, {pair(4 * vector + 4 * stream)},",
              "{" + ", ".join(f"{{{j}}}" for j in joins) + "}},",
              4 * vector + folded + 4 * stream, "bytes")


def nibbles():
    """Return [i][v]: the CRC of v << 4 * i, a nibble of 8 bytes, the first the
    lowest."""
    for i in range(16):
        bits = [int(power(95 - 4 * i - b), 16) for b in range(4)]
        row = [0] * 16
        for v in range(16):
            for b in range(4):
                row[v] ^= bits[b] if v >> b & 1 else 0
        print("{" + ", ".join(f"0x{v:08x}" for v in row) + "},")


for each, sizes in KERNELS.items():
    kernel(each, *sizes)
nibbles()
