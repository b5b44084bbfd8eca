# torch_documents.py - run the commands of the documents that need a new PyTorch
# SPDX-License-Identifier: BSD-3-Clause
import os
import tempfile

import torch_rig
import torch_site
import documents
import rig

WRAPPERS = {"python3": "", "torchrun": "-m torch.distributed.run"}


def run(document):
    """Run with python3 and torchrun of the rig's interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in WRAPPERS.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\nPYTHONPATH=$PYTHONPATH:{torch_site.site() or ''} "
                        f"exec {torch_rig.python()} {words} \"$@\"\n")
            os.chmod(path, 0o755)
        documents.run(
            document, "torch", PYTHONPATH=os.path.join(torch_rig.ROOT, "apps/torch"),
            PYTHONDONTWRITEBYTECODE="1", GLOO_SOCKET_IFNAME="lo",
            PATH=":".join((folder, os.path.abspath(rig.BUILD) + "/apps",
                           os.environ["PATH"])))


def test_readme():
    run("README.md")


def test_tutorial():
    run("doc/tutorial.md")


def test_pytorch():
    run("doc/pytorch.md")


if __name__ == "__main__":
    torch_site.site()  # while the network is still reachable
    documents.enter()
    torch_rig.main(dict(globals()))
