/* models.S - the bytes of the model files as objects of the command.
 * SPDX-License-Identifier: BSD-3-Clause */
	.section .rodata
#define MODEL(name, file)                                \
	.globl	sw_model_##name, sw_model_##name##_end;  \
	.hidden	sw_model_##name, sw_model_##name##_end;  \
sw_model_##name:                                         \
	.incbin	file;                                    \
sw_model_##name##_end:

MODEL(vgg16, "/vgg16.model")
MODEL(resnet50, "/resnet50.model")
MODEL(transformer, "/transformer.model")
MODEL(bert_large, "/bert-large.model")

	.section .note.GNU-stack, "", %progbits
