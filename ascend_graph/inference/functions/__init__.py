"""Inference of a relation from a shape function: the author's InferShape, or a meta function.

The function is asked instead of a kernel, on the same structured inputs. It is exact and cheap, and needs neither a
kernel nor values. It is untrusted: it runs in a fork of this process, with a time limit, and is asked some questions twice.
"""
