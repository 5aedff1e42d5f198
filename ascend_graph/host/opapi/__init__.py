"""CANN's aclnn functions on the host: ``functions.txt`` says which there are and what kernel each is.

``table`` reads it, ``source`` makes C functions of it when the toolkit's libopapi is built, ``call`` runs them.
"""
