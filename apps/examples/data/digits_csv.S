/* digits_csv.S - the bytes of digits.csv as an object of the command.
 * SPDX-License-Identifier: BSD-3-Clause */
	.section .rodata
	.globl	sw_digits_csv
	.hidden	sw_digits_csv
	.globl	sw_digits_csv_end
	.hidden	sw_digits_csv_end
	.balign	64
sw_digits_csv:
	.incbin	DIGITS_CSV
sw_digits_csv_end:
	.section .note.GNU-stack, "", %progbits
