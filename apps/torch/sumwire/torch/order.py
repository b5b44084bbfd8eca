# order.py - the order in which a forward pass uses the parameters
# SPDX-License-Identifier: BSD-3-Clause
from torch.nn.modules import module as nn_module


class ForwardOrder:
    """Watch the forward of every module until take() is called, because an
    optimizer knows parameters and no modules."""

    def __init__(self):
        self.wanted = set()
        self.first = {}  # parameter: place in the order of first use
        self.sparse = set()  # parameters whose gradients will be sparse
        self.modules = []  # modules that own wanted parameters, in order
        self.hook = None

    def want(self, parameter):
        self.wanted.add(parameter)
        if self.hook is None:
            self.hook = nn_module.register_module_forward_pre_hook(self.see)

    def see(self, module, _):
        if getattr(module, "sparse", False) is True:
            self.sparse.update(p for p in module._parameters.values()
                               if p in self.wanted)
        mine = [p for p in module._parameters.values() if p in self.wanted]
        if mine and module not in self.modules:
            self.modules.append(module)
        for p in mine:
            self.first.setdefault(p, len(self.first))

    def take(self):
        """Return the order so far, and stop watching."""
        if self.hook is not None:
            self.hook.remove()
            self.hook = None
        return self.first

    def new_modules(self):
        """Return the modules seen since the previous call."""
        if not self.modules:
            return ()
        modules, self.modules = self.modules, []
        return modules
