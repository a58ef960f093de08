"""Features of queues beyond keeping messages in order: one file a feature, attached to a queue by its arguments (core/queue/rules.py).

A board leaves a feature out by leaving its file out; a declaration that asks for it is then refused.
"""
