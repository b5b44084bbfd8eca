# proc_documents.py - run the commands of the user documents as written
# SPDX-License-Identifier: BSD-3-Clause
import os

import documents
import rig


def run(document):
    documents.run(document, "run", PATH=os.path.join(
        os.path.abspath(rig.BUILD), "apps") + ":" + os.environ["PATH"])


def test_readme():
    run("README.md")


def test_why():
    run("doc/why.md")


def test_tutorial():
    run("doc/tutorial.md")


def test_operations():
    run("doc/operations.md")


def test_lab():
    run("doc/lab.md")


def test_c_api():
    run("doc/c-api.md")


if __name__ == "__main__":
    documents.enter()
    rig.main(dict(globals()))
