"""The exchange types: one file each, with a class `Type` and a row in core/exchange/registry.py.

A board leaves a type out by leaving its file out.
"""
