#!/usr/bin/env python3
# make.py - write the model files of this folder: shapes, and times by FLOPs.
# SPDX-License-Identifier: BSD-3-Clause
"""Layers and tensors of four published networks, all in f32.

A layer's share of the multiply-adds is its share of a published iteration time;
backward takes twice as long as forward.  Run here: python3 make.py
"""

TF = ('TensorFlow benchmarks, May 2017: 1 x P100, synthetic data, batch 32, '
      '%s images/s')
NV = 'NVIDIA DeepLearningExamples, 2019: 1 x V100, FP32, %s'


class Model:
    def __init__(self, file, name, source, iteration_ns):
        self.file, self.name, self.source = file, name, source
        self.iteration_ns = iteration_ns
        self.layers = []  # (name, multiply-adds, [(tensor, shape)])

    def layer(self, name, macs, **tensors):
        self.layers.append(
            (name, macs, [(name + '.' + t, s) for t, s in tensors.items()]))

    def count(self):
        n = 0
        for _, _, tensors in self.layers:
            for _, shape in tensors:
                size = 1
                for d in shape:
                    size *= d
                n += size
        return n

    def write(self):
        macs = sum(layer[1] for layer in self.layers)
        with open(self.file, 'w') as f:
            f.write('# %s - written by make.py.\n'
                    '# SPDX-License-Identifier: BSD-3-Clause\n'
                    'model %s\nsource %s\nlayers %d\nparameters %d\n' % (
                        self.file, self.name, self.source, len(self.layers),
                        self.count()))
            for i, (name, m, tensors) in enumerate(self.layers):
                forward = round(self.iteration_ns / 3 * m / macs)
                f.write('layer %d %s forward %dns backward %dns\n' % (
                    i, name, forward, 2 * forward))
                for t, shape in tensors:
                    f.write('tensor %s %s\n' % (
                        t, 'x'.join(str(d) for d in shape)))


def vgg16():
    """Simonyan and Zisserman 2015, configuration D."""
    m = Model('vgg16.model', 'VGG16', TF % 144, 32 / 144 * 1e9)
    n_in, side = 3, 224
    for block, (n_out, depth) in enumerate(
            [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)], 1):
        for i in range(1, depth + 1):
            m.layer('conv%d_%d' % (block, i), n_in * n_out * 9 * side * side,
                    weight=(n_out, n_in, 3, 3), bias=(n_out,))
            n_in = n_out
        side //= 2
    for name, a, b in [('fc6', 25088, 4096), ('fc7', 4096, 4096),
                       ('fc8', 4096, 1000)]:
        m.layer(name, a * b, weight=(b, a), bias=(b,))
    return m


def resnet50():
    """He et al. 2016, with the stride in the 3x3 convolution (v1.5)."""
    m = Model('resnet50.model', 'ResNet50', TF % 195, 32 / 195 * 1e9)

    def conv(name, n_in, n_out, kernel, side):
        m.layer(name, n_in * n_out * kernel * kernel * side * side,
                weight=(n_out, n_in, kernel, kernel), bn_weight=(n_out,),
                bn_bias=(n_out,))

    conv('conv1', 3, 64, 7, 112)
    n_in, side = 64, 56
    for stage, (width, depth) in enumerate(
            [(64, 3), (128, 4), (256, 6), (512, 3)], 1):
        for block in range(depth):
            name = 'layer%d.%d.' % (stage, block)
            out = side // 2 if stage > 1 and block == 0 else side
            conv(name + 'conv1', n_in, width, 1, side)
            conv(name + 'conv2', width, width, 3, out)
            conv(name + 'conv3', width, 4 * width, 1, out)
            if block == 0:
                conv(name + 'downsample', n_in, 4 * width, 1, out)
            n_in, side = 4 * width, out
    m.layer('fc', 2048 * 1000, weight=(1000, 2048), bias=(1000,))
    return m


def transformer():
    """Vaswani et al. 2017, big, as fairseq trains it on WMT14 en-de: joined
    vocabulary of 33,712, attention without biases, norms before sublayers."""
    m = Model('transformer.model', 'Transformer',
              NV % '2560 tokens, 7635 tokens/s', 2560 / 7635 * 1e9)
    d, ff, vocab, length = 1024, 4096, 33712, 32

    def attention(name):
        m.layer(name, 4 * d * d + 2 * d * length, in_proj=(3 * d, d),
                out_proj=(d, d), norm_weight=(d,), norm_bias=(d,))

    def feed(name):
        m.layer(name, 2 * d * ff, fc1_weight=(ff, d), fc1_bias=(ff,),
                fc2_weight=(d, ff), fc2_bias=(d,), norm_weight=(d,),
                norm_bias=(d,))

    m.layer('embedding', 0, weight=(vocab, d))
    for i in range(6):
        attention('encoder.%d.attention' % i)
        feed('encoder.%d.feed' % i)
    m.layer('encoder.norm', d, weight=(d,), bias=(d,))
    for i in range(6):
        attention('decoder.%d.attention' % i)
        attention('decoder.%d.encoder_attention' % i)
        feed('decoder.%d.feed' % i)
    m.layer('decoder.norm', d, weight=(d,), bias=(d,))
    m.layer('output', vocab * d)  # its weight is the embedding's
    return m


def bert_large():
    """Devlin et al. 2019: 24 layers, uncased vocabulary, with the pooler."""
    m = Model('bert-large.model', 'BERT-large',
              NV % '7 sentences of 512, 7.56 sentences/s', 7 / 7.56 * 1e9)
    d, ff, length = 1024, 4096, 512

    m.layer('embeddings', 0, word=(30522, d), position=(512, d),
            token_type=(2, d), norm_weight=(d,), norm_bias=(d,))
    for i in range(24):
        tensors = {}
        for t in ('query', 'key', 'value', 'output'):
            tensors[t + '_weight'], tensors[t + '_bias'] = (d, d), (d,)
        m.layer('encoder.%d.attention' % i, 4 * d * d + 2 * d * length,
                **tensors, norm_weight=(d,), norm_bias=(d,))
        m.layer('encoder.%d.feed' % i, 2 * d * ff, fc1_weight=(ff, d),
                fc1_bias=(ff,), fc2_weight=(d, ff), fc2_bias=(d,),
                norm_weight=(d,), norm_bias=(d,))
    m.layer('pooler', d * d // length, weight=(d, d), bias=(d,))
    return m


if __name__ == '__main__':
    for model in (vgg16(), resnet50(), transformer(), bert_large()):
        model.write()
        print('%-12s %12d parameters, %3d layers, %3d tensors' % (
            model.name, model.count(), len(model.layers),
            sum(len(layer[2]) for layer in model.layers)))
