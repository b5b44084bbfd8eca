/* model.h - a network as its layers, with their times and tensors.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Layers form a chain in the order of the forward pass. conf/models/README.md
 * describes the file format.  Four networks are built in.
 */
#ifndef SW_APPS_LAB_MODEL_H
#define SW_APPS_LAB_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_MODEL_NAME = 64, /* with the NUL */
	SW_MODEL_SOURCE = 160,
	SW_MODEL_LAYERS = 4096,
	SW_MODEL_TENSORS = 4096, /* as many as a job may have */
};

struct sw_model_layer {
	char name[SW_MODEL_NAME];
	uint64_t forward_ns, backward_ns;
	uint64_t bytes;            /* bytes of its tensors, as f32 */
	uint32_t first, n_tensors; /* indices into the model's tensors */
};

struct sw_model_tensor {
	char name[SW_MODEL_NAME];
	uint32_t layer;
	uint64_t n_elems; /* f32 */
};

struct sw_model {
	char name[SW_MODEL_NAME];
	char source[SW_MODEL_SOURCE]; /* source of the times */
	struct sw_model_layer *layers;
	struct sw_model_tensor *tensors; /* layer by layer */
	uint32_t n_layers, n_tensors;
	uint64_t bytes;                   /* M of the papers */
	uint64_t forward_ns, backward_ns; /* sums over all layers */
};

/* sw_model_open - read a model.  @what is the name of a built-in model (in
 * upper or lower case), or the path of a file, which contains a "/" or a ".".
 * @why  on error, the cause with file and line; @size bytes
 * Errors: SW_ENOENT, SW_EIO, SW_ECONF, SW_ENOMEM.  After 0 the caller must
 * close
 * @m. */
int sw_model_open(struct sw_model *m, const char *what, char *why, size_t size);

/* sw_model_parse - read a model from @len bytes of text; errors call it
 * @file. */
int sw_model_parse(struct sw_model *m, const char *file, const char *text,
	size_t len, char *why, size_t size);

void sw_model_close(struct sw_model *m);

/* sw_model_builtin - return the name of built-in model @i; NULL after the
 * last. */
const char *sw_model_builtin(uint32_t i);

#endif
