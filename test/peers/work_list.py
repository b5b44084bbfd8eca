# work_list.py - the works that works.py runs on request
# SPDX-License-Identifier: BSD-3-Clause

# By name: iterations of a turn, and the required ratio to gloo.
WORKS = {"all_reduce 25 MB": (5, 1.2), "all_reduce 256 MB": (1, 1.2),
         "reduce_scatter 25 MB": (5, 1.5), "reduce_scatter 256 MB": (1, 1.5),
         "all_reduce 16 floats": (1000, 6), "sw_coll 16 floats": (1000, None),
         "all_reduce 64 floats": (200, 1), "future 64 floats": (200, 1),
         "all_reduce 1 MB": (50, 1), "future 1 MB": (50, 1),
         "ddp digits": (10, 0.95), "ddp digits-wide": (5, 1.2),
         "ddp_hook digits-wide": (5, 1.25),
         "ddp digits-one": (5, 1.5), "ddp_hook digits-one": (5, 1.5),
         "ddp text": (3, 0.95), "ddp_hook text": (3, 1.1),
         "ddp text-wide": (3, 0.95),
         "fsdp text-wide": (3, 1.2),
         "fsdp_memory text-wide": (3, 1.2)}
# A step without communication, measured with the steps of DDP.
WORKS |= {f"ddp_alone {work.split()[1]}": (asked[0], None)
          for work, asked in list(WORKS.items()) if work.startswith("ddp ")}
ALONE_WORKS = [work for work in WORKS if work.startswith("ddp_alone")]
# From C, measured with the all_reduce of the same size.
C_WORKS = [work for work in WORKS if work.startswith("sw_coll")]
