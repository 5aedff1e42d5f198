"""CANN's aclnn functions on the host: ``functions.txt`` lists them with the kernel of each.

``table`` reads it, ``source`` generates C functions from it when the toolkit's libopapi is built, ``call`` runs them.
"""
