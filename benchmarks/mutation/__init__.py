"""Which faults the suite finds: faults are planted in a copy of the tree, one is switched on at a time, and tests judge.

``sites`` chooses the faults of Python and ``cpp_sites`` those of C++; ``plant`` writes them, each guarded by a number, so that
everything compiles once. A run of the suite with ``reach`` as pytest's plugin records which test reaches which fault; ``judge``
runs the cheapest of them until one fails. A fault that only the tests of a list find is what the suite loses with that list.
"""
